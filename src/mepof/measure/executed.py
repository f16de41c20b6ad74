"""In which functions of a kernel the measured cases execute how many instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from mepof.document import Document
from mepof.errors import WorkError
from mepof.kernel.objects import defined_in
from mepof.pmu.locations import (
    Locations,
    RawLocations,
    functions_of,
    index_of,
    uninstrumented_in,
)
from mepof.suite.cases import CaseId


class CaseFunctions(BaseModel):
    """A case's kernel instructions by function: those compiled from C that a profile can count.

    Assembly, code that must not be instrumented and modules are left out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    suite: str
    case: str
    functions: dict[str, NonNegativeInt]


class ExecutedFunctions(Document):
    """The functions that the cases of a measurement execute in one boot."""

    file: ClassVar[str] = "functions.json"

    cases: tuple[CaseFunctions, ...]


def executed_functions(
    cases: Sequence[CaseId], raw: RawLocations, build: Path
) -> tuple[CaseFunctions, ...]:
    """The functions of a build that cases executed.

    Args:
        cases: those that ran, in their order.
        raw: what the emulator's plugin reported of them.

    Raises:
        WorkError: there is not one interval for each case.
    """
    if len(raw.intervals) != len(cases):
        raise WorkError(
            f"{len(cases)} cases ran but the executed code of {len(raw.intervals)} is known"
        )
    functions = functions_of(build)
    starts = [function.address for function in functions]
    countable = _Countable(build)
    found = []
    for case, interval in zip(cases, raw.intervals, strict=True):
        counts: Counter[int] = Counter()
        for start, _, size, executions, *_ in interval.sites:
            if (index := index_of(start, starts, functions)) is not None:
                counts[index] += size * executions
        rows = ((functions[i].name, functions[i].address, count) for i, count in counts.items())
        found.append(countable.of(case, rows))
    return tuple(found)


def located_functions(locations: Locations, build: Path) -> tuple[CaseFunctions, ...]:
    """The same from the locations of a modelled core's events."""
    countable = _Countable(build)
    return tuple(
        countable.of(
            (case.suite, case.case),
            ((each.name, each.address, each.instructions) for each in case.functions),
        )
        for case in locations.cases
    )


class _Countable:
    """What of a build's code a profile can count."""

    def __init__(self, build: Path) -> None:
        self._compiled = {name.partition(".")[0] for name in defined_in(build)}
        self._hidden = uninstrumented_in(build)

    def of(self, case: CaseId, rows: Iterable[tuple[str, int, int]]) -> CaseFunctions:
        """Names, addresses and instructions of functions, without the others; functions of one
        name together."""
        counts: Counter[str] = Counter()
        for name, address, instructions in rows:
            hidden = any(address in addresses for addresses in self._hidden)
            # ThinLTO appends `.llvm.HASH` to a static function that it exports, after its object.
            if name.partition(".")[0] in self._compiled and not hidden:
                counts[name] += instructions
        return CaseFunctions(suite=case[0], case=case[1], functions=dict(counts))
