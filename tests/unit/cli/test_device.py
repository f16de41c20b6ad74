"""``mepof device``, on a simulated machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mepof.cli import device
from mepof.cli.main import main
from mepof.device.shell import LocalShell, Ran
from mepof.errors import InputError

PREPARATION = """\
title = "made up"
source = "nowhere"

[[setting]]
what = "governor"
path = "/governor"
value = "performance"
"""
COUNTERS = """\
title = "made up"
source = "nowhere at all"
at_once = 2
counter = [{ metric = "kernel_instructions", event = "instructions" },
           { metric = "kernel_l2_misses", event = "l2" }]
"""


@dataclass(frozen=True)
class Machine(LocalShell):
    """One file, one CPU, and a kernel of 100 instructions an operation.

    Attributes:
        ran: what was run.
    """

    ran: list[Sequence[str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "made-up"

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        self.ran.append(argv)
        if "selfcheck" in argv:
            return Ran(0, "selfcheck=passed")
        operations = int(argv[-1]) if "--operations" in argv else 200
        said = f"case=proc operations={operations} elapsed_ns=9000 check=ok\n"
        if "perf" in argv:
            said += f"{7 + operations * 100};;instructions:k;9;100.00;;\n"
            said += "<not supported>;;l2:k;0;100.00;;\n"
        return Ran(0, said)


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def mepof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Call:
    (tmp_path / "governor").write_text("schedutil\n")
    online = tmp_path / "sys/devices/system/cpu/online"
    online.parent.mkdir(parents=True)
    online.write_text("0\n")
    (tmp_path / "kind.toml").write_text(PREPARATION)
    (tmp_path / "counters.toml").write_text(COUNTERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(device, "_shell", lambda adb, ssh: Machine(tmp_path))

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["mepof", "device", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capfd.readouterr()

    return call


def test_prepared_until_restored(mepof: Call, tmp_path: Path) -> None:
    status, out, err = mepof("prepare", "kind.toml")
    assert (status, out) == (0, "")
    assert "governor: performance, was schedutil" in err
    assert "to restore the machine: mepof device restore" in err
    assert (tmp_path / "governor").read_text() == "performance\n"
    assert mepof("restore")[0] == 0
    assert (tmp_path / "governor").read_text() == "schedutil\n"
    assert mepof("restore") == (0, "", "made-up has nothing to restore\n")


def test_dry_run_sets_nothing(mepof: Call, tmp_path: Path) -> None:
    status, out, _ = mepof("prepare", "kind.toml", "--dry-run")
    assert (status, out) == (0, "governor: performance, is schedutil\n")
    assert (tmp_path / "governor").read_text() == "schedutil\n"
    assert not (tmp_path / "state").exists()
    (tmp_path / "governor").write_text("performance\n")
    status, out, _ = mepof("prepare", "kind.toml", "--dry-run")
    assert (status, out.partition(":")[0]) == (0, "nothing would be set")


def test_command_runs_prepared_and_its_status_is_kept(mepof: Call, tmp_path: Path) -> None:
    # taskset's own: it runs on CPU 0 alone.
    script = "cat governor; taskset -p $$; exit 7"
    status, out, _ = mepof("prepare", "kind.toml", "--", "sh", "-c", script)
    assert status == 7
    assert out.startswith("performance\n") and out.rstrip().endswith("mask: 1")
    assert (tmp_path / "governor").read_text() == "schedutil\n"


def test_unknown_kind_is_the_users_mistake(mepof: Call) -> None:
    status, _, err = mepof("prepare", "phone")
    assert status == 2 and "unknown kind of machine `phone`" in err


@pytest.mark.parametrize(
    "words",
    [
        ("prepare", "android"),
        ("prepare", "android", "--dry-run"),
        ("prepare", "android", "--", "true"),
        ("count", "--programs", "/p", "--prepare", "android"),
    ],
)
def test_a_phone_has_to_be_named(mepof: Call, tmp_path: Path, words: tuple[str, ...]) -> None:
    status, out, err = mepof(*words)
    assert (status, out) == (2, "")
    assert "`android` prepares a phone, not this machine" in err
    assert "help: name the phone with --adb SERIAL" in err
    assert not (tmp_path / "state").exists()


def test_counts_are_shown_with_what_is_missing(mepof: Call, tmp_path: Path) -> None:
    words = ("count", "--programs", "/p", "--metric", "proc", "--counters", "counters.toml")
    status, out, err = mepof(*words, "--prepare", "kind.toml", "--runs", "2")
    assert status == 0
    (row,) = (line.split() for line in out.splitlines() if line.startswith(" proc"))
    assert row == ["proc", "100.00", "45.000"]
    assert "kernel_l2_misses is not counted: l2:k is not supported" in out
    assert "governor: performance, was schedutil" in err
    assert (tmp_path / "governor").read_text() == "schedutil\n"


def test_counts_as_json_are_measurements(mepof: Call) -> None:
    words = ("count", "--programs", "/p", "--metric", "proc", "--counters", "counters.toml")
    status, out, _ = mepof(*words, "--json")
    document = json.loads(out)
    assert (status, document["schema"]) == (0, "mepof-device-count/1")
    (case,) = document["runs"][0]["cases"]
    assert case["counted"]["figures"] == {"kernel_instructions": 10_000}
    assert case["counted"]["operations"] == 100


def test_relative_programs_of_this_machine_are_found_from_where_cases_run(
    mepof: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path)
    monkeypatch.setattr(device, "_shell", lambda adb, ssh: machine)
    words = ("count", "--programs", "p", "--metric", "proc", "--counters", "counters.toml")
    assert mepof(*words)[0] == 0
    programs = [word for argv in machine.ran for word in argv if word.endswith("/kbench")]
    assert programs and all(word.startswith(f"{tmp_path}/p/") for word in programs)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--metric", "nothing"), "unknown metric `nothing`"),
        (("--counters", "abacus"), "unknown counters `abacus`"),
        (("--reboot",), "--reboot needs to know how the machine reboots"),
        (("--reboot", "--prepare", "kind.toml"), "would end mepof together with this machine"),
        (("--reboot", "--prepare", "kind.toml", "--ssh", "box"), "does not say how to reboot"),
        (("--ssh", "box", "--programs", "p"), "write its whole path on box"),
        (("--adb", "0123", "--programs", "p"), "--programs p is relative"),
    ],
)
def test_what_cannot_be_counted_is_the_users_mistake(
    mepof: Call, words: tuple[str, ...], complaint: str
) -> None:
    status, _, err = mepof("count", "--programs", "/p", *words)
    assert status == 2 and complaint in err


# One of the kernel's own files, which a UTS namespace has for itself.
HOST_NAME = """\
title = "made up"
source = "nowhere"

[[setting]]
what = "host name"
path = "/proc/sys/kernel/hostname"
value = "prepared"
"""
KILLED = """\
hostname before
mepof() { "$python" -c 'from mepof.cli.main import main; main()' "$@"; }
mepof device prepare name.toml -- sh -c 'hostname; kill -9 $PPID'
hostname
mepof device restore
hostname
"""


@pytest.mark.skipif(
    subprocess.run(["unshare", "-u", "true"], check=False, capture_output=True).returncode != 0,
    reason="no right to a UTS namespace",
)
def test_a_real_kernel_is_restored_after_a_kill(tmp_path: Path) -> None:
    (tmp_path / "name.toml").write_text(HOST_NAME)
    done = subprocess.run(
        ["unshare", "-u", "sh", "-c", KILLED],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "python": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["prepared", "prepared", "before"], done.stderr


def test_two_machines_are_not_one() -> None:
    with pytest.raises(InputError, match="two machines"):
        device._shell("x", "box")
