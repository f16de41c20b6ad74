"""The device ``phone``: a real one, or one that ``mepof phone`` plays (docs/devices/phone.md).

A session boots the phone's own boot image with our kernel in it from memory, and runs on it over
adb. Nothing is written to its partitions.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from mepof.device.adb import AdbShell
from mepof.device.attached import (
    attached,
    claim,
    give_back,
    list_path,
    model_of,
    model_path,
    reserve,
    state_directory,
)
from mepof.device.flashing import Flashed, check_permission, flash, is_permitted, recover
from mepof.device.handset import FellBack, Handset, Lost
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.phone_image import check_models, check_programs
from mepof.device.phone_session import run_session
from mepof.device.protocol import (
    Description,
    GuestReset,
    KernelHang,
    Outcome,
    Session,
)
from mepof.errors import EnvironmentLack, InputError, MepofError
from mepof.plan.body import Claim
from mepof.plan.digest import file_digest
from mepof.process import Completed

# With the trace units that simpleperf knows.
_TRACED = "arm64"
# Phones that wait in their boot loader or run an image from memory, by name.
_left: dict[str, Handset] = {}


class Phone:
    """The first phone of the workplace's list that answers and is free."""

    # Trace buffers overflow, and adb shares the processor.
    records_all = False

    def check(self, arch: str) -> None:
        """Refuse wrong files of models, and images of another architecture than ``arch``."""
        if list_path().is_file():  # programs are also checked where no phone is
            check_models(attached(), arch)

    def check_list(self) -> None:
        attached()

    def identity(self, arch: str) -> Mapping[str, str]:
        phones = attached()
        check_programs(phones)
        # Programs do not name a phone, so what a session gives depends on the models alone.
        return {
            f"model {phone.model}": file_digest(model_path(phone))
            for phone in phones
            if model_of(phone)
        }

    def describe(self, arch: str) -> Description:
        titles = {model_of(phone).title: None for phone in attached()}
        return Description("phone", "hardware", ", ".join(titles), "real time")

    def claim(self, arch: str) -> Claim | None:
        # All boots of a run are of the same phone, one by one.
        return Claim("phone", _reserve, _release)

    def system(self) -> str:
        return "Android"

    def branch_recorder(self, arch: str) -> str:
        if arch != _TRACED:
            raise EnvironmentLack(
                f"phones record branches by Arm's trace units, which {arch} does not have",
                "train with `pgo`, which counts in the kernel",
            )
        return "simpleperf, ETM"

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        return {}

    def boot(
        self,
        session: Session,
        directory: Path,
        runner: Callable[..., Completed],
        replied: Callable[[int], None],
    ) -> Outcome:
        if session.interactive:
            raise InputError(
                "a phone has no console for the scenario `manual`", "use its screen and `adb shell`"
            )
        if session.measure is not None:
            raise EnvironmentLack(
                "the device phone does not count", "measure with `mepof device count --adb`"
            )
        directory.mkdir(parents=True, exist_ok=True)
        handset = claimed(directory)
        _left[handset.name] = handset
        recover(handset)
        handset.check(handset.to_fastboot())
        packed = handset.pack(session.kernel, session.parameters, directory / "boot.img")
        try:
            shell = handset.boot_from_memory(packed)
            outcome = run_session(handset, shell, session, directory, replied)
        except FellBack as error:
            raise GuestReset(error.message, error.remedy) from error
        except Lost as error:
            raise KernelHang(error.message, error.remedy) from error
        handset.reboot(shell, "bootloader")
        return outcome

    def flash(
        self,
        session: Session,
        directory: Path,
        sound: Callable[[Outcome], None],
        note: Callable[[str], None],
    ) -> Mapping[str, str]:
        check_permission()
        return asdict(_flashed(session, directory, sound, note))


def _reserve(note: Callable[[str], None], cancel: threading.Event) -> None:
    """Reserve a phone. What a run flashes is the one that the user expects, not one that happens to
    answer before it."""
    reserve(note, cancel, answering=not is_permitted())


def _flashed(
    session: Session,
    directory: Path,
    sound: Callable[[Outcome], None],
    note: Callable[[str], None],
) -> Flashed:
    directory.mkdir(parents=True, exist_ok=True)
    handset = replace(claimed(directory), note=note)
    _left[handset.name] = handset
    recover(handset)
    handset.check(handset.to_fastboot(), flash=True)
    packed = handset.pack(session.kernel, session.parameters, directory / "boot.img")

    def check(shell: AdbShell) -> None:
        sound(run_session(handset, shell, session, directory, lambda count: None))

    done = flash(handset, packed, check)
    _left.pop(handset.name, None)  # it runs its own system, which is ours now
    return done


def claimed(directory: Path) -> Handset:
    """The phone of this process.

    Args:
        directory: in which ``phone.log`` lists what is done to it.

    Raises:
        EnvironmentLack: none is known.
        WorkError: all are in use.
        InputError: its description is wrong.
    """

    def note(text: str) -> None:
        with (directory / "phone.log").open("a", encoding="utf-8") as log:
            log.write(f"{text}\n")

    phone = claim(note, answering=not is_permitted())
    return Handset(phone, model_of(phone), state_directory() / phone.name, note)


# Registered after labgrid's, so it runs before that gives phones to others.
@atexit.register
def _leave() -> None:
    """Let a phone that is in its boot loader start its own system."""
    while _left:
        _, handset = _left.popitem()
        with suppress(MepofError):
            # It may still be on its way there.
            handset.to_fastboot(without_root=True).reboot()


def _release() -> None:
    try:
        _leave()
    finally:
        give_back()


DEVICE = Phone()
