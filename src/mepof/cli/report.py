"""``mepof report``: the summary of a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mepof.cli.output import Json, print_json


def report(
    directory: Annotated[Path, typer.Argument(help="Output directory of a run.", metavar="DIR")],
    as_json: Json = False,
) -> None:
    """Show the report of a run."""
    from mepof.report import read_report, summary  # loads scipy

    found = read_report(directory)
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    else:
        Console(highlight=False).print(summary(found, directory))
