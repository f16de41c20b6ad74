"""Whether a partition of a phone may be flashed, and its slot made active.

A boot loader starts whatever slot it is told to, also one that never had a system, and may take its
other firmware from that slot as well. Where it knows the variables, it is asked before the first
write (AOSP's ``system/core/fastboot/README.md``); a variable that it does not know refuses nothing.
"""

from __future__ import annotations

from mepof.device.adb import AdbShell
from mepof.device.fastboot import Fastboot
from mepof.device.handset import BY_NAME, Handset, patiently
from mepof.device.phone_image import Packed
from mepof.device.phone_journal import Entry
from mepof.errors import InputError, WorkError

_ANSWER = 60.0
# Offsets of the flags in AVB's header, and of what follows (libavb/avb_vbmeta_image.h).
_FLAGS, _BEHIND_FLAGS = 120, 124


def check_no_update(handset: Handset, fastboot: Fastboot) -> None:
    """Refuse while an update of the phone's system is under way, since it uses both slots.

    Raises:
        WorkError: one is.
    """
    status = fastboot.variable("snapshot-update-status")
    if status not in (None, "", "none"):
        raise WorkError(
            f"an update of the system of {handset.name} is not finished: {status}",
            "start its system, wait until the update is complete, and run again",
        )


def check_slot(handset: Handset, fastboot: Fastboot, slot: str, last: Entry | None) -> str:
    """Refuse a slot, which is not the active one, that may not start.

    Args:
        last: entry of the phone's journal.

    Returns:
        The copy whose content the slot's partition must have, if only the journal knows that the
        slot has started with it: its boot loader forgot that when mepof made the slot active.

    Raises:
        WorkError: the slot may not start.
    """
    remedy = (
        "let an update of the phone's system or the maker's tool fill that slot, or write "
        '`flash = "active"` in its model, after reading docs/devices/phone.md'
    )
    if fastboot.slot_variable("slot-unbootable", slot) == "yes":
        raise WorkError(f"the slot {slot} of {handset.name} cannot be started", remedy)
    if fastboot.slot_variable("slot-successful", slot) != "no":
        return ""
    undone = last is not None and last.startable and last.stage in ("begun", "restored")
    if last is None or not undone or last.slot != slot:
        raise WorkError(
            f"the slot {slot} of {handset.name} has never started a system successfully", remedy
        )
    return last.saved


def check_build(handset: Handset, shell: AdbShell, slot: str, former: str) -> None:
    """Refuse a slot whose vbmeta, which has the digests of all of its build, is of another build.

    Its flags may differ: ``fastboot --disable-verity`` changes those of one slot.

    Args:
        shell: of a system that runs.
        former: the active slot.

    Raises:
        WorkError: it is; an update leaves its predecessor in the other slot, or nothing at all.
        LostConnection: the phone does not answer.
    """
    devices = [f"{BY_NAME}/vbmeta_{each}" for each in (slot, former)]
    summed = " && ".join(
        f"[ -e {each} ] && {{ head -c {_FLAGS} {each}; tail -c +{_BEHIND_FLAGS + 1} {each}; }} | "
        "sha256sum"
        for each in devices
    )
    done = patiently(shell, lambda: shell.run(("sh", "-c", summed), _ANSWER))
    lines = done.output.splitlines()
    if done.status == 0 and len(lines) == len(devices) and len(set(lines)) > 1:
        raise WorkError(
            f"the slot {slot} of {handset.name} has another build than {former}: "
            f"vbmeta_{slot} differs from vbmeta_{former}",
            'install the same build in both slots, or write `flash = "active"` in the model, '
            "after reading docs/devices/phone.md",
        )


def check_system(handset: Handset, entry: Entry, fingerprint: str) -> None:
    """Refuse a slot that has another system than the one which was active before.

    Args:
        fingerprint: of the system that runs from the slot.

    Raises:
        WorkError: it has; both share the phone's data.
    """
    if entry.fingerprint and fingerprint and fingerprint != entry.fingerprint:
        raise WorkError(
            f"the slot {entry.slot} of {handset.name} has another system than {entry.former}: "
            f"{fingerprint}, not {entry.fingerprint}",
            "install the same system in both slots",
        )


def check_size(handset: Handset, fastboot: Fastboot, partition: str, packed: Packed) -> None:
    """Refuse an image that is larger than its partition.

    Raises:
        InputError: it is, or there is no such partition.
    """
    said = fastboot.variable(f"partition-size:{partition}")
    if said is None:
        raise InputError(
            f"{handset.name} has no partition {partition}", "correct `flash` in its model"
        )
    try:
        size, limit = packed.path.stat().st_size, int(said, 16)  # with `0x` or without
    except ValueError as error:
        raise InputError(
            f"{handset.name} says that {partition} has {said!r} bytes", "flash it by hand"
        ) from error
    if size > limit:
        raise InputError(
            f"the image has {size} bytes, {size - limit} more than {partition} of {handset.name}",
            "compress the kernel better, or instrument less of it (`set exclude`)",
        )
