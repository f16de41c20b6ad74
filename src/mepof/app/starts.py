"""Whether the programs of an app can start in the guest that its files are laid into."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from mepof import arch as architectures
from mepof.app.laid import Laid, resolve
from mepof.errors import InputError
from mepof.toolchain import shared_libraries

#: Where the guest looks for a program that is named without a directory.
SEARCHED = ("bin", "sbin", "usr/bin", "usr/sbin")
# What scripts begin with, and Debian's packages that have it. Every machine has most of them, so
# that no package depends on them.
_INTERPRETERS = {
    "sh": "dash",
    "bash": "bash",
    "env": "coreutils",
    "perl": "perl-base",
    "python3": "python3-minimal",
}
# ET_EXEC and ET_DYN.
_LOADED = (2, 3)


def check_start(
    what: str,
    program: str,
    files: Mapping[str, Laid],
    arch: str,
    searched: Sequence[str] = SEARCHED,
) -> None:
    """Refuse a program that the kernel could not start.

    Args:
        what: what runs it, for messages: ``the action `buy` ``.
        files: what is laid into the guest, by its path there without the leading slash.
        searched: directories of programs that are named without one.

    Raises:
        InputError: the program is missing, not executable or of another architecture, or its
            interpreter or one of its libraries is missing.
    """
    choices = (
        [program.lstrip("/")] if "/" in program else [f"{each}/{program}" for each in searched]
    )
    for path in choices:
        target = resolve(path, files)
        if target is None:
            raise InputError(f"{what} runs /{path}, whose links form a loop")
        if target == "bin/kbench" or (target == "bin/busybox" and _has_shell(arch)):
            return
        if target in files:
            closure(f"{what} runs /{target}, which", target, files, arch, searched)
            return
    # What alternatives of Debian call awk or lua is there under a name of its own.
    name = PurePosixPath(program).name
    known = [path for path in map(PurePosixPath, files) if str(path.parent) in searched]
    near = get_close_matches(name, [path.name for path in known], n=1)
    # Others, such as java, are links to where nothing is searched.
    elsewhere = (path for path, laid in files.items() if laid.source and laid.permissions & 0o111)
    near = [f"/{path}" for path in elsewhere if PurePosixPath(path).name == name][:1] or near
    raise InputError(
        f"{what} runs {program}, which is not in the guest",
        (f"did you mean `{near[0]}`? Otherwise " if near else "")
        + f"lay it there by {_packages_with(name)}, `image`, `directory`, `files` or `[[program]]`",
    )


def _packages_with(name: str) -> str:
    """The key `packages`, with the one that has an interpreter."""
    package = _INTERPRETERS.get(name)
    return "`packages`" if package is None else f"`packages` (`{package}` has it)"


def _has_shell(arch: str) -> bool:
    guest = architectures.get(arch).guest
    return guest is not None and guest.shell


def closure(
    what: str, path: str, files: Mapping[str, Laid], arch: str, searched: Sequence[str] = SEARCHED
) -> dict[str, Laid]:
    """A program with its interpreter and all libraries, each at the path where it is looked up.

    Args:
        what: begins messages: ``the action `buy` runs /bin/buy, which``.
        path: of the program, without links in it.
        files, searched: as of :func:`check_start`.

    Raises:
        InputError: it is not an executable program of that architecture, or something is missing.
    """
    laid = files[path]
    if laid.source is None:
        raise InputError(f"{what} is a directory")
    if not laid.permissions & 0o111:
        remedy = f"chmod +x {laid.source}" if isinstance(laid.source, Path) else None
        raise InputError(f"{what} is not executable", remedy)
    by_name: dict[str, list[str]] = {}
    for each in files:
        by_name.setdefault(PurePosixPath(each).name, []).append(each)
    reached = {path: laid}
    ahead = [laid]
    seen: set[str] = set()
    while ahead:
        for name, paths in _needed(ahead.pop(), what, arch, searched):
            if name in seen:
                continue
            seen.add(name)
            targets = {p: resolve(p, files) for p in paths or by_name.get(name, [])}
            there = {p: files[t] for p, t in targets.items() if t is not None and t in files}
            present = {p: laid for p, laid in there.items() if laid.source is not None}
            if not present and not (_has_shell(arch) and "bin/busybox" in targets.values()):
                remedy = (
                    f"lay it there by {_packages_with(PurePosixPath(name).name)} or `directory`"
                )
                if arch == architectures.host():
                    remedy += "; `[[program]]` takes a program of this machine with what it needs"
                raise InputError(f"{what} needs {name}, which is not in the guest", remedy)
            reached |= present
            ahead += present.values()
    return reached


def _needed(
    laid: Laid, what: str, arch: str, searched: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """The interpreter and the libraries that a program or library names, each with the paths where
    it may be; of a library, none: it may be anywhere."""
    data = laid.content()
    if data.startswith(b"#!"):
        return _interpreters(data, laid, what, searched)
    try:
        named = shared_libraries.named_in(ELFFile(io.BytesIO(data)))
    except ELFError:
        raise InputError(f"{what} is neither an ELF program nor a script") from None
    # e_type and e_machine; the System V ABI, of little-endian files as all of ours are.
    if int.from_bytes(data[18:20], "little") != architectures.get(arch).elf_machine:
        raise InputError(f"{what} is not built for {arch}")
    if int.from_bytes(data[16:18], "little") not in _LOADED:
        raise InputError(f"{what} is an object file or a core dump", "name what was linked of it")
    return [(name, [name.lstrip("/")] if "/" in name else []) for name in named]


def _interpreters(
    data: bytes, laid: Laid, what: str, searched: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """What the first line of a script names, and what `env` is to find there."""
    line = data[2:256].partition(b"\n")[0].decode("utf-8", "replace")
    # The carriage return would be the end of a name (fs/binfmt_script.c).
    if line.endswith("\r"):
        remedy = f"sed -i 's/\\r$//' {laid.source}" if isinstance(laid.source, Path) else None
        raise InputError(f"{what} has lines that end in CR LF, as on another system", remedy)
    interpreter, *words = line.split() or [""]
    found = [(interpreter, [interpreter.lstrip("/")])] if interpreter else []
    # `env -S` and variables are left to itself.
    if PurePosixPath(interpreter).name == "env" and words and re.fullmatch(r"[\w.+]+", words[0]):
        found.append((words[0], [f"{each}/{words[0]}" for each in searched]))
    return found
