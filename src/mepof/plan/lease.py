"""What a run uses of a shared store, so that cleaning keeps it.

A lease is a small file that names actions and artifacts. It holds until a time in it, which a run
moves on as long as it lives; afterwards, it says when they were last used.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mepof.plan.remote import Remote

DIRECTORY = "leases"
_VALID = timedelta(hours=24)
_RENEW_SECONDS = 3600.0
# Uses come in bursts, and each write is a request.
_GATHER_SECONDS = 5.0


@dataclass(frozen=True)
class Held:
    """A lease as others read it.

    Attributes:
        renewed: when its run last wrote it.
        until: it holds until then.
        fingerprints: of the actions that are used.
        digests: of the artifacts that are used.
    """

    renewed: datetime
    until: datetime
    fingerprints: frozenset[str]
    digests: frozenset[str]

    @classmethod
    def parse(cls, text: bytes) -> Held:
        """The lease in a text; ValueError, KeyError or TypeError if it is not one."""
        d = json.loads(text)
        return cls(
            moment(d["renewed"]),
            moment(d["until"]),
            frozenset(d["fingerprints"]),
            frozenset(d["digests"]),
        )


def moment(text: str) -> datetime:
    """A point in time in ISO 8601; ValueError or TypeError if it is not one."""
    return datetime.fromisoformat(text).astimezone(UTC)


class Lease:
    """The lease of this process."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._name = f"{DIRECTORY}/{uuid.uuid4().hex}.json"
        self._lock = threading.Lock()
        self._fingerprints: set[str] = set()
        self._digests: set[str] = set()
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None

    def use(self, fingerprint: str, digest: str | None = None) -> None:
        """Name an action, and an artifact, to be kept."""
        with self._lock:
            digests = set() if digest is None else {digest}
            new = fingerprint not in self._fingerprints or not digests <= self._digests
            self._fingerprints.add(fingerprint)
            self._digests |= digests
        if new:
            self._changed.set()

    def write(self, now: datetime | None = None) -> None:
        """Write the lease if it names anything.

        Raises:
            WorkError: the remote does not answer, or refuses us.
        """
        self._changed.clear()
        now = now or datetime.now(UTC)
        with self._lock:
            document = {
                "host": socket.gethostname(),
                "process": os.getpid(),
                "renewed": now.isoformat(timespec="seconds"),
                "until": (now + _VALID).isoformat(timespec="seconds"),
                "fingerprints": sorted(self._fingerprints),
                "digests": sorted(self._digests),
            }
        if document["fingerprints"]:
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory, "lease")
                path.write_text(json.dumps(document) + "\n")
                self._remote.put(self._name, path)

    def keep(self, write: Callable[[], None]) -> None:
        """Write the lease from now on whenever it has changed, and before it ends."""
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._run, args=(write,), daemon=True)
            self._keeper.start()

    def end(self) -> None:
        """Stop renewing; the lease holds until its time is over."""
        self._ended.set()
        self._changed.set()
        if self._keeper is not None:
            self._keeper.join()

    def _run(self, write: Callable[[], None]) -> None:
        while not self._ended.is_set():
            self._changed.wait(_RENEW_SECONDS)
            if not self._ended.wait(_GATHER_SECONDS):
                write()
