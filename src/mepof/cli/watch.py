"""``mepof watch``: follow releases, and make of each what a program says."""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mepof.adapter.history import Entry
from mepof.adapter.watch import Watcher, read_task
from mepof.cli.output import Json, print_json
from mepof.cli.run import StoreRoot, local
from mepof.errors import InputError, Interrupted
from mepof.plan.interrupt import stop_on_signals
from mepof.plan.store import default_store
from mepof.process import run
from mepof.source.protocol import Workshop


def watch(
    file: Annotated[Path, typer.Argument(help="What to follow.", metavar="FILE.toml")],
    once: Annotated[
        bool, typer.Option("--once", help="Look once, process what is new, and exit.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="List every release and what became of it.")
    ] = False,
    store: StoreRoot = None,
    as_json: Json = False,
) -> None:
    """Follow releases of kernels.

    Runs a program on each new one, and publishes the results or holds them back.
    """
    task = read_task(file)
    if history:
        _print(task.history().entries(), as_json)
        return
    if as_json:
        raise InputError("`--json` is for `--history`", "add --history")
    root = store or default_store()
    cancel = threading.Event()
    with stop_on_signals(cancel), tempfile.TemporaryDirectory() as work:
        workshop = Workshop(
            cache=root.absolute() / "cache",
            work=Path(work),
            run=partial(run, cancel=cancel),
            note=_say,
            cancel=cancel,
            progress=lambda done, total, unit: None,
        )
        watcher = Watcher(task, workshop, local(store, None), time.time, _say, root)
        while True:
            watcher.round()
            if once:
                return
            # With jitter, so that many machines do not ask at once.
            if cancel.wait(task.watched.interval * random.uniform(0.9, 1.1)):
                raise Interrupted("interrupted")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print(entries: list[Entry], as_json: bool) -> None:
    if as_json:
        releases = [asdict(entry) for entry in entries]
        print_json({"schema": "mepof-watch-history/1", "releases": releases})
        return
    for entry in entries:
        line = f"{entry.seen_at}  {entry.follow}  {entry.name}  {entry.state}  {entry.reason}"
        print(line.rstrip())
