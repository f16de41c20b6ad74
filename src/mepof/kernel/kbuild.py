"""Build a kernel: configured, verified, reproducible, and with real progress."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import file_digest, sha256
from pathlib import Path

from mepof.arch import Arch
from mepof.errors import InputError, WorkError
from mepof.kernel import (
    base,
    companions,
    configure,
    earlier,
    integrity,
    kconfig,
    layout,
    modules,
    objtool,
    outside,
    overlay,
    rewriting,
    sharing,
)
from mepof.kernel.description import BuildDescription, BuildSize, Origin, SelectedFlags
from mepof.kernel.objects import OBJECTS, defined_functions
from mepof.kernel.objtool import Warned
from mepof.kernel.source import version_of
from mepof.process import run
from mepof.toolchain.protocol import Run, Toolchain, Tools

# If the environment set one of these, a build would not be reproducible.
_FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "mepof",
    "KBUILD_BUILD_HOST": "mepof",
    "KBUILD_BUILD_VERSION": "1",
}
_COMPILED = re.compile(r"^  (?:CC|AS)(?: \[M\])?  +(\S+)")
_WOULD_COMPILE = re.compile(r"echo '  (?:CC|AS)(?: \[M\])?  +")
_COMPLAINT = re.compile(r"error:|undefined symbol|: not found$|syntax error|can't open file")
_MAKE_COMPLAINT = re.compile(r"\*\*\* ")

# Kbuild would take these from the caller's environment, which no fingerprint covers.
_CALLERS = (
    "CROSS_COMPILE",
    "HOSTCFLAGS",
    "HOSTLDFLAGS",
    "KCPPFLAGS",
    "LLVM",
    "LLVM_IAS",
    "LOCALVERSION",
    "USERCFLAGS",
    "USERLDFLAGS",
)
Progress = Callable[[int, int | None, str], None]

# What a kernel's own makefiles would do about profiles, by flags that ours do not go with.
LEFT_OFF = ("# CONFIG_AUTOFDO_CLANG is not set", "# CONFIG_PROPELLER_CLANG is not set")
# What flags and variables call the directory of profiles: `PROFILES/NAME`.
PROFILES = "mepof-profiles"
# In the objects' directory, where the compiler runs.
_SELECTED = "mepof-selected.mk"
_ORDER = "mepof-order.ld"
# The kernel as it was linked, and the digest of what it was rewritten to.
_LINKED = "mepof-vmlinux"
_REWRITTEN = "mepof-rewritten"


@dataclass(frozen=True)
class FileFlags:
    """Compiler flags for some files.

    Attributes:
        objects: paths of their objects in the tree, ``fs/open.o``, or a file of such lines; all
            objects where that file does not exist.
        layout: they only lay out code, or keep a profile from a file: a build without them has the
            same blocks.
    """

    objects: tuple[str, ...] | Path
    cflags: tuple[str, ...]
    layout: bool = False

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
        link_order: a linker script that comes before the kernel's own, where the compiler links;
            empty for none.
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


def build(
    spec: BuildSpec,
    tools: Tools,
    paths: BuildPaths,
    cores: int,
    progress: Progress,
) -> frozenset[Warned]:
    """Build one kernel and fill ``paths.output``.

    The output holds ``kernel`` (the bootable image), ``vmlinux``, ``System.map``,
    ``config`` and ``build.json`` (version, sections, sizes, flags), and where modules are built,
    these and ``modules.json`` (:mod:`mepof.kernel.modules`). An interrupted build continues in the
    same ``work`` directory.

    Args:
        tools: what they print goes to the log.
        progress: is called with files compiled, files to compile and the current file.

    Returns:
        Objtool's warnings, as the log has them for this directory.

    Raises:
        WorkError: the configuration, a compilation, the link or the layout check failed.
    """
    toolchain = tools.toolchain
    version = version_of(paths.tree)
    if spec.rewriting is not None:
        rewriting.check_release(version)
    view, objects = paths.view, paths.objects
    overlays = overlays_of(spec, paths.tree)
    earlier.forget_what_crashed(paths.work, view)
    if not view.exists():  # otherwise this build continues, with the same view
        partial = paths.work / "tree.partial"
        overlay.compose(paths.tree, overlays, partial, toolchain.resource_directory())
        # The tree may have a `build` of its own, from `make O=build`, which must stay as it is.
        (partial / earlier.OBJECTS).unlink(missing_ok=True)
        partial.replace(view)
    objects.mkdir(exist_ok=True)
    earlier.forget_what_was_killed(objects)
    profiles = _copy_profiles(spec.profiles, view, objects)
    selection = [selection_of(spec.selected, toolchain), *sharing.unshared(paths.tree), ""]
    _replace(objects / _SELECTED, with_paths("\n".join(selection), profiles))
    if spec.link_order:
        _replace(objects / _ORDER, spec.link_order)
    make = [with_paths(word, profiles) for word in _make_command(spec, toolchain, paths)]
    environment = _environment(spec, toolchain, paths)

    def run_make(argv: list[str], env: Mapping[str, str] | None = None) -> None:
        _make(argv, {**environment, **(env or {})}, paths.log, tools.run)

    def make_objects(*words: str, listener: Callable[[str], None] | None = None) -> None:
        with earlier.making(objects, kernel=words != ("prepare",)):
            _make([*make, *words], environment, paths.log, tools.run, listener)

    fragments = _fragments(spec)
    base.check(view, spec.arch, fragments)
    config, dropped = configure.configure(
        view,
        objects,
        fragments,
        make,
        _kconfig_environment(spec, toolchain, str(version)),
        run_make,
        note_dropped=spec.note_dropped,
    )
    if dropped:
        text = "\n".join([*dropped, ""])
        (paths.output / configure.DROPPED).write_text(text, encoding="utf-8")
    if spec.rewriting is not None:
        rewriting.check_configuration(config.splitlines(), spec.arch.name)
    chosen = (" ".join(each.cflags) for each in spec.selected if not each.layout)
    compiled = " ".join((*spec.cflags, *spec.variables.values(), *chosen))
    origin = Origin(
        source=paths.tree.name,
        config=_digest((objects / ".config").read_bytes()),
        compiler=toolchain.version,
        flags=_digest(with_paths(compiled, profiles).encode()),
    )
    if spec.same_as is not None and spec.same_as != origin:
        differ = ", ".join(spec.same_as.differences(origin))
        raise InputError(
            f"the profile belongs to another build, with different {differ}",
            "it fits only the exact build that was profiled",
        )
    if spec.share:
        as_earlier = _as_earlier(spec, toolchain, paths)
        earlier.begin(as_earlier, paths.cache, paths.log, (_SELECTED, _ORDER))
    make_objects("prepare")
    with_modules = ("modules",) if kconfig.has_modules(config) else ()
    total = _files_to_compile(
        (*make, "vmlinux", *with_modules),
        environment,
        paths,
        objects,
        f"{config}\n{spec.overlays}",
    )
    done = 0

    def count(line: str) -> None:
        nonlocal done
        if found := _COMPILED.match(line):
            done += 1
            progress(done, max(total, done) if total else None, found.group(1))

    image = (spec.arch.target,)
    if spec.rewriting is None or spec.rewriting.counts is None:
        make_objects(f"-j{cores}", *image, *with_modules, listener=count)
        defined, rewritten = defined_functions(objects, toolchain, spec.arch), None
        if spec.rewriting is not None:
            rewriting.check_kernel(objects / "vmlinux")
    else:
        vmlinux = ("vmlinux", *with_modules)
        make_objects(f"-j{cores}", *vmlinux, listener=count)
        defined = defined_functions(objects, toolchain, spec.arch)
        rewritten = _rewrite(spec.rewriting, objects, defined, tools, spec.arch)
        make_objects(f"-j{cores}", *image, listener=count)

    made = layout.read(objects / "vmlinux")
    freed = layout.faults(made) if spec.arch.frees_init else ()
    sorts_at_boot = "CONFIG_BUILDTIME_TABLE_SORT=y" not in config.splitlines()
    faults = [*freed, *integrity.faults(objects / "vmlinux", sorts_at_boot=sorts_at_boot)]
    if faults:
        raise _not_sound("the linked kernel would not boot", faults, paths.log)
    for name, path in {
        "kernel": objects / spec.arch.image,
        "vmlinux": objects / "vmlinux",
        "System.map": objects / "System.map",
        "config": objects / ".config",
    }.items():
        shutil.copy2(path, paths.output / name)
    if with_modules and (wrong := modules.collect(objects, paths.output)):
        raise _not_sound("a module would not work", wrong, paths.log)
    (paths.output / OBJECTS).write_text(json.dumps(defined, sort_keys=True) + "\n")
    BuildDescription(
        version=str(version),
        origin=origin,
        arch=spec.arch.name,
        size_bytes=BuildSize(
            text=made.text_bytes(), image=(objects / spec.arch.image).stat().st_size
        ),
        sections={s.name: s.size for s in made.sections},
        cflags=spec.cflags,
        selected=tuple(each.described() for each in spec.selected if each.names()),
        ldflags=spec.ldflags,
        variables=dict(spec.variables),
        config_lines=spec.config_lines,
        overlays=tuple(o.name for o in overlays),
        rewritten=rewritten,
    ).write(paths.output)
    return objtool.warnings(paths.log)


def overlays_of(spec: BuildSpec, tree: Path) -> tuple[overlay.Overlay, ...]:
    """The overlays that a tree needs for a build."""
    # Flags come last: they win over those of other overlays, and of the kernel.
    named = (overlay.load(name) for name in (*spec.overlays, "flags"))
    return tuple(each for each in named if each.is_for(tree))


def keep(spec: BuildSpec, toolchain: Toolchain, paths: BuildPaths) -> None:
    """Keep the objects of a finished build for others; its directory cannot be used any more.

    A kernel with a profile is not kept: the next one has another profile, and nothing more in
    common with it than with the plain one. Nor is one that was rewritten after its link.
    """
    if spec.share and not spec.profiles and spec.rewriting is None:
        earlier.keep(_as_earlier(spec, toolchain, paths), paths.cache, paths.log)


def _as_earlier(spec: BuildSpec, toolchain: Toolchain, paths: BuildPaths) -> earlier.Build:
    """What a build is to another that could begin with its objects."""
    config = (paths.objects / ".config").read_text(encoding="utf-8")
    held = outside.digest(outside.named_in(config))
    family = (
        *(paths.tree.name, spec.arch.name, sorted(toolchain.identity(spec.arch).items())),
        *(_digest(config.encode()), earlier.BOOT.read_text()),
        *(() if held is None else (held,)),
    )
    laid = {each.name: overlay_digest((each.name,)) for each in overlays_of(spec, paths.tree)}
    selected = [(each.names(), each.cflags) for each in spec.selected]
    flags = (spec.cflags, spec.ldflags, spec.variables, selected)
    return earlier.Build(
        family=_digest(repr(family).encode()),
        overlays=dict(sorted(laid.items())),
        flags=_digest(repr(flags).encode()),
        view=str(paths.view),
    )


def make(spec: BuildSpec, tools: Tools, paths: BuildPaths, what: str, *words: str) -> None:
    """Make something else where a kernel was built.

    Args:
        what: the words make, for an error.

    Raises:
        WorkError: it cannot be made.
    """
    profiles = _copy_profiles(spec.profiles, paths.view, paths.objects)
    command = _make_command(spec, tools.toolchain, paths)
    environment = _environment(spec, tools.toolchain, paths)
    argv = [with_paths(word, profiles) for word in command]
    _make([*argv, *words], environment, paths.log, tools.run, what=what)


def _rewrite(
    asked: Rewriting,
    objects: Path,
    defined: Mapping[str, Sequence[str]],
    tools: Tools,
    arch: Arch,
) -> rewriting.Rewritten | None:
    """Rewrite the linked kernel, which is kept: another attempt begins with it again."""
    vmlinux, linked, done = (objects / name for name in ("vmlinux", _LINKED, _REWRITTEN))
    with vmlinux.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    if not done.is_file() or done.read_text() != digest:
        shutil.copy2(vmlinux, linked)
    left_alone = frozenset(asked.files)
    candidates = frozenset(
        name
        for file, names in defined.items()
        if file not in left_alone and "%" not in left_alone
        for name in names
        if name not in asked.functions
    )
    new, result = objects / "mepof-vmlinux.new", None
    shutil.copy2(linked, new)
    if candidates:
        assert asked.counts is not None
        program = tools.toolchain.tool("rewriter", arch)
        result = rewriting.rewrite(
            program, linked, asked.counts, candidates, new, objects, tools.run
        )
    with new.open("rb") as file:
        done.write_text(file_digest(file, "sha256").hexdigest())
    new.touch()  # what is made from the kernel must be rebuilt
    new.replace(vmlinux)
    return result


def _not_sound(what: str, faults: Sequence[str], log: Path) -> WorkError:
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return WorkError(f"{what}: {faults[0]}{more}", f"see {log}")


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _copy_profiles(profiles: Mapping[str, Path], view: Path, objects: Path) -> dict[str, str]:
    """Copy profiles to where the compiler finds them; the paths, by the names that flags use.

    A path names the contents: ccache reads only some of the files that options name, and must
    not confuse objects that were built with different profiles.
    """
    paths = {}
    for name, path in profiles.items():
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        copy = view / PROFILES / digest[:16] / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        paths[f"{PROFILES}/{name}"] = os.path.relpath(copy, objects)
    return paths


def with_paths(text: str, paths: Mapping[str, str]) -> str:
    """A text with paths in place of the names by which flags and variables call profiles."""
    for name, path in paths.items():
        text = text.replace(name, path)
    return text


def selection_of(selected: Sequence[FileFlags], toolchain: Toolchain) -> str:
    """A makefile that defines ``mepof-selected``, the flags of an object, given its path; and those
    of one in Rust."""
    lines = [
        f"mepof-objects-{number} := {' '.join(each.names())}"
        for number, each in enumerate(selected)
    ]

    def chosen(flags: Iterable[Sequence[str]]) -> str:
        return " ".join(
            f"$(if $(filter $(mepof-objects-{number}),$1),{' '.join(words)})"
            for number, words in enumerate(flags)
        )

    flags = [each.cflags for each in selected]
    lines += [
        f"mepof-selected = {chosen(flags)}",
        f"mepof-selected-rust = {chosen(map(toolchain.rust, flags))}",
    ]
    return "\n".join([*lines, ""])


def _replace(path: Path, text: str) -> None:
    """Write a file, unless it already has this text."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _fragments(spec: BuildSpec) -> kconfig.Fragments:
    return kconfig.merge(spec.fragments, (*spec.config_lines, *LEFT_OFF))


def flag_variables(spec: BuildSpec, toolchain: Toolchain, selected: str) -> dict[str, str]:
    """Make's variables that the overlays read.

    Args:
        selected: the path of :func:`selection_of`.
    """
    return {
        "MEPOF_CFLAGS": " ".join(spec.cflags),
        "MEPOF_RUSTFLAGS": " ".join(toolchain.rust(spec.cflags)),
        "MEPOF_LDFLAGS": " ".join(spec.ldflags),
        "MEPOF_SELECTED": selected,
        **spec.variables,
        "MEPOF_EXCLUDE": " ".join(e.match for e in overlay.exclusions()),
    }


def _make_command(spec: BuildSpec, toolchain: Toolchain, paths: BuildPaths) -> list[str]:
    debug = " ".join(toolchain.flags("debug-directory", directory="build"))
    kept: tuple[str, ...] = ()
    if spec.share:
        kept = sharing.keep_linked(toolchain, spec.config_lines, spec.ldflags, paths.cache)
    variables = {
        "ARCH": spec.arch.make,
        "CC": toolchain.tool("compiler", spec.arch),
        "HOSTCC": toolchain.tool("compiler"),
        **toolchain.make_variables(spec.arch),
        **_FIXED,
        **companions.variables(_fragments(spec)),
        # Not in the configuration, which every object depends on.
        **({"LOCALVERSION": spec.suffix} if spec.suffix else {}),
        "KCFLAGS": debug,
        "KAFLAGS": debug,
        **flag_variables(replace(spec, ldflags=(*spec.ldflags, *kept)), toolchain, _SELECTED),
        **({"MEPOF_LINK": f"-Wl,--script={_ORDER}"} if spec.link_order else {}),
    }
    if sharing.has_ccache():
        # rustc starts the host's compiler by its name alone, to link.
        variables["HOSTCC"] = f"$(if $(CONFIG_RUST),,ccache ){variables['HOSTCC']}"
        variables["CC"] = f"ccache {variables['CC']}"
    words = (f"{k}={v}" for k, v in variables.items())
    return ["make", "-C", str(paths.view), f"O={paths.objects}", *words]


def _environment(spec: BuildSpec, toolchain: Toolchain, paths: BuildPaths) -> dict[str, str | None]:
    """Independent of the caller's job server, locale, flags and settings of ccache."""
    return {
        **dict.fromkeys(_CALLERS, ""),
        "KCONFIG_CONFIG": ".config",
        "MAKEFLAGS": "",
        "MFLAGS": "",
        "MAKELEVEL": "0",
        "LC_ALL": "C",
        **sharing.environment(toolchain, spec.arch, paths.cache, paths.work, share=spec.share),
    }


def _kconfig_environment(spec: BuildSpec, toolchain: Toolchain, version: str) -> dict[str, str]:
    """What kbuild's top Makefile exports for Kconfig's macros."""
    return {
        "ARCH": spec.arch.make,
        "SRCARCH": spec.arch.source,
        "HEADER_ARCH": "x86",  # exported by the Makefile of `um`: its host's
        "KERNELVERSION": version,
        **toolchain.kconfig_environment(spec.arch),
        **companions.variables(_fragments(spec)),
        "RUSTC_VERSION_TEXT": "",
    }


def _files_to_compile(
    make: Sequence[str],
    environment: Mapping[str, str | None],
    paths: BuildPaths,
    objects: Path,
    identity: str,
) -> int | None:
    """How many files a make command compiles, according to make (``-n``: it runs nothing).

    That takes several seconds, so the answer is kept for the same tree and ``identity``.
    """
    if not any(objects.glob("*/built-in.a")):
        key = sha256(f"{paths.tree}\n{identity}".encode()).hexdigest()[:32]
        kept = paths.cache / "files-to-compile" / key
        # It may be missing or cut off: the write is not worth a rename.
        with suppress(OSError, ValueError):
            return int(kept.read_text())
    else:
        kept = None  # a build that continues: what is left is less than the whole
    answer = run([*make, "--dry-run"], env=environment, check=False)
    total = sum(1 for line in answer.output.splitlines() if _WOULD_COMPILE.search(line))
    if kept is not None and total:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(str(total))
    return total or None


def _make(
    argv: list[str],
    environment: Mapping[str, str | None],
    log: Path,
    run: Run,
    listener: Callable[[str], None] | None = None,
    what: str = "the kernel",
) -> None:
    """Run make; its error is a tool's first complaint, with the object, otherwise make's own."""
    result = run(argv, env=environment, on_line=listener, check=False)
    if result.status != 0:
        lines = [line.strip() for line in result.output.splitlines()]
        tool, make = (
            next((line for line in lines if wanted.search(line)), None)
            for wanted in (_COMPLAINT, _MAKE_COMPLAINT)
        )
        why = tool or make or f"make ended with status {result.status}"
        if tool and make and make.partition("]")[0].endswith(".o"):
            why += f"; {make}"
        raise WorkError(f"{what} did not build: {why}", f"see {log}")


def overlay_digest(names: tuple[str, ...]) -> str:
    """SHA-256 over the overlays and the exclusions, which are part of a build's source."""
    root = overlay.native_directory() / "overlays"
    files = [root / "exclude.toml"]
    for name in ("flags", *names):
        files += sorted(p for p in (root / name).rglob("*") if p.is_file())
    return overlay.files_digest(root, files)
