"""A phone between its boot loader and its systems: where it is, and how to get it elsewhere."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from mepof.device.adb import OTHER_SYSTEMS, AdbShell, NoRoot, restart
from mepof.device.attached import Attached, PhoneModel
from mepof.device.fastboot import Fastboot, NotThere, Refused
from mepof.device.phone_image import TOKEN, Packed, described, pack
from mepof.device.pstore import last_words
from mepof.device.shell import LostConnection
from mepof.disk import replacing, sync
from mepof.errors import EnvironmentLack, WorkError
from mepof.plan.digest import file_digest

T = TypeVar("T")

LOOK_SECONDS = 0.5
"""Between two looks at where a phone is."""

# Of a digest, in the name of a file.
_SHOWN_DIGITS = 12
_ANSWER = 30.0
_TRANSFER = 300.0
_BOOTLOADER = 60.0
# For which a phone may still answer in its boot loader after it was told to leave it.
_LEAVING = 10.0
_ATTEMPTS = 4
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
BY_NAME = "/dev/block/by-name"
"""Of a system: the directory of its partitions."""


class Lost(WorkError):
    """The phone answers neither adb nor fastboot."""


class FellBack(WorkError):
    """The phone is up, but runs another image than the one that was started."""


def patiently(shell: AdbShell, act: Callable[[], T]) -> T:
    """Do something on a phone that adb may lose for a while."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return act()
        except LostConnection:
            with suppress(LostConnection):
                shell.reconnect()
    return act()


class _Left:
    """Whether a phone that was told to leave its boot loader is in it again.

    A phone answers there for some seconds more.
    """

    def __init__(self, handset: Handset) -> None:
        self._handset = handset
        self._until = handset.now() + _LEAVING

    def is_back(self) -> bool:
        if self._handset.fastboot.present():
            return self._handset.now() >= self._until
        self._until = 0
        return False


@dataclass(frozen=True)
class Handset:
    """A phone that was claimed.

    Attributes:
        directory: its journal and saved images.
        note: called with a line for everything that is done to it.
        now: seconds of a monotonic clock.
        pause: waits for a number of seconds.
    """

    phone: Attached
    model: PhoneModel
    directory: Path
    note: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    @property
    def name(self) -> str:
        return self.phone.name

    @property
    def fastboot(self) -> Fastboot:
        return Fastboot(self.phone.fastboot)

    # -- where it is

    def to_fastboot(self, *, without_root: bool = False) -> Fastboot:
        """Get the phone into its boot loader, from wherever it is.

        Args:
            without_root: on the way back, also from a system that gives no root.

        Raises:
            Lost: it answers nowhere.
            EnvironmentLack: its system gives no root.
        """
        until = self.now() + self.model.boot_seconds
        while not self._in_boot_loader():
            if self._leaves_system(without_root):
                until = min(until, self.now() + _BOOTLOADER)
            if self.now() >= until:
                raise self._lost(
                    "answers neither adb nor fastboot",
                    "check its cable; hold its power and volume-down keys until it shows its boot "
                    "loader, and run again",
                )
            self.pause(LOOK_SECONDS)
        return self.fastboot

    def _in_boot_loader(self) -> bool:
        """Whether the boot loader answers; its stand-in ``fastbootd`` is told to start it."""
        if not self.fastboot.present():
            return False
        with suppress(NotThere, Refused):  # it may be leaving
            if self.fastboot.variable("is-userspace") != "yes":
                return True
            self.fastboot.reboot("bootloader")
        return False

    def _leaves_system(self, without_root: bool) -> bool:
        """Whether the phone's system or recovery was there, and leaves for the boot loader."""
        try:
            shell = self.shell()
        except EnvironmentLack:
            if not without_root:
                raise
            restart(self.phone.adb or self.phone.fastboot, "bootloader")
            return True
        if shell is not None:
            self.reboot(shell, "bootloader")
            return True
        if self.plain_shell().state() in OTHER_SYSTEMS:
            restart(self.phone.adb or self.phone.fastboot, "bootloader")
            return True
        return False

    def shell(self) -> AdbShell | None:
        """A shell as root, if the phone's system answers now.

        Raises:
            EnvironmentLack: it answers, but gives no root.
        """
        try:
            return AdbShell.attach(self.phone.adb or self.phone.fastboot, self.model.root)
        except WorkError:
            return None

    def plain_shell(self) -> AdbShell:
        """A shell without root, whether the phone's system answers or not."""
        return AdbShell(self.phone.adb or self.phone.fastboot, self.name)

    def reboot(self, shell: AdbShell, to: str = "") -> None:
        """Reboot a system; without waiting."""
        with suppress(WorkError):  # that is what a reboot looks like
            shell.run(("/system/bin/reboot", *((to,) if to else ())), _ANSWER)

    def wait_for_system(self, token: str | None) -> AdbShell:
        """The shell of the system that was started.

        Args:
            token: of the image that was started; None for the phone's own.

        Raises:
            FellBack: another one is up, or the phone is in fastboot again.
            NoRoot: one is up that gives no root.
            Lost: none is up in time.
        """
        until = self.now() + self.model.boot_seconds
        left = _Left(self)
        lack: NoRoot | None = None
        self.pause(LOOK_SECONDS)
        while self.now() < until:
            shell = None
            try:
                shell = self.shell()
            except NoRoot as error:  # su comes later than adbd
                lack = error
            if shell is not None and self._is_up(shell):
                running = self.token(shell)
                if token is None or running == token:
                    return shell
                raise FellBack(
                    f"the phone {self.name} did not start the new image: it is up with "
                    f"{'an image of an earlier run' if running else 'its own'}{last_words(shell)}"
                )
            if shell is None and left.is_back():
                raise FellBack(f"the phone {self.name} fell back to its boot loader")
            self.pause(LOOK_SECONDS)
        if lack is not None:
            raise lack
        if self.fastboot.present():
            raise FellBack(f"the phone {self.name} did not leave its boot loader")
        raise self._lost(
            f"was not up within {self.model.boot_seconds:g} s",
            "hold its power and volume-down keys until it shows its boot loader, and run again",
        )

    def _lost(self, what: str, remedy: str) -> Lost:
        """That the phone cannot be used, and why not, if adb or fastboot tells."""
        trouble = self.plain_shell().trouble() or self.fastboot.trouble()
        if trouble is None:
            return Lost(f"the phone {self.name} {what}", remedy)
        why, instead = trouble
        return Lost(f"the phone {self.name} {what}: {why}", f"{instead}, and run again")

    def _is_up(self, shell: AdbShell) -> bool:
        try:
            done = shell.run(("getprop", "sys.boot_completed"), _ANSWER)
        except WorkError:
            return False
        return done.output.strip() == "1"

    def boot_id(self, shell: AdbShell) -> str:
        """What tells one start of a kernel from another, even of the same image.

        Raises:
            LostConnection: the phone does not answer.
        """
        return patiently(shell, lambda: shell.read(_BOOT_ID) or "").strip()

    def check_same_boot(self, shell: AdbShell, boot_id: str) -> None:
        """Check that the kernel that was started still runs.

        Raises:
            FellBack: it went down, and it or another one was started.
            LostConnection: the phone does not answer.
        """
        if self.boot_id(shell) != boot_id:
            raise FellBack(f"the kernel on the phone {self.name} went down{last_words(shell)}")

    def token(self, shell: AdbShell) -> str | None:
        """The token of the image that runs; None if mepof did not pack it."""
        text = patiently(shell, lambda: shell.read("/proc/cmdline"))
        words = (text or "").split()
        found = [word.partition("=")[2] for word in words if word.startswith(f"{TOKEN}=")]
        return found[-1] if found else None

    def fingerprint(self, shell: AdbShell) -> str:
        """The build of the system that runs; empty if it tells none.

        Raises:
            LostConnection: the phone does not answer.
        """
        done = patiently(shell, lambda: shell.run(("getprop", "ro.build.fingerprint"), _ANSWER))
        return done.output.strip() if done.status == 0 else ""

    # -- what it is

    def check(self, fastboot: Fastboot, *, flash: bool = False) -> None:
        """Check what a phone in fastboot says of itself, before anything is done to it.

        Args:
            flash: whether it is going to be flashed.

        Raises:
            EnvironmentLack: it is locked.
            WorkError: its battery is low.
        """
        if fastboot.variable("unlocked") == "no":
            raise EnvironmentLack(
                f"the phone {self.name} is locked",
                "unlock it: fastboot flashing unlock, which erases its data",
            )
        if not flash:
            return
        voltage = fastboot.variable("battery-voltage") or ""
        millivolts = int("".join(filter(str.isdigit, voltage)) or 0)
        low = millivolts and millivolts < self.model.min_battery_mv
        if low or fastboot.variable("battery-soc-ok") == "no":
            raise WorkError(
                f"the battery of the phone {self.name} is low: {millivolts} mV",
                f"charge it to {self.model.min_battery_mv} mV at least",
            )

    def slot(self, fastboot: Fastboot) -> str | None:
        """The active slot; None without slots."""
        slot = (fastboot.variable("current-slot") or "").removeprefix("_")
        return slot if slot in ("a", "b") else None

    # -- its images

    def own_image(self) -> Path:
        """The boot image of the phone's own system: described, or read from it.

        Raises:
            InputError: the described one cannot be read.
            WorkError: it could not be read from the phone.
        """
        if self.model.image is not None:
            return described(self.phone, self.model.image)
        fastboot = self.to_fastboot()
        serial = quote(fastboot.variable("serialno") or "", safe="")
        path = self.directory / f"own-{serial}.img"  # its name may be another phone's one day
        if not path.is_file():
            slot = self.slot(fastboot)
            fastboot.reboot()
            shell = self.wait_for_system(None)
            self.note(f"reading the boot image of {self.name}")
            self.read_partition(shell, f"boot_{slot}" if slot else "boot", path)
        return path

    def read_partition(self, shell: AdbShell, partition: str, path: Path) -> str:
        """Copy a partition from a running system, and check the copy.

        Returns:
            The copy's SHA-256.

        Raises:
            WorkError: it could not be read, or differs.
        """
        device = f"{BY_NAME}/{partition}"
        there = self.digest(shell, partition)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            shell.pull(device, partial, _TRANSFER)
            here = hashlib.sha256(partial.read_bytes()).hexdigest()
            if here != there:
                raise WorkError(
                    f"the copy of {partition} of {self.name} differs from it", "run again"
                )
        return here

    def save_partition(self, shell: AdbShell, partition: str) -> Path:
        """Copy a partition to the phone's directory, under a name of its content.

        Raises:
            WorkError: it could not be read, or the copy differs.
        """
        fresh = self.directory / f"{partition}.img"
        digest = self.read_partition(shell, partition, fresh)
        saved = fresh.replace(self.directory / f"{partition}-{digest[:_SHOWN_DIGITS]}.img")
        sync(self.directory)  # what is flashed next has no other copy
        return saved

    def digest_of_saved(self, saved: Path) -> str:
        """The SHA-256 of what :meth:`save_partition` made.

        Raises:
            WorkError: it is gone, or is not what was saved.
        """
        try:
            found = file_digest(saved)
        except OSError as error:
            raise WorkError(
                f"the saved image {saved} is gone", "flash the maker's image"
            ) from error
        if not saved.stem.endswith(f"-{found[:_SHOWN_DIGITS]}"):
            raise WorkError(f"the saved image {saved} is damaged", "flash the maker's image")
        return found

    def digest(self, shell: AdbShell, partition: str, size: int | None = None) -> str:
        """The SHA-256 of a partition, or of its first bytes."""
        device = f"{BY_NAME}/{partition}"
        head = f"head -c {size} {device}" if size is not None else f"cat {device}"
        done = shell.run(("sh", "-c", f"{head} | sha256sum"), _TRANSFER)
        found = done.output.split()
        if done.status != 0 or not found or len(found[0]) != 64:
            raise WorkError(
                f"{partition} of {self.name} cannot be read: {done.output.strip()}",
                "check the root access (`root` in the model), or describe `image`",
            )
        return found[0]

    def pack(self, kernel: Path, parameters: tuple[str, ...], where: Path) -> Packed:
        """The phone's own boot image with another kernel; the ramdisk stays.

        Args:
            parameters: for the kernel's command line.
            where: file to write.

        Raises:
            InputError: the kernel does not fit to the phone.
        """
        return pack(self.phone, self.model, self.own_image(), kernel, parameters, where)

    def boot_from_memory(self, packed: Packed) -> AdbShell:
        """Boot an image without writing anything.

        Raises:
            EnvironmentLack: the phone is locked.
            WorkError: it does not start.
        """
        fastboot = self.to_fastboot()
        self.check(fastboot)
        self.note(f"booting {packed.path.name} on {self.name} from memory")
        try:
            fastboot.boot(packed.path)
        except Refused as error:
            self.check(fastboot)  # it may have been locked meanwhile
            raise WorkError(
                error.message,
                "describe the phone's memory (`limits` in its model), so that mepof finds "
                "addresses at which nothing overlaps",
            ) from error
        return self.wait_for_system(packed.token)
