"""Restarting a machine that is reached from another one, and waiting until it is up."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import suppress

from mepof.device.preparation import Reboot
from mepof.device.shell import LostConnection, Reachable, Shell, persistent
from mepof.errors import WorkError

_ANSWER = 30.0
_LOOK = 1.0
# A machine that goes down ends its programs by signals: shells report those from here on.
_BY_SIGNAL = 128
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def restart(
    shell: Reachable,
    way: Reboot,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Restart a machine.

    Args:
        now: seconds of a monotonic clock.
        pause: waits for a number of seconds.

    Raises:
        WorkError: it did not go down, or did not come up.
    """
    before = boot_id(shell)
    until = now() + way.seconds
    with suppress(LostConnection):  # that is what a reboot looks like
        order(shell, way)
    if not comes_up(shell, way, until, before, now, pause):
        raise WorkError(
            f"{shell.name} was not up within {way.seconds:g} s of its reboot",
            f"when it is up, {remedy(shell)}",
        )


def order(shell: Shell, way: Reboot) -> None:
    """Tell a machine to reboot, and return before it does.

    Raises:
        WorkError: it refused.
        LostConnection: it is gone, as after a reboot.
    """
    done = shell.run(way.command, _ANSWER)
    if 0 < done.status < _BY_SIGNAL:
        raise WorkError(
            f"`{shlex.join(way.command)}` failed on {shell.name}: {done.last}",
            "see `systemctl list-jobs` and `systemd-inhibit --list` there",
        )


def boot_id(shell: Reachable) -> str | None:
    """What is another one in each boot."""
    return persistent(shell, shell.read, _BOOT_ID)


def is_up(shell: Reachable, way: Reboot, before: str | None = None) -> bool:
    """Whether a machine answers as its kind does when it is up.

    Args:
        before: its boot id before a reboot, which must have changed.
    """
    try:
        shell.reconnect()
        booted = shell.read(_BOOT_ID)
        if booted is None or booted == before:
            return False
        return shell.run(way.ready, _ANSWER).output.strip() == way.answer
    except LostConnection:
        return False


def comes_up(
    shell: Reachable,
    way: Reboot,
    until: float,
    before: str | None = None,
    now: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> bool:
    """Wait until a machine is up; False if it is not in time.

    Args:
        until: on the clock ``now``.
        before: as in :func:`is_up`.
    """
    while not is_up(shell, way, before):
        if now() >= until:
            return False
        pause(_LOOK)
    return True


def remedy(shell: Reachable) -> str:
    """The command that restores what was set on a machine."""
    return f"mepof device restore {shell.option}".rstrip()
