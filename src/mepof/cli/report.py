"""``mepof report``: the summary of a finished run."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mepof.cli.output import Json, print_json, print_text
from mepof.errors import WorkError

# Of the first `eval`, whose report is not in a directory of its own.
_STEP = "report"
_NOT_COPIED = "did not copy its report: run it again"


class Form(StrEnum):
    """What shows a report elsewhere."""

    MARKDOWN = "markdown"
    JUNIT = "junit"


def report(
    directory: Annotated[Path, typer.Argument(help="Output directory of a run.", metavar="DIR")],
    as_json: Json = False,
    to: Annotated[
        Form | None,
        typer.Option(help="Print it as Markdown for a merge request, or as JUnit's XML for a CI."),
    ] = None,
) -> None:
    """Show the report of the last run."""
    from mepof.report import read_report, summary  # loads scipy
    from mepof.report.junit import junit
    from mepof.report.markdown import markdown

    if as_json and to is not None:
        raise typer.BadParameter("--json and --to are two forms: name one")
    _check_is_of_last_run(directory)
    found = read_report(directory)
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    elif to is not None:
        print_text({Form.MARKDOWN: markdown, Form.JUNIT: junit}[to](found))
    else:
        Console(highlight=False).print(summary(found, directory))


def _check_is_of_last_run(directory: Path) -> None:
    """Refuse to show no report, or that of an earlier run, for the last run in a directory.

    Raises:
        WorkError: the last run has not made a report.
    """
    from mepof.plan.journal import FILE_NAME, in_use, read_runs
    from mepof.report.files import HTML_NAME, JSON_NAME

    journal, made = directory / FILE_NAME, directory / JSON_NAME
    try:
        *_, last = read_runs(journal)
    except (OSError, ValueError):  # nothing, or none, ran there
        return
    report = last.steps.get(_STEP)
    reported = last.state in ("done", "failed") and report and report.state in ("done", "cached")
    began = datetime.fromisoformat(last.started).timestamp()
    # The clock of files ticks less often than that of the journal. What is older was not copied:
    # a disk may have been full.
    if reported and made.is_file() and made.stat().st_mtime > began - 1:
        return
    became = {
        "running": "is under way" if in_use(journal) else "was killed",
        "done": "measured nothing: its program has no `eval`" if report is None else _NOT_COPIED,
        "failed": f"failed: {last.message}",
        "interrupted": "was interrupted",
    }
    raise WorkError(
        f"there is no report of the last run in {directory}, which {became[last.state]}",
        f"the report of an earlier run is {directory / HTML_NAME}" if made.is_file() else None,
    )
