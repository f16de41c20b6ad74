"""The step bodies, with everything below them replaced by what the test says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from mepof.device import agent
from mepof.device.protocol import DEVICES, Interval, Pmu, Recording
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.evaluate.core import PAID_AS, core_digest, load_core
from mepof.evaluate.measurement import read_measurement
from mepof.evaluate.places import read_places_json
from mepof.evaluate.suite import cases_of
from mepof.events import StepProgress
from mepof.plan.body import StepContext
from mepof.plan.journal import JournalledRun, JournalledStep
from mepof.plan.model import HostInput, Json, Step
from mepof.steps import BODIES, guest, kernel_source, measure, pmu, profile_collect, report

from .room import FakeDevice, Room, register, well

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
    assert kernel_source.BODY.identity(context.step) == {}


def test_a_url_is_refused_before_anything_is_built() -> None:
    step = Step("source", "kernel-source", {}, {"origin": HostInput("https://example.org/l.tar")})
    with pytest.raises(InputError, match="is not fetched"):
        kernel_source.BODY.identity(step)


# --- profile-collect


COLLECT: dict[str, Json] = {
    **DEVICE_PARAMS,
    "algorithm": "pgo",
    "scenario": "trav",
    "apps": ["kbench"],
    "actions": 3,
}


def collect(room: Room, device: FakeDevice, params: Mapping[str, Json] = COLLECT) -> StepContext:
    context = room.context("profile-collect", params, kernel=room.root, guest=room.root)
    profile_collect.BODY.run(context)
    return context


def test_a_collection_resets_works_and_reads_the_profile(room: Room, device: FakeDevice) -> None:
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


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (agent.PutResult(2), "counters cannot be reset"),
        (agent.GetResult(2, b""), "offers no raw profile"),
        (agent.ExecResult(1, 1, b"bad sum", False), "failed with status 1 in the guest: bad sum"),
    ],
)
def test_what_goes_wrong_in_the_guest_is_told(
    room: Room, device: FakeDevice, answer: agent.Reply, what: str
) -> None:
    asked = {agent.PutResult: agent.Put, agent.GetResult: agent.Get, agent.ExecResult: agent.Exec}
    kind = asked[type(answer)]
    device.answer = lambda request: answer if isinstance(request, kind) else well(request)
    with pytest.raises(WorkError, match=what):
        collect(room, device)


RECORD: dict[str, Json] = {**COLLECT, "algorithm": "autofdo", "depth": 16}


def test_branches_are_recorded_while_the_apps_work_and_only_then(
    room: Room, device: FakeDevice
) -> None:
    device.recording = b"branches"
    context = collect(room, device, RECORD)
    (session,) = device.sessions
    first, *work, last = session.requests
    assert (first, last) == (agent.Record(True), agent.Record(False))
    assert all(isinstance(request, agent.Exec) for request in work)
    assert session.record == Recording(period=None, depth=16)
    assert {path.name for path in context.output.iterdir()} == {"raw0", "collection.json"}
    assert (context.output / "raw0").read_bytes() == b"branches"


def test_a_period_has_branches_sampled(room: Room, device: FakeDevice) -> None:
    device.recording = b"branches"
    collect(room, device, {**RECORD, "period": 10007})
    assert device.sessions[0].record == Recording(period=10007, depth=16)


def test_a_kernel_that_counts_by_itself_is_not_recorded(room: Room, device: FakeDevice) -> None:
    collect(room, device)
    assert device.sessions[0].record is None


def test_a_device_that_records_no_branches_is_told_before_the_kernel_is_built(
    monkeypatch: pytest.MonkeyPatch, device: FakeDevice
) -> None:
    assert profile_collect.BODY.identity(Step("c", "profile-collect", RECORD))
    without = SimpleNamespace(identity=device.identity, describe=device.describe, boot=device.boot)
    register(monkeypatch, DEVICES, without)
    with pytest.raises(EnvironmentLack, match="records no branches"):
        profile_collect.BODY.identity(Step("c", "profile-collect", RECORD))
    assert profile_collect.BODY.identity(Step("c", "profile-collect", COLLECT))


def test_a_script_that_does_not_fit_is_told_before_the_kernel_is_built(
    room: Room, device: FakeDevice
) -> None:
    script = room.root / "actions.txt"
    params: dict[str, Json] = {**COLLECT, "scenario": "script"}
    step = Step("c", "profile-collect", params, {"script0": HostInput(str(script))})
    with pytest.raises(InputError, match="cannot be read"):
        profile_collect.BODY.identity(step)
    script.write_text("sycall\n")
    with pytest.raises(InputError, match="has no action `sycall`"):
        profile_collect.BODY.identity(step)
    script.write_text("syscall\n")
    before = profile_collect.BODY.identity(step)
    assert before["qemu"] == "fake"
    script.write_text("syscall\nproc\n")
    assert profile_collect.BODY.identity(step) != before


def test_the_console_is_not_taken_where_nobody_sits_at_it(
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
    "seeds": [4, 5],
}


def test_a_measurement_of_a_bare_image_has_no_sections(room: Room, device: FakeDevice) -> None:
    (case,) = cases_of(["proc"])
    line = f"case={case.name} operations=10 elapsed_ns=5 check=ok".encode()
    device.answer = lambda request: agent.ExecResult(0, 1, line, False)
    device.intervals = (Interval(1, 2, 3, 4),)
    image = room.root / "x.img"
    image.write_bytes(b"image")
    context = room.context("measure", MEASURE, kernel=image, guest=room.root)
    measure.BODY.run(context)
    found = read_measurement(context.output / "measurement.json")
    assert [boot.seed for boot in found.boots] == [4, 5]
    assert found.sections == {}
    assert found.size_bytes.image == 5
    assert all(session.kernel == image and session.count for session in device.sessions)

    build = {"sections": {".text": 7}, "size_bytes": {"text": 7, "image": 5}}
    made = room.directory("made", kernel="image", build_json=json.dumps(build))
    context = room.context("measure", MEASURE, kernel=made, guest=room.root)
    measure.BODY.run(context)
    found = read_measurement(context.output / "measurement.json")
    assert found.sections == {".text": 7}
    assert found.size_bytes.text == 7


def test_a_directory_without_a_kernel_is_no_image(room: Room, device: FakeDevice) -> None:
    context = room.context("measure", MEASURE, kernel=room.directory("empty"), guest=room.root)
    with pytest.raises(InputError, match="empty holds no kernel image"):
        measure.BODY.run(context)


def test_a_core_is_modelled_in_every_boot_and_places_are_told_of_the_first(
    room: Room, device: FakeDevice
) -> None:
    (case,) = cases_of(["proc"])
    line = f"case={case.name} operations=10 elapsed_ns=5 check=ok".encode()
    device.answer = lambda request: agent.ExecResult(0, 1, line, False)
    events = dict.fromkeys(PAID_AS, 1)
    device.intervals = (Interval(1000, 2, 30, 4, events, events),)
    head = {"version": 1, "events": ["taken_branches", *PAID_AS]}
    site = [4096, 4100, 2, 50, 3, *([0] * len(PAID_AS))]
    told = {"sites": [site], "slices": [[[1, 100]]]}
    device.places = json.dumps(head) + "\n" + json.dumps(told) + "\n"
    image, made = room.root / "x.img", room.directory("pmu")
    image.write_bytes(b"image")
    context = room.context(
        "measure", {**MEASURE, "core": "zen4"}, kernel=image, guest=room.root, pmu=made
    )
    measure.BODY.run(context)
    core = load_core("zen4")
    assert [s.pmu for s in device.sessions] == [
        Pmu(made / "pmu.so", core.arguments(), places=first) for first in (True, False)
    ]
    found = read_measurement(context.output / "measurement.json")
    for boot in found.boots:
        (measured,) = boot.cases
        assert measured.modelled is not None
        assert measured.modelled.core == "zen4"
        assert measured.modelled.kernel.cycles == core.cycles(1000, 30, events)
    places = read_places_json(context.output / "places.json")
    (function,) = places.cases[0].functions
    assert (function.instructions, function.events) == (100, {"taken_branches": 3})


def test_only_a_core_adds_to_what_a_measurement_is_made_from(device: FakeDevice) -> None:
    without = measure.BODY.identity(Step("m", "measure", MEASURE))
    assert set(without) == {"qemu", "cases"}
    modelled = measure.BODY.identity(Step("m", "measure", {**MEASURE, "core": "zen4"}))
    assert modelled == {**without, "core": core_digest("zen4")}


def test_a_core_of_another_architecture_is_told_before_anything_runs(device: FakeDevice) -> None:
    step = Step("m", "measure", {**MEASURE, "core": "cortex-a53"})
    with pytest.raises(InputError, match="cortex-a53 executes arm64, not x86-64"):
        measure.BODY.identity(step)


# --- pmu


def test_the_model_is_no_part_of_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pmu, "_sources_digest", lambda: "another")
    assert pmu.BODY.identity(Step("pmu", "pmu"))["native"] == "another"
    sources = {path.split("/")[0] for path in guest._SOURCES}
    assert "pmu" not in sources


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


def test_the_engines_share_is_the_time_in_which_nothing_was_worked_on() -> None:
    assert share(journalled("build", "00", "10")) == 0
    assert share(journalled("build", "05", "10")) == 50
    # Side by side counts once, and a step within another not at all.
    assert (
        share(
            journalled("build", "00", "06"),
            journalled("run", "04", "08"),
            journalled("run", "01", "02"),
        )
        == 0
    )
    assert share(journalled("build", "00", "09"), journalled("other", "09", "10")) == 10


def test_there_is_no_share_of_a_run_that_did_nothing() -> None:
    assert share(journalled("build", "00", "10", state="cached")) is None
    assert share() is None
