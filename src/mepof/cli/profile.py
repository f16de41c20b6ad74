"""``mepof profile``: convert branch traces; merge, compare, inspect and plot profiles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from mepof import _engine
from mepof.cli import profile_fleet as fleet
from mepof.cli import profile_tables as tables
from mepof.cli.application import Commands, completing
from mepof.cli.cluster import Scheduler, TlsCa, TlsCert, TlsKey, Workers, tls_of
from mepof.cli.console import ErrorConsole
from mepof.cli.output import Json, Output, output_file, print_json
from mepof.cli.profile_inputs import check_files, check_there, traces_in
from mepof.cli.profile_renew import renew
from mepof.cli.stdin import name_of, spooled
from mepof.errors import InputError, WorkError
from mepof.profile.weighted import parse_weighted, whole

app = Commands(help="Convert, merge, compare, inspect and plot profiles.")

Binary = Annotated[
    Path,
    typer.Option("--binary", help="The vmlinux of the exact build that ran.", metavar="VMLINUX"),
]
Inputs = Annotated[
    list[Path],
    typer.Option(
        "--input",
        help="Branch trace, or a directory of them; several add up. `-` is standard input.",
        metavar="FILE",
    ),
]
InputFormat = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(_engine.INPUT_FORMATS)}.  [default: detected]", metavar="FORMAT"
    ),
]
Modules = Annotated[
    list[Path] | None,
    typer.Option("--module", help="Kernel module, as built; repeat it for more.", metavar="FILE"),
]
Kallsyms = Annotated[
    Path | None,
    typer.Option(
        help="/proc/kallsyms of the machine that recorded, for inputs without the kernel's "
        "load address, or a module's.",
        metavar="FILE",
    ),
]
Space = Annotated[
    str,
    typer.Option(
        help="Whose samples to use: kernel, guest or user.",
        metavar="SPACE",
        autocompletion=completing("kernel", "guest", "user"),
    ),
]
Events = Annotated[
    list[str] | None,
    typer.Option(
        "--event",
        help="Event to use; repeat it for more.  [default: all with branch stacks]",
        metavar="NAME",
    ),
]

Top = Annotated[
    int,
    typer.Option("--top", min=0, max=2**32 - 1, help="How many functions to list.", metavar="N"),
]


@app.command("convert")
def convert(
    binary: Binary,
    inputs: Inputs,
    to: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(_engine.OUTPUT_FORMATS)}.",
            metavar="FORMAT",
            autocompletion=completing(*_engine.OUTPUT_FORMATS),
        ),
    ],
    output: Output,
    input_format: InputFormat = None,
    modules: Modules = None,
    kallsyms: Kallsyms = None,
    space: Space = "kernel",
    events: Events = None,
    lines: Annotated[
        bool,
        typer.Option("--lines", help="Use debug lines instead of pseudo probes, as gcov does."),
    ] = False,
    infer: Annotated[
        str,
        typer.Option(
            help="When to infer counts from control flow: never, always, or for traces of single "
            "branches.",
            metavar="never|single|always",
        ),
    ] = "single",
    md5_names: Annotated[
        bool, typer.Option("--md5-names", help="For autofdo: write hashes instead of names.")
    ] = False,
    symbol_list: Annotated[
        bool,
        typer.Option(
            "--symbol-list",
            help="For autofdo: list all functions, so that those without samples are cold.",
        ),
    ] = False,
    path_cloning: Annotated[
        bool,
        typer.Option(
            "--path-cloning",
            help="For propeller: clone blocks along hot paths; reads the input twice.",
        ),
    ] = False,
    allow_poor: Annotated[
        bool, typer.Option("--allow-poor", help="Write the profile even if its verdict is poor.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Convert branch traces to a profile, with a verdict on it.

    The verdict goes to standard error and beside the profile, into OUT.verdict.json.

    Raises:
        InputError: an input is given twice, or would be overwritten.
        WorkError: the verdict is poor, and --allow-poor was not given.
    """
    inputs = traces_in(inputs)
    check_files(output, inputs, binary, kallsyms, *(modules or []))
    with spooled(inputs) as files, _reading(files) as tell:
        names = [Path(name_of(given)) for given in inputs]
        recording = _recording(
            binary, files, input_format, modules, kallsyms, space, events, tell, names
        )
        done = json.loads(
            _engine.convert(
                recording,
                to,
                output,
                lines=lines or to.startswith("gcov"),
                infer=infer,
                md5_names=md5_names,
                symbol_list=symbol_list,
                path_cloning=path_cloning,
                allow_poor=allow_poor,
            )
        )
    if as_json:
        print_json({"schema": "mepof-profile-convert/1", **done})
    else:
        # What stops it is said once, in the error.
        shown = done if done["outputs"] else {**done, "reasons": []}
        ErrorConsole(highlight=False, soft_wrap=True).print(tables.verdict(shown))
    if not done["outputs"]:
        reasons = "; ".join(done["reasons"])
        raise WorkError(f"nothing was written: {reasons}", "--allow-poor writes the profile anyway")


@app.command("merge")
def merge(
    profiles: Annotated[
        list[str],
        typer.Argument(
            help="Profiles, each with its weight, or directories and buckets of profiles.  "
            "[default weight: 1]",
            metavar="PROFILE[:WEIGHT]",
        ),
    ],
    output: Output,
    to: Annotated[
        str | None,
        typer.Option(
            help=f"For AutoFDO profiles: {', '.join(_engine.PROFILE_FORMATS)}.  [default: autofdo]",
            metavar="FORMAT",
            autocompletion=completing(*_engine.PROFILE_FORMATS),
        ),
    ] = None,
    half_life: fleet.HalfLife = None,
    weigh: fleet.Weigh = None,
    like: fleet.Like = None,
    least_overlap: fleet.Least = None,
    executor: fleet.Where = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    as_json: Json = False,
) -> None:
    """Add up profiles of one kind.

    They are AutoFDO profiles, whose sources are recorded in OUT.provenance.json, or profiles
    of instrumented kernels (.profdata).

    Raises:
        InputError: the profiles are of different kinds, or have one format only.
    """
    done: dict[str, Any]
    if fleet.is_fleet(profiles):
        where = (executor, scheduler, workers, tls_of(tls_ca, tls_cert, tls_key))
        options = fleet.Options(half_life, weigh or [], like, least_overlap, *where)
        done = fleet.merged(profiles, output, to or "autofdo", options)
        if as_json:
            print_json({"schema": "mepof-profile-merge/1", **done})
        else:
            fleet.show(done)
        return
    for name, value in (
        ("half-life", half_life),
        ("weigh", weigh),
        ("like", like),
        ("least-overlap", least_overlap),
        ("executor", executor),
        ("scheduler", scheduler),
        ("workers", workers),
        ("tls-ca", tls_ca),
        ("tls-cert", tls_cert),
        ("tls-key", tls_key),
    ):
        if value is not None:
            raise InputError(f"--{name} is for directories and buckets", "name one of them")
    from mepof.profile.instrumentation import merge_instrumentation  # loads all toolchains

    weighted = [parse_weighted(text) for text in profiles]
    weights = whole([w.weight for w in weighted])
    with spooled([each.path for each in weighted]) as paths:
        if _are_counts(paths, "merge"):
            if to is not None:
                raise InputError(
                    "profiles of instrumented kernels have one format", "leave out --to"
                )
            read = [replace(w, path=path) for w, path in zip(weighted, paths, strict=True)]
            quality = asdict(merge_instrumentation(read, output))
            done = {"kind": "instrumentation", "output": str(output), **quality}
        else:
            done = {"kind": "autofdo", "output": str(output)}
            given = [*zip(paths, weights, strict=True)]
            names = [name_of(each.path) for each in weighted]
            done |= json.loads(_engine.merge(given, output, to or "autofdo", names=names))
    if as_json:
        print_json({"schema": "mepof-profile-merge/1", **done})
    else:
        ErrorConsole(highlight=False, soft_wrap=True).print(tables.merged(done))


app.command("renew")(renew)


@app.command("compare")
def compare(
    base: Annotated[Path, typer.Argument(help="AutoFDO profile, or .profdata.", metavar="A")],
    test: Annotated[Path, typer.Argument(help="Profile to compare with it.", metavar="B")],
    top: Top = 10,
    as_json: Json = False,
) -> None:
    """Show how alike two profiles are, and which functions differ most."""
    with spooled([base, test]) as (first, second):
        if _are_counts([first, second], "compare"):
            from mepof.cli import count_tables
            from mepof.profile.counts import compare_counts, read_counts

            found = compare_counts(read_counts(first), read_counts(second))
            done = count_tables.compare_document(found, top)
            shown = count_tables.comparison(done)
        else:
            done = {"kind": "autofdo", **json.loads(_engine.compare(first, second, top))}
            shown = tables.comparison(done, base, test)
    if as_json:
        print_json({"schema": "mepof-profile-compare/1", **done})
    else:
        _print(shown)


@app.command("drift")
def drift(
    profile: Annotated[Path, typer.Argument(help="AutoFDO profile.", metavar="PROFILE")],
    new: Annotated[Path, typer.Argument(help="The newer vmlinux.", metavar="VMLINUX")],
    old: Annotated[
        Path | None,
        typer.Option(
            help="The vmlinux that the profile was made from; it shows what has moved.",
            metavar="VMLINUX",
        ),
    ] = None,
    top: Top = 10,
    as_json: Json = False,
) -> None:
    """Show how much of an AutoFDO profile still fits a newer binary."""
    if _are_counts([profile], "compare"):
        raise InputError(
            f"{profile} is a profile of an instrumented kernel",
            "build the newer kernel with it: clang warns about functions that have changed",
        )
    check_there(new, "name the vmlinux of the newer kernel")
    if old is not None:
        check_there(old, "name the vmlinux of the kernel that the profile was made from")
    done = json.loads(_engine.drift(profile, new, old))
    if as_json:
        print_json({"schema": "mepof-profile-drift/1", **done})
    else:
        _print(tables.drift(done, top, knows_moved=old is not None))


@app.command("show")
def show(
    profile: Annotated[
        Path, typer.Argument(help="AutoFDO profile, or .profdata.", metavar="PROFILE")
    ],
    top: Top = 20,
    lines: Annotated[
        bool, typer.Option("--lines", help="For AutoFDO: list the hottest lines, too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the size of a profile, its hottest functions and lines."""
    with spooled([profile]) as (path,):
        if _are_counts([path], "show"):
            from mepof.cli import count_tables
            from mepof.profile.counts import read_counts

            done = count_tables.show_document(read_counts(path), top)
            shown = count_tables.shown(done, profile)
        else:
            done = {"kind": "autofdo", **json.loads(_engine.show(path, top, top if lines else 0))}
            shown = tables.shown(done, profile)
    if as_json:
        print_json({"schema": "mepof-profile-show/1", **done})
    else:
        _print(shown)


@app.command("heatmap")
def heatmap(
    binary: Binary,
    branches: Annotated[
        list[Path],
        typer.Option("--input", help="Branch trace; `-` is standard input.", metavar="FILE"),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            callback=output_file,
            help="File to write: .png, .svg or .json.",
            metavar="OUT",
        ),
    ],
    input_format: InputFormat = None,
    kallsyms: Kallsyms = None,
    space: Space = "kernel",
    events: Events = None,
    rows: Annotated[
        int,
        typer.Option(min=1, max=16384, help="Approximate number of address rows.", metavar="N"),
    ] = 400,
    section: Annotated[
        str | None,
        typer.Option(help="Section to plot, such as .text.  [default: all]", metavar="NAME"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plot which code ran when."""
    form = output.suffix.removeprefix(".").lower()
    if form not in ("png", "svg", "json"):
        raise InputError(f"{output} does not name a format of heatmaps", "use .png, .svg or .json")
    branches = traces_in(branches)
    check_files(output, branches, binary, kallsyms)
    with spooled(branches) as files, _reading(files) as tell:
        recording = _recording(binary, files, input_format, None, kallsyms, space, events, tell)
        done = json.loads(_engine.heatmap(recording, output, form=form, rows=rows, section=section))
    if as_json:
        print_json({"schema": "mepof-profile-heatmap/1", "output": str(output), **done})
    else:
        ErrorConsole(highlight=False, soft_wrap=True).print(tables.heat(done, output))


def _recording(
    binary: Path,
    inputs: list[Path],
    input_format: str | None,
    modules: list[Path] | None,
    kallsyms: Path | None,
    space: str,
    events: list[str] | None,
    tell: Callable[[int], None],
    names: Sequence[Path] = (),
) -> _engine.Recording:
    check_there(binary, "name the vmlinux of the exact build that ran")
    for trace in inputs:
        check_there(trace, "name a branch trace, or `-` for standard input")
    for module in modules or []:
        check_there(module, "name the module, as built: a file .ko")
    if kallsyms is not None:
        check_there(kallsyms, "name a copy of the machine's /proc/kallsyms")
    return _engine.Recording(
        binary,
        inputs,
        names=names,
        input_format=input_format,
        modules=modules or [],
        kallsyms=kallsyms,
        space=space,
        events=events or [],
        on_progress=tell,
    )


@contextmanager
def _reading(inputs: list[Path]) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how much has been read; yields what takes the bytes read so far."""
    console = ErrorConsole()
    if not (console.file.isatty() and console.is_interactive):
        yield lambda done: None
        return
    # Imported only for a terminal: it takes a tenth of a small conversion's time.
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    total = sum(path.stat().st_size for path in inputs if path.is_file())
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
    ) as bars:
        task = bars.add_task("reading", total=total or None)

        def tell(done: int) -> None:
            bars.update(
                task, completed=done, description="converting" if done >= total else "reading"
            )

        yield tell


def _are_counts(paths: Sequence[Path], verb: str) -> bool:
    from mepof.profile.instrumentation import are_instrumentation  # loads all toolchains

    return are_instrumentation(paths, f"{verb} profiles of one kind")


def _print(*parts: Any) -> None:
    console = Console(highlight=False, emoji=False)
    for part in parts:
        console.print(part, crop=False)  # a long path is left to the terminal to break
