"""Ports of the loopback interface for servers of tests."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack, suppress


def free_ports(count: int) -> list[int]:
    """Ports that the system gives no client: one that polls its own port connects to itself.

    Raises:
        OSError: there are not so many.
    """
    found: list[int] = []
    with ExitStack() as stack:
        for port in random.sample(range(20000, 32768), 100 + count):
            probe = stack.enter_context(socket.socket())
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                return found
    raise OSError("too few ports are free")


def free_port() -> int:
    """One of :func:`free_ports`."""
    (port,) = free_ports(1)
    return port
