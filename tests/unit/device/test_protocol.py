"""What devices say of themselves, and what a recording may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mepof.device import qemu
from mepof.device.protocol import DEVICES, Recording, branch_source
from mepof.errors import EnvironmentLack, InputError
from mepof.registry import Registry


def test_qemu_records_branches() -> None:
    assert branch_source("qemu") is qemu.DEVICE
    assert "emulated" in branch_source("qemu").branch_record("x86-64")
    with pytest.raises(InputError, match="no machine for arm"):
        branch_source("qemu").branch_record("arm")


def test_a_device_that_records_none_says_what_else_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Phone:
        """Boots, and no more."""

        identity = describe = boot = None

    def get(self: Registry[Any], name: str) -> Any:
        assert self is DEVICES
        return Phone()

    monkeypatch.setattr(Registry, "get", get)
    with pytest.raises(EnvironmentLack, match="the device phone records no branches") as caught:
        branch_source("phone")
    assert "perf.data of a real machine" in (caught.value.remedy or "")


@pytest.mark.parametrize("depth", [0, 1025])
def test_a_branch_stack_has_bounds(depth: int) -> None:
    with pytest.raises(InputError, match=f"no branch stack has {depth} entries"):
        Recording(Path("record.so"), period=5, depth=depth)


@pytest.mark.parametrize("period", [0, -1, 1 << 64])
def test_a_period_is_a_number_of_branches(period: int) -> None:
    with pytest.raises(InputError, match="no branch stack is sampled every"):
        Recording(Path("record.so"), period=period)
