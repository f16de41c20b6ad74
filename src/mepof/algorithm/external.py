"""Profiles that the user brings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mepof.algorithm.protocol import ALGORITHMS
from mepof.errors import EnvironmentLack, InputError
from mepof.process import run
from mepof.profile.artifact import files_of
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools


def check_profile(given: Path, algorithms: Sequence[str], toolchain: str) -> None:
    """Refuse a profile that is not one of these algorithms and this toolchain.

    Args:
        given: a file, or a directory with all files of the profile.
        algorithms: the stack that is to use it.
        toolchain: its G4 name; if it is not installed, less is checked.

    Raises:
        InputError: it does not exist, or is not such a profile.
    """
    if not given.exists():
        raise InputError(f"{given} does not exist")
    names = [name for each in algorithms for name in ALGORITHMS.get(each).profile_names]
    files = files_of(given, names)
    try:
        tools = Tools(select(toolchain), run)
    except EnvironmentLack:
        tools = None
    for each in algorithms:
        ALGORITHMS.get(each).check_profile(files, tools)
