"""``mepof device``: prepare a machine, restore it, count on it, and compare its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

from mepof.cli.application import Commands, completing
from mepof.cli.compare import compare
from mepof.cli.machine import CounterNames, Programs, Scratch, Ssh, counters_of, programs_on, say
from mepof.cli.metrics import Metrics, chosen_metrics
from mepof.cli.output import Json, print_json
from mepof.device.adb import AdbShell
from mepof.device.former_values import default_directory
from mepof.device.preparation import Preparation, cores_of, load_preparation, preparation_names
from mepof.device.prepared import Prepared, pending, prepared, restore
from mepof.device.restart import remedy
from mepof.device.shell import LocalShell, Reachable
from mepof.device.ssh import SshShell
from mepof.errors import InputError, WorkError
from mepof.process import run

app = Commands(help="Prepare a machine, count on it, and compare its kernels.")
app.command("compare")(compare)

_NOTHING = "nothing would be set: each setting that this machine has is as it should be"

Kind = Annotated[
    str,
    typer.Argument(
        help=f"Kind of machine: {', '.join(preparation_names())}, or a TOML file.",
        metavar="KIND",
        autocompletion=completing(*preparation_names()),
    ),
]
Adb = Annotated[
    str | None,
    typer.Option(
        help="Serial number of a phone that adb reaches.  [default: this machine]",
        metavar="SERIAL",
    ),
]


@app.command("prepare")
def prepare(
    kind: Kind,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="Command, after `--`, to run on this machine; when it ends, the prepared machine "
            "is restored. Without one, that stays prepared until `mepof device restore`.",
            metavar="COMMAND",
        ),
    ] = None,
    adb: Adb = None,
    ssh: Ssh = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be set, without setting it.")
    ] = False,
) -> None:
    """Set frequencies, services and radios for measuring.

    Raises:
        WorkError: the machine cannot be reached, or another process uses it.
        Interrupted: a signal ended the command; the machine is restored.
    """
    preparation = _preparation(kind, adb)
    shell = _shell(adb, ssh)
    if dry_run:
        lines = pending(shell, preparation)
        typer.echo("\n".join(lines or [_NOTHING]))
        return
    with prepared(shell, preparation, default_directory(), say, leave=not command) as machine:
        status = 0
        if command:
            argv = tuple(command) if adb or ssh else machine.cores.command(tuple(command))
            status = run(argv, interactive=True, check=False).status
    if not command:
        say(f"to restore the machine: {remedy(shell)}")
    raise typer.Exit(status)


@app.command("restore")
def set_back(adb: Adb = None, ssh: Ssh = None) -> None:
    """Restore what a preparation changed. Running it again does no harm.

    Raises:
        WorkError: a setting could not be restored; it stays in the journal.
    """
    restore(_shell(adb, ssh), default_directory(), say)


@app.command("count")
def count(
    programs: Programs,
    metric: Metrics = None,
    counters: CounterNames = "generic",
    kind: Annotated[
        str | None,
        typer.Option("--prepare", help="Prepare the machine as this kind.", metavar="KIND"),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, max=1000, help="How often to run all cases.", metavar="N")
    ] = 1,
    reboot: Annotated[
        bool, typer.Option("--reboot", help="Reboot the machine before each run.")
    ] = False,
    scratch: Scratch = None,
    adb: Adb = None,
    ssh: Ssh = None,
    as_json: Json = False,
) -> None:
    """Run cases on the machine's own kernel and count with `perf stat`.

    Raises:
        EnvironmentLack: perf is missing, may not count, or finds no PMU.
        WorkError: the kernel failed its self-check, or a case.
    """
    from mepof.cli.counts import table  # loads the suites
    from mepof.measure.hardware import Bench, measure_running
    from mepof.pmu.counter import countable
    from mepof.suite.cases import cases_of

    if reboot and kind is None:
        raise InputError(
            "--reboot needs to know how the machine reboots", "name its kind with --prepare KIND"
        )
    if reboot and adb is None and ssh is None:
        raise InputError(
            "--reboot would end mepof together with this machine",
            "reach it from another one with --ssh, or use `mepof device compare`",
        )
    whole = programs_on(programs, adb or ssh)
    chosen = counters_of(counters)
    cases = cases_of(chosen_metrics(metric))
    preparation = None if kind is None else _preparation(kind, adb)
    shell = _shell(adb, ssh)
    boots = []
    with _ready(shell, preparation) as machine:
        cores = machine.cores if machine else cores_of(shell, "fastest")
        directory = scratch or ("/data/local/tmp" if adb else "/tmp")
        bench = Bench(shell, cores, whole, directory, say)
        for number in range(1, runs + 1):
            if machine and reboot:
                machine.reboot()
            # Ask the PMU only now: the preparation may be what allows access to it.
            able = countable(shell, chosen, cores.numbers)
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
def _ready(shell: Reachable, preparation: Preparation | None) -> Iterator[Prepared | None]:
    if preparation is None:
        yield None
        return
    with prepared(shell, preparation, default_directory(), say) as machine:
        yield machine


def _preparation(kind: str, adb: str | None) -> Preparation:
    """How a machine is prepared.

    Raises:
        InputError: the kind is unknown, or is a phone while none is named.
    """
    preparation = load_preparation(kind)
    if preparation.phone and adb is None:
        raise InputError(
            f"`{kind}` prepares a phone, not this machine",
            "name the phone with --adb SERIAL, as `adb devices` lists it",
        )
    return preparation


def _shell(adb: str | None, ssh: str | None) -> Reachable:
    if adb is not None and ssh is not None:
        raise InputError("--adb and --ssh name two machines", "give one of them")
    if ssh is not None:
        return SshShell.connect(ssh)
    return LocalShell() if adb is None else AdbShell.connect(adb)
