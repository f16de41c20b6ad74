"""What is laid into a guest, and whether the program of an action can start there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from mepof import arch as architectures
from mepof.app.apps import Action
from mepof.errors import InputError
from mepof.toolchain import shared_libraries

# Where the guest looks for a program that is named without a directory.
_SEARCHED = ("bin", "sbin", "usr/bin", "usr/sbin")


@dataclass(frozen=True)
class Laid:
    """What is at a path of the guest: a file of this machine, a link, or else a directory."""

    source: Path | None = None
    link: str | None = None
    executable: bool = False


def check_start(action: Action, files: Mapping[str, Laid], arch: str) -> None:
    """Refuse an action whose program the kernel could not start.

    Args:
        files: what is laid into the guest, by its path there without the leading slash.

    Raises:
        InputError: the program is missing, not executable or of another architecture, or its
            interpreter or one of its libraries is missing.
    """
    program = action.argv[0]
    choices = (
        [program.lstrip("/")]
        if program.startswith("/")
        else [f"{directory}/{program}" for directory in _SEARCHED]
    )
    for path in choices:
        if path == "bin/kbench" or (path == "bin/busybox" and _has_shell(arch)):
            return
        if path in files or _leads_over_a_link(path, files):
            _check_program(action, path, files, arch)
            return
    raise InputError(
        f"the action `{action.name}` runs {program}, which is not in the guest",
        "lay it there by `directory`, `files` or `[[program]]`",
    )


def _has_shell(arch: str) -> bool:
    guest = architectures.get(arch).guest
    return guest is not None and guest.shell


def _leads_over_a_link(path: str, files: Mapping[str, Laid]) -> bool:
    return any(
        above in files and files[above].link is not None
        for above in (path, *map(str, PurePosixPath(path).parents))
    )


def _check_program(action: Action, path: str, files: Mapping[str, Laid], arch: str) -> None:
    """Refuse a program of another architecture, and one without its interpreter or a library."""
    laid = files.get(path)
    if laid is None or laid.link is not None:
        return  # only the guest knows where it leads
    what = f"the action `{action.name}` runs /{path}, which"
    if laid.source is None:
        raise InputError(f"{what} is a directory")
    if not laid.executable:
        raise InputError(f"{what} is not executable", f"chmod +x {laid.source}")
    names = {PurePosixPath(name).name for name in files}
    ahead = [laid.source]
    seen: set[str] = set()
    while ahead:
        source = ahead.pop()
        for name in _needed(source, what, arch):
            if name in seen:
                continue
            seen.add(name)
            present = name.lstrip("/") in files if "/" in name else name in names
            if not present and not (_has_shell(arch) and name == "/bin/busybox"):
                raise InputError(
                    f"{what} needs {name}, which is not in the guest", "lay it there by `directory`"
                )
            ahead += [
                each.source
                for at, each in files.items()
                if each.source is not None and PurePosixPath(at).name == name
            ]


def _needed(source: Path, what: str, arch: str) -> list[str]:
    """The interpreter and the libraries that a program or library names."""
    try:
        with source.open("rb") as file:
            head = file.read(256)
            if head.startswith(b"#!"):
                return head[2:].decode("utf-8", "replace").splitlines()[0].split()[:1]
            named = shared_libraries.named_in(ELFFile(file))
            # e_machine; the System V ABI, of little-endian files as all of ours are.
            if int.from_bytes(head[18:20], "little") != architectures.get(arch).elf_machine:
                raise InputError(f"{what} is not built for {arch}")
            return named
    except ELFError:
        raise InputError(f"{what} is neither an ELF program nor a script") from None
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror}") from error
