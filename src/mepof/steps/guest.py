"""``guest``: builds the user space of guests from mepof's sources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mepof.device.initramfs import Entry, archive
from mepof.device.protocol import INITRAMFS
from mepof.errors import EnvironmentLack
from mepof.kernel.overlay import files_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import Input, Step
from mepof.process import of_machine
from mepof.spec.guest import Guest
from mepof.toolchain import guest
from mepof.toolchain.requirements import is_static

_BUSYBOX = Path("/bin/busybox")
_SOURCES = ("Makefile", "abi", "kbench", "guest")
_DIRECTORIES = ("bin", "dev", "etc", "mepof", "proc", "root", "sys", "tmp")


class GuestBody:
    """Makes ``initramfs.cpio``."""

    kind = Guest.kind
    phase: Phase = "build"

    def check(self, step: Step) -> None:
        """Refuse an architecture that has no guest."""
        guest.target(Guest[Input].of(step, step.inputs).arch)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        target = guest.target(Guest[Input].of(step, step.inputs).arch)
        busybox = {"busybox": _busybox_digest()} if target.shell else {}
        return {
            "native": _sources_digest(),
            **busybox,
            **guest.identity(target),
        }

    def run(self, context: StepContext) -> None:
        target = guest.target(Guest[Path].of(context.step, context.inputs).arch)
        compiler = f"GUEST_CC={target.compiler}"
        context.run(["make", "-C", native_directory(), f"OUT={context.work}", compiler])
        binaries = {name: (context.work / name).read_bytes() for name in ("agent", "kbench")}
        entries = [
            *(Entry(name, 0o755) for name in _DIRECTORIES),
            # The first process needs a console before it can mount /dev.
            Entry("dev/console", 0o600, b"", device=(5, 1)),
            Entry("init", 0o755, binaries["agent"]),
            Entry("bin/kbench", 0o755, binaries["kbench"]),
        ]
        if target.shell:
            entries.append(Entry("bin/busybox", 0o755, _BUSYBOX.read_bytes()))
        (context.output / INITRAMFS).write_bytes(archive(entries))


@cache
def _sources_digest() -> str:
    root = native_directory()
    given = (root / name for name in _SOURCES)
    files = (path for g in given for path in ([g] if g.is_file() else sorted(g.rglob("*"))))
    return files_digest(root, (path for path in files if path.is_file()))


@of_machine
@cache
def _busybox_digest() -> str:
    remedy = "apt-get install busybox-static"
    if not _BUSYBOX.is_file():
        raise EnvironmentLack(f"{_BUSYBOX} is not installed", remedy)
    if not is_static(_BUSYBOX):
        raise EnvironmentLack(f"{_BUSYBOX} is not statically linked", remedy)
    return file_digest(_BUSYBOX)


BODY = GuestBody()
