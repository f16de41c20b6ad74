"""Whether modules that were built elsewhere load on a kernel.

The kernel compares what ``kernel/module/version.c`` and ``load_module`` in its tree do: the string
``vermagic``, the symbols that a module needs, and with ``CONFIG_MODVERSIONS`` a checksum of each
symbol's declaration. A module has these checksums in its section ``__versions``, or in
``__version_ext_crcs`` and ``__version_ext_names`` (``CONFIG_EXTENDED_MODVERSIONS``); what exports a
symbol has the checksum at ``__crc_SYMBOL``. What else exports a symbol is not loaded.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePath

from mepof.errors import InputError, WorkError, listed
from mepof.kernel.release import release_of
from mepof.kernel.vmlinux import Vmlinux

_EXPORTED, _CHECKSUM = "__ksymtab_", "__crc_"
# A module's entries, their names, and their checksums.
_TABLES = {"__ksymtab": "__kcrctab", "__ksymtab_gpl": "__kcrctab_gpl"}
_NAMES = "__ksymtab_strings"
# struct modversion_info: MODULE_NAME_LEN bytes, of which the checksum takes those of a long.
_VERSION = struct.Struct("<Q56s")
_CHECKSUMS = "modversions"
_SIGNED = b"~Module signature appended~\n"
_MAX_NAMED = 3


# The checksum of each symbol that is exported; None without ``CONFIG_MODVERSIONS``.
Exports = Mapping[str, int | None]


@dataclass(frozen=True)
class Kernel:
    """What modules are compared with.

    Attributes:
        release: ``uname -r``.
        vermagic: what follows the release in the string of this name.
        signed: whether only signed modules load.
        exports: the symbols that it exports.
    """

    release: str
    vermagic: str
    signed: bool
    exports: Exports


@dataclass(frozen=True)
class Foreign:
    """A module that was built elsewhere.

    Attributes:
        name: of its file.
        release: of the kernel that it was built for.
        vermagic: as in :class:`Kernel`.
        signed: whether it has a signature, of whatever key.
        needs: the symbols that others must export.
        versions: the checksums of symbols that it was built for; None if it has none at all.
        exports: the symbols that it exports itself.
    """

    name: str
    release: str
    vermagic: str
    signed: bool
    needs: Sequence[str]
    versions: Mapping[str, int] | None
    exports: Exports

    @property
    def module(self) -> str:
        """What the kernel calls it, by which it is loaded once."""
        return PurePath(self.name).name.partition(".ko")[0].replace("-", "_")


@dataclass(frozen=True)
class Fault:
    """Why a module would not load.

    Attributes:
        symbols: those that it is about, in alphabetical order.
    """

    reason: str
    symbols: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{self.reason}: {listed(self.symbols, _MAX_NAMED)}" if self.symbols else self.reason


def read_kernel(vmlinux: Path, config: str = "") -> Kernel:
    """What a linked kernel compares modules with.

    Args:
        config: its configuration, if it is known; without it, the kernel is taken to load modules
            without a signature.

    Raises:
        InputError: it cannot be read, is not for 64 bits, or loads no modules.
    """
    try:
        release = release_of(vmlinux)
        linked = Vmlinux.read(vmlinux)
        exports = _exports(linked, is_module=False)
    except WorkError as error:
        raise InputError(error.message, "give a vmlinux for 64 bits") from error
    words = rb"(?<![!-~])%b ([a-zA-Z][!-~ ]*)\0" % re.escape(release.encode())
    found = re.search(words, linked.data)
    if found is None or not exports:
        raise InputError(
            f"{vmlinux} loads no modules", "set CONFIG_MODULES=y, or give a vmlinux with symbols"
        )
    signed = "CONFIG_MODULE_SIG_FORCE=y" in config.split()
    return Kernel(release, found[1].decode().strip(), signed, exports)


def read_module(name: str, data: bytes) -> Foreign:
    """A module as it lies on a machine, decompressed.

    Args:
        name: of its file, for messages.

    Raises:
        InputError: it is not a module for 64 bits.
    """
    try:
        linked = Vmlinux(data)
        info = linked.content(linked.sections[".modinfo"]).split(b"\0")
        magic = next((each[9:].decode() for each in info if each.startswith(b"vermagic=")), "")
        release, _, vermagic = magic.partition(" ")
        return Foreign(
            name,
            release,
            vermagic.strip(),
            data.endswith(_SIGNED),
            sorted(each.name for each in linked.symbols() if each.must_be_found),
            _versions(linked),
            _exports(linked, is_module=True),
        )
    except (WorkError, KeyError, ValueError, struct.error) as error:
        raise InputError(f"{name} is not a module for 64 bits", "leave it out") from error


def faults(kernel: Kernel, modules: Sequence[Foreign]) -> dict[str, list[Fault]]:
    """Why modules would not load if all of them are there, in this order; by name, with those that
    would."""
    exports: dict[str, int | None] = dict(kernel.exports)
    # What exports a symbol; None for the kernel.
    owners: dict[str, Foreign | None] = dict.fromkeys(kernel.exports)
    again: dict[str, list[Fault]] = {}
    for each in modules:
        taken: dict[str, list[str]] = {}
        for symbol in sorted(each.exports):
            exports.setdefault(symbol, each.exports[symbol])
            owner = owners.setdefault(symbol, each)
            if owner is None:
                taken.setdefault("the kernel", []).append(symbol)
            elif owner.module != each.module:  # of one that is there twice, one is loaded
                taken.setdefault(owner.name, []).append(symbol)
        again[each.name] = [
            Fault(f"exports what {owner} exports too", symbols) for owner, symbols in taken.items()
        ]
    return {each.name: [*_faults(kernel, each, exports), *again[each.name]] for each in modules}


def _faults(kernel: Kernel, module: Foreign, exports: Exports) -> Iterator[Fault]:
    versions = module.versions or {}
    by_checksum = _CHECKSUMS in kernel.vermagic.split()
    # The kernel passes over the release where there are checksums.
    same_release = module.release == kernel.release or (by_checksum and module.versions is not None)
    if module.vermagic != kernel.vermagic or not same_release:
        theirs, ours = f"{module.release} {module.vermagic}", f"{kernel.release} {kernel.vermagic}"
        yield Fault(f"was built for `{theirs}`, and the kernel is `{ours}`")
    elif by_checksum and module.versions is None:
        yield Fault("has no checksums of symbols, which the kernel compares (CONFIG_MODVERSIONS)")
    if kernel.signed and not module.signed:
        yield Fault("has no signature, which the kernel requires (CONFIG_MODULE_SIG_FORCE)")
    if missing := [symbol for symbol in module.needs if symbol not in exports]:
        yield Fault("needs what nothing exports", missing)
    other = sorted(
        symbol
        for symbol, checksum in versions.items()
        if exports.get(symbol) not in (None, checksum)
    )
    if other:
        yield Fault("was built for other declarations", other)


def _exports(linked: Vmlinux, *, is_module: bool) -> Exports:
    exported, checksums = [], {}
    for each in linked.symbols():
        if each.section and each.name.startswith(_EXPORTED):
            exported.append(each.name.removeprefix(_EXPORTED))
        elif each.section and each.name.startswith(_CHECKSUM):
            checksums[each.name.removeprefix(_CHECKSUM)] = linked.word(each)
    unnamed = dict(_unnamed(linked)) if is_module else {}
    # Where checksums are relative, those of the symbols alone are known.
    return {
        name: checksums.get(name, unnamed.get(name))
        for name in {**unnamed, **dict.fromkeys(exported)}
    }


def _unnamed(linked: Vmlinux) -> Iterator[tuple[str, int | None]]:
    """What a module exports by its tables, as the kernel reads them: ``strip --strip-unneeded``
    leaves no symbols of them."""
    texts = linked.content_of(_NAMES)
    for table, checksums in _TABLES.items():
        # An entry is where the symbol is, where its name is, and where that of its namespace.
        places = pairwise(linked.targets(table))
        starts = [name for (before, _), (at, name) in places if before != _NAMES and at == _NAMES]
        names = (_text(texts[start:].partition(b"\0")[0]) for start in starts)
        crcs = struct.iter_unpack("<I", linked.content_of(checksums))
        yield from ((name, next(crcs, (None,))[0]) for name in names)


def _versions(linked: Vmlinux) -> Mapping[str, int] | None:
    sections = linked.sections
    if "__versions" in sections:
        entries = _VERSION.iter_unpack(linked.content(sections["__versions"]))
        return {_text(name.partition(b"\0")[0]): crc & 0xFFFFFFFF for crc, name in entries}
    if "__version_ext_crcs" in sections:
        crcs = struct.iter_unpack("<I", linked.content(sections["__version_ext_crcs"]))
        names = linked.content(sections["__version_ext_names"]).split(b"\0")
        return {_text(name): crc for name, (crc,) in zip(names, crcs, strict=False)}
    return None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
