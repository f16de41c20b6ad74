"""``mepof report``: which run's report it shows, and in which form."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from report.samples import measurement, report
from writers.shell import Shell

from mepof.errors import WorkError
from mepof.plan.journal import Journal, read_runs
from mepof.report import write_report


@pytest.mark.parametrize(("form", "start"), [("markdown", "**"), ("junit", "<testsuites ")])
def test_a_report_is_printed_for_other_tools(
    shell: Shell, tmp_path: Path, form: str, start: str
) -> None:
    write_report(report(measurement("plain"), measurement()), tmp_path)
    answer = shell("report", tmp_path, "--to", form)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(start)


def begun(out: Path) -> Journal:
    journal = Journal(out)
    journal.write("run", program="", seed=0, tools={}, versions={}, store="/s", cores=1)
    return journal


def reported(out: Path, state: str) -> None:
    """A run whose report was made, and how it ended."""
    journal = begun(out)
    journal.write("cached", step="report", kind="report", phase="report", fingerprint="f")
    journal.write("end", state=state)
    journal.close()


@pytest.mark.parametrize("earlier", [False, True])
def test_a_report_of_an_earlier_run_is_not_that_of_the_last(
    shell: Shell, tmp_path: Path, earlier: bool
) -> None:
    if earlier:
        write_report(report(measurement("plain"), measurement()), tmp_path)
        reported(tmp_path, "done")
        assert shell("report", tmp_path).status == 0
    journal = begun(tmp_path)
    assert "which is under way" in shell("report", tmp_path).err
    journal.write("end", state="failed", message="it does not build")
    journal.close()
    answer = shell("report", tmp_path, "--to", "junit")
    assert (answer.status, answer.out) == (WorkError.exit_status, "")
    assert "which failed: it does not build" in answer.err
    assert ("the report of an earlier run is" in answer.err) == earlier


@pytest.mark.parametrize(("state", "shown"), [("failed", True), ("interrupted", False)])
def test_what_a_failed_run_has_reported_is_shown(
    shell: Shell, tmp_path: Path, state: str, shown: bool
) -> None:
    write_report(report(measurement("plain"), measurement()), tmp_path)
    reported(tmp_path, state)
    assert (shell("report", tmp_path).status == 0) == shown


def test_a_report_that_was_not_copied_is_not_that_of_the_last_run(
    shell: Shell, tmp_path: Path
) -> None:
    write_report(report(measurement("plain"), measurement()), tmp_path)
    os.utime(tmp_path / "report.json", (0, 0))
    reported(tmp_path, "done")
    answer = shell("report", tmp_path)
    assert answer.status == WorkError.exit_status
    assert "which did not copy its report" in answer.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "p.g4 does not exist"),
        ("set toolchain gcc-99.", "unknown toolchain"),
        ("eval ./none.img;./opt.img.", "none.img` does not exist"),
    ],
)
def test_a_refused_run_does_not_pass_for_the_one_before(
    shell: Shell, tmp_path: Path, text: str | None, why: str
) -> None:
    write_report(report(measurement("plain"), measurement()), tmp_path)
    reported(tmp_path, "done")
    if text is not None:
        Path("p.g4").write_text(text)
    for _ in range(2):
        refused = shell("run", "p.g4", "--out", tmp_path)
        assert why in refused.err
        answer = shell("report", tmp_path, "--to", "junit")
        assert (answer.status, answer.out) == (WorkError.exit_status, "")
        assert "which failed" in answer.err
    assert shell("run", "p.g4", "--out", tmp_path, "--dry-run").status != 0
    assert len(read_runs(tmp_path)) == 3
