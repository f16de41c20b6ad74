"""The files of a profile artifact: the profile itself, and what is known about it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict

from mepof.document import Document
from mepof.errors import InputError
from mepof.kernel.description import Origin
from mepof.profile.quality import Quality


class ProfileDescription(Document):
    """What is known about a profile.

    Attributes:
        algorithm: the algorithm, or the stack of them.
        build: the build that was profiled; None where the profile is of several.
        executed_objects: those of that build that define a function which ran, sorted; None where
            that is unknown.
    """

    file: ClassVar[str] = "profile.json"

    algorithm: str
    build: Origin | None
    quality: Quality
    executed_objects: tuple[str, ...] | None = None


def executed_objects(profiles: Sequence[ProfileDescription | None]) -> tuple[str, ...] | None:
    """The objects in which something ran by one of several profiles; None if one does not tell."""
    found: set[str] = set()
    for known in profiles:
        if known is None or known.executed_objects is None:
            return None
        found.update(known.executed_objects)
    return tuple(sorted(found))


class Drift(Document):
    """How much of a profile fits a kernel of another source: what ``mepof profile drift --json``
    prints, of which the steps read one figure."""

    model_config = ConfigDict(frozen=True, extra="allow")

    file: ClassVar[str] = "drift.json"

    matched_percent: float


def profile_files(given: Path) -> tuple[Path, ...]:
    """The files of a profile artifact, without what is known about them.

    Raises:
        InputError: the directory does not contain a profile.
    """
    inside = sorted(given.iterdir())
    files = tuple(path for path in inside if path.suffix != ".json" and path.is_file())
    if not files:
        raise InputError(f"{given} does not contain a profile")
    return files


def files_of(given: Path, names: Sequence[str]) -> dict[str, Path]:
    """The files of a profile artifact, or the user's own file as one.

    Args:
        names: what the algorithms call the files of the profile.

    Raises:
        InputError: the artifact does not have one of them, or a single file is not all of them.
    """
    if given.is_dir():
        for name in names:
            if not (given / name).is_file():
                raise InputError(f"{given} does not contain {name}")
        return {name: given / name for name in names}
    if len(names) > 1:
        raise InputError(
            f"{given} is only part of the profile, which consists of {', '.join(names)}",
            "name the result of the program that made it, or a directory with all of them",
        )
    return dict.fromkeys(names, given)


def profile_directory(given: Path, names: Sequence[str], work: Path) -> Path:
    """A profile artifact, or the user's own file laid into a directory as one.

    Args:
        names: as of :func:`files_of`.
        work: where a directory may be made.

    Raises:
        InputError: as of :func:`files_of`.
    """
    files = files_of(given, names)
    if given.is_dir():
        return given
    directory = work / f"profile-{sha256(bytes(given)).hexdigest()[:16]}"
    directory.mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        shutil.copyfile(path, directory / name)
    return directory
