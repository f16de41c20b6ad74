"""A cache of boots, so that no kernel is booted twice for the same result."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from mepof.disk import replacing
from mepof.measure.measurement import Boot, MemoryBytes


class KeptBoots:
    """The boots of one kernel on one device, one file for each seed.

    Evaluations share the boots of a deterministic device. For other devices each evaluation has
    its own directory, from which it resumes after an interruption.

    Args:
        directory: may be deleted at any time.
        identity: everything except the seed that decides the result of a boot.
    """

    def __init__(self, directory: Path, identity: object) -> None:
        self._directory = directory / sha256(repr(identity).encode()).hexdigest()[:32]

    def find(self, seed: int) -> Boot | None:
        """The boot with this seed, if it is kept."""
        # A file that is truncated or of another version counts as absent.
        with suppress(OSError, ValidationError):
            return Boot.model_validate_json((self._directory / f"{seed}.json").read_bytes())
        return None

    def keep(self, boot: Boot) -> None:
        """Keep a boot."""
        self._write(self._directory / f"{boot.seed}.json", boot.model_dump_json().encode())

    def locations(self, seed: int) -> Path:
        """Path of the event locations of the boot with this seed; it may not exist."""
        return self._directory / f"{seed}.places.jsonl"

    def keep_locations(self, seed: int, reported: bytes) -> None:
        """Keep the event locations that a boot reported."""
        self._write(self.locations(seed), reported)

    def memory(self) -> MemoryBytes | None:
        """The memory of the kernel before anything ran, if it is kept."""
        with suppress(OSError, ValidationError):
            return MemoryBytes.model_validate_json(self._memory.read_bytes())
        return None

    def keep_memory(self, memory: MemoryBytes) -> None:
        """Keep the memory of the kernel before anything ran."""
        self._write(self._memory, memory.model_dump_json().encode())

    @property
    def _memory(self) -> Path:
        return self._directory / "memory.json"

    def _write(self, path: Path, contents: bytes) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        # Two images that are the same kernel have the same boots, made at the same time.
        with replacing(path) as partial:
            partial.write_bytes(contents)
