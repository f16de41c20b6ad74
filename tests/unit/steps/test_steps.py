"""The step bodies, with everything below them replaced by fakes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from mepof.device import agent
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.protocol import DEVICES, Interval, KernelPanic
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.events import StepNote, StepProgress
from mepof.measure.measurement import Evaluation, read_evaluation
from mepof.plan.body import Claim, StepContext
from mepof.plan.journal import JournalledRun, JournalledStep
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.pmu.core import CORES, load_core
from mepof.pmu.events import EVENTS, cycles_of
from mepof.pmu.locations import read_locations
from mepof.pmu.settings import core_digest, price_digest, settings_of
from mepof.spec.kernel_source import KernelSource
from mepof.steps import (
    BODIES,
    guest,
    kernel_source,
    kernel_tests,
    measure,
    plugins,
    pmu,
    profile_collect,
    report,
)
from mepof.suite.cases import cases_of, load_suite

from .room import BUILD, FakeDevice, Room, register, well

DEVICE_PARAMS: dict[str, Json] = {"arch": "x86-64", "device": "qemu", "seed": 1}


def test_every_body_is_registered_under_its_kind() -> None:
    for name, body in BODIES.all().items():
        assert body.kind == name


# --- kernel-source


def test_a_source_step_copies_a_tree(room: Room) -> None:
    makefile = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 7\n"
    tree = room.directory("tree", Makefile=makefile, Kbuild="")
    context = room.context("kernel-source", {}, origin=tree)
    kernel_source.BODY.run(context)
    assert (context.output / "Makefile").read_text() == makefile
    step = KernelSource[Input](origin=HostInput(str(tree))).step("source")
    assert kernel_source.BODY.identity(step) == {}
    shared = room.directory("shared", Kconfig="")
    (tree / "techpack").symlink_to(shared)
    assert list(kernel_source.BODY.identity(step)) == ["files outside of the tree"]


def test_a_url_without_a_checksum_is_refused_before_anything_is_built() -> None:
    step = KernelSource[Input](address="https://example.org/l.tar").step("source")
    with pytest.raises(InputError, match="does not say how the download is verified"):
        kernel_source.BODY.check(step)


@pytest.mark.parametrize("content", [b"", b"VERSION = 6\n", b"\x7fELF"])
def test_a_file_that_is_not_a_tarball_is_refused_before_anything_is_built(
    room: Room, content: bytes
) -> None:
    given = room.root / "source"
    given.write_bytes(content)
    step = KernelSource[Input](origin=HostInput(str(given))).step("source")
    with pytest.raises(InputError, match="neither a kernel source tree nor a tarball"):
        kernel_source.BODY.check(step)
    given.write_bytes(b"\xfd7zXZ\0...")
    kernel_source.BODY.check(step)


# --- profile-collect


COLLECT: dict[str, Json] = {
    **DEVICE_PARAMS,
    "algorithm": "pgo",
    "scenario": "trav",
    "apps": [{"name": "kbench"}],
    "actions": 3,
}


BUILT: dict[str, Input] = {"kernel": StepInput("build"), "guest": StepInput("guest")}


def collect(room: Room, device: FakeDevice, params: Mapping[str, Json] = COLLECT) -> StepContext:
    made = dict.fromkeys(("kernel", "guest"), room.root)
    recorder = {"artifacts__record": room.root} if "record" in params else {}
    context = room.context("profile-collect", params, **made, **recorder)
    profile_collect.BODY.run(context)
    return context


def test_a_collection_resets_counters_runs_the_workload_and_reads_the_profile(
    room: Room, device: FakeDevice
) -> None:
    context = collect(room, device)
    requests = device.sessions[0].requests
    assert isinstance(requests[0], agent.Put)
    assert isinstance(requests[-1], agent.Get)
    assert all(isinstance(request, agent.Exec) for request in requests[1:-1])
    assert (context.output / "raw0").read_bytes() == b"raw profile"
    known = json.loads((context.output / "collection.json").read_text())
    assert known["release"] == "6.12.7"
    assert known["coverage"]["ran"] == known["coverage"]["actions"] == len(requests) - 2
    assert known["coverage"]["never"] == []
    progress = [event for event in room.events if isinstance(event, StepProgress)]
    assert progress[-1].done == progress[-1].total == len(requests) - 2


@pytest.mark.parametrize(("algorithm", "says"), [("gcc-pgo", True), ("pgo", False)])
def test_an_algorithm_that_does_not_count_in_modules_says_so(
    room: Room, device: FakeDevice, algorithm: str, says: bool
) -> None:
    (room.root / "modules.cpio").touch()
    load = agent.ExecResult(0, 1, b"loaded ext4\n", False)
    device.answer = lambda request: load if is_loader(request) else well(request)
    collect(room, device, {**COLLECT, "algorithm": algorithm})
    notes = [event.text for event in room.events if isinstance(event, StepNote)]
    assert notes == [f"{algorithm} does not count in modules: they get no profile"] * says


def is_loader(request: agent.Request) -> bool:
    return isinstance(request, agent.Exec) and request.argv[0] == "/mepof/modules/load"


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (agent.PutResult(2), "counters cannot be reset"),
        (agent.GetResult(2, b""), "the kernel has no raw profile"),
        (agent.ExecResult(1, 1, b"bad sum", False), "failed with status 1 in the guest: bad sum"),
    ],
)
def test_errors_in_the_guest_are_reported(
    room: Room, device: FakeDevice, answer: agent.Reply, what: str
) -> None:
    asked = {agent.PutResult: agent.Put, agent.GetResult: agent.Get, agent.ExecResult: agent.Exec}
    kind = asked[type(answer)]
    device.answer = lambda request: answer if isinstance(request, kind) else well(request)
    with pytest.raises(WorkError, match=what):
        collect(room, device)


RECORD: dict[str, Json] = {
    **COLLECT,
    "algorithm": "autofdo",
    "record": {"depth": 16},
    "artifacts": {},
}


def test_branches_are_recorded_only_while_the_apps_run(room: Room, device: FakeDevice) -> None:
    device.branches = b"branches"
    context = collect(room, device, RECORD)
    (session,) = device.sessions
    first, *work, last = session.requests
    assert (first, last) == (agent.Record(True), agent.Record(False))
    assert all(isinstance(request, agent.Exec) for request in work)
    assert session.record == Branches(period=None, depth=16)
    assert session.artifacts == {"record": room.root}
    assert {path.name for path in context.output.iterdir()} == {"raw0", "collection.json"}
    assert (context.output / "raw0").read_bytes() == b"branches"


def test_a_period_makes_the_device_sample_branches(room: Room, device: FakeDevice) -> None:
    device.branches = b"branches"
    collect(room, device, {**RECORD, "record": {"depth": 16, "period": 10007}})
    assert device.sessions[0].record == Branches(period=10007, depth=16)


@pytest.mark.parametrize("params", [COLLECT, RECORD], ids=["counters", "branches"])
def test_training_on_several_cpus_is_asked_for(
    room: Room, device: FakeDevice, params: dict[str, Json]
) -> None:
    device.most_cpus = 4
    collect(room, device, {**params, "cpus": 4})
    assert device.sessions[0].cpus == 4
    profile_collect.BODY.check(Step("c", "profile-collect", {**params, "cpus": 4}, BUILT))
    with pytest.raises(InputError, match="boots x86-64 kernels with at most 4 CPUs, not 5"):
        profile_collect.BODY.check(Step("c", "profile-collect", {**params, "cpus": 5}, BUILT))


def test_tests_run_on_several_cpus(room: Room, device: FakeDevice) -> None:
    params: dict[str, Json] = {**DEVICE_PARAMS, "gate": "kunit", "boots": 1, "cpus": 4}
    given = {"kernel": room.directory("kernel", kernel="image"), "guest": room.root}
    kernel_tests.BODY.run(room.context("kernel-tests", params, **given))
    assert device.sessions[0].cpus == 4
    device.most_cpus = 2
    with pytest.raises(InputError, match="with at most 2 CPUs, not 4"):
        kernel_tests.BODY.check(Step("t", "kernel-tests", params, BUILT))


def test_no_branches_are_recorded_of_an_instrumented_kernel(room: Room, device: FakeDevice) -> None:
    collect(room, device)
    assert device.sessions[0].record is None


def test_a_device_that_cannot_record_is_refused_before_the_kernel_is_built(
    monkeypatch: pytest.MonkeyPatch, device: FakeDevice
) -> None:
    profile_collect.BODY.check(Step("c", "profile-collect", RECORD, BUILT))
    without = SimpleNamespace(check=device.check, describe=device.describe, boot=device.boot)
    register(monkeypatch, DEVICES, without)
    with pytest.raises(EnvironmentLack, match="does not record branches"):
        profile_collect.BODY.check(Step("c", "profile-collect", RECORD, BUILT))
    profile_collect.BODY.check(Step("c", "profile-collect", COLLECT, BUILT))


def test_an_invalid_script_is_refused_before_the_kernel_is_built(
    room: Room, device: FakeDevice
) -> None:
    script = room.root / "actions.txt"
    params: dict[str, Json] = {**COLLECT, "scenario": "script"}
    inputs = {**BUILT, "apps.0.script": HostInput(str(script))}
    step = Step("c", "profile-collect", params, inputs)
    with pytest.raises(InputError, match="cannot read the script"):
        profile_collect.BODY.identity(step)
    script.write_text("sycall\n")
    with pytest.raises(InputError, match="has no action `sycall`"):
        profile_collect.BODY.identity(step)
    script.write_text("syscall\n")
    before = profile_collect.BODY.identity(step)
    assert before["qemu"] == "fake"
    script.write_text("syscall\nproc\n")
    assert profile_collect.BODY.identity(step) != before


def test_training_does_not_run_what_it_leaves_out(room: Room, device: FakeDevice) -> None:
    collect(room, device, {**COLLECT, "without": ["pipe", "file8k"]})
    ran = {r.argv[2] for r in device.sessions[0].requests if isinstance(r, agent.Exec)}
    # A mix goes with the cases that it includes.
    assert ran == {"syscall", "overhead", "proc", "file512", "file1024"}
    with pytest.raises(InputError, match="`set without mepof` leaves no action to train on"):
        collect(room, device, {**COLLECT, "without": ["mepof"]})


def test_an_action_that_the_kernel_cannot_run_is_named_with_a_remedy(
    room: Room, device: FakeDevice
) -> None:
    skipped = agent.ExecResult(77, 1, b"case=syscall needs=CONFIG_NET", False)
    device.answer = lambda request: skipped if isinstance(request, agent.Exec) else well(request)
    wrong = r"syscall, .* and 4 more cannot run on this kernel: .*needs=CONFIG_NET"
    with pytest.raises(WorkError, match=wrong) as caught:
        collect(room, device)
    # The suite needs nothing that the smallest configuration lacks.
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith("choose another configuration, or leave them out")


def test_all_actions_that_the_kernel_cannot_run_are_named_with_a_configuration_that_can(
    room: Room, device: FakeDevice
) -> None:
    skipped = agent.ExecResult(77, 1, b"case=binder-4 needs=CONFIG_ANDROID_BINDERFS", False)
    device.answer = lambda request: (
        skipped
        if isinstance(request, agent.Exec) and "binder" in " ".join(request.argv)
        else well(request)
    )
    with pytest.raises(WorkError, match="the actions binder-4, binder-124 cannot run") as caught:
        collect(room, device, {**COLLECT, "apps": [{"name": "ipc"}, {"name": "kbench"}]})
    assert caught.value.remedy == (
        "write `set config suites`, or leave them out with `set without binder-4,binder-124`"
    )


def test_a_scout_notes_the_actions_that_the_training_may_not_draw(
    room: Room, device: FakeDevice
) -> None:
    def answer(request: agent.Request) -> agent.Reply:
        match request:
            case agent.Exec(argv=(_, _, "syscall")):
                return agent.ExecResult(77, 1, b"case=syscall needs=CONFIG_NET", False)
            case agent.Exec(argv=(_, "run", "proc")):
                return agent.ExecResult(1, 1, b"bad sum", False)
        return well(request)

    device.answer, device.branches = answer, b"branches"
    scout: dict[str, Json] = {k: v for k, v in RECORD.items() if k != "algorithm"}
    context = collect(room, device, scout)
    assert (context.output / "raw0").read_bytes() == b"branches"
    notes = [event.text for event in room.events if isinstance(event, StepNote)]
    assert len(notes) == 2
    assert "syscall cannot run on this kernel: case=syscall needs=CONFIG_NET" in notes[0]
    assert "the action proc: " in notes[1]
    # Nothing would be known of what the training runs.
    device.answer = lambda request: (
        agent.ExecResult(77, 1, b"", False) if isinstance(request, agent.Exec) else well(request)
    )
    with pytest.raises(WorkError, match="cannot run on this kernel"):
        collect(room, device, scout)
    # The training runs all that a script lists.
    script = room.root / "actions.txt"
    script.write_text("proc\nfile512\n")
    device.answer = answer
    inputs = {**dict.fromkeys(("kernel", "guest", "artifacts__record"), room.root)}
    context = room.context(
        "profile-collect", {**scout, "scenario": "script"}, **inputs, apps__0__script=script
    )
    with pytest.raises(WorkError, match="the action proc"):
        profile_collect.BODY.run(context)


def test_training_adds_suite_programs_to_the_guest(room: Room, device: FakeDevice) -> None:
    made = dict.fromkeys(("kernel", "guest", "suites__pages"), room.root)
    params: dict[str, Json] = {**COLLECT, "apps": [{"name": "pages"}], "suites": {}}
    profile_collect.BODY.run(room.context("profile-collect", params, **made))
    (session,) = device.sessions
    assert session.archives == (room.root / "archive.cpio",)
    assert session.memory == load_suite("pages").memory > 512


def test_a_training_on_a_suite_depends_on_the_memory_that_the_suite_needs(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    params: dict[str, Json] = {**COLLECT, "apps": [{"name": "pages"}]}
    step = Step("c", "profile-collect", params, BUILT)
    before = profile_collect.BODY.identity(step)
    assert before["memory"] == "1024"
    monkeypatch.setattr(profile_collect, "memory_of", lambda apps: 2048)
    assert {**profile_collect.BODY.identity(step), "memory": "1024"} == before
    assert "memory" not in profile_collect.BODY.identity(
        Step("c", "profile-collect", COLLECT, BUILT)
    )


def test_the_manual_scenario_needs_a_terminal(
    room: Room, device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False))
    context = room.context(
        "profile-collect", {**COLLECT, "scenario": "manual"}, kernel=room.root, guest=room.root
    )
    with pytest.raises(EnvironmentLack, match="needs a terminal"):
        profile_collect.BODY.run(context)


# --- measure


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


# --- pmu


def test_plugins_are_not_part_of_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (plugins, pmu):
        monkeypatch.setattr(module, "native_digest", lambda *patterns: "another")
        assert module.BODY.identity(Step("made", "made"))["native"] == "another"
    sources = {path.split("/")[0] for path in guest._SOURCES}
    assert sources.isdisjoint({"pmu", "tcg-plugin"})


# --- report


def journalled(phase: str, started: str, ended: str, state: str = "done") -> JournalledStep:
    return SimpleNamespace(  # type: ignore[return-value]
        phase=phase,
        state=state,
        started=f"2026-01-01T00:00:{started}+00:00",
        ended=f"2026-01-01T00:00:{ended}+00:00",
    )


def share(*steps: JournalledStep) -> float | None:
    run = SimpleNamespace(
        started="2026-01-01T00:00:00+00:00",
        steps={str(number): step for number, step in enumerate(steps)},
    )
    whole: JournalledRun = run  # type: ignore[assignment]
    return report.engine_share(whole)


def test_the_engine_share_is_the_time_in_which_no_step_worked() -> None:
    assert share(journalled("build", "00", "10")) == 0
    assert share(journalled("build", "05", "10")) == 50
    # Parallel time counts once, and a step during another does not count.
    assert (
        share(
            journalled("build", "00", "06"),
            journalled("run", "04", "08"),
            journalled("run", "01", "02"),
        )
        == 0
    )
    assert share(journalled("build", "00", "09"), journalled("other", "09", "10")) == 10


def test_a_run_that_made_nothing_has_no_engine_share() -> None:
    assert share(journalled("build", "00", "10", state="cached")) is None
    assert share() is None
