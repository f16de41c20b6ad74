"""Files outside the tree that a configuration names, and that the kernel then holds: certificates,
firmware, the contents of an initramfs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from mepof.errors import InputError
from mepof.kernel.kconfig import Fragments
from mepof.plan.digest import file_digest, tree_digest, walk

_TEXT = re.compile(r'^CONFIG_(\w+)=("(?:\\.|[^"\\])*")$', re.M)
_CERTIFICATES = (
    *("MODULE_SIG_KEY", "SYSTEM_BLACKLIST_HASH_LIST", "SYSTEM_REVOCATION_KEYS"),
    "SYSTEM_TRUSTED_KEYS",
)
# Where firmware is looked for by default (drivers/base/firmware_loader/Kconfig).
_FIRMWARE = "/lib/firmware"


def named_by(fragments: Fragments) -> frozenset[Path]:
    """The files and directories outside the tree that fragments name; they may be missing."""
    settings = (each for one in fragments.settings for each in (one, *one.otherwise))
    return _named({each.symbol: each.value for each in settings})


def named_in(config: str) -> frozenset[Path]:
    """Likewise, of the text of a finished configuration."""
    return _named(dict(_TEXT.findall(config)))


def _named(values: Mapping[str, str]) -> frozenset[Path]:
    def words(symbol: str) -> list[str]:
        return values.get(symbol, "").strip('"').split()

    firmware = Path(*words("EXTRA_FIRMWARE_DIR")[:1] or [_FIRMWARE])
    found = [Path(values[symbol].strip('"')) for symbol in _CERTIFICATES if symbol in values]
    found += [firmware / name for name in words("EXTRA_FIRMWARE")]
    for path in map(Path, words("INITRAMFS_SOURCE")):
        found += [path, *_listed(path)]
    # The others are files of the tree, which is an input.
    return frozenset(path for path in found if path.is_absolute())


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
