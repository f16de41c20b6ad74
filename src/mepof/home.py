"""The user's home directory, where there is one."""

from __future__ import annotations

from pathlib import Path


def home() -> Path:
    """Where to look for a user's files: ``~``, below which nothing exists, for a user without an
    account, as containers and services have them.

    What is written needs a directory that exists: use ``Path.home()`` for that.
    """
    try:
        return Path.home()
    except RuntimeError:
        return Path("~")
