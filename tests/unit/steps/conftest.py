"""Fixtures of the step tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from writers.mini_kernel import tools_alone

from mepof.device.protocol import DEVICES
from mepof.toolchain import clang, versions

from .room import FakeDevice, Room, register, well


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    made = FakeDevice(well)
    register(monkeypatch, DEVICES, made)
    return made


@pytest.fixture
def toolchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions.Versions, "select", lambda self, version: clang.Clang("-22"))


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A miniature toolchain."""
    with tools_alone(tmp_path / "tools", monkeypatch) as made:
        yield made
