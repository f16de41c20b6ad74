"""Files that a user names for output, written completely or not at all, as the engine does."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.disk import replacing
from mepof.errors import InputError

_OPEN = ("/dev/stdout", "/dev/stderr", "/dev/fd", "/proc")


def is_special(output: Path) -> bool:
    """Whether it is an open file, a pipe or a device: these are written to, never replaced."""
    return any(output.is_relative_to(each) for each in _OPEN) or (
        output.exists() and not output.is_file()
    )


@contextmanager
def published(output: Path) -> Iterator[Path]:
    """A file to write, which becomes the output if the block ends without an error.

    Raises:
        InputError: the output cannot be written.
    """
    try:
        if is_special(output):
            with TemporaryDirectory() as scratch:
                written = Path(scratch, output.name)
                yield written
                with written.open("rb") as source, output.open("wb") as target:
                    shutil.copyfileobj(source, target)
            return
        with replacing(output.resolve()) as partial:  # through a link, as a plain write would go
            yield partial
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error
