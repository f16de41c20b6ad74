"""What a phone's kernel wrote last before the phone was reset, where the phone keeps it."""

from __future__ import annotations

from contextlib import suppress

from mepof.device.adb import AdbShell
from mepof.device.shell import LostConnection

_LINES = 12
_FILES = ("/sys/fs/pstore/console-ramoops-0", "/sys/fs/pstore/console-ramoops")


def last_words(shell: AdbShell) -> str:
    """The last lines of the console, to append to a message; empty if there are none."""
    with suppress(LostConnection):
        for path in _FILES:
            lines = [line for line in (shell.read(path) or "").splitlines() if line.strip()]
            if lines:
                return "".join(f"\n  | {line}" for line in lines[-_LINES:])
    return ""
