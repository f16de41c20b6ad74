from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from mepof.web.peer import is_own_process, owner


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_other_end_of_our_own_connection_is_ours(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        socket.create_server((host, 0), family=family) as server,
        socket.create_connection(server.getsockname()[:2]) as client,
    ):
        ends = client.getsockname()[:2], server.getsockname()[:2]
        assert owner(*ends) == os.getuid()
        assert is_own_process(*ends)


def test_a_connection_that_the_kernel_does_not_list_is_nobodys() -> None:
    assert owner(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert not is_own_process(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert not is_own_process(("a name", 1), ("127.0.0.1", 2))


def test_the_owner_is_that_of_the_whole_connection(tmp_path: Path) -> None:
    """One client port may have connections to several servers."""
    table = tmp_path / "tcp"
    row = "   {}: 0100007F:C350 0100007F:{} 01 00000000:00000000 00:00000000 00000000 {} 0 1 1 0"
    lines = ["  sl  local_address ...", row.format(0, "2000", 1234), row.format(1, "2094", 5678)]
    table.write_text("\n".join(lines) + "\n")
    client = ("127.0.0.1", 50000)
    assert owner(client, ("127.0.0.1", 0x2094), (tmp_path / "missing", table)) == 5678
    assert owner(client, ("127.0.0.1", 0x2000), (table,)) == 1234
    assert not is_own_process(client, ("127.0.0.1", 0x2094), (table,))
