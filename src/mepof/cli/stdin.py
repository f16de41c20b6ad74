"""Standard input, which the word ``-`` names in place of a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.errors import InputError, MepofError, WorkError

STDIN = Path("-")
STDIN_NAME = "<stdin>"


@contextmanager
def spooled(inputs: Sequence[Path]) -> Iterator[list[Path]]:
    """The inputs, with a temporary file for standard input: some formats are read twice.

    Errors of the block name standard input, not the file.

    Raises:
        InputError: standard input is named twice.
        WorkError: there is no space for it.
    """
    if inputs.count(STDIN) > 1:
        raise InputError("standard input is given twice", "name `-` once")
    if STDIN not in inputs:
        yield list(inputs)
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
        try:
            yield [path if given == STDIN else given for given in inputs]
        except MepofError as error:
            message = error.message.replace(str(path), STDIN_NAME)
            raise type(error)(message, error.remedy) from error
