"""``instrumented-objects``: chooses the objects of a kernel that are instrumented."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mepof import _engine
from mepof.algorithm.executed import ExecutedFunction, executed_code
from mepof.algorithm.protocol import EXECUTED_OBJECTS
from mepof.errors import InputError
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
from mepof.pmu.locations import functions_of
from mepof.profile.hotness import hotness
from mepof.spec.instrumented_objects import InstrumentedObjects


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
        traces = [] if asked.raw is None else sorted(asked.raw.glob("raw*"))
        functions = [*_functions(asked.kernel, traces, context.work / "functions")]
        owners = objects_of_functions([each.name for each in functions], defined)
        text: Counter[str] = Counter()
        executed: Counter[str] = Counter()
        for function, owner in zip(functions, owners, strict=True):
            text[owner or ""] += function.size
            executed[owner or ""] += function.executed
        able = _able(defined, asked.exclude)
        weights = executed if asked.profile is None else _counts(asked.profile, defined)
        total = weights.total() if asked.profile is not None or traces else None
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


def _functions(kernel: Path, traces: Sequence[Path], listing: Path) -> Iterator[ExecutedFunction]:
    """The functions of a kernel and of its recorded modules; none ran where there is no trace."""
    if traces:
        yield from executed_code(kernel, traces, listing)
    else:
        for each in functions_of(kernel):
            yield ExecutedFunction(each.name, each.size, executed=0, branches=0)


def _counts(profile: Path, defined: Mapping[str, Sequence[str]]) -> Counter[str]:
    """How often each object ran by a profile."""
    if found := Counter(hotness(profile, defined)):
        return found
    raise InputError(
        "no function of the profile by which files are chosen is in this kernel",
        "`set hotness` takes a profile of this kernel, or of another release of it",
    )


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
