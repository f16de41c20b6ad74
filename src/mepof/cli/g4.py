"""``mepof g4``: check, format and compile programs without running them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.application import Commands
from mepof.cli.output import print_json, print_text, warn
from mepof.cli.program import Program, read_program
from mepof.cli.stdin import STDIN
from mepof.disk import replacing
from mepof.errors import InputError
from mepof.executor.programs import WrongProgram, compiled, plan_of
from mepof.g4 import format_program, parse, render
from mepof.plan.document import to_document

app = Commands(help="Check, format and compile G4 programs.")


@app.command("check")
def check_program(program: Program) -> None:
    """Report the errors and warnings of a program without running it."""
    plan_of(read_program(program), warn=warn, runs=False)


@app.command("fmt")
def fmt(
    program: Program,
    write: Annotated[bool, typer.Option("--write", "-w", help="Rewrite the file.")] = False,
) -> None:
    """Print a program in the standard format."""
    if write and program == STDIN:
        raise InputError("standard input cannot be rewritten", "leave out --write")
    source = read_program(program)
    parsed = parse(source)
    if parsed.diagnostics:
        raise WrongProgram(render(parsed.diagnostics, source))
    text = format_program(parsed.program)
    if not write:
        print_text(text)
    elif text != source.text:
        _replace(program, text)


@app.command("plan")
def plan(program: Program) -> None:
    """Print the plan of a program as JSON."""
    print_json(to_document(compiled(read_program(program))))


def _replace(path: Path, text: str) -> None:
    """Rewrite a file, through a link to it, so that it is the old text or the new one."""
    target = path.resolve()
    try:
        with replacing(target) as partial:
            partial.write_text(text, encoding="utf-8")
            shutil.copymode(target, partial)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
