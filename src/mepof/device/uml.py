"""The device ``uml``: a kernel of the architecture ``um`` is a process of this machine.

Its code runs natively, so it can be timed, and nothing about it repeats exactly. A boot serves a
batch like one of :mod:`mepof.device.qemu`: the requests lie in the initramfs, and the replies go to
a file. User-Mode Linux has no virtio port, and its serial lines cannot be files, so the guest
mounts the directory of the boot; BusyBox prepares that and starts the agent as a program.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof.device import batch, console
from mepof.device.initramfs import Entry
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.protocol import (
    BootFailure,
    Description,
    KernelHang,
    Outcome,
    Session,
    check_cpus,
)
from mepof.device.watchdog import Watchdog
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.plan.body import Claim
from mepof.process import Completed

ARCH = "um"

_MACHINE = "x86_64"
# The kernel joins its arguments to one command line, where a space ends a parameter. So they name
# files by their paths from the boot's directory, in which it runs.
_CONSOLE, _PORT, _INITRAMFS = "console.log", "replies", "initramfs"
_PARAMETERS = (
    f"initrd={_INITRAMFS}",
    "rdinit=/mepof/start",
    # Its directory, by an absolute path: hostfs calls statx(-1, PATH).
    "hostfs=/proc/self/cwd",
    "con=null",
    # Otherwise it writes into the user's ~/.uml.
    "uml_dir=.",
    "oops=panic",
    "norandmaps",
)
_LOGGED, _INTERACTIVE = "con0=null,fd:1", "con0=fd:0,fd:1"
# Without a terminal the console only prints what the kernel logs: UML cannot poll other files.
_START = f"""\
#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs devtmpfs /dev
exec < /dev/null > /dev/kmsg 2>&1
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t debugfs debugfs /sys/kernel/debug
$b mount -t tmpfs tmpfs /tmp
$b ifconfig lo 127.0.0.1 up
# Replies are written at once: the host follows them.
$b mkdir /mepof/host
$b mount -t hostfs -o sync none /mepof/host
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp TERM=vt100
cd /tmp
/init /{batch.REQUESTS} /mepof/host/{_PORT}
$b poweroff -f
"""


class Uml:
    """User-Mode Linux."""

    def check(self, arch: str) -> None:
        if arch != ARCH:
            raise InputError(
                f"the device uml cannot boot {arch} kernels", f"write `set arch {ARCH}`"
            )

    def identity(self, arch: str) -> Mapping[str, str]:
        self.check(arch)
        _check_machine()
        words = (*_PARAMETERS, _LOGGED, _INTERACTIVE, _START)
        return {"uml": sha256("\0".join(words).encode()).hexdigest(), "processor": _processor()}

    def describe(self, arch: str) -> Description:
        return Description(
            name="uml", accel="native", cpu=_processor(), mode="time of the host's clock"
        )

    def claim(self, arch: str) -> Claim | None:
        return None  # a process; what is timed runs alone on its core by other means

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        return {}

    def boot(
        self,
        session: Session,
        directory: Path,
        runner: Callable[..., Completed],
        replied: Callable[[int], None],
    ) -> Outcome:
        self.check(session.arch)
        _check_machine()
        check_cpus(self, session.arch, session.cpus)
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(parents=True)
        log, port = directory / _CONSOLE, directory / _PORT
        start = Entry("mepof/start", 0o755, _START.encode())
        (directory / _INITRAMFS).write_bytes(batch.initramfs_of(session, start))
        watchdog = Watchdog(session, log, port, replied)
        try:
            with log.open("a", encoding="utf-8", buffering=1) as written:
                done = runner(
                    command(session),
                    cwd=directory,
                    on_line=lambda line: written.write(f"{line}\n") and None,
                    watch=watchdog.look,
                    interactive=session.interactive,
                    check=False,
                )
        except WorkError as error:
            batch.raise_if_panicked(log, port)
            kind = KernelHang if watchdog.expired else BootFailure
            raise batch.failure(kind, error.message, log, port) from error
        batch.raise_if_panicked(log, port)
        if done.status != 0:
            raise batch.failure(
                BootFailure, f"the kernel ended with status {done.status}", log, port
            )
        release, answers = batch.answers(session, log, port)
        return Outcome(release, answers, (), console.text_of(log))


def command(session: Session) -> list[str]:
    """The words that start the kernel, in the boot's directory."""
    return [
        str(session.kernel.resolve()),
        f"mem={session.memory}M",
        *_PARAMETERS,
        _INTERACTIVE if session.interactive else _LOGGED,
        *(("quiet",) if session.interactive else ()),
        *session.parameters,
    ]


def _check_machine() -> None:
    if platform.machine() != _MACHINE:
        raise EnvironmentLack(
            f"the device uml runs on x86-64 machines, and this is {platform.machine()}",
            "use the device qemu",
        )


@cache
def _processor() -> str:
    """The model name of this machine's processor."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == "model name":
            return value.strip()
    return platform.machine()


DEVICE = Uml()
