"""The journal of a prepared machine: what every setting was before it was changed.

A line is on the disk before its setting is changed, so whatever ends the program, the journal
lists everything that has to be restored. Each line is one JSON document.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mepof.device.preparation import Setting
from mepof.disk import replacing, sync
from mepof.errors import InputError, WorkError


@dataclass(frozen=True)
class Change:
    """A setting, and the value that it had."""

    setting: Setting
    former: str


def default_directory() -> Path:
    """The directory of journals: ``mepof/prepared`` in the user's directory for state. Unlike a
    cache, it must not be emptied.

    Raises:
        InputError: the user has no home directory.
    """
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:  # a user without an account, as containers have them
        raise InputError("there is no home directory for journals", "set XDG_STATE_HOME") from error
    return Path(state) / "mepof" / "prepared"


class FormerValues:
    """The journal of one machine; :meth:`of` makes one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    @contextmanager
    def of(cls, directory: Path, machine: str, key: str = "") -> Iterator[FormerValues]:
        """The journal of a machine, locked against other processes.

        Args:
            machine: its name.
            key: what tells it from others, if its name does not.

        Raises:
            WorkError: another process prepares or restores the machine.
        """
        directory.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]", "_", key or machine)
        with (directory / f"{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise WorkError(
                    f"another process has prepared {machine}", "wait until it ends"
                ) from error
            yield cls(directory / f"{name}.jsonl")

    def changes(self) -> list[Change]:
        """The changes that were not undone, in the order in which they were made.

        Raises:
            WorkError: the file is not a journal.
        """
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        # A line without its newline was cut off before its setting was changed.
        whole = text.rpartition("\n")[0]
        return [self._change(line) for line in whole.splitlines()]

    def add(self, change: Change) -> None:
        """Add a change that is about to be made; when this returns, it is on the disk."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(change)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        sync(self._path.parent)

    def keep(self, changes: Sequence[Change]) -> None:
        """Forget all changes but these."""
        if changes:
            lines = (json.dumps(asdict(change)) + "\n" for change in changes)
            with replacing(self._path) as fresh:
                fresh.write_text("".join(lines), encoding="utf-8")
        else:
            with suppress(FileNotFoundError):
                self._path.unlink()
        sync(self._path.parent)

    def _change(self, line: str) -> Change:
        try:
            document = json.loads(line)
            described = document["setting"]
            setting = Setting(
                str(described["what"]),
                str(described["path"]),
                tuple(described["read"]),
                {value: tuple(command) for value, command in described["write"].items()},
            )
            return Change(setting, str(document["former"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WorkError(
                f"{self._path} is not a journal of former values: {line[:60]}",
                "restore what it lists by hand, then remove it",
            ) from error
