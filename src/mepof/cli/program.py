"""The program that a command is given: a file, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.stdin import STDIN, STDIN_NAME
from mepof.errors import InputError
from mepof.g4 import Source
from mepof.g4.source import MAX_BYTES

Program = Annotated[
    Path, typer.Argument(help="G4 program; `-` is standard input.", metavar="PROGRAM.g4")
]


def read_program(path: Path) -> Source:
    """The text of a program.

    Raises:
        InputError: it cannot be read or is too large.
    """
    if path != STDIN:
        return Source.read(path)
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError("standard input is not a G4 program: it is larger than 1 MiB")
    return Source.from_bytes(STDIN_NAME, data)


def name_of(path: Path) -> str:
    """What a run of the program is called where no name is given."""
    return "stdin" if path == STDIN else path.stem
