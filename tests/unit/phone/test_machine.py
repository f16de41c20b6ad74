"""What a virtual phone asks of QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import arch
from mepof.phone.loading import Loaded
from mepof.phone.machine import Qemu

GUESTS = [record.name for record in arch.records() if record.machine is not None]


@pytest.mark.parametrize("name", GUESTS)
def test_the_machine_is_that_of_the_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    machine = arch.get(name).machine
    assert machine is not None
    qemu = tmp_path / machine.binary
    qemu.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/words\n')
    qemu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    phone = Qemu(name, tmp_path, 0, 64 << 20, print)
    loaded = Loaded("ram", "a", name, b"kernel", b"", "quiet")
    phone.run(loaded, ("more",), {}, print)
    words = (tmp_path / "words").read_text().splitlines()
    assert words[words.index("-cpu") + 1] == machine.cpu
    parameters = words[words.index("-append") + 1]
    assert parameters.endswith(" quiet more")
    # Nobody counts on the guest's clock here, and a busy host starves it.
    assert machine.real_time in parameters
    assert not any("{" in word for word in words)
