"""The command ``g4cc``: the G4 compiler alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.main import guarded
from mepof.cli.run import Program
from mepof.errors import InputError
from mepof.executor.local import plan_of
from mepof.g4 import Source
from mepof.plan.document import to_document

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def compile_to(
    program: Program,
    output: Annotated[Path, typer.Option("-o", help="Where the plan goes.")] = Path("plan.json"),
) -> None:
    """Compile a G4 program to a plan."""
    text = json.dumps(to_document(plan_of(Source.read(program))), indent=1) + "\n"
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error


def main() -> None:
    """Entry point of ``g4cc``."""
    guarded(app)
