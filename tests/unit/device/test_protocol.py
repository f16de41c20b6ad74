"""What devices say they can do, and what a session may ask for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mepof.device import qemu
from mepof.device.observation import Branches
from mepof.device.protocol import (
    DEVICES,
    BranchSource,
    CounterSource,
    branch_source,
    counter_source,
)
from mepof.errors import EnvironmentLack, InputError
from mepof.registry import Registry

PAGES = Path(__file__).parents[3] / "docs" / "devices"
#: What a device may have beside ``Boot``.
CAPABILITIES: dict[str, type] = {"CounterSource": CounterSource, "BranchSource": BranchSource}


def test_qemu_counts_and_records_branches() -> None:
    assert branch_source("qemu") is qemu.DEVICE
    assert "emulated" in branch_source("qemu").branch_recorder("x86-64")
    with pytest.raises(InputError, match="no machine for um"):
        branch_source("qemu").branch_recorder("um")
    assert counter_source("qemu") is qemu.DEVICE
    assert "emulated" in counter_source("qemu").counter("x86-64")
    with pytest.raises(InputError, match="no machine for um"):
        counter_source("qemu").counter("um")


def test_what_a_device_cannot_do_is_refused_with_what_else_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Phone:
        """Boots, and no more."""

        identity = describe = claim = needs = boot = None

    def get(self: Registry[Any], name: str) -> Any:
        assert self is DEVICES
        return Phone()

    monkeypatch.setattr(Registry, "get", get)
    with pytest.raises(
        EnvironmentLack, match="the device phone does not record branches"
    ) as caught:
        branch_source("phone")
    assert "perf.data file from a real machine" in (caught.value.remedy or "")
    with pytest.raises(EnvironmentLack, match="phone does not count instructions") as caught:
        counter_source("phone")
    assert "on the device qemu" in (caught.value.remedy or "")


@pytest.mark.parametrize("depth", [0, 1025])
def test_a_branch_stack_has_bounds(depth: int) -> None:
    with pytest.raises(InputError, match=f"cannot have {depth} entries"):
        Branches(period=5, depth=depth)


@pytest.mark.parametrize("period", [0, -1, 1 << 64])
def test_a_period_is_a_number_of_branches(period: int) -> None:
    with pytest.raises(InputError, match="cannot be sampled every"):
        Branches(period=period)


@pytest.mark.parametrize("name", DEVICES.names())
def test_the_page_of_a_device_lists_what_it_can_do(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    device = DEVICES.get(name)
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.M)) & set(CAPABILITIES)
    assert listed == {word for word, kind in CAPABILITIES.items() if isinstance(device, kind)}
