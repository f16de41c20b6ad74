"""Preparing a machine, and setting it back whatever happens."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from mepof.device.former_values import Change, FormerValues
from mepof.device.preparation import Cores, Due, Preparation, Reboot, Setting, cores_of
from mepof.device.shell import LostConnection, Refused, Shell
from mepof.errors import InputError, Interrupted, WorkError

P = ParamSpec("P")
T = TypeVar("T")
Tell = Callable[[str], None]

_ATTEMPTS = 3
_ANSWER = 30.0
# Seconds until a machine that was booted again must be up.
_BOOT = 300.0
_LOOK = 1.0
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Prepared:
    """A machine that is prepared.

    Attributes:
        cores: that its work is to run on.
    """

    shell: Shell
    preparation: Preparation
    journal: FormerValues
    cores: Cores
    tell: Tell

    def reboot(
        self,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Boot the machine again, and prepare it again; the former values remain those of the
        first time.

        Args:
            now: seconds on a clock that does not go back.
            pause: waits for so many seconds.

        Raises:
            InputError: its preparation does not say how.
            WorkError: it did not come up again.
        """
        way = self.preparation.reboot
        if way is None:
            raise InputError(
                f"{self.preparation.title} is not booted again", "describe it as [reboot]"
            )
        before = _persistent(self.shell, self.shell.read, _BOOT_ID)
        until = now() + _BOOT
        with suppress(LostConnection):  # that is what a reboot looks like
            self.shell.run(way.command, _ANSWER)
        while not self._is_up(way, before):
            if now() >= until:
                raise WorkError(
                    f"{self.shell.name} was not up within {_BOOT:g} s of its reboot",
                    f"when it is up, {_remedy(self.shell)}",
                )
            pause(_LOOK)
        apply(self.shell, self.preparation, self.journal, self.tell)

    def _is_up(self, way: Reboot, before: str | None) -> bool:
        try:
            self.shell.reconnect()
            booted = self.shell.read(_BOOT_ID)
            if booted is None or booted == before:
                return False
            return self.shell.run(way.ready, _ANSWER).output.strip() == way.answer
        except LostConnection:
            return False


@contextmanager
def prepared(
    shell: Shell, preparation: Preparation, directory: Path, tell: Tell, leave: bool = False
) -> Iterator[Prepared]:
    """A machine that is prepared inside of the ``with``, and set back at its end.

    An error, Ctrl-C, SIGTERM and SIGHUP end it in good order; after anything that does not
    (SIGKILL, a loss of power), :func:`restore` or the next preparation sets back first.

    Args:
        directory: of journals.
        tell: is told what is done, and what could not be done.
        leave: where all went well, leave setting back to :func:`restore`.

    Raises:
        WorkError: another process has prepared it; or it could not be set back, and the message
            says what does that later.
        Interrupted: by a signal.
    """
    with FormerValues.of(directory, shell.name) as journal, _Signals() as signals:
        set_back(shell, journal, tell)
        well = False
        try:
            try:
                apply(shell, preparation, journal, tell)
                cores = _persistent(shell, cores_of, shell, preparation.cores)
                yield Prepared(shell, preparation, journal, cores, tell)
                well = True
            finally:
                signals.wait = True
        finally:
            # A signal that came before the line above took effect has led here as well.
            if not (leave and well):
                set_back(shell, journal, tell)


def pending(shell: Shell, preparation: Preparation) -> list[str]:
    """What preparing the machine would set, as it is now; sets nothing.

    Raises:
        LostConnection: the machine cannot be reached.
    """
    found: list[str] = []
    for due in (due for wanted in preparation.setting for due in wanted.due(shell)):
        former = _changeable(shell, due)
        if former is not None:
            objection = _objection(shell, due, former)
            found.append(objection or f"{due.setting.what}: {due.value}, is {former}")
    return found


def restore(shell: Shell, directory: Path, tell: Tell) -> None:
    """Set back whatever was changed and not set back; if that is nothing, do nothing.

    Raises:
        WorkError: something could not be set back.
    """
    with FormerValues.of(directory, shell.name) as journal, _Signals(wait=True):
        remain = set_back(shell, journal, tell)
    if remain:
        names = ", ".join(change.setting.what for change in remain)
        raise WorkError(f"{shell.name} did not take back {names}", _remedy(shell))


def apply(shell: Shell, preparation: Preparation, journal: FormerValues, tell: Tell) -> None:
    """Make all settings, each after its former value is in the journal.

    What the machine does not have or does not take is told, and is no error.

    Raises:
        LostConnection: the machine cannot be reached.
    """
    known = {change.setting.place for change in journal.changes()}
    for wanted in preparation.setting:
        for due in _persistent(shell, wanted.due, shell):
            told = _make(shell, due, journal, known)
            if told is not None:
                tell(told)


def _make(shell: Shell, due: Due, journal: FormerValues, known: set[str]) -> str | None:
    """Make one setting; tells what came of it, or nothing if there was nothing to do."""
    setting, value = due.setting, due.value
    former = _changeable(shell, due)
    if former is None:
        return None
    objection = _objection(shell, due, former)
    if objection is not None:
        return objection
    if setting.place not in known:
        journal.add(Change(setting, former))
        known.add(setting.place)
    try:
        _persistent(shell, setting.put, shell, value)
    except Refused as refused:
        return f"{setting.what} stays {former}: {refused.message}"
    now = _persistent(shell, setting.get, shell)
    if now != value:
        return f"{setting.what} was to be {value}, but it is {now}"
    return f"{setting.what}: {value}, was {former}"


def _changeable(shell: Shell, due: Due) -> str | None:
    """The value that a setting has, if there is anything to change."""
    former = _persistent(shell, due.setting.get, shell)
    if former == due.value or (due.only and former not in due.only):
        return None
    return former


def _objection(shell: Shell, due: Due, former: str) -> str | None:
    """Why a setting must stay as it is."""
    stays = f"{due.setting.what} stays {former}"
    if due.cuts_network and shell.by_network:
        return f"{stays}: the network is how {shell.name} is reached"
    if not due.setting.takes(former):
        return f"{stays}: that could not be set back"
    return None


def set_back(shell: Shell, journal: FormerValues, tell: Tell) -> list[Change]:
    """Set back what the journal tells, the last change first; then forget it.

    Returns:
        What the machine did not take, which the journal keeps.

    Raises:
        WorkError: the machine cannot be reached; the journal keeps what remains.
    """
    changes = journal.changes()
    remain: list[Change] = []
    for number in reversed(range(len(changes))):
        change = changes[number]
        try:
            told = _undo(shell, change.setting, change.former)
        except Refused as refused:
            told = f"{change.setting.what} could not be set back: {refused.message}"
            remain.insert(0, change)
        except LostConnection as lost:
            journal.keep([*changes[: number + 1], *remain])
            raise WorkError(
                f"{lost.message}: {number + 1} settings are not set back", _remedy(shell)
            ) from lost
        if told is not None:
            tell(told)
    if changes:
        journal.keep(remain)
    return remain


def _undo(shell: Shell, setting: Setting, former: str) -> str | None:
    now = _persistent(shell, setting.get, shell)
    if now == former:
        return None
    if now is None:
        return f"{setting.what} is gone; it was {former}"
    _persistent(shell, setting.put, shell, former)
    now = _persistent(shell, setting.get, shell)
    if now != former:
        raise Refused(f"it was {former}, and is {now}")
    return f"{setting.what}: {former} again"


def _remedy(shell: Shell) -> str:
    return f"mepof device restore {shell.option}".rstrip()


def _persistent(shell: Shell, act: Callable[P, T], *args: P.args, **words: P.kwargs) -> T:
    """Do something on a machine that may be out of reach for a while."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return act(*args, **words)
        except LostConnection:
            shell.reconnect()
    return act(*args, **words)


class _Signals:
    """SIGINT, SIGTERM and SIGHUP interrupt once, and then wait; in the main thread, which
    gets them.

    Attributes:
        wait: nothing but SIGKILL interrupts any more.
    """

    def __init__(self, wait: bool = False) -> None:
        self.wait = wait
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._came) for number in _SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if not self.wait:
            self.wait = True
            raise Interrupted(f"{signal.Signals(number).name} ended it")
