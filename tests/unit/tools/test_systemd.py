"""The units of systemd, installed as the documentation says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNITS = sorted((ROOT / "tools/systemd").iterdir())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory in which the documented commands were run, but for those of systemd."""
    checkout, made = tmp_path / "mepof", tmp_path / "home"
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/mepof").write_text("#!/bin/sh\n")
    (checkout / ".venv/bin/mepof").chmod(0o755)
    (checkout / "tools").symlink_to(ROOT / "tools")
    section = (ROOT / "docs/watch.md").read_text().partition("## As a service")[2]
    commands = re.findall(r"^(?:mkdir|ln|install) .*$", section, re.M)
    environment = {"HOME": str(made), "PATH": "/usr/bin:/bin"}
    subprocess.run(["sh", "-ec", "\n".join(commands)], cwd=checkout, env=environment, check=True)
    return made


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd does not run here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_can_start_what_is_installed(unit: Path, home: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", home / ".config/systemd/user" / unit.name],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("unit", [u for u in UNITS if u.suffix == ".service"], ids=lambda u: u.name)
def test_a_service_runs_where_its_file_is(unit: Path, home: Path) -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.M))
    directory = Path(settings["WorkingDirectory"].replace("%E", str(home / ".config")))
    assert directory.is_dir()
    program, watch, *once, file = settings["ExecStart"].split()
    assert Path(program.replace("%h", str(home))).resolve().is_file()
    assert (watch, file) == ("watch", "%i.toml")
    assert once == (["--once"] if "once" in unit.name else [])
