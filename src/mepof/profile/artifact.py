"""The files of a profile artifact: the profile itself, and what is known about it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from mepof.errors import InputError, WorkError
from mepof.profile.quality import Quality

_DESCRIPTION = "profile.json"
_COLLECTION = "collection.json"


def profile_files(given: Path) -> tuple[Path, ...]:
    """The files of a profile artifact, without what is known about them.

    Raises:
        InputError: the directory holds no profile.
    """
    files = tuple(path for path in sorted(given.iterdir()) if path.suffix != ".json")
    if not files:
        raise InputError(f"{given} holds no profile")
    return files


def profile_directory(given: Path, names: Sequence[str], work: Path) -> Path:
    """A profile artifact, or the user's own file as one.

    Args:
        names: what the algorithms call the files of the profile.
        work: where a directory may be made.

    Raises:
        InputError: the artifact lacks one of them, or a single file is not all of them.
    """
    if given.is_dir():
        for name in names:
            if not (given / name).is_file():
                raise InputError(f"{given} holds no {name}")
        return given
    if len(names) > 1:
        raise InputError(
            f"{given} is not the whole profile, which is {', '.join(names)}",
            "name the result of the program that made it, or a directory with all of them",
        )
    (name,) = names
    directory = work / f"profile-{sha256(bytes(given)).hexdigest()[:16]}"
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(given, directory / name)
    return directory


def build_of(directory: Path) -> dict[str, str] | None:
    """What is known of the build that was profiled; None for a profile from outside."""
    path = directory / _DESCRIPTION
    if not path.is_file():
        return None
    known: dict[str, str] | None = json.loads(path.read_text(encoding="utf-8")).get("build")
    return known


def keep_collection(raw: Path, directory: Path) -> None:
    """Lay what is known about the run that was profiled beside its profile."""
    if (raw / _COLLECTION).is_file():  # nothing is, of a recording of the user's own
        shutil.copyfile(raw / _COLLECTION, directory / _COLLECTION)


def collection(directory: Path) -> dict[str, Any] | None:
    """What is known about the run that was profiled; None for a merged or foreign profile."""
    path = directory / _COLLECTION
    if not path.is_file():
        return None
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return known


def describe(
    directory: Path, algorithm: str, quality: Quality, build: Mapping[str, str] | None = None
) -> None:
    """Write what is known about a profile beside it.

    Args:
        build: the build that was profiled, as its ``build.json`` has it under ``origin``.
    """
    known = {"algorithm": algorithm, "build": build, **asdict(quality)}
    text = json.dumps(known, indent=1, sort_keys=True)
    (directory / _DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def description(directory: Path) -> tuple[str, Quality]:
    """The algorithm and the quality that :func:`describe` wrote.

    Raises:
        WorkError: the artifact is not one of a profile.
    """
    try:
        fields = json.loads((directory / _DESCRIPTION).read_text(encoding="utf-8"))
        algorithm = fields.pop("algorithm")
        fields.pop("build", None)
        return algorithm, Quality(**{**fields, "reasons": tuple(fields["reasons"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise WorkError(f"{directory} does not describe a profile") from error
