"""``mepof report``: the summary of a finished run."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mepof.cli.output import Json, print_json


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
    """Show the report of a run."""
    from mepof.report import read_report, summary  # loads scipy
    from mepof.report.junit import junit
    from mepof.report.markdown import markdown

    if as_json and to is not None:
        raise typer.BadParameter("--json and --to are two forms: name one")
    found = read_report(directory)
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    elif to is not None:
        sys.stdout.write({Form.MARKDOWN: markdown, Form.JUNIT: junit}[to](found))
    else:
        Console(highlight=False).print(summary(found, directory))
