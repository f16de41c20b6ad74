"""The step bodies, with everything below them replaced by what the test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mepof.algorithm.protocol import Quality
from mepof.device import agent
from mepof.device.protocol import DEVICES, Description, GuestReset, Interval, Outcome, Session
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.evaluate.measurement import read_measurement
from mepof.evaluate.suite import cases_of
from mepof.events import Event, StepProgress
from mepof.kernel import kbuild
from mepof.plan.body import StepContext
from mepof.plan.journal import JournalledRun, JournalledStep
from mepof.plan.model import HostInput, Json, Step
from mepof.profile.artifact import description
from mepof.registry import Registry
from mepof.steps import (
    BODIES,
    boot_check,
    kernel_build,
    kernel_source,
    measure,
    profile_collect,
    profile_convert,
    profile_merge,
    report,
)
from mepof.toolchain import clang

DEVICE_PARAMS: dict[str, Json] = {"arch": "x86-64", "device": "qemu", "seed": 1}


@dataclass
class Room:
    """Makes contexts of steps, and keeps their events."""

    root: Path
    events: list[Event] = field(default_factory=list)

    def context(self, kind: str, params: Mapping[str, Json], **inputs: Path) -> StepContext:
        output, work = self.root / f"{kind}-output", self.root / f"{kind}-work"
        for path in (output, work, self.root / "cache"):
            path.mkdir(exist_ok=True)
        return StepContext(
            step=Step(f"x/{kind}", kind, params),
            inputs=inputs,
            output=output,
            work=work,
            cores=2,
            log=self.root / "log",
            cache=self.root / "cache",
            emit=self.events.append,
            cancel=threading.Event(),
        )

    def directory(self, name: str, **files: str) -> Path:
        path = self.root / name
        path.mkdir()
        for file, text in files.items():
            (path / file.replace("_", ".")).write_text(text)
        return path


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


class FakeDevice:
    """Answers every request as told, and keeps the sessions."""

    def __init__(self, answer: Callable[[agent.Request], agent.Reply]) -> None:
        self.answer = answer
        self.sessions: list[Session] = []
        self.intervals: tuple[Interval, ...] = ()
        self.error: Exception | None = None

    def identity(self, arch: str) -> Mapping[str, str]:
        return {"qemu": "fake"}

    def describe(self, arch: str) -> Description:
        return Description(name="qemu", accel="tcg", cpu="max", mode="")

    def boot(
        self, session: Session, directory: Path, runner: object, replied: Callable[[int], None]
    ) -> Outcome:
        self.sessions.append(session)
        if self.error is not None:
            raise self.error
        for count in range(len(session.requests) + 1):
            replied(count)
        replies = tuple(self.answer(request) for request in session.requests)
        return Outcome("6.12.7", replies, self.intervals, "")


def well(request: agent.Request) -> agent.Reply:
    match request:
        case agent.Put():
            return agent.PutResult(0)
        case agent.Get():
            return agent.GetResult(0, b"raw profile")
        case agent.Shell():
            return agent.ShellResult(0)
        case _:
            return agent.ExecResult(0, 1, b"fine", False)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    made = FakeDevice(well)
    get = Registry.get

    def fake(self: Registry[Any], name: str) -> Any:
        return made if self is DEVICES else get(self, name)

    monkeypatch.setattr(Registry, "get", fake)
    return made


@pytest.fixture
def toolchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clang, "select", lambda name: clang.Clang("-22"))


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


# --- kernel-build


def built(
    room: Room, monkeypatch: pytest.MonkeyPatch, params: Mapping[str, Json], **inputs: Path
) -> kbuild.BuildSpec:
    """The specification that a kernel-build step hands to the builder."""
    specs: list[kbuild.BuildSpec] = []
    monkeypatch.setattr(kbuild, "build", lambda spec, *rest: specs.append(spec))
    base: dict[str, Json] = {"arch": "x86-64", "config": ["slim"], "toolchain": "clang"}
    context = room.context("kernel-build", {**base, **params}, source=room.root, **inputs)
    kernel_build.BODY.run(context)
    return specs[0]


def test_a_plain_build_has_nothing_added(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    spec = built(room, monkeypatch, {"stage": "plain", "options": []})
    assert (spec.cflags, spec.config_lines, spec.overlays) == ((), (), ())
    assert spec.fragments[0].name == "slim.config"


def test_options_and_the_algorithm_add_to_a_build(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    config = room.root / "my.config"
    spec = built(
        room,
        monkeypatch,
        {
            "stage": "instrument",
            "algorithm": "pgo",
            "options": ["O3", "ThinLTO"],
            "config": ["slim", "file"],
        },
        config1=config,
    )
    assert spec.cflags[:2] == ("-O3", "-fprofile-generate")
    assert "CONFIG_LTO_CLANG_THIN=y" in spec.config_lines
    assert spec.overlays == ("pgo",)
    assert spec.fragments[-1] == config


def test_a_users_profile_may_have_blanks_in_its_path(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    profile = room.root / "a profile.prof data"
    profile.write_text("profile")
    params: dict[str, Json] = {"stage": "use", "algorithm": "pgo", "options": []}
    spec = built(room, monkeypatch, params, profile=profile)
    (flag,) = (f for f in spec.cflags if f.startswith("-fprofile-use="))
    used = Path(flag.removeprefix("-fprofile-use="))
    assert " " not in used.name
    assert used.read_text() == "profile"


def test_a_build_with_a_profile_needs_one(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    with pytest.raises(InputError, match="has no profile to use"):
        built(room, monkeypatch, {"stage": "use", "algorithm": "pgo", "options": []})


# --- profile-collect


COLLECT: dict[str, Json] = {
    **DEVICE_PARAMS,
    "algorithm": "pgo",
    "scenario": "trav",
    "apps": ["kbench"],
    "actions": 3,
}


def collect(room: Room, device: FakeDevice, **inputs: Path) -> StepContext:
    context = room.context("profile-collect", COLLECT, kernel=room.root, guest=room.root, **inputs)
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


# --- profile-convert, profile-merge


class FakeAlgorithm:
    profile_name = "kernel.profdata"

    def __init__(self, quality: Quality) -> None:
        self.quality = quality
        self.weighted: list[Any] = []

    def convert(self, raw: object, output: Path, *rest: object) -> Quality:
        output.write_text(str(raw))
        return self.quality

    def merge(self, weighted: list[Any], output: Path, *rest: object) -> Quality:
        self.weighted = weighted
        output.write_text("merged")
        return self.quality


GOOD = Quality(1000, 500, 50.0, "good")
POOR = Quality(1000, 5, 0.5, "poor", ("only 5 functions ran",))
TOOLS: dict[str, Json] = {"algorithm": "pgo", "toolchain": "clang"}


def test_a_converted_profile_keeps_what_is_known_of_its_run(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    monkeypatch.setattr(profile_convert, "select", lambda name: FakeAlgorithm(GOOD))
    raw = room.directory("raw", raw0="x", collection_json='{"scenario": "trav"}')
    context = room.context("profile-convert", TOOLS, raw=raw)
    profile_convert.BODY.run(context)
    assert description(context.output) == ("pgo", GOOD)
    assert json.loads((context.output / "collection.json").read_text())["scenario"] == "trav"
    assert "raw0" in (context.output / "kernel.profdata").read_text()


def test_a_poor_profile_is_refused(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    monkeypatch.setattr(profile_convert, "select", lambda name: FakeAlgorithm(POOR))
    raw = room.directory("raw", raw0="x", collection_json="{}")
    with pytest.raises(WorkError, match="the profile is poor: only 5 functions ran"):
        profile_convert.BODY.run(room.context("profile-convert", TOOLS, raw=raw))


def test_a_merge_pairs_profiles_with_their_weights(
    room: Room, monkeypatch: pytest.MonkeyPatch, toolchain: None
) -> None:
    fake = FakeAlgorithm(GOOD)
    monkeypatch.setattr(profile_merge, "select", lambda name: fake)
    given = {f"profile{n}": room.root / f"{n}.profdata" for n in range(12)}
    for path in given.values():
        path.touch()
    weights: list[Json] = [f"{n + 1}/2" for n in range(12)]
    context = room.context("profile-merge", {**TOOLS, "weights": weights}, **given)
    profile_merge.BODY.run(context)
    assert [(path.stem, str(2 * weight)) for path, weight in fake.weighted] == [
        (str(n), str(n + 1)) for n in range(12)
    ]
    assert description(context.output) == ("pgo", GOOD)


# --- boot-check, measure


def test_an_image_that_boots_and_checks_itself_passes(room: Room, device: FakeDevice) -> None:
    context = room.context("boot-check", DEVICE_PARAMS, kernel=room.root, guest=room.root)
    boot_check.BODY.run(context)
    known = json.loads((context.output / "check.json").read_text())
    assert known == {"booted": True, "self_check": "passed", "release": "6.12.7"}
    device.answer = lambda request: agent.ExecResult(1, 1, b"sum is wrong", False)
    with pytest.raises(WorkError, match="sum is wrong"):
        boot_check.BODY.run(context)
    device.error = GuestReset("the guest went down")
    with pytest.raises(GuestReset):
        boot_check.BODY.run(context)


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
