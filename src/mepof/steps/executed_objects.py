"""``executed-objects``: lists the objects of a kernel in which a run executed something."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mepof import _engine
from mepof.algorithm.protocol import EXECUTED_OBJECTS
from mepof.device import recorder_trace
from mepof.errors import WorkError
from mepof.kernel.objects import functions_in, objects_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import Step
from mepof.pmu.locations import Function, functions_of
from mepof.spec.executed_objects import ExecutedObjects

# The engine's name for absolute addresses of branches and of ranges without a taken branch.
_ADDRESSES = "bolt-preaggregated"


class ExecutedObjectsBody:
    """Makes ``kernel.executed_objects``; without it where code of modules ran, whose symbols the
    kernel's do not include: then every object counts as executed."""

    kind = ExecutedObjects.kind
    phase: Phase = "convert"

    def check(self, step: Step) -> None:
        """There is nothing that a user could get wrong."""

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {"engine": file_digest(_engine.__file__)}

    def run(self, context: StepContext) -> None:
        asked = ExecutedObjects[Path].of(context.step, context.inputs)
        traces = sorted(asked.raw.glob("raw*"))
        if any(recorder_trace.modules_in(path) for path in traces):
            context.note("modules are loaded: all files are built to be profiled")
            return
        recording = _engine.Recording(asked.kernel / "vmlinux", traces)
        listing = context.work / "ranges"
        _engine.convert(recording, _ADDRESSES, listing, allow_poor=True)
        with listing.open(encoding="utf-8") as lines:
            names = executed_functions(_ranges(lines), functions_of(asked.kernel))
        objects = objects_of(asked.kernel, names)
        if not objects:
            raise WorkError("no kernel function was executed", "let the scenario run more actions")
        (context.output / EXECUTED_OBJECTS).write_text("\n".join(objects) + "\n")
        context.note(f"{len(objects)} of {len(functions_in(asked.kernel))} files ran")


def _ranges(lines: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The first and last address of all code that a listing says was executed: both ends of each
    branch (``B``), and each range between branches (``F``)."""
    for line in lines:
        kind, first, last, *_ = line.split()
        start, end = int(first, 16), int(last, 16)
        yield from [(start, end)] if kind == "F" else [(start, start), (end, end)]


def executed_functions(
    ranges: Iterable[tuple[int, int]], functions: Sequence[Function]
) -> frozenset[str]:
    """The names of the functions that have an address in one of some ranges.

    Args:
        ranges: first and last address of each.
        functions: in the order of their addresses.
    """
    starts = [function.address for function in functions]
    found: set[str] = set()
    for first, last in set(ranges):
        index = max(0, bisect_right(starts, first) - 1)
        while index < len(functions) and starts[index] <= last:
            if first < starts[index] + functions[index].size:
                found.add(functions[index].name)
            index += 1
    return frozenset(found)


BODY = ExecutedObjectsBody()
