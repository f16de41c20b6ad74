"""The unit by which a command goes on after a reboot."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mepof.device import resume
from mepof.device.shell import LocalShell, Ran
from mepof.errors import EnvironmentLack, WorkError

UNITS = "etc/systemd/system"
WORDS = ("/usr/bin/printf", "[%s]", "two words", "$HOME ${X}", 'a"b', "back\\slash", "100%", "")


class Machine(LocalShell):
    """A machine whose systemd answers with a status."""

    def __init__(self, root: Path, status: int = 0) -> None:
        super().__init__(root)
        object.__setattr__(self, "status", status)
        object.__setattr__(self, "asked", [])

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        vars(self)["asked"].append(tuple(argv))
        return Ran(vars(self)["status"], "Failed to connect to bus\n")


def arm(machine: Machine, directory: Path) -> None:
    resume.arm(machine, WORDS, directory, {"HOME": "/root", "SECRET": "x"}, directory / "a log")


def test_the_command_is_enabled_and_disabled(tmp_path: Path) -> None:
    (tmp_path / UNITS).mkdir(parents=True)
    machine = Machine(tmp_path)
    arm(machine, tmp_path)
    text = (tmp_path / UNITS / resume.NAME).read_text()
    assert 'Environment="HOME=/root"' in text and "SECRET" not in text
    resume.disarm(machine)
    assert not (tmp_path / UNITS / resume.NAME).exists()
    assert [words[1] for words in vars(machine)["asked"]] == ["enable", "disable"]
    resume.disarm(machine)
    assert len(vars(machine)["asked"]) == 2


def test_a_machine_without_systemd_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLack, match=r"cannot write .*mepof-compare\.service"):
        arm(Machine(tmp_path), tmp_path)


def test_a_unit_that_is_not_enabled_is_not_left(tmp_path: Path) -> None:
    (tmp_path / UNITS).mkdir(parents=True)
    with pytest.raises(EnvironmentLack, match=r"does not enable .*Failed to connect to bus"):
        arm(Machine(tmp_path, 1), tmp_path)
    assert not (tmp_path / UNITS / resume.NAME).exists()


def test_a_unit_that_stays_enabled_is_told(tmp_path: Path) -> None:
    (tmp_path / UNITS).mkdir(parents=True)
    arm(Machine(tmp_path), tmp_path)
    with pytest.raises(WorkError, match="does not disable"):
        resume.disarm(Machine(tmp_path, 1))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "x.service"
    unit.write_text(resume.unit_of(WORDS, tmp_path, {"PATH": "/b in:/$x%"}, tmp_path / "a log"))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert str(unit) not in done.stderr and "x.service" not in done.stderr, done.stderr
