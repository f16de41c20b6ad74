"""The port at which adb finds a virtual phone: open while adbd answers in it, and only then."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from pathlib import Path

from mepof.phone.server import listening

_STEP = 1 << 16


class AdbPort:
    """Carries one connection of adb's to QEMU's end of the port at a time.

    Args:
        port: of the loopback interface.
        qemu: QEMU's socket.
    """

    def __init__(self, port: int, qemu: Path) -> None:
        self._port = port
        self._qemu = qemu
        self._server: socket.socket | None = None
        self._client: socket.socket | None = None
        self._lock = threading.Lock()

    def open(self) -> None:
        """Let adb connect."""
        with self._lock:
            if self._server is None:
                self._server = listening(socket.SOCK_STREAM, self._port)
                threading.Thread(target=self._serve, args=(self._server,), daemon=True).start()

    def drop(self) -> None:
        """End the connection: adbd has ended it."""
        with self._lock, contextlib.suppress(OSError):
            if self._client is not None:
                self._client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let nobody connect any longer."""
        self.drop()
        with self._lock:
            if self._server is not None:
                # A thread that waits in accept() keeps the port open after a mere close().
                with contextlib.suppress(OSError):
                    self._server.shutdown(socket.SHUT_RDWR)
                self._server.close()
                self._server = None

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with self._lock:
                busy = self._client is not None
                if not busy:
                    self._client = client
            if busy:
                # adb connects a second time only to find out that it is connected.
                client.close()
            else:
                threading.Thread(target=self._connected, args=(client,), daemon=True).start()

    def _connected(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as qemu:
            qemu.connect(str(self._qemu))
            _carry(client, qemu)
        with self._lock:
            self._client = None


def _carry(first: socket.socket, second: socket.socket) -> None:
    """Move bytes both ways until an end is closed."""
    other = {first: second, second: first}
    while True:
        for ready in select.select(list(other), [], [])[0]:
            data = ready.recv(_STEP)
            if not data:
                return
            other[ready].sendall(data)
