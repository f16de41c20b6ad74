"""The journal of a phone: what was done to it, so that an interrupted run knows where it is.

A line is on the disk before what it announces is done. Each is one JSON document.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from mepof.errors import WorkError

Stage = Literal[
    "begun",  # nothing was changed yet
    "flashing",  # from here on the partition is neither the old nor the new one
    "flashed",
    "activated",  # the boot loader may start the flashed slot
    "checked",
    "good",  # it is marked; nothing is to be undone
    "restoring",
    "restored",  # the phone is as it was before
]
_SETTLED = ("begun", "good", "restored")


@dataclass(frozen=True)
class Entry:
    """What was about to be done, or was done.

    Attributes:
        slot: that is flashed; empty without slots.
        former: that was active before.
        partition: that is flashed, with its suffix.
        saved: file of its former content.
        image: digest of what it gets.
        kernel: digest of the kernel in it.
        size: bytes of what it gets.
        serial: of the phone, if its boot loader tells it.
        fingerprint: of the system that was active before; empty if it tells none.
        startable: whether the slot could be started with its former content.
    """

    stage: Stage
    slot: str
    former: str
    partition: str
    saved: str
    image: str
    kernel: str
    size: int
    serial: str = ""
    fingerprint: str = ""
    startable: bool = False


class Journal:
    """The journal of one phone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, entry: Entry) -> None:
        """Add an entry; when this returns, it is on the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        with self.path.open("a", encoding="utf-8") as file:
            # A line that was cut off stays alone.
            file.write("" if self._is_whole() else "\n")
            file.write(json.dumps({"at": at, **asdict(entry)}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _is_whole(self) -> bool:
        return not self.path.exists() or self.path.read_bytes()[-1:] in (b"", b"\n")

    def last(self) -> Entry | None:
        """The last entry; None if nothing was ever flashed.

        Raises:
            WorkError: the file is not a journal.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        # A line without its newline was cut off before anything of it was done.
        lines = text.rpartition("\n")[0].splitlines()
        if not lines:
            return None
        try:
            document: dict[str, Any] = json.loads(lines[-1])
            del document["at"]
            return Entry(**document)
        except (ValueError, KeyError, TypeError) as error:
            raise WorkError(
                f"{self.path} is not a phone's journal: {lines[-1][:60]}",
                "restore the phone by hand if it needs it, then remove the file",
            ) from error

    def unsettled(self) -> Entry | None:
        """The last entry, if it leaves something to be undone."""
        entry = self.last()
        return None if entry is None or entry.stage in _SETTLED else entry
