"""Which user's process is at the other end of a connection on loopback.

Any process on a machine can connect to its loopback, those of other users, too. The kernel lists
the owner of every socket in ``/proc/net/tcp`` (proc_net_tcp in Documentation/networking): the row
whose local address is the client's.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ROOT = 0


def is_own_process(
    client: tuple[str, int], server: tuple[str, int], tables: tuple[Path, ...] = _TABLES
) -> bool:
    """Whether a connection comes from a process of our own user, or of root.

    Args:
        client: address and port of the other end; ``server``, of ours.
        tables: the kernel's lists of sockets.
    """
    return owner(client, server, tables) in (os.geteuid(), _ROOT)


def owner(
    client: tuple[str, int], server: tuple[str, int], tables: tuple[Path, ...] = _TABLES
) -> int | None:
    """The user id of the process at the other end; None if the kernel does not list it."""
    try:
        wanted = {(_hex(*client, mapped), _hex(*server, mapped)) for mapped in (False, True)}
    except ValueError:
        return None
    for table in tables:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 7 and (fields[1], fields[2]) in wanted:
                return int(fields[7])
    return None


def _hex(address: str, port: int, mapped: bool) -> str:
    """An address as the kernel prints it: words of 32 bits in the machine's order of bytes."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    data = parsed.packed
    if mapped and len(data) == 4:
        data = bytes(10) + b"\xff\xff" + data
    words = (data[i : i + 4] for i in range(0, len(data), 4))
    text = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
    return f"{text}:{port:04X}"
