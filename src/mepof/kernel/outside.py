"""Files that a configuration names, and that decide what the kernel holds: certificates, firmware,
the contents of an initramfs, the symbols that modules of others need.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from mepof.errors import InputError, listed
from mepof.kernel.kconfig import Fragments
from mepof.plan.digest import file_digest, tree_digest, walk

_TEXT = re.compile(r'^CONFIG_(\w+)=("(?:\\.|[^"\\])*")$', re.M)
_HASHES = "SYSTEM_BLACKLIST_HASH_LIST"
# Options that name a file, in the tree or by an absolute path, and the value of each that needs
# none.
_FILES = {
    "BOOT_CONFIG_EMBED_FILE": "",
    "IPE_BOOT_POLICY": "",
    "MODULE_SIG_KEY": "certs/signing_key.pem",  # kbuild makes it
    _HASHES: "",
    "SYSTEM_REVOCATION_KEYS": "",
    "SYSTEM_TRUSTED_KEYS": "",
    "UNUSED_KSYMS_WHITELIST": "",
}
_INITRAMFS = "INITRAMFS_SOURCE"
# Characters that make expands in a name, and those that the shell expands as well, to which the
# names for an initramfs are given.
_MAKE, _SHELL = frozenset("$"), frozenset("$~*?[")
_PATTERN = _SHELL - frozenset("$~")
# Of options for which the absolute path of another file is no remedy.
_REMEDIES = {
    "EXTRA_FIRMWARE": "put it there without compression, name the directory with it in "
    'CONFIG_EXTRA_FIRMWARE_DIR, or write CONFIG_EXTRA_FIRMWARE=""',
    _INITRAMFS: f'write CONFIG_{_INITRAMFS}="", or absolute paths alone, also in a list of files',
}
_MOST = 4
# Where firmware is looked for by default (drivers/base/firmware_loader/Kconfig).
_FIRMWARE = "/lib/firmware"


def named_by(fragments: Fragments) -> frozenset[Path]:
    """The files and directories outside the tree that fragments name; they may be missing."""
    settings = (each for one in fragments.settings for each in (one, *one.otherwise))
    return _named({each.symbol: each.value for each in settings})


def named_in(config: str) -> frozenset[Path]:
    """Likewise, of the text of a finished configuration."""
    return _named(dict(_TEXT.findall(config)))


def lacking(config: str, directories: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The files that lines of a configuration name and that are not there, by option, each with a
    remedy: kbuild misses them when it has compiled most of the kernel.

    Args:
        directories: those in which make looks for files.
    """
    missing: dict[str, list[str]] = {}
    for symbol, path in _files(dict(_TEXT.findall(config))):
        # The script for an initramfs looks beside the objects.
        expanded = _SHELL if symbol == _INITRAMFS else _MAKE
        is_known = expanded.isdisjoint(str(path)) and str(path) != _FILES.get(symbol)
        by_make = symbol != _INITRAMFS or ".cpio" in path.name
        # Up to Linux 5.16 the compiler includes this one beside its own file.
        beside = [each / "certs" for each in directories] if symbol == _HASHES else []
        places = [*directories, *beside] if by_make else []
        tried = [path] if path.is_absolute() else [each / path for each in places]
        if is_known and not any(map(os.path.exists, tried)):
            missing.setdefault(symbol, []).append(str(path))
    for symbol, names in missing.items():
        many = len(names) > 1
        where = f"{'are' if many else 'is'} not in the tree"
        if names[0].startswith("/"):
            where = "do not exist" if many else "does not exist"
        elif symbol == _INITRAMFS:
            where = "the build does not find by a relative path"
        usual = f'write CONFIG_{symbol}="{_FILES.get(symbol, "")}", or the absolute path of a file'
        yield (
            f"CONFIG_{symbol} names {listed(names, _MOST)}, which {where}",
            _REMEDIES.get(symbol, usual),
        )


def _named(values: Mapping[str, str]) -> frozenset[Path]:
    # The others are files of the tree, which is an input.
    return frozenset(path for _, path in _files(values) if path.is_absolute())


def _files(values: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The files and directories that options name, after the option."""

    def words(symbol: str) -> list[str]:
        return values.get(symbol, "").strip('"').split()

    for symbol in sorted(_FILES.keys() & values.keys()):
        name = values[symbol].strip('"')
        if name and not name.startswith("pkcs11:"):
            yield symbol, Path(name)
    firmware = Path(*words("EXTRA_FIRMWARE_DIR")[:1] or [_FIRMWARE])
    for name in words("EXTRA_FIRMWARE"):
        yield "EXTRA_FIRMWARE", firmware / name
    for word in words(_INITRAMFS):
        # The shell takes a pattern without a match for a name.
        is_pattern = word.startswith("/") and not _PATTERN.isdisjoint(word)
        pattern = re.sub(r"\*+", "*", word.lstrip("/"))
        matches = sorted(Path("/").glob(pattern)) if is_pattern else []
        for path in matches or [Path(word)]:
            yield _INITRAMFS, path
            for each in _listed(path):
                yield _INITRAMFS, each


def _listed(path: Path) -> Iterator[Path]:
    """The files that a list for `usr/gen_init_cpio` takes; none if it is an archive."""
    text = ""
    with suppress(OSError):  # the digest says what cannot be read
        if path.is_absolute() and path.is_file() and ".cpio" not in path.name:
            text = path.read_text(encoding="utf-8", errors="replace")
    for line in text.splitlines():
        kind, _, rest = line.strip().partition(" ")
        words = rest.split()
        if kind == "file" and len(words) > 1:
            yield Path(words[1])


def digest(files: Iterable[Path]) -> str | None:
    """SHA-256 over those files and directories that exist; None if none does.

    Raises:
        InputError: one of them cannot be read.
    """
    contents = ((str(path), _content(path)) for path in sorted(files))
    found = [each for each in contents if each[1] is not None]
    return sha256(repr(found).encode()).hexdigest() if found else None


def _content(path: Path) -> str | None:
    try:
        if not path.exists():
            return None
        if not path.is_dir():
            return file_digest(path)
        entries = walk(path)
        regular = [name for name, kind, _ in entries if kind in ("file", "exec")]
        return tree_digest(path, entries, {name: file_digest(path / name) for name in regular})
    except OSError as error:
        raise InputError(
            f"{error.filename or path}, which the config names, cannot be read: {error.strerror}",
            "make it readable, or drop the option",
        ) from error
