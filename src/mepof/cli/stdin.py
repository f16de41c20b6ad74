"""Standard input, which the word ``-`` names in place of a file, and compressed files."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.errors import InputError, WorkError
from mepof.profile.traces import decompressed, named

STDIN = Path("-")
STDIN_NAME = "<stdin>"


def name_of(given: Path) -> str:
    """What messages and provenance call an input."""
    return STDIN_NAME if given == STDIN else str(given)


@contextmanager
def spooled(inputs: Sequence[Path]) -> Iterator[list[Path]]:
    """The inputs, with a temporary file for standard input, since some formats are read twice, and
    for each that is compressed.

    Errors of the block name what was given, not the file.

    Raises:
        InputError: standard input is named twice, or a file is damaged.
        EnvironmentLack: a program that decompresses is not installed.
        WorkError: there is no space for it.
    """
    if inputs.count(STDIN) > 1:
        raise InputError("standard input is given twice", "name `-` once")
    if STDIN not in inputs:
        with decompressed(inputs) as files:
            yield files
        return
    with TemporaryDirectory(prefix="mepof-") as directory:
        path = Path(directory) / "stdin"
        try:
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        except OSError as error:
            raise WorkError(
                f"standard input cannot be kept in {directory}: {error.strerror}",
                "set TMPDIR to a directory with more space",
            ) from error
        spool = [path if given == STDIN else given for given in inputs]
        with named({str(path): STDIN_NAME}), decompressed(spool) as files:
            yield files
