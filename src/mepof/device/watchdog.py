"""Watching a boot through the files that it writes: its progress, and whether it hangs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from mepof.device import agent
from mepof.device.protocol import Session

# A kernel that prints while it boots is alive, but one that prints forever hangs.
_MOST_BOOTS = 15
# It is silent while it unpacks what is laid over the guest, which an emulator on a busy host does
# at about this many bytes a second.
_UNPACKED = 1 << 20


class Watchdog:
    """Watches one boot.

    Args:
        console: the console's log.
        port: the agent's replies.
        replied: called with the number of requests that have been answered.

    Attributes:
        expired: the guest was silent for longer than the session allows.
    """

    def __init__(
        self, session: Session, console: Path, port: Path, replied: Callable[[int], None]
    ) -> None:
        self._session = session
        laid = sum(archive.stat().st_size for archive in session.archives)
        self._silent = session.boot_seconds + laid // _UNPACKED
        self._console = console
        self._port = port
        self._replied = replied
        self._decoder = agent.Decoder()
        self._read = 0
        self._console_size = 0
        self._replies = 0
        self._began = self._heard = time.monotonic()
        self.expired = False

    def look(self) -> str | None:
        """Look at the files, which is done several times a second; a text is why the guest must
        be ended.

        Raises:
            WorkError: the port carries something else than replies.
        """
        now = time.monotonic()
        if self._answered() or (self._printed() and not self._replies):
            self._heard = now
        hangs = None if self._session.interactive else self._hangs(now)
        self.expired = hangs is not None
        return hangs

    def _hangs(self, now: float) -> str | None:
        """Why the guest is taken to hang, if it is."""
        quiet, silent = now - self._heard, self._silent
        if self._replies:
            limit = self._session.quiet_seconds
            return f"the guest answered nothing for {limit:g} s" if quiet >= limit else None
        if quiet >= silent:
            return f"the guest did not come up for {silent:g} s"
        most = _MOST_BOOTS * silent
        if now - self._began >= most:
            return f"the guest did not come up within {most:g} s, though it prints"
        return None

    def _printed(self) -> bool:
        try:
            size = self._console.stat().st_size
        except FileNotFoundError:
            return False
        grown, self._console_size = size > self._console_size, size
        return grown

    def _answered(self) -> bool:
        try:
            with self._port.open("rb") as port:
                port.seek(self._read)
                data = port.read()
        except FileNotFoundError:
            return False
        self._read += len(data)
        replies = len(self._decoder.feed(data))
        self._replies += replies
        if replies:
            self._replied(self._replies - 1)  # the first is the greeting
        return bool(data)
