"""Flashing a phone so that it can be started at every moment, and going back if it cannot.

The order is what protects the phone: the image runs from memory before anything is written; the old
content is on this machine, compared, before it is overwritten; a slot is made active only after it
was written completely, and marked only after its system has passed its check. Every stage is in the
journal before it begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mepof.device.adb import AdbShell
from mepof.device.fastboot import Fastboot
from mepof.device.flashable import (
    check_build,
    check_no_update,
    check_size,
    check_slot,
    check_system,
)
from mepof.device.handset import Handset, patiently
from mepof.device.left import check_serial, is_undone
from mepof.device.phone_image import Packed
from mepof.device.phone_journal import Entry, Journal, Stage
from mepof.device.shell import NOT_FOUND
from mepof.errors import InputError, MepofError, WorkError

_ANSWER = 60.0
_OTHER = {"a": "b", "b": "a"}

_permission = threading.Event()
_of_step = ContextVar("_of_step", default=False)


def permit() -> None:
    """Let this process flash; the user has said so on the command line."""
    _permission.set()


@contextmanager
def permitted(given: bool) -> Iterator[None]:
    """Let this thread flash in the block, if the user whose step it performs has said so."""
    before = _of_step.set(given)
    try:
        yield
    finally:
        _of_step.reset(before)


def is_permitted() -> bool:
    """Whether this process or this thread may flash."""
    return _permission.is_set() or _of_step.get()


def check_permission() -> None:
    """Refuse to flash where no user has said so.

    Raises:
        InputError: nobody has.
    """
    if not is_permitted():
        raise InputError(
            "the program flashes a phone",
            "run it by `mepof run --flash`, after reading docs/devices/phone.md",
        )


Check = Callable[[AdbShell], None]
"""Raises what is wrong with the system that runs; called with its shell."""


@dataclass(frozen=True)
class Flashed:
    """What a phone has now.

    Attributes:
        marked: by whom the slot was marked good: ``mepof``, or ``system`` where bootctl could not.
    """

    phone: str
    partition: str
    slot: str
    former: str
    digest: str
    saved: str
    marked: Literal["mepof", "system"]


def journal_of(handset: Handset) -> Journal:
    """The journal of a phone."""
    return Journal(handset.directory / "journal.jsonl")


def flash(handset: Handset, packed: Packed, check: Check) -> Flashed:
    """Boot an image from memory, flash it, start it, and mark its slot good.

    If anything fails from the first write on, the phone gets its former content back.

    Args:
        check: of the system, from memory and from the slot.

    Raises:
        EnvironmentLack: the phone is locked.
        InputError: the image is larger than the partition.
        WorkError: its slot may not start, or a step failed; the message says in which state the
            phone is.
    """
    recover(handset)
    fastboot = handset.to_fastboot()
    handset.check(fastboot, flash=True)
    found = _already(handset, fastboot, packed)
    if found is not None:
        handset.note(f"{handset.name} has {found.partition} already")
        return found
    former = handset.slot(fastboot) or ""
    if not former and handset.model.flash == "inactive":
        raise InputError(
            f"{handset.name} has no slots: nothing starts it while its only boot image is flashed",
            'write `flash = "active"` in its model if you take that risk',
        )
    slot = former if handset.model.flash == "active" else _OTHER.get(former, "")
    partition = f"boot_{slot}" if slot else "boot"
    check_size(handset, fastboot, partition, packed)
    check_no_update(handset, fastboot)
    journal = journal_of(handset)
    known = ""
    if slot != former:
        known = check_slot(handset, fastboot, slot, journal.last())
    shell = handset.boot_from_memory(packed)
    boot_id = handset.boot_id(shell)
    check(shell)
    if slot != former:
        check_build(handset, shell, slot, former)
    fingerprint = handset.fingerprint(shell)
    handset.note(f"saving {partition} of {handset.name} to {handset.directory}")
    saved = patiently(shell, lambda: handset.save_partition(shell, partition))
    handset.check_same_boot(shell, boot_id)
    if known and known != str(saved):
        raise WorkError(
            f"{partition} of {handset.name} is not what an earlier run left there, and has never "
            "started a system successfully",
            f"start the slot {slot} once, or flash {known} to it",
        )
    size = packed.path.stat().st_size
    entry = Entry(
        "begun",
        slot,
        former,
        partition,
        str(saved),
        packed.digest,
        packed.kernel,
        size,
        fingerprint=fingerprint,
        startable=True,
    )
    journal.add(entry)
    fastboot = handset.to_fastboot()
    handset.check(fastboot, flash=True)
    entry = replace(entry, serial=fastboot.variable("serialno") or "")
    try:
        marked = _written_and_started(handset, fastboot, packed, entry, check, journal)
    except Exception as error:  # a full disk of this machine, for instance
        message, remedy = _told(error)
        message, *console = message.split("\n", 1)
        try:
            restore(handset, entry)
        except Exception as failed:
            why, next_step = _told(failed)
            why = "" if message in why else f": {why}"
            said = f"{message}; and {handset.name} could not be restored{why}"
            raise WorkError(
                "\n".join([said, *console]),
                f"{next_step or 'run again'}; the former {partition} is {saved}",
            ) from error
        raise WorkError(
            "\n".join([f"{message}; {handset.name} has its former {partition} again", *console]),
            remedy,
        ) from error
    journal.add(replace(entry, stage="good"))
    return Flashed(handset.name, partition, slot, former, packed.digest, str(saved), marked)


def _told(error: Exception) -> tuple[str, str | None]:
    return (error.message, error.remedy) if isinstance(error, MepofError) else (str(error), None)


def _already(handset: Handset, fastboot: Fastboot, packed: Packed) -> Flashed | None:
    """What an earlier run flashed, if the phone still starts it and it has the same kernel.

    Otherwise a second run would overwrite the slot that the phone could fall back to.
    """
    entry = journal_of(handset).last()
    if entry is None or entry.stage != "good" or entry.kernel != packed.kernel:
        return None
    if entry.slot and (
        handset.slot(fastboot) != entry.slot
        or fastboot.slot_variable("slot-successful", entry.slot) == "no"
    ):
        return None
    fastboot.reboot()
    shell = handset.wait_for_system(None)
    size = entry.size
    written = patiently(shell, lambda: handset.digest(shell, entry.partition, size))
    if written != entry.image:
        handset.to_fastboot()
        return None
    return Flashed(
        handset.name, entry.partition, entry.slot, entry.former, entry.image, entry.saved, "mepof"
    )


def recover(handset: Handset) -> bool:
    """Undo what an interrupted run left on a phone.

    Returns:
        Whether there was anything.

    Raises:
        WorkError: it could not be undone, or the phone was changed since.
    """
    journal = journal_of(handset)
    entry = journal.unsettled()
    if entry is None:
        return False
    handset.note(f"an earlier run ended while {handset.name} was {entry.stage}: restoring it")
    if is_undone(handset, entry):
        journal.add(replace(entry, stage="restored"))
        return True
    check_no_update(handset, handset.to_fastboot(without_root=True))
    restore(handset, entry)
    return True


def restore(handset: Handset, entry: Entry) -> None:
    """Give a phone its former content and slot, and start its system.

    Raises:
        WorkError: it does not come up, or the saved image is gone or damaged.
    """
    journal = journal_of(handset)
    with suppress(OSError):  # the stage before it is not settled either
        journal.add(replace(entry, stage="restoring"))
    fastboot = handset.to_fastboot(without_root=True)
    check_serial(handset, fastboot, entry)
    handset.note(f"restoring {entry.partition} of {handset.name}")
    other = entry.former != entry.slot
    if other and handset.slot(fastboot) != entry.former:
        fastboot.set_active(entry.former)  # first of all: from here on the phone starts
    saved = Path(entry.saved)
    try:
        digest = handset.digest_of_saved(saved)
        fastboot.flash(entry.partition, saved)
    except WorkError as error:
        if other:
            fastboot.reboot()
        raise WorkError(
            f"{entry.partition} was not restored: {error.message}", error.remedy or "run again"
        ) from error
    if not other or fastboot.slot_variable("slot-unbootable", entry.slot) == "yes":
        for slot in filter(None, (entry.slot, entry.former)):
            fastboot.set_active(slot)  # which gives it all of its retries
    fastboot.reboot()
    shell = handset.wait_for_system(None)
    if patiently(shell, lambda: handset.digest(shell, entry.partition)) != digest:
        raise WorkError(f"{entry.partition} does not read back as it was restored", "run again")
    journal.add(replace(entry, stage="restored"))
    with suppress(WorkError):  # it has been good before
        patiently(shell, lambda: _mark(handset, shell, entry))


def _written_and_started(
    handset: Handset,
    fastboot: Fastboot,
    packed: Packed,
    entry: Entry,
    check: Check,
    journal: Journal,
) -> Literal["mepof", "system"]:
    def stage(name: Stage, text: str) -> None:
        journal.add(replace(entry, stage=name))
        handset.note(text)

    stage("flashing", f"flashing {entry.partition} of {handset.name}")
    fastboot.flash(entry.partition, packed.path)
    stage("flashed", f"starting {entry.partition} of {handset.name}")
    if entry.slot:
        journal.add(replace(entry, stage="activated"))
        fastboot.set_active(entry.slot)
        if handset.slot(fastboot) != entry.slot:
            raise WorkError(f"{handset.name} did not make the slot {entry.slot} active")
    fastboot.reboot()
    shell = handset.wait_for_system(packed.token)
    boot_id = handset.boot_id(shell)
    check_system(handset, entry, handset.fingerprint(shell))
    check(shell)
    size = packed.path.stat().st_size
    written = patiently(shell, lambda: handset.digest(shell, entry.partition, size))
    handset.check_same_boot(shell, boot_id)
    if written != packed.digest:
        raise WorkError(f"{entry.partition} of {handset.name} does not read back as it was written")
    stage("checked", f"marking {entry.partition} of {handset.name} good")
    return patiently(shell, lambda: _mark(handset, shell, entry))


def _mark(handset: Handset, shell: AdbShell, entry: Entry) -> Literal["mepof", "system"]:
    """Tell the boot loader that the slot works; where the tool cannot, Android does so itself."""
    if not entry.slot:
        return "system"
    done = shell.run(("bootctl", "mark-boot-successful"), _ANSWER)
    if done.status == 0:
        return "mepof"
    if done.status != NOT_FOUND:
        handset.note(f"bootctl failed on {handset.name}: {done.last}")
    return "system"
