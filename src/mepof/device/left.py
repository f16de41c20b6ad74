"""Whether a phone is still as an interrupted run left it, so that the run may be undone.

Days may have passed: somebody may have repaired the phone by hand, or an update of its system may
have written the same partition. Undoing would then overwrite that, or start a system that is older
than the phone's data.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from mepof.device.adb import OTHER_SYSTEMS, AdbShell
from mepof.device.fastboot import Fastboot
from mepof.device.handset import LOOK_SECONDS, Handset, patiently
from mepof.device.phone_journal import Entry
from mepof.errors import EnvironmentLack, WorkError

# In these stages the partition is neither the old nor the new one.
_HALF = ("flashing", "restoring")


def check_serial(handset: Handset, fastboot: Fastboot, entry: Entry) -> None:
    """Refuse another phone than the one that a run left.

    Raises:
        WorkError: it is another one.
    """
    serial = fastboot.variable("serialno")
    if entry.serial and serial and serial != entry.serial:
        raise WorkError(
            f"{handset.name} was the phone {entry.serial}, which an earlier run left half flashed, "
            f"and is {serial} now",
            "connect that phone again, or give this one a name of its own",
        )


def is_undone(handset: Handset, entry: Entry) -> bool:
    """Whether somebody has given a phone its former content back.

    A system that runs, or starts without risk, is looked at; a phone without one is taken to be as
    the run left it.

    Raises:
        WorkError: something else was done to it, or it is another phone.
    """
    shell = _running(handset, entry)
    if shell is None:
        return False
    build = handset.fingerprint(shell)
    if entry.fingerprint and build and build != entry.fingerprint:
        raise _changed(handset, entry, f"its system is {build} now, not {entry.fingerprint}")
    if entry.stage in _HALF:
        return False
    with suppress(EnvironmentLack):
        root = handset.shell()
        return root is not None and _has_former(handset, root, entry)
    return False


def _has_former(handset: Handset, root: AdbShell, entry: Entry) -> bool:
    size = entry.size
    if patiently(root, lambda: handset.digest(root, entry.partition, size)) == entry.image:
        return False
    former = handset.digest_of_saved(Path(entry.saved))
    if patiently(root, lambda: handset.digest(root, entry.partition)) == former:
        return True
    raise _changed(handset, entry, f"{entry.partition} has neither its former image nor ours")


def _changed(handset: Handset, entry: Entry, what: str) -> WorkError:
    return WorkError(
        f"an earlier run ended while {handset.name} was {entry.stage}, and it was changed since: "
        f"{what}",
        "see that the phone starts as it should, then settle the run by hand, as `Going back` in "
        "docs/devices/phone.md says",
    )


def _running(handset: Handset, entry: Entry) -> AdbShell | None:
    """The phone's system, perhaps without root; None if none can be looked at."""
    fastboot, plain = handset.fastboot, handset.plain_shell()
    until = handset.now() + handset.model.boot_seconds
    while not fastboot.present():
        state = plain.state()
        if state == "device":
            return plain
        if state in OTHER_SYSTEMS or handset.now() >= until:
            return None
        handset.pause(LOOK_SECONDS)
    check_serial(handset, fastboot, entry)
    active = handset.slot(fastboot) or ""
    # Only a slot that has started since it was made active is sound, and not what a run left.
    if entry.slot == entry.former or fastboot.slot_variable("slot-successful", active) != "yes":
        return None
    handset.note(f"starting the system of {handset.name}, to see whether it was changed since")
    try:
        fastboot.reboot()
        return handset.wait_for_system(None)
    except EnvironmentLack:
        return plain
    except WorkError:
        return None
