"""The actions of the app general, on the host's own kernel with little work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.app.apps import lacked, load_app
from mepof.suite.cases import load_suite, suite_names

from .conftest import NATIVE

ACTIONS = [action.name for action in load_app("general").actions]
ARM64_CC = "aarch64-linux-gnu-gcc"
ARM64 = "qemu-aarch64"
# Actions without threads, and with only the system calls that QEMU's user-mode emulation supports.
EMULATED = [
    "mappings",
    "faults",
    "small-files",
    "large-files",
    "transfers",
    "directories",
    "paths",
    "attributes",
    "pipes",
    "tcp-streams",
    "udp",
    "signals",
    "queues",
    "system-files",
]


def built(out: Path, compiler: str) -> Path:
    command = ["make", "-s", "-C", f"{NATIVE}/suites", f"OUT={out}", "SUITE=general"]
    subprocess.run([*command, f"GUEST_CC={compiler}"], check=True, timeout=300)
    return out / "general"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed: apt-get install musl-tools")
    return built(tmp_path_factory.mktemp("general"), "musl-gcc")


@pytest.fixture(scope="session")
def arm64_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which(ARM64_CC) is None or shutil.which(ARM64) is None:
        pytest.skip("gcc-aarch64-linux-gnu and qemu-user are not both installed")
    return built(tmp_path_factory.mktemp("general-arm64"), ARM64_CC)


def ran(
    command: list[Path | str], *words: str, cwd: Path, damage: str = ""
) -> subprocess.CompletedProcess[str]:
    scratch = cwd / "scratch"
    scratch.mkdir()
    return subprocess.run(
        [*command, *words],
        cwd=cwd,
        env={**os.environ, "SUITE_DAMAGE": damage, "SUITE_SCRATCH": str(scratch)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_program_has_the_actions_of_the_apps_data(program: Path, tmp_path: Path) -> None:
    listed = ran([program], "list", cwd=tmp_path).stdout
    assert re.findall(r"action=(\S+)", listed) == ACTIONS
    for action in load_app("general").actions:
        assert action.argv == ("/suites/general", action.name)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_succeeds_and_leaves_nothing(program: Path, tmp_path: Path, action: str) -> None:
    done = ran([program], action, "--scale", "100", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"action={action} check=ok")
    assert [path.name for path in tmp_path.iterdir()] == ["scratch"]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_notices_a_wrong_result(program: Path, tmp_path: Path, action: str) -> None:
    done = ran([program], action, "--scale", "100", cwd=tmp_path, damage="1")
    if done.returncode == 0 and lacked(done.stdout):
        pytest.skip(f"this kernel has no {lacked(done.stdout)}")
    assert done.returncode == 1
    assert f"action={action} check=failed" in done.stdout
    assert done.stderr.startswith("general: wrong: ")


@pytest.mark.parametrize("action", EMULATED)
def test_an_action_succeeds_on_arm64(arm64_program: Path, tmp_path: Path, action: str) -> None:
    done = ran([ARM64, arm64_program], action, "--scale", "100", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"action={action} check=ok" in done.stdout


@pytest.mark.parametrize("words", [(), ("sleep",), ("pipes", "--scale"), ("pipes", "--scale", "0")])
def test_wrong_arguments_are_explained(
    program: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = ran([program], *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_what_a_kernel_lacks_is_named_in_the_result() -> None:
    assert lacked("action=udp check=ok lacks=CONFIG_IPV6,UDP_SEGMENT\n") == (
        "CONFIG_IPV6",
        "UDP_SEGMENT",
    )
    assert lacked("action=udp check=ok\n") == ()
    assert lacked("action=udp check=failed lacks=CONFIG_IPV6\n") == ()


def test_no_action_runs_the_command_of_a_case() -> None:
    cases = {case.argv for name in suite_names() for case in load_suite(name).cases}
    assert not {action.argv for action in load_app("general").actions} & cases
    assert not any(action.includes for action in load_app("general").actions)
