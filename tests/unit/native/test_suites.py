"""The suites' programs, on the host's own kernel with little work."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from mepof.suite.cases import load_suite, suite_names

from .conftest import ABI_FLAGS, NATIVE

TABLES = tuple(
    name
    for name in suite_names()
    if (added := load_suite(name).programs) is not None and not added.tools
)
CASES = [(name, case.name) for name in TABLES for case in load_suite(name).cases]
UNSUPPORTED = 77
# Pages of 64 KiB are a setting of the whole machine.
ELSEWHERE = re.compile(r"pages/.*-64k")


ARM64_CC = "aarch64-linux-gnu-gcc"
ARM64 = "qemu-aarch64"
# Cases that use only system calls that QEMU's user-mode emulation supports.
ON_ARM64 = [
    (suite, case)
    for suite, case in CASES
    if suite in ("compute", "threads", "network")
    or (suite, case.partition("-")[0]) in {("unixbench", "dhry"), ("unixbench", "whet")}
    or (suite == "ipc" and not case.startswith("binder"))
]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the program of every suite."""
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-gcc is not installed: apt-get install musl-tools")
    out = tmp_path_factory.mktemp("suites")
    for name in (*TABLES, "tools"):
        added = load_suite(name).programs
        assert added is not None
        if "sqlite3" in added.libraries and not Path("/usr/include/sqlite3.h").is_file():
            continue
        if not all(shutil.which(builder.path) for builder in added.builders):
            continue
        libraries = f"LIBRARIES={' '.join(added.libraries)}"
        how = ["GUEST_CC=gcc", libraries] if added.libraries else []
        command = ["make", "-s", "-C", f"{NATIVE}/suites", f"OUT={out}", f"SUITE={name}", *how]
        subprocess.run(command, check=True, timeout=120, capture_output=True)
    return out


@pytest.fixture(scope="session")
def arm64_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the programs for arm64."""
    if shutil.which(ARM64_CC) is None or shutil.which(ARM64) is None:
        pytest.skip("gcc-aarch64-linux-gnu and qemu-user are not both installed")
    out = tmp_path_factory.mktemp("arm64")
    for name in TABLES:
        added = load_suite(name).programs
        assert added is not None
        if added.libraries:
            continue  # from a package for that architecture
        where = (f"OUT={out}", f"SUITE={name}", f"GUEST_CC={ARM64_CC}")
        subprocess.run(
            ["make", "-s", "-C", f"{NATIVE}/suites", *where],
            check=True,
            timeout=120,
            capture_output=True,
        )
    return out


def ran(
    programs: Path, suite: str, *words: str, cwd: Path, damage: str = ""
) -> subprocess.CompletedProcess[str]:
    if not (programs / suite).is_file():
        lacks = {"sqlite": "libsqlite3-dev", "jni": "default-jdk-headless"}[suite]
        pytest.skip(f"{lacks} is not installed")
    environment = {**os.environ, "SUITE_DAMAGE": damage, "SUITE_SCRATCH": str(cwd)}
    return subprocess.run(
        [programs / suite, *words],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def fields(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", line))


@pytest.mark.parametrize("suite", TABLES)
def test_a_program_has_the_cases_of_its_suites_data(
    programs: Path, tmp_path: Path, suite: str
) -> None:
    done = ran(programs, suite, "list", cwd=tmp_path)
    listed = [fields(line)["case"] for line in done.stdout.splitlines()]
    assert sorted(listed) == sorted(case.name for case in load_suite(suite).cases)
    for case in load_suite(suite).cases:
        assert case.argv == (f"/suites/{suite}", case.name)


@pytest.mark.parametrize(("suite", "case"), CASES)
def test_a_case_passes_or_names_what_the_kernel_does_not_have(
    programs: Path, tmp_path: Path, suite: str, case: str
) -> None:
    if ELSEWHERE.match(f"{suite}/{case}"):
        pytest.skip("changes a setting of this machine")
    done = ran(programs, suite, case, "--scale", "100", cwd=tmp_path)
    line = fields(done.stdout)
    assert line["case"] == case
    if done.returncode == UNSUPPORTED:
        assert line["check"] == "unsupported"
        assert line["needs"]
        return
    assert (done.returncode, line["check"], done.stderr) == (0, "ok", "")
    assert int(line["operations"]) > 0
    assert int(line["elapsed_ns"]) > 0
    (known,) = (each for each in load_suite(suite).cases if each.name == case)
    printed = {"latency": "p99_ns" in line, "time_per_byte": int(line.get("bytes", 0)) > 0}
    assert {cost for cost, found in printed.items() if found} == {*known.prints}


@pytest.mark.parametrize(("suite", "case"), CASES)
def test_a_case_notices_a_wrong_result(
    programs: Path, tmp_path: Path, suite: str, case: str
) -> None:
    if ELSEWHERE.match(f"{suite}/{case}"):
        pytest.skip("changes a setting of this machine")
    done = ran(programs, suite, case, "--scale", "100", cwd=tmp_path, damage="1")
    if done.returncode == UNSUPPORTED:
        pytest.skip(f"this kernel has no {fields(done.stdout)['needs']}")
    assert done.returncode == 1
    assert fields(done.stdout)["check"] == "failed"
    assert done.stderr.startswith(f"{suite}: wrong: ")


@pytest.mark.parametrize(("suite", "case"), ON_ARM64)
def test_a_case_gives_the_same_result_on_arm64(
    arm64_programs: Path, tmp_path: Path, suite: str, case: str
) -> None:
    done = subprocess.run(
        [ARM64, arm64_programs / suite, case, "--scale", "100"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == UNSUPPORTED:
        pytest.skip(f"this kernel has no {fields(done.stdout)['needs']}")
    assert (done.returncode, fields(done.stdout)["check"], done.stderr) == (0, "ok", "")


@pytest.mark.parametrize(
    ("suite", "case", "operations"),
    [("network", "rr-loopback-1", 20), ("input", "path-ring", 8), ("sqlite", "commit-wal", 3)],
)
def test_latencies_are_in_order(
    programs: Path, tmp_path: Path, suite: str, case: str, operations: int
) -> None:
    line = fields(ran(programs, suite, case, "--scale", "100", cwd=tmp_path).stdout)
    shares = [int(line[f"{name}_ns"]) for name in ("p1", "p50", "p90", "p99")]
    assert shares == sorted(shares)
    assert shares[0] <= int(line["mean_ns"])
    assert int(line["operations"]) == operations


def test_percentiles_are_by_nearest_rank(tmp_path: Path) -> None:
    source = tmp_path / "latencies.c"
    source.write_text(
        f"""#include "{NATIVE}/suites/case.h"
        const char suite_name[] = "latencies";
        int main(void)
        {{
            case_begin("known", 200);
            bool sound = latencies_expect(200);
            latency_note(7); /* before the interval, so discarded */
            measure_begin();
            for (unsigned long i = 0; i < 200; i++)
                latency_note(i * 37 % 200 + 1); /* each of 1 to 200 once */
            measure_end();
            return case_end(sound);
        }}"""
    )
    program = tmp_path / "latencies"
    compiled = ("gcc", "-D_GNU_SOURCE", *ABI_FLAGS, "-pthread", "-o", program, source)
    subprocess.run([*compiled, NATIVE / "suites/case.c"], check=True, timeout=60)
    said = fields(subprocess.run([program], capture_output=True, text=True, timeout=60).stdout)
    found = {name: int(said[f"{name}_ns"]) for name in ("p1", "p50", "p90", "p99", "mean")}
    assert found == {"p1": 2, "p50": 100, "p90": 180, "p99": 198, "mean": 100}


def test_a_case_reports_that_its_partner_ended_and_does_not_wait(
    programs: Path, tmp_path: Path
) -> None:
    # The port is taken: the client must not wait for the server.
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 12865))
        taken.listen()
        # A privileged user would get a network namespace of its own.
        lesser = ("setpriv", "--bounding-set", "-sys_admin") if os.geteuid() == 0 else ()
        done = subprocess.run(
            [*lesser, programs / "network", "rr-loopback-1", "--scale", "100"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert "wrong: listen" in done.stderr
    assert "a child ended before it was ready" in done.stderr


def test_the_children_of_a_case_end_with_it(programs: Path, tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    script = f"echo begun >/proc/self/fd/{theirs}; exec cat"
    with (
        os.fdopen(ours, "rb") as heard,
        subprocess.Popen(
            [programs / "tools", "x", "1", "--", "/bin/sh", "-c", script],
            stdin=subprocess.PIPE,
            pass_fds=[theirs],
        ) as case,
    ):
        os.close(theirs)
        assert heard.readline() == b"begun\n"
        case.kill()
        # End of file comes when no process has the other end of the pipe.
        assert heard.read() == b""


def test_bytes_are_what_a_stream_moved(programs: Path, tmp_path: Path) -> None:
    line = fields(
        ran(programs, "network", "stream-loopback", "--scale", "100", cwd=tmp_path).stdout
    )
    assert int(line["bytes"]) == int(line["operations"]) * 16384


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("sleep",),
        ("pipe-4", "--scale"),
        ("pipe-4", "--scale", "0"),
        ("pipe-4", "--scale", "-1"),
        ("pipe-4", "--scale", "2x"),
        ("pipe-4", "--faster", "2"),
    ],
)
def test_wrong_arguments_are_explained(
    programs: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = ran(programs, "ipc", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def tools(programs: Path, cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ran(programs, "tools", *words, cwd=cwd)


def test_a_tool_becomes_a_case(programs: Path, tmp_path: Path) -> None:
    done = tools(programs, tmp_path, "truth", "7", "--", "/bin/sh", "-c", "echo case=lie check=no")
    line = fields(done.stdout)
    assert (done.returncode, line["case"], line["operations"]) == (0, "truth", "7")
    assert line["check"] == "ok"


def test_a_tool_that_fails_is_shown(programs: Path, tmp_path: Path) -> None:
    done = tools(programs, tmp_path, "truth", "7", "--", "/bin/sh", "-c", "echo no luck; exit 3")
    assert (done.returncode, fields(done.stdout)["check"]) == (1, "failed")
    assert "no luck" in done.stderr


def test_a_tool_on_the_scratch_file_system_runs_there(programs: Path, tmp_path: Path) -> None:
    done = tools(programs, tmp_path, "x", "1", "--scratch", "--", "/bin/sh", "-c", ": > here")
    assert done.returncode == 0
    assert (tmp_path / "here").is_file()


def test_a_server_that_ends_before_it_listens_is_reported(programs: Path, tmp_path: Path) -> None:
    done = tools(programs, tmp_path, "x", "1", "--server", "1", "/bin/false", "--", "/bin/true")
    assert done.returncode == 1
    assert "the server's end before it listened" in done.stderr


@pytest.mark.parametrize("words", [("x",), ("x", "0", "--", "/bin/true"), ("x", "1", "/bin/true")])
def test_a_tool_needs_a_name_a_count_and_a_command(
    programs: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = tools(programs, tmp_path, *words)
    assert done.returncode == 2
    assert "usage:" in done.stderr
