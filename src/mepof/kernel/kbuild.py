"""Build a kernel: configured, verified, reproducible, and with real progress."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

from mepof.arch import Arch
from mepof.errors import InputError, WorkError
from mepof.kernel import (
    base,
    configure,
    earlier,
    integrity,
    kconfig,
    layout,
    make_command,
    modules,
    objtool,
    outside,
    overlay,
    rewriting,
    sharing,
)
from mepof.kernel.build_spec import PROFILES, BuildPaths, BuildSpec, Rewriting, with_paths
from mepof.kernel.description import BuildDescription, BuildSize, Origin
from mepof.kernel.objects import OBJECTS, defined_functions
from mepof.kernel.objtool import Warned
from mepof.kernel.source import version_of
from mepof.toolchain.protocol import Toolchain, Tools

_COMPILED = re.compile(r"^  (?:CC|AS)(?: \[M\])?  +(\S+)")
Progress = Callable[[int, int | None, str], None]

# The kernel as it was linked, and the digest of what it was rewritten to.
_LINKED = "mepof-vmlinux"
_REWRITTEN = "mepof-rewritten"


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
    begun = _begin(spec, tools, paths)
    toolchain, objects, config = tools.toolchain, paths.objects, begun.config
    make, environment, profiles = begun.make, begun.environment, begun.profiles

    def make_objects(*words: str, listener: Callable[[str], None] | None = None) -> None:
        with earlier.making(objects, kernel=words != ("prepare",)):
            make_command.start([*make, *words], environment, paths.log, tools.run, listener)

    if begun.dropped:
        text = "\n".join([*begun.dropped, ""])
        (paths.output / configure.DROPPED).write_text(text, encoding="utf-8")
    if spec.rewriting is not None:
        rewriting.check_configuration(config.splitlines(), spec.arch.name)
    chosen = (" ".join(each.cflags) for each in spec.selected if not each.layout)
    compiled = " ".join((*spec.cflags, *spec.variables.values(), *chosen))
    origin = Origin(
        source=paths.tree.name,
        config=_digest((objects / ".config").read_bytes()),
        compiler=toolchain.version_for(spec.arch),
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
        written = (make_command.SELECTED, make_command.ORDER)
        earlier.begin(as_earlier, paths.cache, paths.log, written)
    make_objects("prepare")
    with_modules = ("modules",) if kconfig.has_modules(config) else ()
    total = make_command.files_to_compile(
        (*make, "vmlinux", *with_modules),
        environment,
        paths,
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
        version=str(version_of(paths.tree)),
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
        overlays=tuple(each.name for each in overlays_of(spec, paths.tree)),
        rewritten=rewritten,
    ).write(paths.output)
    return objtool.warnings(paths.log)


def configured(spec: BuildSpec, tools: Tools, paths: BuildPaths) -> Sequence[str]:
    """Configure a kernel as a build does, and stop there.

    Returns:
        Which options of the user's did not take effect and why, a line each, where the
        specification lets them.

    Raises:
        WorkError: an option did not take effect, or needs what is not there.
    """
    return _begin(spec, tools, paths).dropped


@dataclass(frozen=True)
class _Begun:
    """A build that is configured.

    Attributes:
        make: the words that every command begins with, and their environment.
        profiles: the paths of the profiles, by the names that flags use.
        config: the text of the configuration.
        dropped: as :func:`configured` returns it.
    """

    make: Sequence[str]
    environment: Mapping[str, str | None]
    profiles: Mapping[str, str]
    config: str
    dropped: Sequence[str]


def _begin(spec: BuildSpec, tools: Tools, paths: BuildPaths) -> _Begun:
    """Lay the overlays over the tree, and configure the kernel."""
    toolchain = tools.toolchain
    version = version_of(paths.tree)
    if spec.rewriting is not None:
        rewriting.check_release(version)
    view, objects = paths.view, paths.objects
    earlier.forget_what_crashed(paths.work, view)
    if not view.exists():  # otherwise this build continues, with the same view
        overlays = overlays_of(spec, paths.tree)
        partial = paths.work / "tree.partial"
        overlay.compose(paths.tree, overlays, partial, toolchain.resource_directory())
        # The tree may have a `build` of its own, from `make O=build`, which must stay as it is.
        (partial / earlier.OBJECTS).unlink(missing_ok=True)
        partial.replace(view)
    objects.mkdir(exist_ok=True)
    earlier.forget_what_was_killed(objects)
    profiles = _copy_profiles(spec.profiles, view, objects)
    selection = make_command.selection(spec.selected, toolchain)
    lines = [selection, *sharing.unshared(paths.tree), ""]
    _replace(objects / make_command.SELECTED, with_paths("\n".join(lines), profiles))
    if spec.link_order:
        _replace(objects / make_command.ORDER, spec.link_order)
    make = [with_paths(word, profiles) for word in make_command.words(spec, toolchain, paths)]
    environment = make_command.environment(spec, toolchain, paths)

    def run_make(argv: list[str], env: Mapping[str, str] | None = None) -> None:
        make_command.start(argv, {**environment, **(env or {})}, paths.log, tools.run)

    fragments = spec.configuration()
    base.check(view, spec.arch, fragments)
    config, dropped = configure.configure(
        view,
        objects,
        fragments,
        make,
        make_command.kconfig_environment(spec, toolchain, str(version)),
        run_make,
        note_dropped=spec.note_dropped,
    )
    return _Begun(make, environment, profiles, config, dropped)


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
    selected = [(each.names(), each.cflags, *(each.but or ())) for each in spec.selected]
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
    command = make_command.words(spec, tools.toolchain, paths)
    environment = make_command.environment(spec, tools.toolchain, paths)
    argv = [with_paths(word, profiles) for word in command]
    make_command.start([*argv, *words], environment, paths.log, tools.run, what=what)


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


def _replace(path: Path, text: str) -> None:
    """Write a file, unless it already has this text."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def overlay_digest(names: tuple[str, ...]) -> str:
    """SHA-256 over the overlays and the exclusions, which are part of a build's source."""
    root = overlay.native_directory() / "overlays"
    files = [root / "exclude.toml"]
    for name in ("flags", *names):
        files += sorted(p for p in (root / name).rglob("*") if p.is_file())
    return overlay.files_digest(root, files)
