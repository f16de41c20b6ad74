"""A build with a profile for another build system: what to change in the tree, and what to add.

The tree then has what mepof gives on make's command line, so whoever calls make need not know of
it: the flags, and the profile, are in the directory :data:`DIRECTORY` of the tree, which its
makefiles include.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mepof.errors import InputError, WorkError
from mepof.kernel import kbuild, make_command, overlay
from mepof.kernel.build_spec import LEFT_OFF, PROFILES, BuildSpec, with_paths
from mepof.toolchain.protocol import Tools

#: In the tree.
DIRECTORY = "mepof"
_FLAGS, _SELECTED = f"{DIRECTORY}/flags.mk", f"{DIRECTORY}/selected.mk"

# Before the edits that read the flags. Make reads the first one twice, at first without the tree's
# path; modules that are built elsewhere do without flags.
_INCLUDED = overlay.Overlay.model_validate(
    {
        "name": "portable",
        "directory": Path("/nonexistent"),
        "title": "flags from a file of the tree",
        "edit": [
            {
                "file": "Makefile",
                "append": f"""\
ifeq ($(or $(KBUILD_EXTMOD),$(if $(srctree),,none)),)
include $(srctree)/{_FLAGS}
endif
""",
            },
            {"file": "scripts/Makefile.lib", "append": f"-include $(srctree)/{_FLAGS}"},
        ],
    }
)


@dataclass(frozen=True)
class Portable:
    """What makes a tree one that builds the kernel.

    Attributes:
        patch: what changes in it, for ``patch -p1``, with the text files that are new.
        files: what is added to it beside, by path: the flags, and the profile.
        config_lines: options that the build needs.
        anywhere: the objects may be in any directory, not only in one of the tree.
        relocated: the profile names files from the root of the tree, as the compiler is told to.
    """

    patch: bytes
    files: Mapping[str, bytes | Path]
    config_lines: tuple[str, ...]
    anywhere: bool
    relocated: bool


def portable(
    spec: BuildSpec, counts: frozenset[str], tree: Path, work: Path, tools: Tools
) -> Portable:
    """What a tree needs so that make builds what mepof builds.

    Args:
        counts: those of the profiles that are counts of functions.
        work: directory for profiles.

    Raises:
        InputError: the finished kernel is rewritten, which make does not do.
        WorkError: the overlays do not fit the tree.
    """
    if spec.rewriting is not None:
        raise InputError(
            "BOLT rewrites the finished kernel, which no build system does from source",
            "package it without its source, or use another algorithm",
        )
    files: dict[str, bytes | Path] = {}
    anywhere = True
    flags: tuple[str, ...] = ()  # the same for all profiles
    for name, path in spec.profiles.items():
        files[f"{DIRECTORY}/{name}"] = path
        if name not in counts:
            continue
        relocated = tools.toolchain.relocate(path, work / name, tools.run)
        if relocated is None:
            anywhere = False
        else:
            files[f"{DIRECTORY}/{name}"], flags = work / name, relocated
    spec = replace(spec, cflags=(*spec.cflags, *flags))
    paths = {f"{PROFILES}/{name}": f"$(srctree)/{DIRECTORY}/{name}" for name in spec.profiles}
    variables = make_command.flag_variables(spec, tools.toolchain, f"$(srctree)/{_SELECTED}")
    for file, text in {
        _FLAGS: "".join(f"{name} = {value}\n" for name, value in variables.items()),
        _SELECTED: make_command.selection(spec.selected, tools.toolchain),
    }.items():
        files[file] = with_paths(text, paths).encode()
    return Portable(
        patch="".join(_patch(spec, tree, tools)).encode(errors="surrogateescape"),
        files=files,
        config_lines=(*spec.config_lines, *LEFT_OFF),
        anywhere=anywhere,
        relocated=bool(flags),
    )


def _patch(spec: BuildSpec, tree: Path, tools: Tools) -> Iterator[str]:
    overlays = (_INCLUDED, *kbuild.overlays_of(spec, tree))
    changed, misfits = overlay.apply(tree, overlays, tools.toolchain.resource_directory())
    if misfits:
        raise WorkError(misfits[0].message, misfits[0].nearest)
    for name, content in sorted(changed.items()):
        after = content if isinstance(content, str) else overlay.read(content)
        before = overlay.read(tree / name)
        old = "/dev/null" if before is None else f"a/{name}"
        for line in difflib.unified_diff(_lines(before), _lines(after), old, f"b/{name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str | None) -> list[str]:
    # Form feeds end no line.
    return [*io.StringIO(text or "", newline="\n")]
