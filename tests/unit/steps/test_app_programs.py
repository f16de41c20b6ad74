"""What an app of the user's adds to a guest, and its training."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mepof.app import own_files
from mepof.app.debian import Package
from mepof.app.image.model import Image
from mepof.device import agent
from mepof.errors import InputError, WorkError
from mepof.events import StepNote
from mepof.plan.model import HostInput, Input, Json, Step
from mepof.scenario.collection import Collection
from mepof.steps import app_programs, profile_collect
from mepof.steps.app_programs import BODY
from mepof.steps.report import _cases

from .room import FakeDevice, Room, well

DESCRIPTION = """
title = "Shop"
directory = "rootfs"
memory = 768

[[action]]
name = "buy"
argv = ["/shop/run", "buy"]
seconds = 90

[[action]]
name = "fail"
argv = ["/shop/run", "fail"]
seconds = 5
check = { status = 3, output = "sold out" }
"""


@pytest.fixture
def description(room: Room) -> Path:
    path = room.root / "shop/app.toml"
    program = path.parent / "rootfs/shop/run"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/busybox sh\n")
    program.chmod(0o755)
    (path.parent / "rootfs/shop/again").symlink_to("run")
    path.write_text(DESCRIPTION)
    return path


def step(description: Path, arch: str = "x86-64") -> Step:
    return Step("app", "app-programs", {"arch": arch}, {"app": HostInput(str(description))})


def archived(room: Room, description: Path) -> bytes:
    context = room.context("app-programs", {"arch": "x86-64"}, app=description)
    BODY.run(context)
    return (context.output / "archive.cpio").read_bytes()


def test_an_archive_holds_directories_first_and_is_the_same_every_time(
    room: Room, description: Path
) -> None:
    made = archived(room, description)
    assert made.startswith(b"070701")
    positions = [made.index(name) for name in (b"mepof\0", b"shop\0", b"shop/run\0")]
    assert positions == sorted(positions)
    assert b"#!/bin/busybox sh\n" in made
    os.utime(description.parent / "rootfs/shop/run", (1, 1))
    (description.parent / "rootfs/shop/run").chmod(0o700)
    assert archived(room, description) == made


@pytest.mark.parametrize(
    ("change", "why", "remedy"),
    [
        (('"/shop/run", "buy"', '"memtier"'), "runs memtier, which is not in the guest", "lay it"),
        (
            ("= 90", '= 90\nuser = "eve"'),
            "runs as eve, who is not in /etc/passwd",
            "write a number",
        ),
        (("= 90", '= 90\nuser = "0:eve"'), "runs in the group eve, which is not", "write a number"),
    ],
)
def test_a_command_that_cannot_start_is_named_with_its_file(
    description: Path, change: tuple[str, str], why: str, remedy: str
) -> None:
    description.write_text(DESCRIPTION.replace(*change))
    with pytest.raises(InputError) as raised:
        BODY.identity(step(description))
    assert raised.value.message.startswith(f"{description}: the action `buy` {why}")
    assert str(raised.value.remedy).startswith(remedy)


@pytest.mark.parametrize("change", ["content", "mode", "link", "new"])
def test_every_file_that_is_laid_in_is_part_of_the_identity(description: Path, change: str) -> None:
    before = BODY.identity(step(description))
    root = description.parent / "rootfs"
    match change:
        case "content":
            (root / "shop/run").write_text("#!/bin/busybox ash\n")
        case "mode":
            (root / "shop/more").write_text("")
            before = BODY.identity(step(description))
            (root / "shop/more").chmod(0o755)
        case "link":
            (root / "shop/again").unlink()
            (root / "shop/again").symlink_to("/shop/run")
        case "new":
            (root / "empty").mkdir()
    assert BODY.identity(step(description)) != before


def test_packages_are_part_of_the_identity(
    description: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = {"shop": Package("1.0-1", "2f", Path("data.tar"))}
    monkeypatch.setattr(own_files, "package_files", lambda *asked: ({}, packages))
    description.write_text(f'packages = ["shop"]\n{DESCRIPTION}')
    before = BODY.identity(step(description))
    assert before["package shop"] == "1.0-1 (SHA-256 2f)"
    packages["shop"] = Package("1.0-2", "2f", Path("data.tar"))
    assert BODY.identity(step(description)) != before


def test_what_is_left_out_of_an_image_is_noted(
    room: Room, description: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Image(left_out=("/run/initctl",))
    monkeypatch.setattr(app_programs, "image_of", lambda *given: image)
    archived(room, description)
    notes = [event.text for event in room.events if isinstance(event, StepNote)]
    assert notes == ["left out of the image, as devices and FIFOs are: /run/initctl"]


def test_a_wrong_description_is_refused_before_anything_is_made(description: Path) -> None:
    BODY.check(step(description))
    os.mkfifo(description.parent / "rootfs/pipe")
    with pytest.raises(InputError, match="rootfs/pipe is neither"):
        BODY.check(step(description))
    description.write_text('title = "Shop"')
    with pytest.raises(InputError, match="`action` is missing"):
        BODY.check(step(description))


def test_a_program_of_this_machine_is_refused_on_arm64(description: Path) -> None:
    with description.open("a") as file:
        file.write('[[program]]\npath = "/bin/true"\npackage = "coreutils"\n')
    BODY.check(step(description))
    with pytest.raises(InputError, match="the app Shop takes /bin/true from this machine"):
        BODY.check(step(description, "arm64"))


def answers(status: int, output: bytes) -> agent.ExecResult:
    return agent.ExecResult(status, 1, output, False)


def collect(room: Room, description: Path, without: tuple[str, ...] = ()) -> Collection:
    params: dict[str, Json] = {
        **{"algorithm": "pgo", "scenario": "trav", "apps": [{}], "actions": 24, "seed": 1},
        **{"arch": "x86-64", "device": "qemu", "without": list(without)},
    }
    made = dict.fromkeys(("kernel", "guest", "apps__0__programs"), room.root)
    context = room.context("profile-collect", params, **made, apps__0__file=description)
    profile_collect.BODY.run(context)
    return Collection.read(context.output)


def test_a_training_runs_the_users_actions_with_their_files_in_the_guest(
    room: Room, device: FakeDevice, description: Path
) -> None:
    device.answer = lambda request: (
        answers(3, b"all is sold out\n")
        if isinstance(request, agent.Exec) and request.argv[2] == "fail"
        else well(request)
    )
    known = collect(room, description)
    (session,) = device.sessions
    assert agent.Exec(("/mepof/launch", "action", "buy"), 90) in session.requests
    assert session.archives == (room.root / "archive.cpio",)
    assert session.memory == 768
    assert session.quiet_seconds == 900
    assert (known.apps, known.actions) == (("Shop",), ("buy", "fail"))
    # As cases, they are of the app.
    assert _cases(known) == {("shop", "buy"), ("shop", "fail")}
    assert "screens" not in json.loads(known.model_dump_json())


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (answers(0, b"bought"), "the action fail ended with status 0.*expects 3"),
        (answers(2, b"usage"), "the action fail: `/shop/run fail` failed with status 2.*: usage"),
        (answers(3, b"x\ny\n"), "the action fail did not write 'sold out'.*expects: x / y"),
        (answers(agent.TIMED_OUT, b""), "the action fail: .* did not finish within 5 s"),
        (answers(agent.NOT_STARTED, b"cannot run /shop/run"), "the action fail: .* did not start"),
        (answers(139, b""), "the action fail: .* was killed by signal 11"),
    ],
)
def test_an_action_that_fails_its_check_is_named(
    room: Room, device: FakeDevice, description: Path, reply: agent.Reply, message: str
) -> None:
    device.answer = lambda request: (
        reply if isinstance(request, agent.Exec) and request.argv[2] == "fail" else well(request)
    )
    with pytest.raises(WorkError, match=message):
        collect(room, description)


SERVICE = """
[[setup]]
name = "web"
argv = ["/shop/run"]
seconds = 5
ready = { port = 80 }
"""


def test_the_log_has_the_last_lines_of_what_failed_and_of_services(
    room: Room, device: FakeDevice, description: Path
) -> None:
    description.write_text(DESCRIPTION + SERVICE)
    panic = b"".join(b"line %d\n" % number for number in range(30))
    ended, failed = answers(1, b"the service `web` ended"), answers(2, b"usage\nmain.go:6\n")

    def answer(request: agent.Request) -> agent.Reply:
        match request:
            case agent.Get(path="/mepof/run/web.log"):
                return agent.GetResult(0, panic)
            case agent.Exec(argv=(_, "setup", _)):
                return ended
            case agent.Exec(argv=(_, _, "fail")):
                return failed
        return well(request)

    device.answer = answer
    last = "".join(f"line {number}\n" for number in range(10, 30))
    service = f"--- the last lines of the service web:\n{last}"
    with pytest.raises(WorkError, match="the service `web` ended") as raised:
        collect(room, description)
    shown = "".join(f"\n  | line {number}" for number in range(10, 30))
    assert raised.value.message == f"the service `web` ended{shown}"
    assert raised.value.remedy == f"see its whole log: {room.root}/log.web.log"
    assert (room.root / "log.web.log").read_bytes() == panic
    told = "--- the last lines of the setup web:\nthe service `web` ended\n"
    assert (room.root / "log").read_text() == told + service
    (room.root / "log").unlink()
    ended = answers(0, b"")
    with pytest.raises(WorkError, match="the action fail"):
        collect(room, description)
    told = "--- the last lines of the action fail:\nusage\nmain.go:6\n"
    assert (room.root / "log").read_text() == told + service


def test_users_of_an_image_may_listen_on_all_ports(
    room: Room, device: FakeDevice, description: Path
) -> None:
    write = agent.Put("/proc/sys/net/ipv4/ip_unprivileged_port_start", 0o644, b"0")
    device.answer = lambda request: (
        answers(3, b"sold out")
        if isinstance(request, agent.Exec) and request.argv[2] == "fail"
        else agent.PutResult(2)
        if request == write
        else well(request)
    )
    collect(room, description)
    description.write_text('image = "oci"\n' + DESCRIPTION + SERVICE)
    collect(room, description)
    plain, image = device.sessions
    assert write not in plain.requests
    start = agent.Exec(("/mepof/launch", "setup", "web"), 15)
    assert image.requests[:2] == (write, start)


def test_a_users_action_that_runs_a_case_counts_as_training_on_it(
    room: Room, device: FakeDevice, description: Path
) -> None:
    description.write_text(
        'title = "Shop"\n[[action]]\nname = "p"\nargv = ["/bin/kbench", "run", "pipe128"]\n'
        'seconds = 9\n[[action]]\nname = "q"\nargv = ["/bin/kbench"]\nseconds = 9\n'
    )
    known = collect(room, description)
    assert _cases(known) == {("mepof", "pipe128"), ("shop", "p"), ("shop", "q")}
    assert known.actions == ("p", "q")
    assert collect(room, description, ("pipe",)).actions == ("q",)


def test_the_files_of_the_user_are_read_before_the_kernel_is_built(
    device: FakeDevice, description: Path
) -> None:
    params: dict[str, Json] = {
        **{"algorithm": "pgo", "scenario": "script", "apps": [{}], "actions": 24, "seed": 1},
        **{"arch": "x86-64", "device": "qemu"},
    }
    script = description.parent / "list"
    script.write_text("buy\nby\n")
    names = {"kernel": "/k", "guest": "/g", "apps.0.file": str(description)}
    names |= {"apps.0.programs": "/p", "apps.0.script": str(script)}
    inputs: dict[str, Input] = {name: HostInput(path) for name, path in names.items()}
    asked = Step("c", "profile-collect", params, inputs)
    with pytest.raises(InputError, match="app `Shop` has no action `by`"):
        profile_collect.BODY.check(asked)
    script.write_text("buy\n")
    profile_collect.BODY.check(asked)
