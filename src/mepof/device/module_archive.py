"""The initramfs archive that the modules of a build come in.

It has the stripped modules, a list of them in the order in which they load, and the program that
loads them. It is part of the build and not of the guest, since a module fits only its own kernel.
Where the drivers of the agent's port are modules, a second list names these: the agent loads them
first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from mepof.arch import Guest
from mepof.device.initramfs import Entry, archive, tree
from mepof.kernel.modules import Modules
from mepof.kernel.overlay import files_digest, native_directory
from mepof.toolchain import guest
from mepof.toolchain.protocol import Run

ARCHIVE = "modules.cpio"
DIRECTORY = "mepof/modules"
LOADER = "load"
LIST = "list"
# Read by native/guest/agent.c.
_PORT_LIST = "port"
# The port is behind one of the first two, by the machine.
_PORT_DRIVERS = ("virtio_mmio", "virtio_pci", "virtio_console")


def archive_of(build: Path) -> Path | None:
    """The archive in a build; None if it has no modules, or is an image alone."""
    path = build / ARCHIVE
    return path if path.is_file() else None


def identity(target: Guest) -> Mapping[str, str]:
    """What decides the program that loads modules.

    Raises:
        EnvironmentLack: the guest's compiler is missing.
    """
    return {"module loader": _sources_digest(), **guest.identity(target)}


def write_archive(
    build: Path,
    target: Guest,
    objcopy: str,
    work: Path,
    run: Run,
    chosen: Collection[str] | None = None,
) -> None:
    """Write the archive into a build with modules; do nothing to one without.

    Args:
        target: of the build's architecture.
        chosen: names of the modules that are wanted; all without it. What they need comes too, and
            so do the drivers of the agent's port.
        objcopy: the tool that strips debug information.
        work: scratch.
    """
    modules = Modules.find(build)
    if modules is None:
        return
    if chosen is not None:
        modules = modules.needed_by({*chosen, *_PORT_DRIVERS})
    scratch = work / "modules"
    scratch.mkdir(exist_ok=True)
    run(
        [
            *("make", "-C", native_directory() / "modules"),
            *(f"OUT={scratch}", f"GUEST_CC={target.compiler}"),
        ]
    )
    entries = [Entry(f"{DIRECTORY}/{LOADER}", 0o755, (scratch / LOADER).read_bytes())]
    for module, stripped in modules.stripped(build, objcopy, scratch, run):
        entries.append(Entry(f"{DIRECTORY}/{module.name}.ko", 0o644, stripped.read_bytes()))
    for name, listed in ((LIST, modules), (_PORT_LIST, modules.needed_by(_PORT_DRIVERS))):
        if listed.modules or name == LIST:
            entries.append(Entry(f"{DIRECTORY}/{name}", 0o644, _lines(listed)))
    (build / ARCHIVE).write_bytes(archive(tree(entries)))


def _lines(modules: Modules) -> bytes:
    """A list for the loader: each module, and those that it needs."""
    return "".join(f"{' '.join((each.name, *each.needs))}\n" for each in modules.modules).encode()


@cache
def _sources_digest() -> str:
    root = native_directory()
    return files_digest(root, sorted((root / "modules").iterdir()))
