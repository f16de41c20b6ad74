"""Preparing a machine, and restoring it whatever happens."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from mepof.device.former_values import Change, FormerValues
from mepof.device.preparation import Cores, Due, Preparation, Setting, cores_of
from mepof.device.restart import remedy, restart
from mepof.device.shell import LostConnection, Reachable, Refused, machine_of, persistent
from mepof.errors import InputError, Interrupted, WorkError

Report = Callable[[str], None]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Prepared:
    """A machine that is prepared.

    Attributes:
        cores: the cores that its work runs on.
    """

    shell: Reachable
    preparation: Preparation
    journal: FormerValues
    cores: Cores
    report: Report

    def reboot(
        self,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Reboot the machine, and prepare it again; the former values remain those of the first
        preparation.

        Args:
            now: seconds of a monotonic clock.
            pause: waits for a number of seconds.

        Raises:
            InputError: its preparation does not say how to reboot.
            WorkError: it did not come up.
        """
        way = self.preparation.reboot
        if way is None:
            raise InputError(
                f"the preparation of {self.preparation.title} does not say how to reboot",
                "add a table [reboot] to it",
            )
        restart(self.shell, way, now, pause)
        apply(self.shell, self.preparation, self.journal, self.report)


@contextmanager
def prepared(
    shell: Reachable, preparation: Preparation, directory: Path, report: Report, leave: bool = False
) -> Iterator[Prepared]:
    """A machine that is prepared within the ``with`` block and restored at its end.

    It is restored after an error, Ctrl-C, SIGTERM and SIGHUP as well; after SIGKILL or a loss of
    power :func:`restore` does it, or the next preparation before anything else.

    Args:
        directory: of journals.
        report: called with a line for everything that is done or could not be done.
        leave: leave restoring to :func:`restore` if the block succeeds.

    Raises:
        WorkError: another process has prepared it; or it could not be restored, and the remedy
            is the command that restores it later.
        Interrupted: by a signal.
    """
    with _journal(shell, directory) as journal, Signals() as signals:
        undo(shell, journal, report)
        well = False
        try:
            try:
                apply(shell, preparation, journal, report)
                cores = persistent(shell, cores_of, shell, preparation.cores)
                yield Prepared(shell, preparation, journal, cores, report)
                well = True
            finally:
                signals.wait = True
        finally:
            # A signal that arrived before the line above took effect leads here as well.
            if not (leave and well):
                undo(shell, journal, report)


def _journal(shell: Reachable, directory: Path) -> AbstractContextManager[FormerValues]:
    return FormerValues.of(directory, shell.name, machine_of(shell))


def pending(shell: Reachable, preparation: Preparation) -> list[str]:
    """What preparing the machine would set; sets nothing.

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


def restore(shell: Reachable, directory: Path, report: Report) -> None:
    """Undo every change that was not undone yet.

    Raises:
        WorkError: a former value was not accepted.
    """
    with _journal(shell, directory) as journal, Signals(wait=True):
        if not journal.changes():
            report(f"{shell.name} has nothing to restore")
        remain = undo(shell, journal, report)
    if remain:
        names = ", ".join(change.setting.what for change in remain)
        raise WorkError(f"{shell.name} did not accept the former value of {names}", remedy(shell))


def apply(
    shell: Reachable, preparation: Preparation, journal: FormerValues, report: Report
) -> None:
    """Make all settings, each after its former value is in the journal.

    A setting that the machine does not have is skipped; one that it does not accept is reported.

    Raises:
        LostConnection: the machine cannot be reached.
    """
    known = {change.setting.key for change in journal.changes()}
    for wanted in preparation.setting:
        for due in persistent(shell, wanted.due, shell):
            line = _make(shell, due, journal, known)
            if line is not None:
                report(line)


def _make(shell: Reachable, due: Due, journal: FormerValues, known: set[str]) -> str | None:
    """Make one setting; the line to report, or None if there was nothing to do."""
    setting, value = due.setting, due.value
    former = _changeable(shell, due)
    if former is None:
        return None
    objection = _objection(shell, due, former)
    if objection is not None:
        return objection
    if setting.key not in known:
        journal.add(Change(setting, former))
        known.add(setting.key)
    try:
        persistent(shell, setting.put, shell, value)
    except Refused as refused:
        return f"{setting.what} stays {former}: {refused.message}"
    now = persistent(shell, setting.get, shell)
    if now != value:
        return f"{setting.what} was set to {value}, but is {now}"
    return f"{setting.what}: {value}, was {former}"


def _changeable(shell: Reachable, due: Due) -> str | None:
    """The value that a setting has, if it has to be changed."""
    former = persistent(shell, due.setting.get, shell)
    if former == due.value or (due.only and former not in due.only):
        return None
    return former


def _objection(shell: Reachable, due: Due, former: str) -> str | None:
    """Why a setting is left as it is, if it is."""
    stays = f"{due.setting.what} stays {former}"
    if due.cuts_network and shell.by_network:
        return f"{stays}: {shell.name} is reached by the network"
    if not due.setting.takes(former):
        return f"{stays}: it could not be restored"
    return None


def undo(shell: Reachable, journal: FormerValues, report: Report) -> list[Change]:
    """Undo the changes in the journal, the last one first, and remove them from it.

    Returns:
        The changes that could not be undone, which the journal keeps.

    Raises:
        WorkError: the machine cannot be reached; the journal keeps what remains.
    """
    changes = journal.changes()
    remain: list[Change] = []
    for number in reversed(range(len(changes))):
        change = changes[number]
        try:
            line = _undo_one(shell, change.setting, change.former)
        except Refused as refused:
            line = f"{change.setting.what} could not be restored: {refused.message}"
            remain.insert(0, change)
        except LostConnection as lost:
            journal.keep([*changes[: number + 1], *remain])
            raise WorkError(
                f"{lost.message}: {number + 1} settings are not restored", remedy(shell)
            ) from lost
        if line is not None:
            report(line)
    if changes:
        journal.keep(remain)
    return remain


def _undo_one(shell: Reachable, setting: Setting, former: str) -> str | None:
    now = persistent(shell, setting.get, shell)
    if now == former:
        return None
    if now is None and not setting.path:
        # The system may still be starting.
        raise Refused(f"it was {former}, and cannot be read")
    if now is None:
        return f"{setting.what} is gone; it was {former}"
    persistent(shell, setting.put, shell, former)
    now = persistent(shell, setting.get, shell)
    if now != former:
        raise Refused(f"it was {former}, and is {now}")
    return f"{setting.what}: {former} again"


class Signals:
    """SIGINT, SIGTERM and SIGHUP interrupt once, and are then ignored; in the main thread, which
    receives them.

    Attributes:
        wait: nothing except SIGKILL interrupts any longer.
    """

    def __init__(self, wait: bool = False) -> None:
        self.wait = wait
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._came) for number in _SIGNALS}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _came(self, number: int, frame: FrameType | None) -> None:
        if not self.wait:
            self.wait = True
            raise Interrupted(f"ended by {signal.Signals(number).name}")
