"""The tree in a directory of this machine: what of it is taken, and copying that."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from hashlib import sha256
from pathlib import Path

from mepof.errors import EnvironmentLack, InputError
from mepof.plan.digest import Entry, kind_of, walk
from mepof.plan.disk_full import means_full
from mepof.plan.preflight import unreadable
from mepof.plan.store import artifact_of
from mepof.process import run
from mepof.source.protocol import Workshop

# Leftovers of a build in the tree, which would mislead a build outside it.
_LEFT_OUT = re.compile(r"((^|/)\.git|^include/config|(^|/)include/generated)(/|$)")
_LEFT_OUT_FILES = re.compile(r"(^|/)(\.config(\.old)?|vmlinux|System\.map|Module\.symvers)$")
# These too, unless git tracks them: vendors ship objects without their source.
_SUFFIXES = (
    *(".o", ".a", ".ko", ".cmd", ".mod", ".mod.c", ".order", ".dwo"),
    *(".lex.c", ".tab.c", ".tab.h"),
)
# What kbuild writes beside the source, by the .gitignore files of Linux 6.12: its own keys, and
# headers that state what was built or configured, which the compiler finds before the new build's.
GENERATED = (
    *("certs/signing_key.pem", "certs/signing_key.x509", "certs/x509.genkey"),
    *("signing_key.priv", "signing_key.x509", "x509.genkey"),  # before Linux 4.3
    *("scripts/basic/randstruct.seed", "scripts/gcc-plugins/randomize_layout_seed.h"),
    *("arch/*/boot/cpustr.h", "arch/*/boot/voffset.h", "arch/*/boot/zoffset.h"),
    *("arch/*/boot/compressed/sizes.h", "arch/x86/realmode/rm/pasyms.h"),
    *("arch/x86/kvm/kvm-asm-offsets.h", "arch/arm64/kvm/hyp_constants.h"),
    *("arch/arm/mach-omap2/pm-asm-offsets.h", "arch/arm/mach-at91/pm_data-offsets.h"),
    *("drivers/memory/ti-emif-asm-offsets.h", "scripts/mod/devicetable-offsets.h"),
    *("scripts/mod/elfconfig.h", "init/utsversion-tmp.h", "kernel/config_data.h"),
    *("lib/crc32table.h", "lib/crc64table.h", "rust/exports_*_generated.h"),
    *("security/selinux/flask.h", "security/selinux/av_permissions.h"),
    "security/tomoyo/builtin-policy.h",
    # What differs after each build: counters, lists, and kernels in all their forms.
    *(".version", ".tmp_*", ".vmlinux*", "modules-only.symvers"),
    *("vmlinux.unstripped", "vmlinux.symvers", "vmlinux.map", ".missing-syscalls.d"),
    *("modules.builtin*", "modules.nsdeps", "usr/initramfs_data.cpio*", "usr/initramfs_inc_data"),
    *("arch/*/boot/bzImage", "arch/*/boot/zImage", "arch/*/boot/uImage", "arch/*/boot/Image"),
    *(f"arch/*/boot/Image.{ending}" for ending in ("gz", "bz2", "lz4", "lzma", "lzo", "xz", "zst")),
    *("arch/*/boot/compressed/vmlinux", "arch/*/boot/compressed/vmlinux.bin*"),
    *("arch/*/boot/compressed/vmlinux.relocs", "arch/*/boot/vmlinux.bin"),
    *("arch/arm/boot/compressed/piggy_data", "arch/x86/boot/compressed/piggy.S"),
    *("arch/x86/boot/setup.bin", "arch/x86/boot/setup.elf"),
    *(f"arch/x86/realmode/rm/realmode.{ending}" for ending in ("bin", "elf", "relocs")),
    *("arch/*/*/vdso*/vdso*.so", "arch/*/*/vdso*/vdso*.so.*", "arch/x86/entry/vdso/vdso-image-*.c"),
)
_GENERATED = re.compile("|".join(map(translate, GENERATED)))
# The names in identities of what links lead to, of which files are tracked, and of what was not
# taken from between the sources.
_OUTSIDE, _TRACKED = "files outside of the tree", "objects that git tracks"
_NOT_TAKEN = "generated files"
# git reads no checkout of another user without it. Building it runs what is in it, anyway.
_ANY_OWNER = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "LC_ALL": "C",
    # Of the hook that runs mepof.
    "GIT_DIR": None,
    "GIT_WORK_TREE": None,
    "GIT_INDEX_FILE": None,
}
_NO_CHECKOUT = "not a git repository (or any"


@dataclass(frozen=True)
class Item:
    """A file, directory or link that is taken.

    Attributes:
        entry: with its path in the copy; a link to what lies outside of the tree is that.
        outside: it lies outside of the tree, and a link leads to it.
        text: of a link whose own leads out of the tree and back into it.
        left_out: it is not taken after all, because of its name.
    """

    entry: Entry
    outside: bool
    text: str | None = None
    left_out: bool = False


@dataclass(frozen=True)
class Taken:
    """What of a directory is taken.

    Attributes:
        root: the directory, without links in its path.
        left_out: files that are not taken because of their names.
    """

    root: Path
    items: tuple[Item, ...]
    left_out: tuple[str, ...]

    def identity(self) -> Mapping[str, str]:
        """What decides the copy besides the content of the directory.

        Raises:
            InputError: a file cannot be read.
        """
        found = {}
        if outside := [item.entry for item in self.items if item.outside]:
            try:
                found[_OUTSIDE] = artifact_of(self.root, outside).digest
            except OSError as error:
                raise unreadable(error) from error
        names = (name for name, kind, _ in (i.entry for i in self.items) if kind != "dir")
        if tracked := [name for name in names if _looks_built(name)]:
            found[_TRACKED] = _digest(tracked)
        if generated := [name for name in self.left_out if _GENERATED.match(name)]:
            found[_NOT_TAKEN] = _digest(generated)
        return found

    def copy(self, output: Path) -> None:
        """Copy it into an empty directory.

        Raises:
            InputError: a file cannot be copied.
        """
        self._write(self.items, output, shutil.copy2)

    def link(self, output: Path, unread: re.Pattern[str]) -> None:
        """Make a view of it in an empty directory: directories of its own, so that nothing is
        written to the original, and links to files.

        Args:
            unread: the paths of files that the view need not have.
        """
        read = [
            item
            for item in self.items
            if item.entry[1] == "dir" or not unread.fullmatch(item.entry[0])
        ]
        self._write(read, output, os.symlink)

    def _write(
        self, items: Iterable[Item], output: Path, write_file: Callable[[Path, Path], object]
    ) -> None:
        for item in items:
            relative, kind, _ = item.entry
            source, copy = self.root / relative, output / relative
            try:
                match kind:
                    case "dir":
                        copy.mkdir()
                    case "link":
                        copy.symlink_to(item.text or source.readlink())
                    case _:
                        write_file(source, copy)
            except OSError as error:
                if means_full(error):
                    raise
                raise InputError(f"{source} cannot be copied: {error.strerror}") from error


def taken(directory: Path) -> Taken:
    """What is taken of a tree: all but ``.git`` and the leftovers of a build.

    Files that are named like objects, or as what kbuild writes beside the source, are leftovers,
    except those that git tracks.

    What lies outside of the tree is taken in the place of the link that points to it. Links within
    the tree, and those to nothing or to a device, stay links.

    Raises:
        InputError: a file cannot be read or is a pipe, socket or device, a link points to a
            directory around it, or git cannot tell what it tracks.
    """
    try:
        root = directory.resolve()
        found = tuple(_items(root, "", ()))
    except OSError as error:
        raise unreadable(error) from error
    left_out = tuple(item.entry[0] for item in found if item.left_out)
    return Taken(root, tuple(item for item in found if not item.left_out), left_out)


def _items(root: Path, at: str, around: tuple[tuple[Path, str], ...]) -> Iterator[Item]:
    """What is taken of a directory.

    Args:
        at: the path of its copy, with a slash behind it; empty for the tree itself.
        around: the directories that are being taken, with the paths of their copies.
    """
    copied = (*around, (root, at))
    tracked: frozenset[str] | None = None
    for relative, kind, status in walk(root):
        place = at + relative
        if _LEFT_OUT.search(place) or (kind != "dir" and _LEFT_OUT_FILES.search(place)):
            continue
        if kind == "other":
            raise InputError(
                f"{root / relative} cannot be copied: it is a special file",
                "remove it: no kernel is built from a pipe, a socket or a device",
            )
        # A link may point to a directory.
        if _looks_built(place) and not (root / relative).is_dir():
            tracked = _tracked(root) if tracked is None else tracked
            if relative not in tracked:
                yield Item((place, kind, status), bool(at), left_out=True)
                continue
        target = _target_outside(root, relative) if kind == "link" else None
        if target is None:
            yield Item((place, kind, status), bool(at))
        elif (inside := _copy_of(target, copied, root / relative)) is not None:
            text = os.path.relpath(inside, Path(place).parent)
            yield Item((place, kind, status), bool(at), text)
        else:
            status = target.stat()
            yield Item((place, kind_of(status.st_mode), status), True)
            if target.is_dir():
                yield from _items(target, f"{place}/", copied)


def links_out(found: Taken) -> Iterator[tuple[str, Path, bool]]:
    """The links that lead out of a tree: where each is, what it points to, and whether there is
    anything."""
    for item in found.items:
        name, kind, _ = item.entry
        link = found.root / name
        if item.outside and kind != "link" and link.is_symlink():
            yield name, link.readlink(), True
        elif kind == "link" and item.text is None and _leads_out(found.root, name):
            yield name, link.readlink(), link.exists()


def note_left_out(names: Sequence[str], workshop: Workshop) -> None:
    """Tell the user what was not taken, if anything."""
    if names:
        # A vendor's object is looked for, not kbuild's notes on it.
        one = min(names, key=lambda name: name.endswith(".cmd"))
        workshop.note(f"left out {len(names)} file(s) that look built, such as {one}")


def _looks_built(path: str) -> bool:
    return path.endswith(_SUFFIXES) or _GENERATED.match(path) is not None


def _digest(names: Sequence[str]) -> str:
    return sha256(os.fsencode("\0".join(names))).hexdigest()


def _tracked(root: Path) -> frozenset[str]:
    """The files that git tracks; none outside of a checkout.

    Raises:
        InputError: git cannot tell.
    """
    argv = ["git", "-C", str(root), "ls-files", "-z", "--recurse-submodules"]
    try:
        done = run(argv, env=_ANY_OWNER, check=False)
    except EnvironmentLack:
        return frozenset()
    if done.status == 0:
        return frozenset(re.split(r"[\0\n]", done.output))  # a warning of git ends with a line
    if _NO_CHECKOUT in done.output:
        return frozenset()
    why = next(iter(done.output.splitlines()), f"status {done.status}").removeprefix("fatal: ")
    raise InputError(
        f"git cannot tell which objects of {root} are sources: {why}",
        "repair the checkout, or mount what its .git names; or remove its .git: then no object is "
        "taken",
    )


def _target_outside(root: Path, relative: str) -> Path | None:
    """The file or directory that a link leads to by a path that leaves its tree."""
    if not _leads_out(root, relative):
        return None
    try:
        target = Path(os.path.realpath(root / relative, strict=True))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return target if target.is_dir() or target.is_file() else None


def _leads_out(root: Path, relative: str) -> bool:
    lexical = os.path.normpath(Path(relative).parent / (root / relative).readlink())
    return lexical.partition("/")[0] in ("", "..")


def _copy_of(target: Path, copied: tuple[tuple[Path, str], ...], link: Path) -> str | None:
    """The path of the copy of something; None if it lies outside of what is being taken.

    Raises:
        InputError: what is being taken lies in it.
    """
    for root, at in copied:
        if target.is_relative_to(root):
            return at + target.relative_to(root).as_posix()
        if root.is_relative_to(target):
            raise InputError(
                f"the link {link} points to {target}, which contains {root} itself",
                "remove the link, or point it to what the kernel's build reads",
            )
    return None
