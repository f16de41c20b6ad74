"""Overlays: files and small edits that mepof applies to a kernel tree without changing it.

The tree itself is never written to. A *view* of it is a directory in which only what
differs is real: edited files, added files and the directories on the way to them;
everything else is a symbolic link into the tree. Kernels are built outside their source
(``make O=``), so nothing is ever written through a link.

An edit names what it changes (a macro's body, an array, the end of a file), not a line,
so that one overlay fits many kernel releases.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from pydantic import Field, model_validator

from mepof.described import Described, Named, read_described
from mepof.errors import MepofError, WorkError
from mepof.kernel.nearest import Kind, Wanted, nearest_location

_DESCRIPTION = "overlay.toml"


class Edit(Described):
    """One edit of one file.

    Exactly one of ``append`` and ``prepend`` is the text; ``in_macro``, ``in_array`` and
    ``in_function`` name the definition whose body takes it; without them it goes to the end of
    the file. An ``optional`` edit is skipped where the file or the definition does not exist.
    ``formerly`` are names of the file in other releases, for trees that do not have it.
    """

    file: str
    formerly: tuple[str, ...] = ()
    in_macro: str | None = None
    in_array: str | None = None
    in_function: str | None = None
    append: str | None = None
    prepend: str | None = None
    optional: bool = False

    @model_validator(mode="after")
    def _has_one_text(self) -> Edit:
        if (self.append is None) == (self.prepend is None):
            raise ValueError("an edit has either `append` or `prepend`")
        return self

    def wanted(self, file: str) -> Wanted:
        """What the edit looks for in a file."""
        kind: Kind = "macro" if self.in_macro else "array" if self.in_array else "function"
        return Wanted(file, kind, self.where)

    @property
    def where(self) -> str | None:
        """The definition that the edit names; None for the whole file."""
        return self.in_macro or self.in_array or self.in_function

    @property
    def text(self) -> str:
        return (self.append or self.prepend or "").strip("\n") + "\n"


class Probe(Described):
    """What tells kernels apart: whether a file of the tree exists, or has a text."""

    file: str
    text: str | None = None

    def succeeds(self, tree: Path) -> bool:
        """Whether it is in a tree."""
        if self.text is None:
            return (tree / self.file).exists()
        return self.text in (read(tree / self.file) or "")


class Overlay(Named):
    """A named overlay: its directory, its edits, and the compiler's files that it adds.

    Attributes:
        directory: holds the files that it adds, and its description.
        absent: a kernel that has it no longer needs the overlay.
        present: a kernel without it does not need the overlay yet.
        compiler_files: paths in the tree → below the compiler's resource directory.
    """

    directory: Path
    title: str
    absent: Probe | None = None
    present: Probe | None = None
    compiler_files: dict[str, str] = Field(default={})
    edits: tuple[Edit, ...] = Field(default=(), alias="edit")

    def is_for(self, tree: Path) -> bool:
        """Whether a tree needs the overlay."""
        return (self.absent is None or not self.absent.succeeds(tree)) and (
            self.present is None or self.present.succeeds(tree)
        )

    def added_files(self) -> dict[str, Path]:
        """Files that the overlay adds: path in the tree → path of the content."""
        return {
            path.relative_to(self.directory).as_posix(): path
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and path.name != _DESCRIPTION
        }


@dataclass(frozen=True)
class Misfit:
    """Why an overlay does not fit a tree: the file that changed, and the nearest location."""

    message: str
    nearest: str | None = None


def native_directory() -> Path:
    """Where our native sources are: beside ``src`` in a checkout, inside an installed package."""
    checkout = Path(__file__).resolve().parents[3] / "native"
    return checkout if checkout.is_dir() else Path(str(files("mepof"))) / "native"


def files_digest(root: Path, files: Iterable[Path]) -> str:
    """SHA-256 over the paths below a directory and the contents of files, in the given order."""
    digest = sha256()
    for path in files:
        digest.update(os.fsencode(path.relative_to(root)) + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def native_digest(*patterns: str) -> str:
    """SHA-256 over those of our native sources that patterns match, in the order of their paths."""
    root = native_directory()
    found = sorted(path for pattern in patterns for path in root.glob(pattern))
    return files_digest(root, (path for path in found if path.is_file()))


def load(name: str) -> Overlay:
    """The overlay of that name.

    Raises:
        InputError: its description cannot be read, or is wrong.
    """
    directory = native_directory() / "overlays" / name
    return read_described(
        directory / _DESCRIPTION,
        Overlay,
        "overlay",
        {"name": name, "directory": str(directory)},
    )


class Exclusion(Described):
    """A file or directory that does not take mepof's flags, and why."""

    match: str
    reason: str


class Exclusions(Described):
    """The data file: a table for each exclusion."""

    exclude: tuple[Exclusion, ...]


def exclusions() -> tuple[Exclusion, ...]:
    """Every exclusion, in the order of the data file.

    Raises:
        InputError: the file cannot be read, or is wrong.
    """
    path = native_directory() / "overlays" / "exclude.toml"
    return read_described(path, Exclusions, "exclusions").exclude


def apply_edit(text: str, edit: Edit) -> str | None:
    """The edited text; None if it does not have the definition that the edit names."""
    if edit.in_macro is not None:
        return _edit_macro(text, edit, edit.in_macro)
    if edit.in_array is not None:
        return _edit_array(text, edit, edit.in_array)
    if edit.in_function is not None:
        return _edit_function(text, edit, edit.in_function)
    if edit.append is not None:
        return text.rstrip("\n") + "\n\n" + edit.text
    return edit.text + text


def _edit_macro(text: str, edit: Edit, macro: str) -> str | None:
    found = re.search(rf"^#define[ \t]+{re.escape(macro)}\b[^\n]*(?:(?<=\\)\n[^\n]*)*", text, re.M)
    if found is None:
        return None
    lines = found.group(0).split("\n")
    added = [f"\t{line}\t\\" for line in edit.text.splitlines()]
    if edit.prepend is not None:
        # The body may begin on the line of the name, after the parameters.
        name = re.match(rf"#define[ \t]+{re.escape(macro)}(?:\([^)\n]*\))?", lines[0])
        assert name is not None
        first = lines[0][name.end() :].strip()
        rest = [*([f"\t{first}"] if first not in ("", "\\") else []), *lines[1:]]
        if not rest:
            added[-1] = added[-1].removesuffix("\\").rstrip()
        body = [name.group(0) + " \\", *added, *rest]
    else:
        last = lines[-1].rstrip()
        lines[-1] = last if last.endswith("\\") else last + " \\"
        added[-1] = added[-1].removesuffix("\\").rstrip()
        body = [*lines, *added]
        if last.endswith("\\"):  # the body ended in an empty continuation
            body.append("")
    return text[: found.start()] + "\n".join(body) + text[found.end() :]


def _edit_array(text: str, edit: Edit, array: str) -> str | None:
    found = re.search(rf"\b{re.escape(array)}\[\]\s*=\s*\{{\n", text)
    if found is None:
        return None
    if edit.append is not None:
        end = text.find("\n}", found.end())
        if end < 0:
            return None
        return text[: end + 1] + edit.text + text[end + 1 :]
    return text[: found.end()] + edit.text + text[found.end() :]


def _edit_function(text: str, edit: Edit, function: str) -> str | None:
    """Edit a function in the kernel's style: its braces stand alone in the first column."""
    found = re.search(rf"^\w[^\n;]*\b{re.escape(function)}\([^;{{]*\)\n\{{\n", text, re.M)
    end = text.find("\n}\n", found.end()) if found is not None else -1
    if found is None or end < 0:
        return None
    at = end + 1 if edit.append is not None else found.end()
    return text[:at] + edit.text + text[at:]


def compose(
    tree: Path, overlays: tuple[Overlay, ...], view: Path, resource_directory: Path | None
) -> None:
    """Make ``view`` a view of ``tree`` with the overlays laid over it.

    Args:
        tree: the kernel source; only read.
        view: directory to make; replaced if it exists.
        resource_directory: the compiler's, for overlays that add files from it.

    Raises:
        WorkError: an edit finds nothing to edit in this tree, or a file would be replaced.
    """
    real, misfits = apply(tree, overlays, resource_directory)
    if misfits:
        raise WorkError(misfits[0].message, misfits[0].nearest)
    if view.exists():
        shutil.rmtree(view)
    _link_directory(tree, view, real)


def apply(
    tree: Path, overlays: tuple[Overlay, ...], resource_directory: Path | None
) -> tuple[dict[str, str | Path], tuple[Misfit, ...]]:
    """Lay overlays over a tree in memory.

    Returns:
        what differs from the tree, by path: a text, or the file that has the content; and what
        does not fit.

    Raises:
        MepofError: a file of the compiler is missing.
    """
    real: dict[str, str | Path] = {}
    misfits: list[Misfit] = []
    for overlay in overlays:
        for name, content in overlay.added_files().items():
            real[name] = content
        for name, source in overlay.compiler_files.items():
            if resource_directory is None:
                misfits.append(
                    Misfit(
                        f"overlay `{overlay.name}` needs files of the compiler, "
                        "which this toolchain does not have"
                    )
                )
                continue
            path = resource_directory / source
            if not path.is_file():
                raise MepofError(
                    f"{path} is missing, which overlay `{overlay.name}` needs",
                    "install the compiler's runtime headers: run `mepof doctor`",
                )
            real[name] = path
    misfits += [
        Misfit(f"{tree} already has a {name}, which an overlay would replace")
        for name in real
        if (tree / name).exists()
    ]
    for overlay in overlays:
        for edit in overlay.edits:
            names = (edit.file, *edit.formerly)
            name = next((n for n in names if n in real or (tree / n).exists()), edit.file)
            before = real.get(name, tree / name)
            text = before if isinstance(before, str) else read(before)
            after = None if text is None else apply_edit(text, edit)
            if after is not None:
                real[name] = after
            elif not edit.optional:
                wrong = f"no {edit.where} in {name}" if text is not None else f"no {name}"
                message = f"overlay `{overlay.name}` does not fit this tree: {wrong}"
                misfits.append(Misfit(message, nearest_location(tree, edit.wanted(name), text)))
    return real, tuple(misfits)


def read(path: Path) -> str | None:
    """The text of a file; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None


def _link_directory(tree: Path, view: Path, real: dict[str, str | Path]) -> None:
    """Make one directory of the view, and those below it that hold something other than links."""
    here = {name: content for name, content in real.items() if "/" not in name}
    below: dict[str, dict[str, str | Path]] = {}
    for name, content in real.items():
        first, slash, rest = name.partition("/")
        if slash:
            below.setdefault(first, {})[rest] = content
    view.mkdir(parents=True)
    if tree.is_dir():
        for entry in os.scandir(tree):
            if entry.name not in here and entry.name not in below and entry.name != ".git":
                (view / entry.name).symlink_to(entry.path)
    for name, content in here.items():
        if isinstance(content, Path):
            shutil.copyfile(content, view / name)
            shutil.copymode(content, view / name)
        else:
            (view / name).write_text(content, encoding="utf-8", errors="surrogateescape")
            if (tree / name).exists():
                shutil.copymode(tree / name, view / name)
    for name, inner in below.items():
        _link_directory(tree / name, view / name, inner)
