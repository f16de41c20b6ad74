"""Where a build begins: with the objects of an earlier one of the same tree and configuration.

Between such builds commands differ, by options and profiles. kbuild has the command of each file
beside it, and rebuilds what has another one now. So the rest need not even be looked up in ccache,
which is most of the work of a build that has little to compile.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from mepof.errors import WorkError
from mepof.kernel import objtool
from mepof.process import run

#: In a view of a tree: where make runs.
OBJECTS = "build"
_COPY = "build.copy"
#: Has another text after every boot of this machine.
BOOT = Path("/proc/sys/kernel/random/boot_id")
# In a build's own directory: the boot in which its view was made.
_BOOTED = "mepof-boot"
# Below the store's directory for what can be made again.
_DIRECTORY = "built"
_NOTE = "mepof-built.json"
# Among the objects of a build: since it has begun, while make runs, and once make has made them,
# here or where they were copied from.
_BEGAN = "mepof-began"
_MAKING = "mepof-making"
_ENDED = "mepof-ended"
# How much is kept: so many bytes, or where the disk has room, one part of so many. The objects of a
# small kernel are 150 MB, those of a distribution's with its modules several GB.
_KEPT_BYTES = 2 << 30
_KEPT_SHARE = 6
# What the parts of a kernel are linked to.
_LINKED = ("vmlinux*", ".tmp_vmlinux*")
# What kbuild generates where it signs modules: each build has a key of its own.
_KEY = "certs/signing_key.pem"
_FROM_KEY = ("certs/signing_key*", "certs/.signing_key*")
# More than the times of files are rounded by.
_ROUNDED_NS = 2 * 10**9


@dataclass(frozen=True)
class Build:
    """What a build is to another that could begin with its objects.

    Attributes:
        family: a digest of what both must have: tree, configuration and toolchain; and one boot of
            the machine, since files may not be whole that were there when it crashed.
        overlays: digests of what is laid over the tree, by name.
        flags: a digest of what else its commands depend on.
        view: the tree with the overlays, in which it was built.
    """

    family: str
    overlays: Mapping[str, str]
    flags: str
    view: str

    def is_base_of(self, other: Build) -> bool:
        """Whether the other can begin with this one's objects: overlays may only be added, since
        make does not remove objects that it no longer knows."""
        return self.family == other.family and self.overlays.items() <= other.overlays.items()


@dataclass(frozen=True)
class _Note:
    """What lies beside objects that were kept.

    Attributes:
        size: of all files, in bytes.
        began: when make first ran, in nanoseconds of the file system's clock.
        warned: the lines in which objtool warned of the objects.
    """

    build: Build
    size: int
    began: int
    warned: tuple[str, ...]

    @classmethod
    def read(cls, kept: Path) -> _Note:
        known = json.loads((kept / OBJECTS / _NOTE).read_text(encoding="utf-8"))
        build, size, began = Build(**known["build"]), int(known["size"]), int(known["began"])
        return cls(build, size, began, tuple(known["warned"]))

    def write(self, view: Path) -> None:
        (view / OBJECTS / _NOTE).write_text(json.dumps(asdict(self)), encoding="utf-8")


def keep(build: Build, cache: Path, log: Path) -> None:
    """Keep the objects of a finished build for others, if there is room: its view moves.

    Args:
        cache: the store's directory for what can be made again.
        log: the output of make.
    """
    view, kept = Path(build.view), cache / _DIRECTORY
    laid = sha256(json.dumps(build.overlays).encode()).hexdigest()
    place = kept / "-".join(digest[:16] for digest in (build.family, laid, build.flags))
    with suppress(OSError):  # the build is done, whether others can use it or not
        objects = view / OBJECTS
        for pattern in (*_LINKED, *(_FROM_KEY if (objects / _KEY).exists() else ())):
            for path in objects.glob(pattern):
                path.unlink()
        size = sum(path.lstat().st_size for path in objects.rglob("*"))
        began = (objects / _BEGAN).stat().st_mtime_ns
        _Note(build, size, began, objtool.warning_lines(log)).write(view)
        kept.mkdir(parents=True, exist_ok=True)
        os.utime(view)
        _remove(place)
        view.rename(place)
    known = dict(_kept(cache))
    for path in kept.glob("[!.]*"):
        if path not in known:  # a crash left it, or another version of this program
            _remove(path)
    held = sum(note.size for note in known.values())
    left = max(_KEPT_BYTES, (shutil.disk_usage(kept).free + held) // _KEPT_SHARE)
    for path, note in sorted(known.items(), key=lambda each: _used(each[0]), reverse=True):
        if note.size > left:
            _remove(path)
        else:
            left -= note.size
    for path in kept.glob(".*"):  # what a killed process was removing
        shutil.rmtree(path, ignore_errors=True)


def forget_what_crashed(work: Path, view: Path) -> None:
    """Remove a view, with its objects, that an earlier boot of this machine left: after a crash,
    files may not be whole, and nothing would tell.

    Args:
        work: the build's own directory.
    """
    work.mkdir(parents=True, exist_ok=True)
    mark, now = work / _BOOTED, BOOT.read_text()
    if view.exists() and (not mark.exists() or mark.read_text() != now):
        shutil.rmtree(view)
    mark.write_text(now)


def forget_what_was_killed(objects: Path) -> None:
    """Let make take no object for done that it was making when it was killed.

    Such an object may be damaged, lack what objtool does, or be of other flags, and yet the command
    of the one before lies beside it.
    """
    if (objects / _MAKING).exists() and (objects / _ENDED).exists():
        for path in objects.rglob("*.cmd"):
            path.unlink()


def begin(build: Build, cache: Path, log: Path, own: Sequence[str]) -> None:
    """Begin a build with the objects of the nearest earlier one, if there is any.

    Args:
        build: has been configured; nothing is compiled, or this build continues.
        cache: the store's directory for what can be made again.
        log: the build's; it gets the warnings of objtool about these objects.
        own: files beside the objects that stay this build's.
    """
    began = Path(build.view) / OBJECTS / _BEGAN
    if not began.exists():
        _take(build, cache, log, own)
        began.touch()


@contextmanager
def making(objects: Path, *, kernel: bool) -> Iterator[None]:
    """While make runs: what it leaves when it is killed is known by that.

    Args:
        kernel: it makes the objects of the kernel, which a later run here makes with other flags.
    """
    running = objects / _MAKING
    running.touch()
    try:
        yield
    except WorkError:  # it ended by itself, and removed what it could not make
        _end(running, kernel)
        raise
    _end(running, kernel)


def _end(running: Path, kernel: bool) -> None:
    if kernel:
        running.with_name(_ENDED).touch()
    running.unlink()


def _take(build: Build, cache: Path, log: Path, own: Sequence[str]) -> None:
    """Copy the objects of the nearest earlier build, if there is any."""
    objects = Path(build.view) / OBJECTS
    found = [each for each in _kept(cache) if each[1].build.is_base_of(build)]
    if not found:
        return
    copy = objects.with_name(_COPY)
    try:
        kept, note = max(found, key=lambda each: (*_nearness(each[1].build, build), _used(each[0])))
        os.utime(kept)
        _copy(kept, note, copy, build)
        with log.open("a", encoding="utf-8") as file:
            file.writelines(note.warned)
    except (OSError, WorkError):  # it was removed meanwhile, or there is no room
        shutil.rmtree(copy, ignore_errors=True)
    else:
        for name in own:
            if (objects / name).exists():
                (objects / name).replace(copy / name)
        shutil.rmtree(objects)
        copy.rename(objects)


def _nearness(base: Build, build: Build) -> tuple[int, bool]:
    return len(base.overlays), base.flags == build.flags


def _copy(kept: Path, note: _Note, copy: Path, build: Build) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    whole = kept.stat()
    run(["cp", "--recursive", "--no-dereference", str(kept / OBJECTS), str(copy)])
    if not os.path.samestat(whole, kept.stat()):
        raise FileNotFoundError(f"{kept} was removed while it was copied")
    for name in (_NOTE, _BEGAN, _MAKING):
        (copy / name).unlink(missing_ok=True)
    # The commands of GCC name the tree, and so do those of the kernel's `tools`, where ccache makes
    # paths relative in part.
    both = os.path.commonpath([note.build.view, build.view])
    views = (note.build.view, build.view)
    old, new = (os.fsencode(f"/{Path(each).relative_to(both)}/") for each in views)
    for path in copy.rglob("*.cmd"):
        command = path.read_bytes()
        if old in command:
            path.write_bytes(command.replace(old, new))
    # Nothing is newer than what is made from it, but for what other overlays lay over the tree, and
    # files elsewhere that have changed since, such as certificates that the configuration names.
    stamp = note.began - _ROUNDED_NS
    for directory, _, names in os.walk(copy):
        for name in (*names, "."):
            os.utime(Path(directory, name), ns=(stamp, stamp), follow_symlinks=False)
    for path in _laid_files(copy.parent):
        before = kept / path.relative_to(copy.parent)
        if before.is_file() and before.read_bytes() == path.read_bytes():
            os.utime(path, ns=(stamp, stamp))
        else:
            os.utime(path)


def _laid_files(view: Path) -> Iterator[Path]:
    """The files of a view that are not the tree's."""
    for directory, below, names in os.walk(view):
        if Path(directory) == view:
            below[:] = [name for name in below if name not in (OBJECTS, _COPY)]
        yield from (path for name in names if not (path := Path(directory, name)).is_symlink())


def _used(kept: Path) -> int:
    with suppress(OSError):  # it was removed meanwhile
        return kept.stat().st_mtime_ns
    return 0


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
