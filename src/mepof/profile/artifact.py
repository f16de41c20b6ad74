"""The files of a profile artifact: the profile itself, and what is known about it."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mepof.algorithm.protocol import Quality
from mepof.errors import InputError, WorkError

_DESCRIPTION = "profile.json"
_COLLECTION = "collection.json"


def profile_file(given: Path) -> Path:
    """The profile in an artifact directory, or the user's own file.

    Raises:
        InputError: the directory holds no profile.
    """
    if given.is_file():
        return given
    files = [path for path in sorted(given.iterdir()) if path.suffix != ".json"]
    if len(files) != 1:
        raise InputError(f"{given} holds no profile")
    return files[0]


def keep_collection(raw: Path, directory: Path) -> None:
    """Lay what is known about the run that was profiled beside its profile."""
    shutil.copyfile(raw / _COLLECTION, directory / _COLLECTION)


def collection(directory: Path) -> dict[str, Any] | None:
    """What is known about the run that was profiled; None for a merged or foreign profile."""
    path = directory / _COLLECTION
    if not path.is_file():
        return None
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return known


def describe(directory: Path, algorithm: str, quality: Quality) -> None:
    """Write what is known about a profile beside it."""
    text = json.dumps({"algorithm": algorithm, **asdict(quality)}, indent=1, sort_keys=True)
    (directory / _DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def description(directory: Path) -> tuple[str, Quality]:
    """The algorithm and the quality that :func:`describe` wrote.

    Raises:
        WorkError: the artifact is not one of a profile.
    """
    try:
        fields = json.loads((directory / _DESCRIPTION).read_text(encoding="utf-8"))
        algorithm = fields.pop("algorithm")
        return algorithm, Quality(**{**fields, "reasons": tuple(fields["reasons"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise WorkError(f"{directory} does not describe a profile") from error
