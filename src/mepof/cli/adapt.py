"""``mepof adapt``: another kernel, before it is built."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mepof import arch as architectures
from mepof.adapter.configured import configured
from mepof.adapter.fit import Fit, Reason, check_fit
from mepof.adapter.judge import foreign, judge, objects_that_ran, sampled_functions
from mepof.algorithm.protocol import ALGORITHMS
from mepof.bootimg.compression import decompress, recognise
from mepof.bootimg.mistaken import mistaken
from mepof.cli.application import Commands
from mepof.cli.output import Json, print_json, warn
from mepof.cli.run import StoreRoot, local
from mepof.errors import InputError, WorkError, listed
from mepof.g4.settings import config as read_config
from mepof.g4.settings import dropping
from mepof.kernel.kconfig import MANY
from mepof.kernel.loading import Foreign, faults, read_kernel, read_module
from mepof.kernel.source import check_kernel
from mepof.plan.interrupt import ended_by_sigterm
from mepof.plan.model import HostInput, Input, Plan
from mepof.plan.preflight import unreadable
from mepof.source.protocol import source_of
from mepof.spec.kernel_source import KernelSource
from mepof.toolchain.named import DEFAULT, select

_MODULE = re.compile(r"\.ko(\.(gz|xz|zst))?$")
_ELF = b"\x7fELF"
# Symbols that are named for all modules together.
_MOST = 5
_NAMED = 3

app = Commands(help="Check whether mepof, a profile or modules fit another kernel.")


# A group of one command would stand for it.
@app.callback()
def _group() -> None:
    """Check whether mepof, a profile or modules fit another kernel."""


@app.command("check")
def check(
    source: Annotated[
        str,
        typer.Argument(
            help="A directory, or any other source that a program can name: git+URL#tag=…, "
            "debian:linux-source-6.12, a tarball.",
            metavar="SOURCE",
        ),
    ],
    arch: Annotated[str, typer.Option(help="Architecture.", metavar="NAME")] = (
        architectures.DEFAULT
    ),
    toolchain: Annotated[str, typer.Option(help="Toolchain.", metavar="NAME")] = DEFAULT,
    config: Annotated[
        str,
        typer.Option(
            help="Configuration, by name or path; several joined by `+`.", metavar="CONFIG"
        ),
    ] = "slim",
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            help="Algorithm, or several joined by `+`; repeat it for more.  [default: all]",
            metavar="NAME",
        ),
    ] = None,
    dropped: Annotated[
        str,
        typer.Option(
            help="Options of your own files that the kernel does not have: refuse or note.",
            metavar="refuse|note",
        ),
    ] = "refuse",
    store: StoreRoot = None,
    as_json: Json = False,
) -> None:
    """Say which algorithms a kernel can be built with.

    Of the kernel, only Kconfig is compiled: the overlays are applied in memory, the options that
    the configuration needs and the compiler version that the kernel needs are checked, and Kconfig
    says which options do not take effect. A source that is not a directory is fetched into the
    store, so that a run need not fetch it. The exit status is 1 if the kernel can be built with
    none of the algorithms, or not with one that was named.
    """
    parts_of = (part for stack in algorithm or ALGORITHMS.names() for part in stack.split("+"))
    names = tuple(dict.fromkeys(parts_of))
    for name in names:
        ALGORITHMS.get(name)
    chosen = select(toolchain)
    record = architectures.get(arch)
    try:
        parts = read_config(config)
    except ValueError as error:
        raise InputError(f"invalid config `{config}`", str(error)) from error
    try:
        note_dropped = dropping(dropped)
    except ValueError as error:
        raise InputError(f"invalid value `{dropped}` of --dropped", str(error)) from error
    in_place = Path(source).is_dir()
    with ended_by_sigterm():
        tree = _tree(source, store)
        fit = check_fit(
            tree, record, chosen, parts, names, in_place=in_place, note_dropped=note_dropped
        )
        if not (fit.reasons or fit.config):
            fit = configured(
                fit, tree, record, chosen, parts, in_place=in_place, note_dropped=note_dropped
            )
    fits = [each.algorithm for each in fit.algorithms if fit.builds(each)]
    if as_json:
        print_json(
            {
                "schema": "mepof-adapt-check/1",
                "source": source,
                "arch": arch,
                "config": config,
                **asdict(fit),
                "version": str(fit.version),
                "fits": fits,
            }
        )
    else:
        print("\n".join(_lines(fit, source, arch, config)))
    if len(fits) < len(names) if algorithm else not fits:
        wrong = ", ".join(name for name in names if name not in fits)
        raise WorkError(f"Linux {fit.version} cannot be built with {wrong}")


def _tree(source: str, store: Path | None) -> Path:
    """The tree: a directory, or in the store, where it is fetched if it is not there."""
    kind = source_of(source)
    kind.parse(source)
    try:
        kind.check(source)
        if Path(source).is_dir():
            return Path(source)
    except OSError as error:
        raise unreadable(error) from error
    from mepof.cli.progress import progress  # loads scipy

    path = kind.host(source)
    model = KernelSource[Input](
        address=None if path == source else source,
        origin=None if path is None else HostInput(path),
    )
    plan = Plan(program="", seed=0, steps=(model.step("source"),), results=())
    with tempfile.TemporaryDirectory() as out, progress() as sink:
        return local(store, None).run(plan, Path(out), sink).run.steps["source"].path


@app.command("judge")
def judged(
    profile: Annotated[
        Path, typer.Argument(help="Profile: .afdo or .profdata.", metavar="PROFILE")
    ],
    old: Annotated[
        str, typer.Argument(help="Source of the kernel that was profiled.", metavar="OLD")
    ],
    new: Annotated[str, typer.Argument(help="Source of the other kernel.", metavar="NEW")],
    arch: Annotated[str, typer.Option(help="Architecture.", metavar="NAME")] = (
        architectures.DEFAULT
    ),
    top: Annotated[
        int, typer.Option("--top", min=0, help="How many functions to list.", metavar="N")
    ] = 10,
    store: StoreRoot = None,
    as_json: Json = False,
) -> None:
    """Say how much of a profile fits another kernel.

    Nothing is compiled: the functions with samples are compared in both sources.
    """
    record = architectures.get(arch)
    sampled = sampled_functions(profile)
    trees = [_tree(each, store) for each in (old, new)]
    for tree, name in zip(trees, (old, new), strict=True):
        check_kernel(tree, name)
    if absent := foreign(sampled, trees[0], record.source):
        warn(
            f"warning: {old} does not name most of the hottest functions, such as "
            f"{listed(absent, _NAMED)}: it may not be the source of what was profiled"
        )
    found = judge(sampled, trees[0], trees[1], record.source, objects_that_ran(profile))
    if as_json:
        print_json(
            {
                "schema": "mepof-adapt-judge/1",
                "changed_percent": found.changed_percent,
                "files": found.files,
                **asdict(found),
            }
        )
        return
    print(
        f"{found.changed_percent:.1f} % of samples are in functions that changed:"
        f" {len(found.changed)} of {found.functions:,}"
    )
    for each in found.changed[:top]:
        print(f"{each.share:6.2f} %  {each.state:8} {each.name}  {each.file}")


@app.command("modules")
def modules(
    build: Annotated[
        Path,
        typer.Argument(
            help="vmlinux of the kernel, or the directory of its build in the store.",
            metavar="KERNEL",
        ),
    ],
    given: Annotated[
        list[Path],
        typer.Argument(help="Modules, and directories that contain some.", metavar="MODULE"),
    ],
    as_json: Json = False,
) -> None:
    """Say whether modules that were built elsewhere load on a kernel.

    Nothing is loaded: what the kernel compares is read from the files. The exit status is 1 if a
    module would not load.

    Raises:
        InputError: a file is not a kernel with modules or not a module, or cannot be read.
        WorkError: a module would not load.
    """
    vmlinux = build / "vmlinux" if build.is_dir() else build
    try:
        _check_linked(vmlinux)
        config = build / "config"
        known = config.read_text(encoding="utf-8") if config.is_file() else ""
        kernel = read_kernel(vmlinux, known)
        files = [*_modules(given)]
        found = faults(kernel, [_module(path) for path in files])
    except OSError as error:
        raise unreadable(error) from error
    wrong = {name: why for name, why in found.items() if why}
    if as_json:
        print_json(
            {
                "schema": "mepof-adapt-modules/1",
                "release": kernel.release,
                "vermagic": kernel.vermagic,
                "modules": {name: [asdict(each) for each in why] for name, why in found.items()},
            }
        )
    else:
        for name, why in wrong.items():
            print("\n    ".join([name, *map(str, why)]))
        print(f"{len(found) - len(wrong)} of {len(found)} modules load on Linux {kernel.release}")
        blamed = Counter(
            symbol for why in wrong.values() for each in why for symbol in each.symbols
        )
        if most := [f"{symbol} ({n})" for symbol, n in blamed.most_common(_MOST) if n > 1]:
            print(f"most often because of {', '.join(most)}")
    if wrong:
        raise WorkError(f"{len(wrong)} of {len(found)} modules would not load")


def _check_linked(path: Path) -> None:
    """Refuse, by its name, what people have in place of a vmlinux.

    Raises:
        InputError: it is a kernel image, or compressed.
        OSError: it cannot be read.
    """
    if not path.exists():
        raise InputError(
            f"{path} does not exist",
            "give a kernel's build, such as `mepof store path` prints, or its vmlinux",
        )
    if not path.is_file():
        return
    with path.open("rb") as file:
        head = file.read(len(_ELF))
        what, _ = ("", None) if head == _ELF else mistaken(head + file.read())
    if what:
        what = what.replace("without a boot image", "that a boot loader starts")
        raise InputError(
            f"{path} is not a vmlinux, but {what}", "give the vmlinux at the top of the same build"
        )


def _modules(given: Iterable[Path]) -> Iterator[Path]:
    for path in given:
        if not path.is_dir():
            yield path
        elif found := sorted(each for each in path.rglob("*") if _MODULE.search(each.name)):
            yield from found
        else:
            raise InputError(f"{path} contains no modules", "give a directory with files *.ko")


def _module(path: Path) -> Foreign:
    data = path.read_bytes()
    if recognise(data) is not None:
        data = decompress(data, str(path))
    return read_module(str(path), data)


def _lines(fit: Fit, source: str, arch: str, config: str) -> Iterator[str]:
    yield f"Linux {fit.version}, {source}"
    oldest = f"{fit.min_compiler} or later" if fit.min_compiler else "the kernel does not say"
    yield f"compiler        {fit.toolchain}; needed: {oldest}"
    yield f"configuration   {config} for {arch}: {'does not fit' if fit.config else 'fits'}"
    yield from _listed(fit.config)
    yield from _listed(fit.reasons)
    if fit.notes:
        yield "note"
    yield from _listed(fit.notes)
    for each in fit.algorithms:
        word = "does not fit" if each.reasons else "does not fit: see above"
        if fit.builds(each):
            word = "fits"
        if fit.builds(each) and each.modules:
            word = "fits, except for configurations with modules"
        yield f"{each.algorithm:15} {word}"
        yield from _listed((*each.reasons, *each.modules))
    for name, reasons in fit.options.items():
        yield f"{name:15} does not fit"
        yield from _listed(reasons)


def _listed(reasons: Sequence[Reason]) -> Iterator[str]:
    for reason in reasons[:MANY]:
        yield f"    {reason.message}"
        if reason.nearest:
            yield f"        {reason.nearest}"
    if len(reasons) > MANY:
        yield f"    and {len(reasons) - MANY} more, which --json lists"
