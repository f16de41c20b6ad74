"""``mepof watch``: follow releases, and make of each what a program says."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mepof.adapter.attempt import RunProgram
from mepof.adapter.history import Entry, Noted
from mepof.adapter.watch import Watcher
from mepof.adapter.watched import Task, read_task
from mepof.cli.output import Json, print_json
from mepof.cli.run import Cores, Shared, StoreRoot, Where, local, settings_of
from mepof.errors import InputError, Interrupted, MepofError, WorkError
from mepof.executor.pins import PINS
from mepof.executor.protocol import EXECUTORS
from mepof.executor.stores import default_shared
from mepof.plan.interrupt import stop_on_signals
from mepof.plan.store import default_store
from mepof.process import Completed, look_again, run
from mepof.source.protocol import Workshop
from mepof.toolchain.protocol import Run

_MEPOF = (
    "from mepof.process import end_with; end_with({parent}); "
    "from mepof.cli.main import main; main()"
)
# After an error that is not of a release: a full disk, a damaged history.
_PAUSE_SECONDS = 600.0


def watch(
    file: Annotated[
        Path, typer.Argument(help="Description of what to follow.", metavar="FILE.toml")
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Poll once, process what is new, and exit.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="List every release and what became of it.")
    ] = False,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            help="With --history, say everything that happened to this release.",
            metavar="NAME",
        ),
    ] = None,
    again: Annotated[
        str | None,
        typer.Option(
            "--again",
            help="Process a release that was held back, or one that is `earlier`.",
            metavar="NAME",
        ),
    ] = None,
    executor: Where = "local",
    store: StoreRoot = None,
    shared_store: Shared = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Follow releases of kernels.

    Runs a program on each new one, and publishes the results or holds them back.
    """
    task = read_task(file)
    if task.signer is not None:
        task.signer.find(run)
    if (as_json or release) and not history:
        option = "--json" if as_json else "--release"
        raise InputError(f"`{option}` is for `--history`", "add --history")
    if again is not None and history:
        raise InputError("`--history` processes nothing", "leave it out, or --again")
    if history:
        _print(task, release, as_json)
        return
    # The working directory changes below.
    root = (store or default_store()).absolute()
    shared = shared_store or default_shared()
    if shared is not None and "://" not in shared:
        shared = str(Path(shared).absolute())
    EXECUTORS.get(executor)(settings_of(root, cores, shared))  # what cannot be used is said now
    options = {"executor": executor, "store": root, "cores": cores}
    cancel = threading.Event()
    # A program's paths are relative to the working directory, and a watched one's to the file.
    with stop_on_signals(cancel), tempfile.TemporaryDirectory() as work, chdir(task.home):
        workshop = Workshop(
            cache=root / "cache",
            work=Path(work),
            run=partial(run, cancel=cancel),
            note=_say,
            cancel=cancel,
            progress=lambda done, total, unit: None,
        )
        task.check()
        if task.signer is not None:
            task.signer.check(workshop.run)
        here = local(root, cores, shared)
        watcher = Watcher(
            task, workshop, here, _runner(workshop.run, options, shared), time.time, _say
        )
        watcher.warn()
        if again is not None:
            _process_again(task, again)
        if once or again is not None:
            if not watcher.round():
                raise WorkError("not every feed has answered", "run it again later")
        else:
            _follow(watcher, cancel)


def _follow(watcher: Watcher, cancel: threading.Event) -> None:
    """Look at the feeds at their interval, and in between at what is to be tried again."""
    look_at = 0.0
    while True:
        look = time.time() >= look_at
        if look:
            # With jitter, so that many machines do not ask at once.
            look_at = time.time() + watcher.task.watched.interval * random.uniform(0.9, 1.1)
        pause = 0.0
        look_again()
        try:
            watcher.round(look)
            due = watcher.next_at()
        except Interrupted:
            raise
        except MepofError as error:
            _say(f"{error}; again in {_PAUSE_SECONDS / 60:.0f} minutes")
            due, pause = None, _PAUSE_SECONDS
        wait = (look_at if due is None else min(look_at, due)) - time.time()
        if cancel.wait(max(1.0, wait, pause)):
            raise Interrupted("interrupted")


def _runner(call: Run, options: Mapping[str, object], shared: str | None) -> RunProgram:
    """``mepof run`` with options, in a process of its own, whose memory it gives back, and which
    ends, with all that it runs, if this one is killed.

    Args:
        shared: the shared store, whose URL a list of processes would show.
    """
    code = _MEPOF.format(parent=os.getpid())
    words = [f"--{name}={value}" for name, value in options.items() if value is not None]

    def runs(program: Path, out: Path) -> Completed:
        pins = program.with_name(PINS)
        settled = [f"--pins={pins}"] if pins.exists() else []
        # -P: modules beside the watched file are not ours.
        argv = [sys.executable, "-P", "-c", code, "run", program, "--out", out, *words, *settled]
        return call(argv, env={"MEPOF_SHARED_STORE": shared} if shared else None, check=False)

    return runs


def _process_again(task: Task, name: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    history = task.history()
    follows = {each.name for each in task.watched.follow}
    if history.again(name, now, follows):
        return
    held = [entry for entry in history.entries() if entry.state == "held"]
    if any(entry.name == name for entry in held):
        raise InputError(
            f"the [[follow]] that found `{name}` is not in the file any more", "restore it"
        )
    known = [entry.name for entry in held]
    raise InputError(
        f"no release `{name}` was held back, or is earlier",
        f"these were held back: {', '.join(known[-5:])}" if known else "--history lists all",
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print(task: Task, release: str | None, as_json: bool) -> None:
    entries: list[tuple[Entry, list[Noted]]] = []
    if task.history_file.exists():  # only watching makes it
        history, says_all = task.history(), as_json or release is not None
        entries = [
            (entry, history.events(entry) if says_all else [])
            for entry in history.entries()
            if release in (None, entry.name)
        ]
    if release is not None and not entries:
        raise InputError(f"the history has no release `{release}`", "--history lists all")
    if as_json:
        releases = [
            {**asdict(entry), "events": [asdict(event) for event in events]}
            for entry, events in entries
        ]
        print_json({"schema": "mepof-watch-history/1", "releases": releases})
        return
    if not entries:
        _say("no release has been seen yet")
    for entry, events in entries:
        line = f"{entry.seen_at}  {entry.follow}  {entry.name}  {entry.state}  {entry.reason}"
        print(line.rstrip())
        for event in events:
            print(f"    {event.at}  {event.what:10} {event.text}".rstrip())
