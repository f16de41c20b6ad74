"""The objects of a build, and the functions that each defines."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

from mepof.arch import Arch
from mepof.process import run
from mepof.toolchain.profile_names import object_of
from mepof.toolchain.protocol import Toolchain

# The functions that each object defines: JSON, beside the kernel.
OBJECTS = "objects.json"
_COMPILED = re.compile(r"^source_\S+ := \S+\.(?:c|rs)$", re.M)


def functions_in(build: Path) -> dict[str, list[str]]:
    """The functions of a finished build, by the paths of the objects that define them."""
    defined: dict[str, list[str]] = json.loads((build / OBJECTS).read_text(encoding="utf-8"))
    return defined


def defined_in(build: Path) -> frozenset[str]:
    """The functions of a finished build, whatever object defines them."""
    return frozenset(name for names in functions_in(build).values() for name in names)


def objects_of(build: Path, functions: Collection[str]) -> tuple[str, ...]:
    """The objects of a finished build that define one of some functions, sorted.

    Args:
        functions: names of symbols, or ``SOURCE;NAME`` for static ones, with the path of the source
            from the objects' directory.
    """
    compiled = {object_of(name.rpartition(";")[0]) for name in functions}
    symbols = frozenset(functions)
    return tuple(
        name
        for name, defined in sorted(functions_in(build).items())
        if name in compiled
        or not symbols.isdisjoint(defined)
        # A profile has the name in the source, and GCC may define nothing but a copy, `f.isra.0`.
        or not symbols.isdisjoint(symbol.partition(".")[0] for symbol in defined)
    )


def defined_functions(objects: Path, toolchain: Toolchain, arch: Arch) -> dict[str, list[str]]:
    """The functions that the objects of sources in C and Rust define, by the objects' paths."""
    compiled = []
    for command in objects.rglob(".*.o.cmd"):
        made = command.with_name(command.name[1:].removesuffix(".cmd"))
        name = made.relative_to(objects)
        # The kernel's own tools are for this machine: no nm of another architecture reads them.
        if name.parts[0] == "scripts":
            continue
        text = command.read_text(encoding="utf-8", errors="replace")
        if _COMPILED.search(text) and made.is_file():
            compiled.append(name.as_posix())
    names = objects / "mepof-objects"
    names.write_text("\n".join(compiled))
    # Its remarks on objects without symbols would appear in the middle of other lines.
    options = ("--quiet", "--defined-only", "--format=posix", "--print-file-name")
    nm = [toolchain.tool("nm", arch), *options, f"@{names.name}"]
    defined: dict[str, list[str]] = {name: [] for name in compiled}
    for line in run(nm, cwd=objects).output.splitlines():
        file, colon, symbol = line.partition(": ")
        fields = symbol.split()
        if colon and len(fields) > 1 and fields[1] in "tTwW":
            defined[file].append(fields[0])
    return defined
