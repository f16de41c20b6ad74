"""Where a build begins: with the objects of an earlier one of the same tree and configuration.

Between such builds only commands differ, by options and profiles. kbuild has the command of each
file beside it, and rebuilds what has another one now. So the rest need not even be looked up in
ccache, which is most of the work of a build that has little to compile.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mepof.errors import WorkError
from mepof.kernel import objtool
from mepof.process import run

#: In a view of a tree: where make runs.
OBJECTS = "build"
#: Has another text after every boot of this machine.
BOOT = Path("/proc/sys/kernel/random/boot_id")
# Below the store's directory for what can be made again.
_DIRECTORY = "built"
_NOTE = "mepof-built.json"
# How much is kept. The objects of a small kernel are 150 MB.
_KEPT_BYTES = 2 << 30
# What the parts of a kernel are linked to.
_LINKED = ("vmlinux*", ".tmp_vmlinux*")
# More than the times of files are rounded by.
_ROUNDED_NS = 2 * 10**9


@dataclass(frozen=True)
class Build:
    """What a build is to another that could begin with its objects.

    Attributes:
        family: a digest of what both must have: tree, overlays, configuration and toolchain; and
            one boot of the machine, since files may not be whole that were there when it crashed.
        flags: a digest of what else its commands depend on.
        view: the tree with the overlays, in which it was built.
    """

    family: str
    flags: str
    view: str


@dataclass(frozen=True)
class _Note:
    """What lies beside objects that were kept.

    Attributes:
        size: of all files, in bytes.
        warned: the lines in which objtool warned of the objects.
    """

    build: Build
    size: int
    warned: tuple[str, ...]

    @classmethod
    def read(cls, kept: Path) -> _Note:
        known = json.loads((kept / OBJECTS / _NOTE).read_text(encoding="utf-8"))
        return cls(Build(**known["build"]), int(known["size"]), tuple(known["warned"]))

    def write(self, view: Path) -> None:
        (view / OBJECTS / _NOTE).write_text(json.dumps(asdict(self)), encoding="utf-8")


def keep(build: Build, cache: Path, log: Path) -> None:
    """Keep the objects of a finished build for others: its view moves.

    Args:
        cache: the store's directory for what can be made again.
        log: the output of make.
    """
    view, kept = Path(build.view), cache / _DIRECTORY
    for pattern in _LINKED:
        for path in (view / OBJECTS).glob(pattern):
            path.unlink()
    size = sum(path.lstat().st_size for path in (view / OBJECTS).rglob("*"))
    _Note(build, size, objtool.warning_lines(log)).write(view)
    kept.mkdir(parents=True, exist_ok=True)
    place = kept / f"{build.family[:16]}-{build.flags[:16]}"
    _remove(place)
    os.utime(view)
    with suppress(OSError):  # another build was faster, or this is another file system
        view.rename(place)
    left = _KEPT_BYTES
    for path, note in sorted(_kept(cache), key=lambda each: _used(each[0]), reverse=True):
        left -= note.size
        if left < 0:
            _remove(path)


def begin(build: Build, view: Path, cache: Path, log: Path) -> None:
    """Begin a build with the objects of the nearest earlier one, if there is any.

    Args:
        view: a tree with the overlays, which has no objects yet.
        cache: the store's directory for what can be made again.
        log: the build's; it gets the warnings of objtool about these objects.
    """
    found = [each for each in _kept(cache) if each[1].build.family == build.family]
    if not found:
        return
    try:
        # Times change while other builds use them.
        kept, note = max(found, key=lambda e: (e[1].build.flags == build.flags, _used(e[0])))
        os.utime(kept)
        _copy(kept, note.build, view, build)
        with log.open("a", encoding="utf-8") as file:
            file.writelines(note.warned)
    except (OSError, WorkError):  # it was removed meanwhile, or there is no room
        shutil.rmtree(view / OBJECTS, ignore_errors=True)


def _copy(kept: Path, base: Build, view: Path, build: Build) -> None:
    run(["cp", "--recursive", "--no-dereference", str(kept / OBJECTS), str(view)])
    # By the clock of the file system, which may be another machine's.
    now = (view / OBJECTS / _NOTE).stat().st_mtime_ns
    (view / OBJECTS / _NOTE).unlink()
    # The tools of the kernel's `tools` are built with absolute paths.
    for path in (view / OBJECTS / "tools").rglob("*.cmd"):
        command = path.read_bytes()
        path.write_bytes(command.replace(os.fsencode(base.view), os.fsencode(build.view)))
    # Nothing is newer than what is made from it, and what is made now is newer than all.
    stamp = now - _ROUNDED_NS
    for directory, _, names in os.walk(view):
        for name in names:
            os.utime(Path(directory, name), ns=(stamp, stamp), follow_symlinks=False)


def _used(kept: Path) -> int:
    return kept.stat().st_mtime_ns


def _remove(kept: Path) -> None:
    """Remove what was kept. Who copies it meanwhile finds nothing any more, not a part of it."""
    aside = kept.with_name(f".{kept.name}.{os.getpid()}.{time.monotonic_ns()}")
    with suppress(OSError):
        kept.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _kept(cache: Path) -> Iterator[tuple[Path, _Note]]:
    for path in (cache / _DIRECTORY).glob("[!.]*"):
        with suppress(OSError, ValueError, TypeError, KeyError):
            yield path, _Note.read(path)
