"""``instrumented-objects``: from a branch trace or a profile to the objects that count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.traced_kernel import link_kernel, link_modules, recorded, recorded_in_module

from mepof.errors import InputError
from mepof.events import StepNote
from mepof.kernel.description import BuildSize
from mepof.kernel.objects import OBJECTS
from mepof.kernel.selection import Selection
from mepof.plan.model import HostInput, Input, Json, StepInput
from mepof.spec.instrumented_objects import InstrumentedObjects
from mepof.steps import instrumented_objects

from .room import BUILD, Room

AFDO = "hot:900:9\n 1: 900\nwarm:90:9\n 1: 90\nstart_kernel:10:1\n 1: 10\ngone:5:5\n 1: 5\n"
DEFINED = {"kernel/a.o": ["hot"], "mm/b.o": ["warm"], "init/c.o": ["start_kernel"], "mm/d.o": []}


def kernel(room: Room, defined: dict[str, list[str]] = DEFINED) -> dict[str, Path]:
    """A kernel whose function `hot` was recorded, as inputs of the step."""
    build, raw = room.directory("kernel"), room.directory("raw")
    _, loop = link_kernel(build)
    (build / OBJECTS).write_text(json.dumps(defined))
    BUILD.model_copy(update={"size_bytes": BuildSize(text=9, image=5000)}).write(build)
    (raw / "raw0").write_text(recorded(loop))
    executed = room.directory("executed")
    (executed / "kernel.executed_objects").write_text("kernel/a.o\nmm/b.o\n")
    return {"kernel": build, "raw": raw, "executed": executed}


def chosen(room: Room, params: dict[str, Json], **inputs: Path) -> tuple[list[str], Selection]:
    """The list and the document that the step makes."""
    context = room.context("instrumented-objects", params, **inputs)
    instrumented_objects.BODY.run(context)
    listed = (context.output / "kernel.executed_objects").read_text().splitlines()
    found = Selection.read(context.output)
    assert sorted(each.name for each in found.objects) == listed
    return listed, found


def test_the_hottest_objects_of_a_recording_are_chosen(room: Room) -> None:
    listed, found = chosen(room, {"percent": 90.0}, **kernel(room))
    assert listed == ["kernel/a.o"]
    assert found.time_percent == 100.0
    assert 0 < found.text_percent < 100
    assert (found.plain_image, found.image, found.files) == (5000, None, 4)
    (note,) = [e.text for e in room.events if isinstance(e, StepNote)]
    assert note == str(found)


def test_without_a_percentage_everything_that_ran_is_chosen(room: Room) -> None:
    listed, found = chosen(room, {}, **kernel(room))
    assert listed == ["kernel/a.o", "mm/b.o"]
    # The hottest first.
    assert [each.name for each in found.objects] == listed
    assert found.objects[0].weight and not found.objects[1].weight


def test_a_part_of_the_kernel_is_chosen_of_what_ran(room: Room) -> None:
    inputs = kernel(room)
    listed, _ = chosen(room, {"places": ["binder", "mm"]}, **inputs)
    assert listed == ["mm/b.o"]
    assert "nothing of `binder` runs" in str(room.events)
    # Nothing is known of what runs.
    listed, found = chosen(room, {"places": ["mm/"]}, kernel=inputs["kernel"])
    assert listed == ["mm/b.o", "mm/d.o"]
    assert found.time_percent is None


def test_what_is_excluded_is_not_chosen(room: Room) -> None:
    defined = {**DEFINED, "arch/x86/boot/x.o": [], "kernel/mepof/pgo.o": []}
    inputs = kernel(room, defined)
    params: dict[str, Json] = {"exclude": ["kernel/a.c"]}
    listed, found = chosen(room, params, kernel=inputs["kernel"])
    assert listed == ["init/c.o", "mm/b.o", "mm/d.o"]
    assert found.files == 3


def test_a_profile_ranks_by_its_counts(room: Room) -> None:
    inputs, profile = kernel(room), room.root / "old.afdo"
    profile.write_text(AFDO)
    listed, found = chosen(room, {"percent": 95.0}, kernel=inputs["kernel"], profile=profile)
    assert listed == ["kernel/a.o", "mm/b.o"]
    assert found.time_percent == 99.0
    profile.write_text("gone:5:5\n 1: 5\n")
    with pytest.raises(InputError, match="no function of the profile by which files are chosen"):
        chosen(room, {"percent": 95.0}, kernel=inputs["kernel"], profile=profile)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"places": ["init/c.o"]}, "nothing would be instrumented"),
        ({"places": ["kernel/b.o"]}, "compiles no file that matches `kernel/b.o`"),
    ],
)
def test_a_choice_without_an_object_is_an_error(
    room: Room, params: dict[str, Json], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        chosen(room, params, **kernel(room))


def test_objects_of_modules_are_chosen_by_what_ran(room: Room) -> None:
    inputs = kernel(room, {**DEFINED, "net/m.o": ["busy", "warm"]})
    loop = link_modules(inputs["kernel"], {"tiny": "busy"})
    with (inputs["raw"] / "raw0").open("a") as file:
        file.write(recorded_in_module(loop, "tiny", 50_000))
    (inputs["executed"] / "kernel.executed_objects").write_text("kernel/a.o\nnet/m.o\n")
    listed, found = chosen(room, {"percent": 90.0}, **inputs)
    assert listed == ["net/m.o"]
    assert found.objects[0].text > 0
    assert found.time_percent is not None and 90 < found.time_percent < 100


def test_a_file_that_counts_nothing_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    def step(path: Path) -> InstrumentedObjects[Input]:
        return InstrumentedObjects[Input](kernel=StepInput("k"), profile=HostInput(str(path)))

    body, layout = instrumented_objects.BODY, tmp_path / "kernel.ld_profile"
    with pytest.raises(InputError, match="does not exist"):
        body.check(step(layout).step("x"))
    layout.write_text("hot\nwarm\n")
    with pytest.raises(InputError, match="does not say how often functions ran"):
        body.check(step(layout).step("x"))
    layout.write_text(AFDO)
    body.check(step(layout).step("x"))
