"""``executed-objects``: from a branch trace to the objects in which something ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.traced_kernel import link_kernel, recorded

from mepof.device import recorder_trace
from mepof.errors import WorkError
from mepof.events import StepNote
from mepof.kernel.objects import OBJECTS
from mepof.pmu.locations import Function
from mepof.steps import executed_objects
from mepof.steps.executed_objects import executed_functions

from .room import Room

FUNCTIONS = (Function(100, 10, "a"), Function(110, 10, "b"), Function(130, 5, "c"))


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        (100, 100, {"a"}),
        (109, 110, {"a", "b"}),
        (105, 130, {"a", "b", "c"}),
        (120, 129, set()),
        (134, 134, {"c"}),
        (135, 200, set()),
        (1, 99, set()),
    ],
)
def test_a_range_runs_every_function_that_it_touches(
    first: int, last: int, names: set[str]
) -> None:
    assert executed_functions([(first, last)], FUNCTIONS) == names


def traced(room: Room) -> dict[str, Path]:
    """A kernel whose function `hot` was recorded, as inputs of the step."""
    build, raw = room.directory("kernel"), room.directory("raw")
    _, loop = link_kernel(build)
    defined = {"a.o": ["hot"], "b.o": ["warm"], "c.o": ["start_kernel"]}
    (build / OBJECTS).write_text(json.dumps(defined))
    (raw / "raw0").write_text(recorded(loop))
    return {"kernel": build, "raw": raw}


def test_objects_without_recorded_code_are_not_listed(room: Room) -> None:
    context = room.context("executed-objects", {}, **traced(room))
    executed_objects.BODY.run(context)
    assert (context.output / "kernel.executed_objects").read_text() == "a.o\n"
    assert [e.text for e in room.events if isinstance(e, StepNote)] == ["1 of 3 files ran"]


def test_code_of_modules_leaves_open_what_ran(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_trace, "modules_in", lambda path: frozenset({"nf_tables"}))
    context = room.context("executed-objects", {}, **traced(room))
    executed_objects.BODY.run(context)
    assert not any(context.output.iterdir())


def test_a_kernel_in_which_no_known_object_ran_is_an_error(room: Room) -> None:
    inputs = traced(room)
    (inputs["kernel"] / OBJECTS).write_text(json.dumps({"b.o": ["warm"]}))
    context = room.context("executed-objects", {}, **inputs)
    with pytest.raises(WorkError, match="no kernel function was executed"):
        executed_objects.BODY.run(context)
