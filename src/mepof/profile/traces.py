"""Branch traces and profiles that a user compressed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof import compressed
from mepof.errors import InputError, MepofError, WorkError
from mepof.magic import ZSTD
from mepof.plan.preflight import unreadable
from mepof.process import run

_HEAD_BYTES = 6


def traces_of(path: Path) -> tuple[Path, ...]:
    """A user's branch traces: a file, or those in a directory, one for each machine that recorded.
    `perf record --threads` also makes a directory, which is one trace.

    Raises:
        InputError: the directory has none, or another directory.
    """
    if not path.is_dir() or _is_one(path):
        return (path,)
    try:
        inside = sorted(path.iterdir())
    except OSError as error:
        raise unreadable(error) from error
    # perf renames an earlier recording so.
    found = tuple(each for each in inside if each.name[0] != "." and each.suffix != ".old")
    if not found:
        raise InputError(f"{path} is empty", "put the branch traces into it")
    if inner := next((each for each in found if each.is_dir() and not _is_one(each)), None):
        raise InputError(
            f"{inner} is a directory without perf's `data`",
            f"put the branch traces of all machines into {path} itself",
        )
    return found


def _is_one(directory: Path) -> bool:
    return (directory / "data").exists()


@contextmanager
def decompressed(traces: Sequence[Path]) -> Iterator[list[Path]]:
    """The traces, with a temporary file for each that is compressed.

    Errors of the block name what was given.

    Raises:
        InputError: a file is damaged.
        EnvironmentLack: zstd is not installed.
        WorkError: there is no space for it.
    """
    heads = {trace: _head(trace) for trace in traces}
    if not any(head.startswith(compressed.MAGICS) for head in heads.values()):
        yield list(traces)
        return
    with TemporaryDirectory(prefix="mepof-") as directory:
        files = []
        for number, trace in enumerate(traces):
            target = trace
            if heads[trace].startswith(compressed.MAGICS):
                target = Path(directory) / f"{number}-{trace.stem}"
                _decompress(trace, target, heads[trace])
            files.append(target)
        with named({str(file): str(trace) for file, trace in zip(files, traces, strict=True)}):
            yield files


@contextmanager
def named(names: Mapping[str, str]) -> Iterator[None]:
    """Has errors of the block say a name in place of each temporary file."""
    try:
        yield
    except MepofError as error:
        message = error.message
        for file, name in names.items():
            message = message.replace(file, name)
        raise type(error)(message, error.remedy) from error


def _head(trace: Path) -> bytes:
    try:
        if not trace.is_file():  # a pipe cannot be read twice
            return b""
        with trace.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:  # the engine says what is wrong
        return b""


def _decompress(trace: Path, target: Path, head: bytes) -> None:
    try:
        if head.startswith(ZSTD):
            done = run(compressed.by_zstd(trace, target), check=False)
            if (full := os.strerror(errno.ENOSPC)) in done.output:
                raise OSError(errno.ENOSPC, full)
            if done.status < 0:
                raise WorkError(f"{trace} cannot be decompressed: zstd was ended")
            if done.status != 0:
                raise InputError(f"{trace} cannot be decompressed: {done.output.strip()}")
            return
        with trace.open("rb") as source, target.open("wb") as file:
            compressed.copy(source, file, head)
    except compressed.Damaged as error:
        raise InputError(f"{trace} cannot be decompressed: {error}") from error
    except OSError as error:
        raise WorkError(
            f"{trace} cannot be decompressed into {target.parent}: {error.strerror}",
            "set TMPDIR to a directory with more space",
        ) from error
