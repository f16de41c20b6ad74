"""kbench, run on the host's own kernel."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from mepof.app.apps import load_app
from mepof.suite.cases import load_suite

CASES = {
    "syscall": "syscall",
    "overhead": "overhead",
    "pipe128": "pipe",
    "pipe512": "pipe",
    "proc": "proc",
    "file512": "file",
    "file1024": "file",
    "file8k": "file",
}
MOVE_BYTES = {case.name for case in load_suite("mepof").cases if "time_per_byte" in case.prints}
CHECKS = ("pipes", "files", "processes", "futexes", "loopback", "timers")


def kbench(
    built: Path, cwd: Path, *words: str, damage: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KBENCH_DAMAGE": damage}
    return subprocess.run(
        [built / "kbench", *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", line))


def test_list_names_the_eight_cases_of_five_metrics(built: Path, tmp_path: Path) -> None:
    lines = [fields(line) for line in kbench(built, tmp_path, "list").stdout.splitlines()]
    assert {line["case"]: line["metric"] for line in lines if "case" in line} == CASES
    assert all(int(line["operations"]) > 0 for line in lines)


def test_app_lists_the_same_actions_as_kbench(built: Path, tmp_path: Path) -> None:
    lines = [fields(line) for line in kbench(built, tmp_path, "list").stdout.splitlines()]
    known = {("run", line["case"]) for line in lines if "case" in line}
    known |= {("mix", line["mix"]) for line in lines if "mix" in line}
    assert {action.argv[1:] for action in load_app("kbench").actions} == known


@pytest.mark.parametrize("case", CASES)
def test_case_passes_its_checks(built: Path, tmp_path: Path, case: str) -> None:
    done = kbench(built, tmp_path, "run", case, "--operations", "40", "--rounds", "2")
    lines = [fields(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [line["round"] for line in lines] == ["0", "1"]
    for line in lines:
        assert line["case"] == case
        assert line["metric"] == CASES[case]
        assert line["operations"] == "40"
        assert line["check"] == "ok"
        assert int(line["elapsed_ns"]) > 0
        assert (int(line["bytes"]) > 0) == (case in MOVE_BYTES)
    assert not list(tmp_path.iterdir()), "the case left files behind"


@pytest.mark.parametrize("case", CASES)
def test_case_notices_a_wrong_result(built: Path, tmp_path: Path, case: str) -> None:
    done = kbench(built, tmp_path, "run", case, "--operations", "10", damage=case)
    assert done.returncode == 1
    assert fields(done.stdout)["check"] == "failed"
    assert done.stderr.startswith("kbench: wrong: ")


@pytest.mark.parametrize(
    ("case", "size"), [("pipe128", 256), ("pipe512", 1024), ("file8k", 32768), ("proc", 0)]
)
def test_bytes_are_what_the_operations_move(
    built: Path, tmp_path: Path, case: str, size: int
) -> None:
    line = fields(kbench(built, tmp_path, "run", case, "--operations", "7").stdout)
    assert int(line["bytes"]) == 7 * size


@pytest.mark.parametrize("mix", ["io", "ipc", "proc", "all"])
def test_mix_passes_and_leaves_no_files(built: Path, tmp_path: Path, mix: str) -> None:
    done = kbench(built, tmp_path, "mix", mix, "--operations", "2")
    assert (done.returncode, done.stdout) == (0, f"mix={mix} check=ok\n")
    assert not list(tmp_path.iterdir())


def test_self_check_passes_on_a_sound_kernel(built: Path, tmp_path: Path) -> None:
    done = kbench(built, tmp_path, "selfcheck")
    assert (done.returncode, done.stdout) == (0, "selfcheck=passed\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("check", CHECKS)
def test_self_check_names_what_failed(built: Path, tmp_path: Path, check: str) -> None:
    done = kbench(built, tmp_path, "selfcheck", damage=check)
    assert done.returncode == 1
    assert done.stdout.startswith(f"selfcheck=failed check={check} ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "what to do?"),
        (("walk",), "walk"),
        (("run",), "run or mix what?"),
        (("run", "fil512"), "fil512"),
        (("mix", "everything"), "everything"),
        (("run", "proc", "--operations"), "--operations"),
        (("run", "proc", "--operations", "0"), "--operations"),
        (("run", "proc", "--operations", "-4"), "--operations"),
        (("run", "proc", "--rounds", "9x"), "--rounds"),
        (("run", "proc", "--speed", "9"), "--speed"),
    ],
)
def test_wrong_arguments_are_explained(
    built: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = kbench(built, tmp_path, *words)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[0]
    assert "usage:" in done.stderr
