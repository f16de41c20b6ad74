"""``measure``: which images are booted how often, and what an evaluation is made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mepof.device import agent
from mepof.device.modules import ModuleNotLoaded
from mepof.device.observation import ArtifactNeed, Measure
from mepof.device.protocol import Interval, KernelPanic
from mepof.errors import InputError
from mepof.measure.measurement import Evaluation, read_evaluation
from mepof.plan.body import Claim, StepContext
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.pmu.core import CORES, load_core
from mepof.pmu.events import EVENTS, cycles_of
from mepof.pmu.locations import read_locations
from mepof.pmu.settings import core_digest, price_digest, settings_of
from mepof.steps import (
    measure,
)
from mepof.suite.cases import cases_of

from .room import BUILD, FakeDevice, Room, well

MEASURE: dict[str, Json] = {
    "arch": "x86-64",
    "device": "qemu",
    "metrics": ["proc"],
    "seed": 4,
    "min_boots": 2,
    "max_boots": 2,
    "precision": 1.0,
}


ALONE: dict[str, Json] = {**MEASURE, "images": [None]}
IMAGE: dict[str, Input] = {"images.0": HostInput("/a.img"), "guest": StepInput("guest")}


def measured(
    room: Room, device: FakeDevice, core: str | None = None, cpus: int = 1, /, **inputs: Path
) -> Evaluation:
    context = measuring(room, device, core, cpus, **inputs)
    measure.BODY.run(context)
    return read_evaluation(context.output / "evaluation.json")


def measuring(
    room: Room, device: FakeDevice, core: str | None = None, cpus: int = 1, /, **inputs: Path
) -> StepContext:
    (case,) = cases_of(["proc"])
    line = f"case={case.name} operations=10 elapsed_ns=5 check=ok".encode()

    def answer(request: agent.Request) -> agent.Reply:
        return (
            well(request) if isinstance(request, agent.Get) else agent.ExecResult(0, 1, line, False)
        )

    device.answer = answer
    device.intervals = device.intervals or (Interval(1, 2, 3, 4),)
    made = room.root / "programs"
    if not made.exists():
        room.directory("programs", initramfs_cpio="guest", made="for the device")
    params: dict[str, Json] = {**MEASURE} if core is None else {**MEASURE, "core": core}
    if cpus > 1:
        params["cpus"] = cpus
    lists: dict[str, Json] = {
        field: [None for name in inputs if name.startswith(field)]
        for field in ("images", "relinked")
    }
    needed = {"artifacts__count" if core is None else "artifacts__zen4": made}
    return room.context(
        "measure", {**params, **lists, "artifacts": {}}, guest=made, **needed, **inputs
    )


def image(room: Room, name: str) -> Path:
    path = room.root / name
    path.write_text(name)
    return path


def test_a_measurement_of_a_bare_image_has_no_sections(room: Room, device: FakeDevice) -> None:
    given = image(room, "image")
    found = measured(room, device, images__0=given)
    (one,) = found.images
    assert [boot.seed for boot in one.boots] == [4, 5]
    assert one.sections == {}
    assert (one.size_bytes.text, one.size_bytes.image) == (None, 5)
    assert (found.same_build, found.relinked) == (None, ())
    assert {session.kernel for session in device.sessions} == {given}
    assert {s.measure for s in device.sessions} == {Measure()}
    assert [s.artifacts for s in device.sessions] == [{"count": room.root / "programs"}] * 2

    made = room.directory("made", kernel="image")
    BUILD.write(made)
    (one,) = measured(room, device, images__0=made).images
    assert one.sections == {".text": 7}
    assert one.size_bytes.text == 7


def test_images_and_controls_are_booted_in_turn(room: Room, device: FakeDevice) -> None:
    names = ("a", "b", "again")
    first, second, again = (image(room, name) for name in names)
    found = measured(room, device, images__0=first, images__1=second, relinked__0=again)
    booted = [(session.kernel.name, session.seed) for session in device.sessions]
    assert booted == [
        *(("a", 4), ("b", 4), ("again", 4), ("a", 1004)),
        *(("b", 5), ("again", 5), ("a", 1005), ("a", 5)),
    ]
    assert [len(m.boots) for m in found.images] == [2, 2]
    assert found.same_build is not None
    assert [boot.seed for boot in found.same_build.boots] == [1004, 1005]
    assert found.same_build.digest == found.images[0].digest
    assert len(found.relinked) == 1


def test_the_memory_of_every_image_is_read_in_a_boot_of_its_own(
    room: Room, device: FakeDevice
) -> None:
    given = {"images__0": image(room, "a"), "images__1": image(room, "b")}
    found = measured(room, device, relinked__0=image(room, "again"), **given)
    # Without counting, and not for controls.
    assert [(s.kernel.name, s.seed, s.measure) for s in device.read] == [
        ("a", 4, None),
        ("b", 4, None),
    ]
    used = (512 << 20) - (479504 + 2072 + 172) * 1024
    for each in found.images:
        assert each.memory is not None
        assert each.memory.used == used
        assert [boot.memory.used for boot in each.boots if boot.memory] == [used, used]
    assert found.same_build is not None
    assert found.same_build.memory is None
    # It is kept like a boot.
    device.read.clear()
    assert measured(room, device, **given).images[0].memory == found.images[0].memory
    assert device.read == []


def test_an_image_that_does_not_boot_has_no_memory(room: Room, device: FakeDevice) -> None:
    device.error = KernelPanic("the kernel went down: BUG")
    (found,) = measured(room, device, images__0=image(room, "a")).images
    assert (found.booted, found.memory) == (False, None)


def test_an_image_whose_module_does_not_load_is_a_result(room: Room, device: FakeDevice) -> None:
    device.error = ModuleNotLoaded("a module did not load in the guest: bad.ko")
    (found,) = measured(room, device, images__0=image(room, "a")).images
    assert (found.booted, found.memory) == (False, None)
    assert found.self_check == "a module did not load in the guest: bad.ko"


def test_repeatable_boots_are_shared_by_all_evaluations(room: Room, device: FakeDevice) -> None:
    device.mode = "icount"
    first, second, third = (image(room, name) for name in ("a", "b", "c"))
    before = measured(room, device, images__0=first, images__1=second)
    assert len(device.sessions) == 6
    device.sessions.clear()
    after = measured(room, device, images__0=first, images__1=second, images__2=third)
    assert {session.kernel for session in device.sessions} == {third}
    assert after.images[:2] == before.images
    assert after.same_build == before.same_build


def test_guests_of_another_number_of_cpus_share_no_boots(room: Room, device: FakeDevice) -> None:
    device.mode, device.most_cpus = "icount", 4
    given = {"images__0": image(room, "a"), "images__1": image(room, "b")}
    for cpus, booted in ((1, 6), (2, 6), (1, 0), (4, 6), (2, 0)):
        device.sessions.clear()
        measured(room, device, None, cpus, **given)
        assert [session.cpus for session in device.sessions] == [cpus] * booted


def test_more_cpus_than_a_device_has_are_refused_before_anything_runs(device: FakeDevice) -> None:
    step = Step("m", "measure", {**ALONE, "cpus": 2}, {**IMAGE, "images.0": StepInput("b")})
    with pytest.raises(InputError, match="boots x86-64 kernels with at most 1 CPU, not 2"):
        measure.BODY.check(step)
    device.most_cpus = 2
    measure.BODY.check(step)


def test_boots_that_are_not_repeatable_belong_to_one_evaluation(
    room: Room, device: FakeDevice
) -> None:
    given = {"images__0": image(room, "a"), "images__1": image(room, "b")}
    measured(room, device, **given)
    # An evaluation that was interrupted after its last boot has nothing left to boot.
    measured(room, device, **given)
    assert len(device.sessions) == 6
    shutil.rmtree(room.root / "measure-work")
    measured(room, device, **given)
    assert len(device.sessions) == 12


def test_a_device_whose_boots_depend_on_time_is_claimed_by_one_step(device: FakeDevice) -> None:
    step = Step("m", "measure", ALONE, IMAGE)
    device.claimed = "board"
    assert measure.BODY.resources(step).device == Claim("board")
    assert measure.BODY.resources(step).cores > 1, "a build would disturb what is timed"
    device.claimed, device.mode = None, "icount"
    assert measure.BODY.resources(step).device is None
    assert measure.BODY.resources(step).cores > 1


def test_a_directory_without_a_kernel_is_not_an_image(room: Room, device: FakeDevice) -> None:
    with pytest.raises(InputError, match="empty does not contain a kernel image"):
        measured(room, device, images__0=room.directory("empty"))


def test_a_core_is_modelled_in_every_boot_and_locations_are_reported_for_the_first(
    room: Room, device: FakeDevice
) -> None:
    events = dict.fromkeys(EVENTS, 1)
    device.intervals = (Interval(1000, 2, 30, 4, events, events),)
    head = {"version": 1, "events": ["taken_branches", *EVENTS]}
    site = [4096, 4100, 2, 50, 3, *([0] * len(EVENTS))]
    located = {"sites": [site], "slices": [[[1, 100]]]}
    device.locations = json.dumps(head) + "\n" + json.dumps(located) + "\n"
    device.mode = "icount"
    given = {"images__0": image(room, "a"), "images__1": image(room, "b")}
    found = measured(room, device, "zen4", **given)
    core = load_core("zen4")
    measuring = [(s.kernel.name, s.seed, s.measure) for s in device.sessions if s.measure]
    assert {(name, seed) for name, seed, m in measuring if m.locations} == {("a", 4), ("b", 4)}
    assert {m.settings for *_, m in measuring} == {settings_of(core)}
    assert {m.core for *_, m in measuring} == {"zen4"}
    assert all(s.artifacts == {"zen4": room.root / "programs"} for s in device.sessions)
    for boot in found.images[1].boots:
        (case_measured,) = boot.cases
        assert case_measured.modelled is not None
        assert case_measured.modelled.core == "zen4"
        assert case_measured.modelled.kernel.cycles == cycles_of(events)
    device.sessions.clear()
    for name in ("places0", "places1"):
        path = room.root / "measure-output" / f"{name}.json"
        (function,) = read_locations(path).cases[0].functions
        assert (function.instructions, function.events) == (100, {"taken_branches": 3})
        path.unlink()
    # The locations of boots are kept with them.
    measured(room, device, "zen4", **given)
    assert device.sessions == []
    assert path.is_file()


def test_only_a_core_adds_artifacts_to_a_measurement(device: FakeDevice) -> None:
    without = measure.BODY.identity(Step("m", "measure", ALONE, IMAGE))
    assert set(without) == {"qemu", "cases", "memory", "REP"}
    assert without["REP"] == price_digest("skylake")
    modelled = measure.BODY.identity(Step("m", "measure", {**ALONE, "core": "zen4"}, IMAGE))
    assert modelled == {**without, "core": core_digest("zen4"), "REP": core_digest("zen4")}


def test_a_core_of_ones_own_is_modelled_and_called_by_its_title(
    room: Room, device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = room.root / "mine.toml"
    described = (CORES.directory / "zen4.toml").read_text()
    own.write_text(described.replace('title = "AMD', 'title = "My', 1))
    step = Step("m", "measure", ALONE, {**IMAGE, "core": HostInput(str(own))})
    identity = measure.BODY.identity(step)
    assert identity["core"] == identity["REP"] == core_digest("zen4")
    events = dict.fromkeys(EVENTS, 1)
    device.intervals = (Interval(1000, 2, 30, 4, events, events),)
    needs = {"count": ArtifactNeed("made-for-it", files=("made",))}
    monkeypatch.setattr(FakeDevice, "needs", lambda self, arch, observed: needs)
    found = measured(room, device, images__0=image(room, "a"), core=own)
    cases = [case for boot in found.images[0].boots for case in boot.cases]
    models = {case.modelled.core for case in cases if case.modelled is not None}
    assert models == {load_core(str(own)).title}
    assert all(title.startswith("My ") for title in models)
    own.write_text(own.read_text().replace("line = 64", "line = 128", 1))
    assert measure.BODY.identity(step)["core"] != identity["core"]


def test_a_core_of_another_architecture_is_refused_before_anything_runs(device: FakeDevice) -> None:
    step = Step("m", "measure", {**ALONE, "core": "cortex-a53"}, IMAGE)
    with pytest.raises(InputError, match="cortex-a53 executes arm64, not x86-64"):
        measure.BODY.identity(step)
