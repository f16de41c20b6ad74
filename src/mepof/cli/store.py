"""``mepof store``: where results are, and the store that several machines share."""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.application import Commands
from mepof.cli.output import Json, print_json
from mepof.cli.run import Shared, StoreRoot
from mepof.errors import InputError, WorkError
from mepof.executor.stores import default_shared
from mepof.plan.remote import Remote
from mepof.plan.store import Store, default_store

app = Commands(help="Find a run's artifacts, and share the store.")

_MIB = 1 << 20


@app.command()
def push(store: StoreRoot = None, shared_store: Shared = None, as_json: Json = False) -> None:
    """Push every finished step in the store of this machine.

    Raises:
        InputError: no shared store is named.
    """
    from mepof.plan.shared import SharedStore

    remote = _remote(shared_store)
    root = _opened(store or default_store()).root
    # What it would note ends this command, as an error.
    local = SharedStore(root, remote, lambda note: None)
    local.open()
    local.check_remote()
    pushed = known = 0
    with closing(local):
        for action in sorted(local.actions(), key=lambda action: action.made_at):
            if not local.object(action.artifact.digest).is_dir():
                continue
            if local.push(action, partial(_say_of, action.step)):
                pushed += 1
            else:
                known += 1
    if as_json:
        print_json({"pushed": pushed, "known": known})
    else:
        print(f"{pushed} steps pushed, {known} were there")


@app.command()
def verify(
    shared_store: Shared = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove wrong artifacts, so that they are rebuilt.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare every artifact of the shared store with its digest.

    Raises:
        InputError: no shared store is named, or there is none.
        WorkError: an artifact is wrong and was not removed.
    """
    from mepof.plan.clean import wrong_archives

    remote = _store(shared_store)
    with tempfile.TemporaryDirectory() as work:
        count, wrong = wrong_archives(remote, Path(work))
    if remove:
        for name in wrong:
            remote.remove(name)
    if as_json:
        print_json({"artifacts": count, "wrong": wrong, "removed": remove})
    else:
        for name in wrong:
            print(f"wrong: {name}")
        print(f"{count} artifacts, {len(wrong)} wrong" + (", removed" if wrong and remove else ""))
    if wrong and not remove:
        raise WorkError(
            f"{len(wrong)} of {count} artifacts in {remote.url} are wrong", "remove them: --remove"
        )


@app.command()
def clean(
    store: StoreRoot = None,
    shared_store: Shared = None,
    keep: Annotated[
        str, typer.Option(help="Keep what was used within this time: 12h, 30d, 8w.", metavar="TIME")
    ] = "30d",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove from a store what nobody has used for some time.

    It is the shared store if one is named, and none with --store; else that of this machine. What a
    run uses, or has used within a day, is kept in any case.

    Raises:
        InputError: the time is wrong, both stores are named, or there is no store.
    """
    from mepof.plan.clean import Cleaned, clean
    from mepof.plan.prune import Pruned, prune

    if store is not None and shared_store is not None:
        raise InputError("--store and --shared-store are two stores", "clean one after the other")
    now, age = datetime.now(UTC), duration(keep)
    would = "would be " if dry_run else ""
    found: Cleaned | Pruned
    if store is None and (shared_store or default_shared()):
        found = clean(_store(shared_store), age, now, dry_run=dry_run)
        rest = f"{found.held} leases hold"
    else:
        found = prune(_opened(store or default_store()), age, now, dry_run=dry_run)
        rest = f"{found.unfinished} unfinished steps {would}dropped"
    if as_json:
        print_json(asdict(found))
        return
    size = f"{found.size / _MIB:.1f} MiB"
    print(f"{found.artifacts} artifacts {would}removed ({size}), {found.kept} kept, {rest}")


@app.command("path")
def path_of(
    out: Annotated[Path, typer.Argument(help="Directory that a run wrote to.", metavar="DIR")],
    step: Annotated[
        str | None,
        typer.Argument(help="Step, such as opt/build.  [default: list all]", metavar="STEP"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the directory of each artifact of a run.

    Raises:
        InputError: no run wrote to the directory, or it did not get to that step.
        WorkError: what the step made is no longer there.
    """
    from mepof.adapter.results import last_run

    made = last_run(out)[1]
    if not made:
        raise InputError(f"no run has made anything in {out}", "give the directory of `--out`")
    if step is None:
        if as_json:
            print_json({name: str(path) for name, path in made.items()})
        else:
            width = max(map(len, made))
            print("\n".join(f"{name:{width}}  {path}" for name, path in made.items()))
        return
    if step not in made:
        raise InputError(
            f"the last run in {out} has no result of the step `{step}`",
            f"give one of these: {', '.join(made)}",
        )
    if not made[step].is_dir():
        raise WorkError(
            f"the store no longer has what {step} made: {made[step]}", "run the program again"
        )
    if as_json:
        print_json({step: str(made[step])})
    else:
        print(made[step])


def duration(text: str) -> timedelta:
    """A time such as ``30d``.

    Raises:
        InputError: it is not one.
    """
    found = re.fullmatch(r"(\d{1,4})([hdw])", text)
    if found is None:
        raise InputError(f"invalid time `{text}`", "write hours, days or weeks: 12h, 30d, 8w")
    unit = {"h": "hours", "d": "days", "w": "weeks"}[found[2]]
    return timedelta(**{unit: int(found[1])})


def _remote(shared: str | None) -> Remote:
    url = shared or default_shared()
    if url is None:
        raise InputError("no shared store is named", "give --shared-store or MEPOF_SHARED_STORE")
    return Remote(url)


def _store(shared: str | None) -> Remote:
    """What is a store already: in another directory, much would be removed."""
    from mepof.plan.shared import identity_of

    remote = _remote(shared)
    identity_of(remote)
    return remote


def _opened(root: Path) -> Store:
    """The store of this machine, if it is one: of another directory, much would be removed."""
    if not all((root / name).is_dir() for name in ("objects", "actions", "work", "locks")):
        raise InputError(f"{root} is not a store", "name one with --store or MEPOF_STORE")
    store = Store(root)
    store.open()
    return store


def _say_of(step: str, text: str) -> None:
    _say(f"{step}: {text}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
