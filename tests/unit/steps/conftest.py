"""Fixtures of the step tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.device.protocol import DEVICES
from mepof.toolchain import clang

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
    monkeypatch.setattr(clang.ClangVersions, "select", lambda self, version: clang.Clang("-22"))
