"""What the command line prints: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mepof.errors import InputError, MepofError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def output_file(given: Path) -> Path:
    """The file that a user names for output.

    Raises:
        InputError: it is `-`, which would be a file of that name.
    """
    if str(given) == "-":
        raise InputError("`-` is not a name for output", "write to standard output: -o /dev/stdout")
    return given


Output = Annotated[
    Path,
    typer.Option("-o", "--output", callback=output_file, help="File to write.", metavar="OUT"),
]


def tell(error: MepofError) -> None:
    """Print on standard error what went wrong and the remedy."""
    from mepof.cli.console import ErrorConsole
    from mepof.executor.programs import WrongProgram  # loads much, and only errors need it

    console = ErrorConsole(highlight=False, soft_wrap=True, markup=False, emoji=False)
    if isinstance(error, WrongProgram):
        console.print(error.message)
        return
    console.print("mepof: ", style="bold red", end="")
    console.print(error.message)
    if error.remedy:
        console.print(f"  help: {error.remedy}", style="dim")


def warn(text: str) -> None:
    """Print warnings about a program on standard error."""
    from mepof.cli.console import ErrorConsole

    console = ErrorConsole(highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print(text)


def tell_usage(error: Any) -> None:
    """Print on standard error what is wrong with a command line."""
    message = error.format_message()
    if error.ctx and message == error.ctx.get_help():  # there was no argument at all
        print(message, file=sys.stderr)
        return
    command = error.ctx.command_path if error.ctx else "mepof"
    tell(InputError(message, f"see `{command} --help`"))


def print_text(text: str) -> None:
    """What would be a file, as a file has it: in UTF-8, whatever the locale."""
    typer.echo(text.encode(), nl=False)


def print_json(document: object) -> None:
    """The one JSON document of ``--json``."""
    json.dump(document, sys.stdout, indent=1)
    sys.stdout.write("\n")
