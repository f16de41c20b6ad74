"""``instrumented-objects``: chooses the objects of a kernel that are instrumented."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mepof import _engine
from mepof.algorithm.protocol import EXECUTED_OBJECTS
from mepof.device import recorder_trace
from mepof.errors import InputError, WorkError
from mepof.kernel.description import BuildDescription
from mepof.kernel.objects import functions_in
from mepof.kernel.overlay import exclusions
from mepof.kernel.selection import (
    SelectedObject,
    Selection,
    hottest,
    objects_of_functions,
)
from mepof.kernel.subsystems import check_place, matching
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import HostInput, Input, Step
from mepof.pmu.locations import Function, functions_of
from mepof.profile.hotness import hotness
from mepof.spec.instrumented_objects import InstrumentedObjects

# The engine's name for ranges without a taken branch, by absolute addresses.
_ADDRESSES = "bolt-preaggregated"


class InstrumentedObjectsBody:
    """Makes ``selection.json`` and ``kernel.executed_objects``, the list that a build reads."""

    kind = InstrumentedObjects.kind
    phase: Phase = "convert"

    def check(self, step: Step) -> None:
        """Refuse a profile that does not say how often functions ran."""
        profile = InstrumentedObjects[Input].of(step, step.inputs).profile
        if isinstance(profile, HostInput):
            path = Path(profile.path)
            if not path.exists():
                raise InputError(f"{path} does not exist")
            hotness(path, {})

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {"engine": file_digest(_engine.__file__)}

    def run(self, context: StepContext) -> None:
        asked = InstrumentedObjects[Path].of(context.step, context.inputs)
        defined = functions_in(asked.kernel)
        functions = functions_of(asked.kernel)
        owners = list(objects_of_functions([each.name for each in functions], defined))
        text: Counter[str] = Counter()
        for function, owner in zip(functions, owners, strict=True):
            text[owner or ""] += function.size
        able = _able(defined, asked.exclude)
        weights, total = _weights(asked, defined, functions, owners, context)
        chosen = _listed(asked, weights, able)
        for place in asked.places:
            check_place(place, defined)
        if asked.places:
            found = {place: matching(place, chosen) for place in asked.places}
            for place, names in found.items():
                if not names:
                    context.note(f"nothing of `{place}` runs in this kernel and can be counted")
            chosen = frozenset().union(*found.values())
        objects: Sequence[SelectedObject] = sorted(
            (
                SelectedObject(
                    name=name, text=text[name], weight=None if total is None else weights[name]
                )
                for name in chosen
            ),
            key=lambda each: (-(each.weight or 0), each.name),
        )
        if asked.percent is not None:
            objects = hottest(objects, asked.percent)
        if not objects:
            raise InputError(
                "nothing would be instrumented: none of the files that were chosen runs",
                "choose others with `set instrument`, or let the scenario run more actions",
            )
        selection = Selection(
            objects=tuple(objects),
            files=len(able),
            text=sum(text.values()),
            weight=total,
            plain_image=BuildDescription.read(asked.kernel).size_bytes.image,
        )
        selection.write(context.output)
        selection.write_names(context.output / EXECUTED_OBJECTS)
        context.note(str(selection))


def _able(defined: Iterable[str], excluded: Sequence[str]) -> frozenset[str]:
    """The objects that can be instrumented and are not excluded."""
    patterns = [each.match.replace("%", "**") for each in exclusions()]
    names = frozenset(defined)
    return names.difference(*(matching(each, names) for each in (*patterns, *excluded)))


def _weights(
    asked: InstrumentedObjects[Path],
    defined: Mapping[str, Sequence[str]],
    functions: Sequence[Function],
    owners: Sequence[str | None],
    context: StepContext,
) -> tuple[Counter[str], int | None]:
    """How much of each object ran, and of all code; None where nothing tells."""
    if asked.profile is not None:
        found = Counter(hotness(asked.profile, defined))
        if not found:
            raise InputError(
                "no function of the profile by which files are chosen is in this kernel",
                "`set hotness` takes a profile of this kernel, or of another release of it",
            )
        return found, found.total()
    traces = [] if asked.raw is None else sorted(asked.raw.glob("raw*"))
    if not traces:
        return Counter(), None
    if any(recorder_trace.modules_in(path) for path in traces):
        if asked.percent is not None:
            raise WorkError(
                "what is hot is unknown: the kernel ran code of modules",
                "name an earlier profile with `set hotness`",
            )
        return Counter(), None
    recording = _engine.Recording(asked.kernel / "vmlinux", traces)
    listing = context.work / "ranges"
    _engine.convert(recording, _ADDRESSES, listing, allow_poor=True)
    with listing.open(encoding="utf-8") as lines:
        ran = executed_bytes(_ranges(lines), functions)
    found = Counter()
    for owner, executed in zip(owners, ran, strict=True):
        found[owner or ""] += executed
    return found, found.total()


def _ranges(lines: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    """The first address, the last and the count of each range without a taken branch."""
    for line in lines:
        kind, first, last, count, *_ = line.split()
        if kind == "F":
            yield int(first, 16), int(last, 16), int(count)


def executed_bytes(
    ranges: Iterable[tuple[int, int, int]], functions: Sequence[Function]
) -> list[int]:
    """The bytes of code of each function that were executed.

    Args:
        ranges: the first address, the last and the count of each.
        functions: in the order of their addresses.
    """
    starts = [function.address for function in functions]
    found = [0] * len(functions)
    for first, last, count in ranges:
        index = max(0, bisect_right(starts, first) - 1)
        while index < len(functions) and starts[index] <= last:
            end = starts[index] + functions[index].size
            inside = min(last + 1, end) - max(first, starts[index])
            found[index] += max(0, inside) * count
            index += 1
    return found


def _listed(
    asked: InstrumentedObjects[Path], weights: Counter[str], able: frozenset[str]
) -> frozenset[str]:
    """The objects among which the program chooses: those that run, where that is known."""
    if asked.profile is not None:
        return frozenset(name for name in able if weights[name])
    listed = None if asked.executed is None else asked.executed / EXECUTED_OBJECTS
    if listed is None or not listed.exists():
        return able
    return able.intersection(listed.read_text(encoding="utf-8").split())


BODY = InstrumentedObjectsBody()
