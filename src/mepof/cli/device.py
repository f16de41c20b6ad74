"""``mepof device``: prepare a machine that measures, set it back, and count on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mepof.cli.output import Json, print_json
from mepof.device.adb import AdbShell
from mepof.device.former_values import default_directory
from mepof.device.preparation import cores_of, load_preparation, preparation_names
from mepof.device.prepared import Prepared, pending, prepared, restore
from mepof.device.shell import LocalShell, Shell
from mepof.errors import InputError, WorkError
from mepof.process import run

app = typer.Typer(
    help="Prepare a machine for measuring, set it back, and count on it.", no_args_is_help=True
)

Kind = Annotated[
    str,
    typer.Argument(help=f"{', '.join(preparation_names())}, or a file .toml.", metavar="KIND"),
]
Adb = Annotated[
    str | None,
    typer.Option(
        help="A phone, as `adb devices` lists it; without it, this machine.", metavar="SERIAL"
    ),
]


@app.command("prepare")
def prepare(
    kind: Kind,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="After `--`: run this here, then set everything back. Without it, the "
            "machine stays prepared until `mepof device restore`.",
            metavar="-- COMMAND…",
        ),
    ] = None,
    adb: Adb = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be set, and set nothing.")
    ] = False,
) -> None:
    """Set what decides how fast a machine is: frequencies, services, radios, and the like.

    Raises:
        WorkError: it cannot be reached, or is in use by another process.
        Interrupted: by a signal; everything is set back.
    """
    shell, preparation = _shell(adb), load_preparation(kind)
    if dry_run:
        for line in pending(shell, preparation):
            typer.echo(line)
        return
    with prepared(shell, preparation, default_directory(), _tell, leave=not command) as machine:
        status = 0
        if command:
            argv = tuple(command) if adb else machine.cores.command(tuple(command))
            status = run(argv, interactive=True, check=False).status
    if not command:
        _tell(f"set back by: mepof device restore {shell.option}".rstrip())
    raise typer.Exit(status)


@app.command("restore")
def set_back(adb: Adb = None) -> None:
    """Set back what a preparation changed. It may be done at any time, and more than once.

    Raises:
        WorkError: something could not be set back; it stays noted.
    """
    restore(_shell(adb), default_directory(), _tell)


@app.command("count")
def count(
    programs: Annotated[
        Path,
        typer.Option(
            help="On the machine, the directory in which the suites' programs are.", metavar="DIR"
        ),
    ],
    metric: Annotated[
        str,
        typer.Option(
            "--metric", help="Metrics, joined by `;`; those of the suite mepof if not given."
        ),
    ] = "",
    counters: Annotated[
        str,
        typer.Option(
            help="Kind of core whose events perf counts, a file .toml, or none.", metavar="NAME"
        ),
    ] = "generic",
    kind: Annotated[
        str | None, typer.Option("--prepare", help="Prepare the machine.", metavar="KIND")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="How often everything is done.")] = 1,
    reboot: Annotated[
        bool, typer.Option("--reboot", help="Boot the machine again before each run.")
    ] = False,
    scratch: Annotated[
        str | None,
        typer.Option(
            help="Where cases may write; /tmp, or /data/local/tmp on a phone, if not given."
        ),
    ] = None,
    adb: Adb = None,
    as_json: Json = False,
) -> None:
    """Run the cases of some metrics on the kernel that runs, and count by `perf stat`.

    Raises:
        EnvironmentLack: perf is not there, may not count, or finds no PMU.
        WorkError: the kernel failed its self-check, or a case.
    """
    from mepof.cli.counts import table  # loads the suites
    from mepof.measure.hardware import Bench, measure_running
    from mepof.pmu.counter import Countable, countable, load_counters
    from mepof.suite.cases import cases_of

    if reboot and kind is None:
        raise InputError("how to boot the machine again is not known", "give --prepare KIND")
    chosen = None if counters == "none" else load_counters(counters)
    cases = cases_of([m.strip() for m in metric.split(";") if m.strip()])
    if not cases:
        raise InputError(f"no case has the metric `{metric}`", "see docs/suites.md")
    shell = _shell(adb)
    boots = []
    with _ready(shell, kind) as machine:
        cores = machine.cores if machine else cores_of(shell, "fastest")
        room = scratch or ("/data/local/tmp" if adb else "/tmp")
        bench = Bench(shell, cores, str(programs), room, _tell)
        for number in range(1, runs + 1):
            if machine and reboot:
                machine.reboot()
            # What a PMU has is asked only now: a preparation may allow it.
            able = countable(shell, chosen, cores.numbers) if chosen else Countable((), {})
            made = measure_running(bench, cases, number, counters, able)
            if made.boot is None:
                raise WorkError(made.self_check)
            boots.append(made.boot)
    if as_json:
        documents = [boot.model_dump(mode="json") for boot in boots]
        print_json({"schema": "mepof-device-count/1", "machine": shell.name, "runs": documents})
    else:
        Console(highlight=False).print(table(boots))


@contextmanager
def _ready(shell: Shell, kind: str | None) -> Iterator[Prepared | None]:
    if kind is None:
        yield None
        return
    with prepared(shell, load_preparation(kind), default_directory(), _tell) as machine:
        yield machine


def _shell(adb: str | None) -> Shell:
    return LocalShell() if adb is None else AdbShell.connect(adb)


def _tell(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False).print(text)
