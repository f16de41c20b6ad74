"""Phones of a lab, with labgrid's own coordinator, exporter and client."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from writers.played_phone import install, switched_on
from writers.ports import free_port

from mepof.device import labgrid
from mepof.device.attached import Attached, PhoneModel
from mepof.device.handset import Handset

# Those of the environment that runs the tests.
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
pytestmark = [
    pytest.mark.patient,
    pytest.mark.skipif(
        not shutil.which("labgrid-coordinator", path=PATH), reason="labgrid is not installed"
    ),
]
WAIT = 60.0
EXPORTED = """\
{name}:
  AndroidNetFastboot: {{address: 127.0.0.1, port: {fastboot}, protocol: tcp}}
  adb: {{cls: NetworkService, address: 127.0.0.1, port: {adb}, username: root}}
"""
USB = """\
usb:
  AndroidUSBFastboot: {match: {ID_PATH: none-of-this-machine}}
"""
CLAIM = """
import sys
from mepof.device.attached import claim
phone = claim()
print(phone.name, phone.fastboot, phone.adb, flush=True)
sys.stdin.readline()
"""


@dataclass(frozen=True)
class Lab:
    """A coordinator with the places ``a`` and ``b``, phones over the network, and ``usb``."""

    address: str
    ports: dict[str, tuple[int, int]]

    def client(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(
            ["labgrid-client", "-x", self.address, *words],
            env={**os.environ, "PATH": PATH},
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def users(self) -> dict[str, str]:
        """Who uses which place."""
        lines = self.client("who").splitlines()[1:]
        found = (re.split(r"\s+", line.strip()) for line in lines)
        return {words[2]: f"{words[1]}/{words[0]}" for words in found}

    def line(self, place: str) -> str:
        """What :data:`CLAIM` prints of it."""
        fastboot, adb = self.ports[place]
        return f"{place} tcp:127.0.0.1:{fastboot} 127.0.0.1:{adb}\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    directory = tmp_path_factory.mktemp("lab")
    made = Lab(f"127.0.0.1:{free_port()}", {n: (free_port(), free_port()) for n in "ab"})
    resources = [
        EXPORTED.format(name=name, fastboot=fastboot, adb=adb)
        for name, (fastboot, adb) in made.ports.items()
    ]
    (directory / "exported.yaml").write_text("".join(resources) + USB)
    environment = {**os.environ, "PATH": PATH}
    with ExitStack() as running, (directory / "log").open("wb") as log:

        def start(*words: str) -> None:
            process = subprocess.Popen(
                words, cwd=directory, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
            running.callback(process.wait, WAIT)
            running.callback(process.terminate)

        start("labgrid-coordinator", "-l", made.address)
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port_of(made.address))) == 0)
        start("labgrid-exporter", "-c", made.address, "-n", "bench", "exported.yaml")
        for place in ("a", "b", "usb"):
            made.client("-p", place, "create")
            made.client("-p", place, "add-match", f"bench/{place}/*")
        until(lambda: "(bench/usb/" in made.client("-p", "usb", "show"))
        yield made


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def workplace(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list of phones: the two of the lab that answer over the network."""
    path = tmp_path / "phones.toml"
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setenv("LG_COORDINATOR", lab.address)
    monkeypatch.setenv("MEPOF_PHONES", str(path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write(path, "a", "b")
    return path


def write(path: Path, *places: str) -> None:
    """List phones of places of the same names."""
    lines = [f'[[phone]]\nname = "{p}"\nplace = "{p}"\nmodel = "model.toml"\n' for p in places]
    path.write_text("".join(lines))


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def claiming(processes: ExitStack) -> tuple[subprocess.Popen[str], str]:
    """A process that claims a phone and keeps it until a line comes; and what it says."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    processes.callback(process.communicate)
    processes.callback(process.kill)
    assert process.stdout is not None
    return process, process.stdout.readline()


def test_each_run_acquires_a_place_and_gives_it_back(
    lab: Lab, workplace: Path, processes: ExitStack
) -> None:
    first, said = claiming(processes)
    assert said == lab.line("a")
    second, said = claiming(processes)
    assert said == lab.line("b")
    users = lab.users()
    assert set(users) == {"a", "b"}
    assert len(set(users.values())) == 2
    third, said = claiming(processes)
    assert "every phone is in use: a, b" in third.communicate()[1]
    assert lab.users() == users
    first.communicate("\n")
    assert set(lab.users()) == {"b"}
    second.send_signal(signal.SIGINT)
    second.communicate()
    assert lab.users() == {}


def test_a_run_that_fails_gives_the_place_back(lab: Lab, workplace: Path) -> None:
    failing = CLAIM.replace("sys.stdin.readline()", "raise SystemError")
    done = subprocess.run(
        [sys.executable, "-c", failing], capture_output=True, text=True, check=False, timeout=WAIT
    )
    assert done.stdout == lab.line("a")
    assert "SystemError" in done.stderr
    assert lab.users() == {}


def test_what_a_killed_run_left_is_taken_first(
    lab: Lab, workplace: Path, processes: ExitStack
) -> None:
    first, _ = claiming(processes)
    second, said = claiming(processes)
    assert said == lab.line("b")
    left = lab.users()["b"]
    second.kill()
    second.communicate()
    first.communicate("\n")
    assert lab.users() == {"b": left}
    third, said = claiming(processes)
    assert said == lab.line("b")
    assert lab.users() == {"b": left}
    third.communicate("\n")
    assert lab.users() == {}


def test_a_place_of_somebody_else_stays_theirs(
    lab: Lab, workplace: Path, processes: ExitStack
) -> None:
    killed, said = claiming(processes)
    assert said == lab.line("a")
    killed.kill()
    killed.communicate()
    lab.client("-p", "a", "release", "--kick")
    lab.client("-p", "a", "acquire")
    mine = lab.users()
    run, said = claiming(processes)
    assert said == lab.line("b")
    run.communicate("\n")
    assert lab.users() == mine
    lab.client("-p", "a", "release")


def test_a_reserved_place_is_left_alone(lab: Lab, workplace: Path, processes: ExitStack) -> None:
    lab.client("-p", "a", "set-tags", "board=a")
    token = lab.client("reserve", "--wait", "--shell", "board=a").strip().rpartition("=")[2]
    run, said = claiming(processes)
    assert said == lab.line("b")
    run.communicate("\n")
    lab.client("cancel-reservation", token)


def test_the_real_fastboot_reaches_the_phone_of_a_place(
    lab: Lab, workplace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("fastboot") is None:
        pytest.skip("fastboot is not installed")
    port, adb_port = lab.ports["a"]
    install(tmp_path / "programs", adb_port)
    phone, _ = switched_on(tmp_path / "programs", tmp_path / "phone", adb_port, (), port)
    with (tmp_path / "claim").open("a+") as file:
        place = labgrid.claimed("a", file)
        assert place is not None
        fastboot, adb = place.addresses("", "")
        reached = Attached(name="a", fastboot=fastboot, adb=adb, place="a", model="model.toml")
        model = PhoneModel(title="played", source="tests")
        handset = Handset(reached, model, tmp_path / "state", lambda line: None)
        assert handset.to_fastboot().variable("current-slot") == "a"
        assert adb == f"127.0.0.1:{adb_port}"
        labgrid.give_back(place)
    phone.off()
    assert lab.users() == {}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (
            "attic",
            "the place attic of labgrid cannot be shown: place pattern attic matches nothing",
        ),
        ("usb", "the phone of the place usb is not at its USB port"),
    ],
)
def test_a_place_without_a_phone_is_an_error(
    lab: Lab, workplace: Path, processes: ExitStack, place: str, why: str
) -> None:
    write(workplace, place)
    run, _ = claiming(processes)
    assert why in run.communicate()[1]
    assert lab.users() == {}


def test_what_the_list_says_needs_no_resource(
    lab: Lab, workplace: Path, processes: ExitStack
) -> None:
    write(workplace, "usb")
    workplace.write_text(workplace.read_text() + 'fastboot = "0123ABCD"\n')
    run, said = claiming(processes)
    assert said == "usb 0123ABCD \n"
    run.communicate("\n")


def test_a_lab_that_is_closed_is_an_error(
    workplace: Path, processes: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LG_COORDINATOR", f"127.0.0.1:{free_port()}")
    run, _ = claiming(processes)
    assert "the place a of labgrid cannot be shown: Could not connect" in run.communicate()[1]
