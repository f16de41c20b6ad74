"""The runs for which this process, a worker, performs steps: what it keeps for them between two
steps, and when they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from mepof.errors import WorkError
from mepof.plan.body import Claim

# Between two looks at whether whoever asked for steps is still there: at least, and for each event
# that the scheduler has logged of it and sends each time.
_LOOK_SECONDS, _EVENT_SECONDS = 2.0, 0.01

_stops: dict[str, threading.Event] = {}
# By who asks.
_runs: dict[str, set[str]] = {}
_starting = threading.Lock()


def stop_of(run: str) -> threading.Event:
    """Is set when a run is interrupted."""
    return _stops.setdefault(run, threading.Event())


def cancel(run: str) -> None:
    """Interrupt the steps of a run on this worker."""
    stop_of(run).set()


def watch(worker: Any, asker: str, run: str) -> None:
    """End a run as soon as the scheduler has lost who asks for its steps, such as by ``kill -9``.

    Args:
        worker: Dask's, of this process.
        asker: Dask's name of the client.
    """
    with _starting:
        is_new = asker not in _runs
        _runs.setdefault(asker, set()).add(run)
        if is_new:
            worker.loop.add_callback(_watched, worker, asker)


async def _watched(worker: Any, asker: str) -> None:
    pause = _LOOK_SECONDS
    while True:
        await asyncio.sleep(pause)
        try:
            events = await worker.scheduler.events(topic=asker)
        except OSError:  # without its scheduler, this process ends
            continue
        if is_gone([event.get("action") for _, event in events]):
            break
        pause = pause_after(len(events))
    with _starting:
        runs = _runs.pop(asker)
    for run in runs:
        cancel(run)
        await end(run)


def pause_after(events: int) -> float:
    """Seconds until the next look, after one that has brought so many events."""
    return max(_LOOK_SECONDS, events * _EVENT_SECONDS)


def is_gone(actions: Sequence[str]) -> bool:
    """Whether the scheduler has lost a client.

    Args:
        actions: those that it has logged of it. A step that it was adding comes after the loss; an
            hour later, it forgets all.
    """
    known = [action for action in actions if action in ("add-client", "remove-client")]
    return known[-1] == "remove-client" if known else not actions


class Busy(WorkError):
    """This worker keeps the device for another run."""


@dataclass(eq=False)
class _Holder:
    run: str
    claim: Claim
    used: bool = False
    ended: bool = False


_holders: dict[str, _Holder] = {}
_changed = threading.Condition()


@contextmanager
def held(run: str, claim: Claim | None) -> Iterator[None]:
    """Use a device in the block. If it is kept beyond a step, it is the run's until that ends.

    Raises:
        Busy: another run has it.
    """
    if claim is None or claim.release is None:
        yield
        return
    with _changed:
        holder = _holders.setdefault(claim.name, _Holder(run, claim))
        if holder.run != run or holder.ended:
            raise Busy(claim.name)
        holder.used = True
    try:
        yield
    finally:
        with _changed:
            holder.used = False
            _changed.notify_all()


async def end(run: str) -> None:
    """Give back what this worker keeps for a run."""
    await asyncio.to_thread(_end, run)


def _end(run: str) -> None:
    with _changed:
        ours = [each for each in _holders.values() if each.run == run and not each.ended]
        for holder in ours:
            holder.ended = True
        _changed.wait_for(lambda: not any(each.used for each in ours))
    with ExitStack() as rest:  # one that cannot be given back does not keep the others
        for holder in ours:
            rest.callback(_give_back, holder)


def _give_back(holder: _Holder) -> None:
    try:
        if holder.claim.release is not None:
            holder.claim.release()
    finally:
        with _changed:
            del _holders[holder.claim.name]
