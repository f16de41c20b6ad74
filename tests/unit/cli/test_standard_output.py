"""Standard output that is full, closed, read in part, or of another character set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from report.samples import measurement, report

from mepof.errors import WorkError
from mepof.report import write_report

MEPOF = (sys.executable, "-c", "from mepof.cli.main import main; main()")


def test_a_full_disk_behind_standard_output_is_no_bug() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*MEPOF, "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == WorkError.exit_status
    assert done.stderr == (
        "mepof: no space left for the output\n  help: free some, and run it again\n"
    )


def test_characters_that_a_locale_lacks_are_replaced_but_not_in_files(tmp_path: Path) -> None:
    write_report(report(measurement("plain"), measurement()), tmp_path)
    (tmp_path / "p.g4").write_text("# \u2192\nset seed 1.\n", encoding="utf-8")

    def said(*words: str) -> bytes:
        return subprocess.run(
            [*MEPOF, *words],
            env={**os.environ, "PYTHONIOENCODING": "latin-1"},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout

    assert b"?" in said("report", str(tmp_path))
    assert "\u2192".encode() in said("g4", "fmt", str(tmp_path / "p.g4"))
    assert said("report", str(tmp_path), "--to", "markdown").decode()


def test_a_reader_that_stops_early_is_no_failure(tmp_path: Path) -> None:
    write_report(report(measurement("plain"), measurement()), tmp_path)
    words = [*MEPOF, "report", str(tmp_path)]
    read, write = os.pipe()
    os.close(read)
    for more in ([], ["--json"], ["--to", "junit"]):
        assert subprocess.run(words + more, stdout=write, check=False).returncode == 0
    os.close(write)


@pytest.mark.parametrize("words", ["--version", "doctor --json"])
def test_standard_output_may_be_closed(words: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {words} >&-', *MEPOF],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
