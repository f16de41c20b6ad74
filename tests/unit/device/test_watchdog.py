"""When a guest is taken to hang."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.device.protocol import Session
from mepof.device.watchdog import Watchdog

from .fake_qemu import HELLO

SESSION = Session("x86-64", Path("kernel"), Path("initramfs"), (), 1)


class Boot:
    """A boot whose clock the test moves."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.console, self.port = root / "console", root / "port"
        self.watchdog = Watchdog(session, self.console, self.port, lambda number: None)

    def after(self, seconds: float, printed: str = "", replied: bytes = b"") -> str | None:
        self.now += seconds
        for path, data in ((self.console, printed.encode()), (self.port, replied)):
            with path.open("ab") as file:
                file.write(data)
        return self.watchdog.look()


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Boot:
    return Boot(tmp_path, monkeypatch, SESSION)


def test_a_kernel_that_prints_comes_up(boot: Boot) -> None:
    for _ in range(5):
        assert boot.after(100, "still here\n") is None
    assert boot.after(120) == "the guest did not come up for 120 s"
    assert boot.watchdog.expired


def test_a_kernel_that_only_prints_hangs(boot: Boot) -> None:
    told = [boot.after(60, "warning\n") for _ in range(30)]
    assert told[:-1] == [None] * 29
    assert told[-1] == "the guest did not come up within 1800 s, though it prints"


def test_what_a_guest_prints_is_not_an_answer(boot: Boot) -> None:
    assert boot.after(5, "up\n", HELLO) is None
    for _ in range(5):
        assert boot.after(100, "warning\n") is None
    assert boot.after(100, "warning\n") == "the guest answered nothing for 600 s"


def test_a_user_at_the_console_may_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Boot(tmp_path, monkeypatch, replace(SESSION, interactive=True))
    assert silent.after(10_000) is None and not silent.watchdog.expired


def test_a_guest_that_unpacks_much_may_be_silent_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives = (tmp_path / "suite", tmp_path / "app")
    for archive, mib in zip(archives, (0.5, 300), strict=True):
        archive.touch()
        os.truncate(archive, int(mib * 2**20))
    large = Boot(tmp_path, monkeypatch, replace(SESSION, archives=archives))
    assert large.after(419) is None
    assert large.after(1) == "the guest did not come up for 420 s"
