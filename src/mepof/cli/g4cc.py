"""The command ``g4cc``: the G4 compiler alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.application import Commands, Version
from mepof.cli.main import guarded
from mepof.cli.program import Program, read_program
from mepof.errors import InputError
from mepof.executor.programs import compiled
from mepof.plan.document import to_document

app = Commands()


@app.command()
def compile_to(
    program: Program,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File for the plan.", metavar="FILE")
    ] = Path("plan.json"),
    version: Version = False,
) -> None:
    """Compile a G4 program to a plan, as JSON."""
    text = json.dumps(to_document(compiled(read_program(program))), indent=1) + "\n"
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error


def main() -> None:
    """Entry point of ``g4cc``."""
    guarded(app, "g4cc")
