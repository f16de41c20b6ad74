"""Boots that are kept, so that no kernel is booted twice for the same answer."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from mepof.measure.measurement import Boot


class KeptBoots:
    """The boots of one kernel on one device, one file for each seed.

    Only a device whose boots do not depend on when they are made may share them between
    evaluations; for others the directory belongs to one evaluation, which goes on after an
    interruption.

    Args:
        directory: may be deleted at any time.
        identity: everything that decides what a boot gives, but for the seed.
    """

    def __init__(self, directory: Path, identity: object) -> None:
        self._directory = directory / sha256(repr(identity).encode()).hexdigest()[:32]

    def find(self, seed: int) -> Boot | None:
        """The boot with this seed, if there is one."""
        # A file that was cut off or is of another version is as good as none.
        with suppress(OSError, ValidationError):
            return Boot.model_validate_json((self._directory / f"{seed}.json").read_bytes())
        return None

    def keep(self, boot: Boot) -> None:
        """Keep a boot."""
        self._write(self._directory / f"{boot.seed}.json", boot.model_dump_json().encode())

    def places(self, seed: int) -> Path:
        """Where the boot with this seed has told the places of its events, if it has."""
        return self._directory / f"{seed}.places.jsonl"

    def keep_places(self, seed: int, told: Path) -> None:
        """Keep what a boot told of its events' places."""
        self._write(self.places(seed), told.read_bytes())

    def _write(self, path: Path, contents: bytes) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.write_bytes(contents)
        partial.replace(path)
