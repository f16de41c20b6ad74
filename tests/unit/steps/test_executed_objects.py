"""``executed-objects``: from a branch trace to the objects in which something ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.traced_kernel import link_kernel, link_modules, recorded, recorded_in_module

from mepof.errors import WorkError
from mepof.events import StepNote
from mepof.kernel.objects import OBJECTS
from mepof.steps import executed_objects

from .room import Room


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


def test_objects_of_modules_are_listed_if_they_ran(room: Room) -> None:
    inputs = traced(room)
    build = inputs["kernel"]
    loop = link_modules(build, {"tiny": "busy"})
    defined = {"a.o": ["hot"], "drivers/m.o": ["busy"], "drivers/n.o": ["warm"]}
    (build / OBJECTS).write_text(json.dumps(defined))
    with (inputs["raw"] / "raw0").open("a") as file:
        file.write(recorded_in_module(loop, "tiny", 500))
    context = room.context("executed-objects", {}, **inputs)
    executed_objects.BODY.run(context)
    assert (context.output / "kernel.executed_objects").read_text() == "a.o\ndrivers/m.o\n"


def test_a_kernel_in_which_no_known_object_ran_is_an_error(room: Room) -> None:
    inputs = traced(room)
    (inputs["kernel"] / OBJECTS).write_text(json.dumps({"b.o": ["warm"]}))
    context = room.context("executed-objects", {}, **inputs)
    with pytest.raises(WorkError, match="no kernel function was executed"):
        executed_objects.BODY.run(context)
