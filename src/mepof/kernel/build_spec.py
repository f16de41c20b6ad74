"""What a build of a kernel is asked for, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mepof.arch import Arch
from mepof.kernel import earlier, kconfig
from mepof.kernel.description import Origin, SelectedFlags

# What a kernel's own makefiles would do about profiles, by flags that ours do not go with.
LEFT_OFF = ("# CONFIG_AUTOFDO_CLANG is not set", "# CONFIG_PROPELLER_CLANG is not set")
# What flags and variables call the directory of profiles: `PROFILES/NAME`.
PROFILES = "mepof-profiles"


@dataclass(frozen=True)
class FileFlags:
    """Compiler flags for some files.

    Attributes:
        objects: paths of their objects in the tree, ``fs/open.o``, or a file of such lines; all
            objects where that file does not exist.
        layout: they only lay out code, or keep a profile from a file: a build without them has the
            same blocks.
        but: objects that do not get them, also by patterns of make; None where those that opt out
            get flags against them instead (``BuildAddition.opt_out``).
    """

    objects: tuple[str, ...] | Path
    cflags: tuple[str, ...]
    layout: bool = False
    # Not in fingerprints: what opts out is a parameter of the step, or is found by it.
    but: tuple[str, ...] | None = field(default=None, repr=False)

    def except_for(self, objects: tuple[str, ...]) -> FileFlags:
        """Those that further objects do not get, if that is how they opt out."""
        return self if self.but is None else replace(self, but=(*self.but, *objects))

    def names(self) -> Sequence[str]:
        """The objects' paths, or make's pattern of all."""
        if not isinstance(self.objects, Path):
            return self.objects
        if not self.objects.exists():
            return ("%",)
        return self.objects.read_text(encoding="utf-8").split()

    def described(self) -> SelectedFlags:
        """What the build says about them."""
        names = self.names()
        return SelectedFlags(objects=None if "%" in names else len(names), cflags=self.cflags)


@dataclass(frozen=True)
class Rewriting:
    """How the finished kernel is rewritten.

    Attributes:
        counts: BOLT's profile of the kernel; None for the build that is profiled, which must be one
            that can be rewritten.
        files: objects whose functions are left alone.
        functions: names of further functions that are left alone.
    """

    counts: Path | None
    files: tuple[str, ...] = ()
    functions: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BuildSpec:
    """What is built, apart from the tree itself.

    Attributes:
        fragments: files of Kconfig lines, later ones winning.
        note_dropped: list options of the user's files that do not take effect in the output, in
            the file :data:`mepof.kernel.configure.DROPPED`, instead of refusing them.
        config_lines: further Kconfig lines, which win over the fragments'.
        cflags: flags for every file that can take them (all but the exclusions).
        ldflags: flags for the linker.
        link_order: the text of a linker script that comes before the kernel's own, where the
            compiler links; an empty string if there is none.
        variables: for make's command line.
        overlays: laid over the tree beside ``flags``, which is always there.
        selected: flags for single files, after all others.
        profiles: files, by name; flags and variables call them ``PROFILES/NAME``.
        same_as: the origin (of ``build.json``) of the build that this one must be equal to, except
            for layout.
        suffix: what is added to the release name.
        share: take objects that another build compiled in the same way, and leave it these.
        rewriting: of the finished kernel.
    """

    arch: Arch
    fragments: tuple[Path, ...]
    note_dropped: bool = False
    config_lines: tuple[str, ...] = ()
    cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    link_order: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    overlays: tuple[str, ...] = ()
    selected: tuple[FileFlags, ...] = ()
    profiles: Mapping[str, Path] = field(default_factory=dict)
    same_as: Origin | None = None
    share: bool = True
    suffix: str = ""
    rewriting: Rewriting | None = None

    def configuration(self) -> kconfig.Fragments:
        """Its Kconfig lines, and what is always left off."""
        return kconfig.merge(self.fragments, (*self.config_lines, *LEFT_OFF))


@dataclass(frozen=True)
class BuildPaths:
    """The paths of a build: the source tree (only read), scratch, output, log and cache."""

    tree: Path
    work: Path
    output: Path
    log: Path
    cache: Path

    @property
    def view(self) -> Path:
        """The tree with the overlays."""
        return self.work / "tree"

    @property
    def objects(self) -> Path:
        """Where make runs.

        With the objects inside the source, kbuild calls the source `..`: no command line of Clang
        has a path of this machine, so ccache and DWARF see none.
        """
        return self.view / earlier.OBJECTS


def with_paths(text: str, paths: Mapping[str, str]) -> str:
    """A text with paths in place of the names by which flags and variables call profiles."""
    for name, path in paths.items():
        text = text.replace(name, path)
    return text
