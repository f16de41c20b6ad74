"""``profile-collect``: what a training asks of a device, and what becomes of its profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from mepof.app.laid import Laid
from mepof.device import agent
from mepof.device.observation import Branches
from mepof.device.protocol import DEVICES
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.events import StepNote, StepProgress
from mepof.plan.body import StepContext
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.steps import (
    profile_collect,
)
from mepof.suite.cases import Tool, load_suite

from .room import FakeDevice, Room, register, well

COLLECT: dict[str, Json] = {
    "arch": "x86-64",
    "device": "qemu",
    "seed": 1,
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
    assert progress[0].text == "booting"
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


@pytest.mark.parametrize("arch", ["arm64", "x86-64"])
def test_a_guest_without_a_shell_gets_one_where_the_user_works_at_its_console(
    room: Room, device: FakeDevice, monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    def packaged(tools: tuple[Tool, ...], of: str) -> tuple[dict[str, Laid], dict[str, str]]:
        assert of == arch
        return {t.path.lstrip("/"): Laid(b"shell") for t in tools}, {t.package: "1" for t in tools}

    monkeypatch.setattr(profile_collect, "packaged", packaged)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    device.answer = lambda asked: (
        agent.ShellResult(0) if isinstance(asked, agent.Shell) else well(asked)
    )
    given = {**COLLECT, "arch": arch, "scenario": "manual", "apps": []}
    collect(room, device, given)
    laid = [path.read_bytes() for path in device.sessions[0].archives]
    assert [b"bin/busybox\0" in each for each in laid] == [True] * (arch == "arm64")
    identity = profile_collect.BODY.identity(Step("c", "profile-collect", given, BUILT))
    assert ("busybox-static" in identity) == (arch == "arm64")


def test_the_manual_scenario_needs_a_terminal(
    room: Room, device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False))
    context = room.context(
        "profile-collect", {**COLLECT, "scenario": "manual"}, kernel=room.root, guest=room.root
    )
    with pytest.raises(EnvironmentLack, match="needs a terminal"):
        profile_collect.BODY.run(context)
