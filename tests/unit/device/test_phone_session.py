"""A session on a phone whose apps are driven between two of its requests."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mepof.device import agent, phone_session
from mepof.device.adb import AdbShell, NoRoot
from mepof.device.handset import Handset
from mepof.device.protocol import GuestReset, Interlude, KernelHang, Session
from mepof.device.shell import LostConnection, Shell

SHELL = AdbShell("1234", "adb-1234", ())
REQUESTS = (agent.Get("/a"), agent.Get("/b"), agent.Get("/c"))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order."""
    done: list[str] = []

    def served(*given: Any) -> tuple[str, tuple[agent.Reply, ...]]:
        session, replied = given[4], given[6]
        paths = [request.path for request in session.requests]
        done.append(" ".join(paths))
        replied(len(paths))
        return "6.12", tuple(agent.GetResult(0, path.encode()) for path in paths)

    monkeypatch.setattr(phone_session, "_installed", lambda *given: "programs")
    monkeypatch.setattr(phone_session, "_served", served)
    return done


def handset(**more: Any) -> Handset:
    same = {"boot_id": lambda shell: "1", "check_same_boot": lambda shell, boot_id: None}
    return cast(Handset, SimpleNamespace(**{"name": "played", "now": lambda: 0.0, **same, **more}))


def session(interlude: Interlude | None) -> Session:
    return Session("x86-64", Path("k"), Path("i"), REQUESTS, 1, interlude=interlude)


def test_the_interlude_comes_between_its_requests(log: list[str], tmp_path: Path) -> None:
    counts: list[int] = []
    asked = session(Interlude(1, lambda shell: log.append(f"drive {shell.name}")))
    outcome = phone_session.run_session(handset(), SHELL, asked, tmp_path, counts.append)
    assert log == ["/a", "drive adb-1234", "/b /c"]
    assert [cast(agent.GetResult, reply).data for reply in outcome.replies] == [b"/a", b"/b", b"/c"]
    assert counts == [1, 3]


def test_without_one_all_requests_are_served_at_once(log: list[str], tmp_path: Path) -> None:
    phone_session.run_session(handset(), SHELL, session(None), tmp_path, lambda count: None)
    assert log == ["/a /b /c"]


def test_a_kernel_that_goes_down_meanwhile_is_reported(log: list[str], tmp_path: Path) -> None:
    def lost(shell: Shell) -> None:
        raise LostConnection("gone")

    down = handset(shell=lambda: None, fastboot=SimpleNamespace(present=lambda: True), model=None)
    with pytest.raises(GuestReset, match="the kernel reset played"):
        asked = session(Interlude(1, lost))
        phone_session.run_session(down, SHELL, asked, tmp_path, lambda count: None)
    assert log == ["/a"]


@pytest.mark.parametrize(
    ("there", "in_fastboot", "boot_id", "error", "message"),
    [
        (False, True, "1", GuestReset, "the kernel reset played, which is in its boot loader"),
        (True, False, "2", GuestReset, "the kernel reset played"),
        (True, False, "1", LostConnection, "gone"),
        (False, False, "1", KernelHang, "played no longer answers"),
    ],
)
def test_a_phone_that_is_lost_is_looked_for(
    log: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: bool,
    in_fastboot: bool,
    boot_id: str,
    error: type[Exception],
    message: str,
) -> None:
    def lost(*given: Any) -> None:
        raise LostConnection("gone")

    clock = itertools.count(0, 100)
    known = iter(("1", *[boot_id] * 9))
    shell = SimpleNamespace(read=lambda path: None)
    monkeypatch.setattr(phone_session, "_served", lost)
    looked_for = handset(
        boot_id=lambda shell: next(known),
        shell=lambda: shell if there else None,
        fastboot=SimpleNamespace(present=lambda: in_fastboot),
        model=SimpleNamespace(boot_seconds=150),
        now=lambda: next(clock),
        pause=lambda seconds: None,
    )
    with pytest.raises(error, match=f"^{message}"):
        phone_session.run_session(looked_for, SHELL, session(None), tmp_path, lambda count: None)


def test_a_reset_is_reported_though_root_comes_later_than_adb(
    log: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*given: Any) -> None:
        raise LostConnection("gone")

    looks = iter((NoRoot("no root"), NoRoot("no root"), SimpleNamespace(read=lambda path: None)))

    def shell() -> object:
        if isinstance(found := next(looks), Exception):
            raise found
        return found

    known = iter(("1", "2"))
    monkeypatch.setattr(phone_session, "_served", lost)
    reset = handset(
        boot_id=lambda shell: next(known),
        shell=shell,
        fastboot=SimpleNamespace(present=lambda: False),
        model=SimpleNamespace(boot_seconds=150),
        pause=lambda seconds: None,
    )
    with pytest.raises(GuestReset, match="the kernel reset played"):
        phone_session.run_session(reset, SHELL, session(None), tmp_path, lambda count: None)
