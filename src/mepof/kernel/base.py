"""What a configuration is laid over: targets of Kbuild, and the files of a tree behind them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from mepof.arch import Arch
from mepof.errors import InputError
from mepof.kernel.kconfig import Fragments, stated_in

# What Kbuild's makefiles call targets that configure, and the lines in which such names are none:
# recipes, comments, help, and the choice of a file by the target `defconfig`.
_TARGET = re.compile(r"(?<![\w.%-])[a-z0-9]\w*config\b")
_NO_TARGETS = re.compile(r"^(?:\t|\s*#|.*\becho\b|\s*KBUILD_DEFCONFIG\b).*$", re.M)
# What Kconfig reads besides: not `osource`, which may be missing.
_INCLUDED = re.compile(r'^\s*source\s+"([^"]+)"', re.M)
_DEFAULT = re.compile(r"^\s*KBUILD_DEFCONFIG\s*[:?]?=\s*(\S+)", re.M)


def check(tree: Path, arch: Arch, fragments: Fragments) -> None:
    """Refuse a base that a tree does not have: make says only that its ``.config`` is missing.

    Raises:
        InputError: the message names the base, its file and line, and the nearest one; or what
            the tree lacks of its Kconfig files.
    """
    _check_included(tree, arch)
    makefiles = _makefiles(tree, arch)
    targets = {*_TARGET.findall(_NO_TARGETS.sub("", makefiles))} - {"defconfig"}
    for wanted in fragments.base.split():
        names = _names(wanted, makefiles, arch)
        if not names or any(n in targets or _files(n, tree, arch) for n in names):
            continue
        configs, *others = _directories(tree, arch)
        files = {
            path.relative_to(each).as_posix()
            for each in (configs, *others)
            for path in each.rglob("*config")
        }
        shown = configs.relative_to(tree)
        message, known = f"the kernel has no configuration `{wanted}`", files | targets
        if wanted == "defconfig":
            # Targets with a name like it, such as `olddefconfig`, need a configuration themselves.
            message, known = f"{message}: no {shown}/{' or '.join(names)}", files
        near = get_close_matches(wanted, sorted(known), n=1)
        remedy = f"the nearest is `{near[0]}`" if near else f"see {shown} in the tree"
        if not fragments.base_origin:
            raise InputError(message, f"name another one by a line `# base: NAME`; {remedy}")
        raise InputError(f"{fragments.base_origin}: {message}", remedy)


def _check_included(tree: Path, arch: Arch) -> None:
    """Refuse a tree of which a part is missing, as of a sparse checkout.

    Raises:
        InputError: a Kconfig file reads one that is not there.
    """
    pending, seen = ["Kconfig"], set[str]()
    while pending:
        name = pending.pop()
        seen.add(name)
        file = tree / name
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        for each in _INCLUDED.findall(text):
            included = _with_arch(each, arch)
            if "$" in included or included in seen:
                continue
            if not (tree / included).is_file():
                raise InputError(
                    f"the tree is not complete: {name} reads {included}, which is not there",
                    "complete a sparse checkout by `git sparse-checkout disable`; restore what a "
                    "link leads to, or a submodule",
                )
            pending.append(included)


def _with_arch(path: str, arch: Arch) -> str:
    """A path with the variables that Kbuild sets for an architecture."""
    for name, value in (("SRCARCH", arch.source), ("HEADER_ARCH", "x86")):
        path = re.sub(rf"\$(?:\({name}\)|\{{{name}\}}|{name}\b)", value, path)
    return path


def values(tree: Path, arch: Arch, fragments: Fragments) -> Mapping[str, str] | None:
    """The values of options that fragments and the tree's files below them state; None if they lie
    over a target that only make knows."""
    below: list[Path] = []
    if fragments.base not in ("allnoconfig", "alldefconfig"):
        makefiles = _makefiles(tree, arch)
        for wanted in fragments.base.split():
            names = _names(wanted, makefiles, arch)
            files = next((found for n in names if (found := _files(n, tree, arch))), None)
            if files is None:
                return None
            below += files
    own = fragments.values()
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in below)
    return dict(each for text in texts for each in stated_in(text)) | own


def _makefiles(tree: Path, arch: Arch) -> str:
    """The makefiles with targets that configure, each line in one."""
    paths = (tree / "scripts/kconfig/Makefile", tree / "arch" / arch.source / "Makefile")
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in paths if path.is_file())
    return "".join(text.replace("\\\n", " ") for text in texts)


def _directories(tree: Path, arch: Arch) -> tuple[Path, Path]:
    return tree / "arch" / arch.source / "configs", tree / "kernel/configs"


def _files(name: str, tree: Path, arch: Arch) -> list[Path]:
    """The files that a target lays over each other."""
    return [each / name for each in _directories(tree, arch) if (each / name).is_file()]


def _names(wanted: str, makefiles: str, arch: Arch) -> tuple[str, ...]:
    """The targets that one stands for, of which make takes one; none where only make can say."""
    if wanted != "defconfig":
        return (wanted,)
    given = {each.replace("$(ARCH)", arch.make) for each in _DEFAULT.findall(makefiles)}
    own = f"{arch.make}_defconfig"
    if own in given:
        return (own,)
    return tuple(sorted(each for each in given if "$" not in each)) if given else (wanted,)
