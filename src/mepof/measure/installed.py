"""Measuring the kernels that are installed on a machine, in turns, each boot of them once.

What was measured is kept after each boot, so that a comparison continues where it was: in the same
process on a machine that is reached from another one, or in the next one after the machine that
runs it has rebooted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from mepof.described import first_error
from mepof.device import grub
from mepof.device.restart import boot_id
from mepof.device.shell import NOT_FOUND, Reachable, machine_of, persistent
from mepof.disk import replacing
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.measure.boots import KeptBoots
from mepof.measure.comparison import precise
from mepof.measure.measurement import (
    PASSED,
    Boot,
    Device,
    Evaluation,
    Measurement,
    Record,
    SizeBytes,
)
from mepof.measure.runner import (
    CONTROL_SEEDS,
    Design,
    Images,
    OneBoot,
    Turn,
    measure_images,
)
from mepof.suite.cases import Case, cases_digest

_ANSWER = 30.0
# Not TCG where `systemd-detect-virt` says `qemu`: it does so of guests of KVM as well, on arm64.
_ACCELERATORS = {"none": "hardware", "": "hardware"}


class NeedsBoot(Exception):
    """The comparison continues when the machine has booted a kernel again.

    Attributes:
        release: of that kernel.
    """

    def __init__(self, release: str) -> None:
        super().__init__(release)
        self.release = release


class Asked(Record):
    """A boot that was asked for.

    Attributes:
        before: the boot id that the machine had then.
        measured: the boot id of this boot, if its measurement has begun; empty before.
    """

    release: str
    before: str
    measured: str = ""


class Progress(Record):
    """How far a comparison is, beside the boots that are kept, until the machine has returned.

    Attributes:
        machine: the one that boots, so that no other continues it.
        origin: the release that the machine ran at first, and to which it returns.
        rehearsed: whether the machine has shown that it boots an entry once.
        asked: the boot that was asked for last; None if it was used.
    """

    machine: str
    origin: str
    rehearsed: bool = False
    asked: Asked | None = None

    @staticmethod
    def find(path: Path) -> Progress | None:
        """The progress that a file has, if there is one.

        Raises:
            InputError: the file is not one of progress.
        """
        try:
            return Progress.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror}", "write elsewhere with --out"
            ) from error
        except ValidationError as error:
            raise InputError(
                f"{path} is not the progress of a comparison: {first_error(error)}",
                "remove it, or write elsewhere with --out",
            ) from error

    def write(self, path: Path) -> None:
        """Write it; when this returns, it is on the disk: the machine may go down now."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(self.model_dump_json() + "\n", encoding="utf-8")
        os.sync()


@dataclass(frozen=True)
class Kernel:
    """An installed kernel: its release, and the SHA-256 and bytes of its image.

    Attributes:
        start: what else decides how it runs: its parameters, and the digest of its initrd.
    """

    release: str
    digest: str
    size: int
    start: tuple[str, ...] = ()

    @classmethod
    def of(cls, shell: Reachable, release: str) -> Kernel:
        """Read what is installed.

        Raises:
            InputError: the machine has no such image, or GRUB's menu does not have it.
        """
        path = f"/boot/vmlinuz-{release}"
        summed, sized = (
            persistent(shell, shell.run, words, _ANSWER)
            for words in (("sha256sum", path), ("stat", "-c", "%s", path))
        )
        if summed.status != 0 or sized.status != 0:
            raise InputError(f"{shell.name} has no {path}", "install the kernel's package there")
        parameters = grub.Menu.of(shell).parameters_of(release)
        start = (parameters, digests(shell, [f"/boot/initrd.img-{release}"]))
        return cls(release, summed.output.split()[0], int(sized.output), start)


def digests(shell: Reachable, paths: Sequence[str]) -> str:
    """What ``sha256sum`` says of files, of which some may not exist."""
    return persistent(shell, shell.run, ("sha256sum", *paths), _ANSWER).output


def device_of(shell: Reachable) -> Device:
    """The machine as a report names it."""
    asked = persistent(shell, shell.run, ("systemd-detect-virt", "--vm"), _ANSWER)
    virtual = "unknown" if asked.status == NOT_FOUND else asked.output.strip()
    lines = (persistent(shell, shell.read, "/proc/cpuinfo") or "").splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    cpu = next(named, "") or shell.run(("uname", "-m"), _ANSWER).output.strip()
    return Device(name=shell.name, accel=_ACCELERATORS.get(virtual, virtual), cpu=cpu)


def running(shell: Reachable) -> str:
    """The release that a machine runs."""
    return persistent(shell, shell.run, ("uname", "-r"), _ANSWER).output.strip()


class Rounds:
    """The rounds of a comparison of installed kernels.

    Args:
        boots: of the machine.
        directory: of what is kept.
        kernels: the baseline first.
        cases: that each boot runs.
        decided: what else decides a result, beside the kernel.
        measure: measures the running kernel, as the boot of a number.
    """

    def __init__(
        self,
        shell: Reachable,
        boots: Boots,
        directory: Path,
        kernels: Sequence[Kernel],
        cases: Sequence[Case],
        decided: Sequence[str],
        measure: Callable[[int], OneBoot],
    ) -> None:
        self._shell = shell
        self._boots = boots
        self._kernels = kernels
        self._measure = measure
        # The baseline again, as A/A control.
        self._targets = (*kernels, *(kernels[:1] if len(kernels) > 1 else ()))
        self._first_seeds = [
            1 + CONTROL_SEEDS * (number == len(kernels)) for number in range(len(self._targets))
        ]
        same = (shell.name, cases_digest(cases), *decided)
        self._kept = [
            KeptBoots(directory / "boots", (*same, kernel.release, kernel.digest, *kernel.start))
            for kernel in self._targets
        ]

    def evaluation(self, design: Design, precision: float, device: Device) -> Evaluation:
        """Measure as long as the machine runs the kernel whose turn it is.

        Raises:
            NeedsBoot: it has to boot one.
            WorkError: a kernel did not boot, or failed a check or a case.
        """

        def so_far(images: Images, ended: str) -> Evaluation:
            measured = [
                Measurement(
                    image=kernel.release,
                    digest=kernel.digest,
                    device=device,
                    booted=made.booted,
                    self_check=made.self_check,
                    size_bytes=SizeBytes(text=None, image=kernel.size),
                    boots=made.boots,
                )
                for kernel, made in zip(self._targets, images, strict=True)
            ]
            count = len(self._kernels)
            return Evaluation(
                images=tuple(measured[:count]),
                same_build=next(iter(measured[count:]), None),
                precision_percent=precision,
                ended=ended,
            )

        made, ended = measure_images(
            self._first_seeds, design, self._round_of, lambda images: precise(so_far(images, ""))
        )
        return so_far(made, ended)

    def _round_of(self, turns: Sequence[Turn]) -> list[OneBoot]:
        return [OneBoot(True, PASSED, self._boot(image, seed)) for image, seed in turns]

    def _boot(self, image: int, seed: int) -> Boot:
        kept = self._kept[image].find(seed)
        if kept is not None:
            return kept
        release = self._targets[image].release
        if not self._boots.begun(release):
            raise NeedsBoot(release)
        made = self._measure(seed)
        if made.boot is None:
            raise WorkError(
                f"{release} is not sound: {made.self_check}",
                f"see `journalctl --dmesg --boot -1` on {self._shell.name}; compare without it",
            )
        # In this order, because one boot must not be kept as two.
        self._boots.use()
        self._kept[image].keep(made.boot)
        return made.boot


def arrived(shell: Reachable, asked: Asked) -> bool:
    """Whether a machine has made a boot that was asked for; False if it did not reboot since.

    Raises:
        WorkError: it has booted another kernel, so that the one asked for does not boot; or GRUB
            would boot it again.
    """
    if boot_id(shell) == asked.before:
        return False
    if grub.Menu.of(shell).waits:
        grub.forget(shell)
        raise WorkError(
            f"GRUB on {shell.name} did not clear the entry that it was to boot once",
            "either the machine starts otherwise than by this GRUB, or GRUB cannot write: put "
            "/boot/grub on a plain partition with ext4, without LVM, RAID and Btrfs",
        )
    if (runs := running(shell)) != asked.release:
        raise WorkError(
            f"{asked.release} did not boot: {shell.name} is back on {runs}",
            "see the machine's console, and `journalctl --boot -1` for what it could still write",
        )
    return True


class Boots:
    """The boots of a machine that are asked for, and the way back.

    Args:
        path: of the file of progress.
        tell: called with a line for what a person has to know.
    """

    def __init__(self, shell: Reachable, path: Path, tell: Callable[[str], None]) -> None:
        self._shell = shell
        self._path = path
        self._tell = tell

    @property
    def origin(self) -> str:
        """The release that the machine ran at first."""
        progress = Progress.find(self._path)
        return progress.origin if progress else running(self._shell)

    @property
    def under_way(self) -> bool:
        """Whether a boot was asked for, and the machine has not returned since."""
        return Progress.find(self._path) is not None

    def check(self) -> None:
        """Check that a comparison that is under way is this machine's.

        Raises:
            InputError: it is another one's.
        """
        progress = Progress.find(self._path)
        if progress is not None and progress.machine != machine_of(self._shell):
            raise InputError(
                f"{self._path} is the progress of another machine than {self._shell.name}",
                "write elsewhere with --out, or remove the file",
            )

    def begin(self, releases: Sequence[str]) -> None:
        """Check that the machine can boot kernels, and that it boots by itself what it runs.

        Raises:
            InputError: GRUB's menu does not have one of them.
            EnvironmentLack: the machine would not return to the kernel that it runs.
        """
        menu = grub.Menu.of(self._shell)
        progress = Progress.find(self._path)
        if progress and not progress.asked and menu.default != progress.origin:
            self.finish()  # the machine was set up otherwise since
        origin = self.origin
        for release in releases:
            menu.path_of(release)
            words = menu.parameters_of(release).split()
            if release != origin and not any(word.startswith("panic=") for word in words):
                self._tell(
                    f"{release} has no panic= among its parameters: if it panics, somebody has to "
                    f"reset {self._shell.name} (docs/workstation.md)"
                )
        self._check_default(menu, origin)
        asked = progress.asked if progress else None
        if progress and asked and asked.measured not in ("", boot_id(self._shell)):
            self._tell(f"{self._shell.name} was reset while {asked.release} was measured: again")
            self.use()

    def ask(self, release: str) -> str:
        """Have the next boot be one of a kernel, or first of the origin: a rehearsal, which shows
        that the machine comes back and that GRUB boots the entry once.

        Returns:
            The release that boots next.

        Raises:
            EnvironmentLack: the machine would not return to the kernel that it ran at first.
            WorkError: as :func:`arrived`.
        """
        progress = Progress.find(self._path) or Progress(
            machine=machine_of(self._shell), origin=running(self._shell)
        )
        asked = progress.asked
        if not progress.rehearsed and asked is not None and arrived(self._shell, asked):
            progress = progress.model_copy(update={"rehearsed": True})
        menu = grub.Menu.of(self._shell)
        self._check_default(menu, progress.origin)
        chosen = release if progress.rehearsed else progress.origin
        before = boot_id(self._shell) or ""
        progress.model_copy(
            update={"asked": Asked(release=chosen, before=before)},
        ).write(self._path)
        grub.boot_once(self._shell, menu.path_of(chosen))
        return chosen

    def begun(self, release: str) -> bool:
        """Whether the machine has made a boot of a kernel that was asked for, whose measurement
        begins now.

        Raises:
            WorkError: as :func:`arrived`.
        """
        progress = Progress.find(self._path)
        if progress is None or not progress.rehearsed or progress.asked is None:
            return False
        if progress.asked.release != release or not arrived(self._shell, progress.asked):
            return False
        begun = progress.asked.model_copy(update={"measured": boot_id(self._shell) or ""})
        progress.model_copy(update={"asked": begun}).write(self._path)
        return True

    def use(self) -> None:
        """Expect no boot any more: the last one was measured, or is not to be."""
        progress = Progress.find(self._path)
        if progress is not None:
            progress.model_copy(update={"asked": None}).write(self._path)

    def withdraw(self) -> bool:
        """Have the next boot use GRUB's default, and no boot be expected.

        Returns:
            Whether the machine runs another kernel than at first, so that it has to reboot.
        """
        progress = Progress.find(self._path)
        if progress is None:
            return False
        if grub.Menu.of(self._shell).waits:
            grub.forget(self._shell)
        self.use()
        return running(self._shell) != progress.origin

    def finish(self) -> None:
        """Forget the origin and the rehearsal: the machine has returned."""
        self._path.unlink(missing_ok=True)

    def _check_default(self, menu: grub.Menu, origin: str) -> None:
        if menu.default == origin:
            return
        pin = f"grub-set-default '{menu.path_of(origin)}'"
        if not menu.saves:
            file = "/etc/default/grub.d/mepof.cfg"
            saved = f"mkdir -p {Path(file).parent} && echo GRUB_DEFAULT=saved >> {file}"
            pin = f"{saved} && update-grub && {pin}"
        raise EnvironmentLack(
            f"{self._shell.name} runs {origin}, but GRUB boots {menu.default or 'something else'} "
            "by itself, so a kernel that hangs would not lead back to it",
            f"on {self._shell.name}: {pin}",
        )
