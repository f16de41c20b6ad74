"""Runs one step: lock, scratch, body, commit, record; and describes its errors."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mepof.errors import Interrupted, MepofError, StoreFull, WorkError
from mepof.events import Event, StepNote
from mepof.plan.action import Action, Artifact
from mepof.plan.body import Claim, Elsewhere, Resources, StepBody
from mepof.plan.digest import HostDigests
from mepof.plan.disk_full import child_ran_out, means_full, store_full
from mepof.plan.fingerprint import Ingredients
from mepof.plan.journal import utc_now
from mepof.plan.model import Step
from mepof.plan.orphans import end_orphans
from mepof.plan.recipe import RecordingContext, write_recipe, write_reproducer
from mepof.plan.store import ArtifactLost, Store


@dataclass(frozen=True)
class Job:
    """A step that is ready to run.

    Attributes:
        inputs: path of every input, by name.
        artifacts: the inputs that are artifacts, by name.
        host: the names of the host inputs.
        resources: the resources granted to it.
        journal: the run's journal, if the step may read it.
        again: run it even if the store has its result.
        parts: performs parts of it on other machines, if there are any.
    """

    step: Step
    body: StepBody
    ingredients: Ingredients
    fingerprint: str
    inputs: Mapping[str, Path]
    artifacts: Mapping[str, Artifact]
    host: frozenset[str]
    resources: Resources
    journal: Path | None
    again: bool
    parts: Elsewhere | None = None


@dataclass(frozen=True)
class Done:
    """The action of a job, and whether another process finished it first."""

    action: Action
    cached: bool


Perform = Callable[[Job, Store, Callable[[Event], None], threading.Event], Done]
"""Performs a step; :func:`execute` does so on this machine."""


def execute(job: Job, store: Store, emit: Callable[[Event], None], cancel: threading.Event) -> Done:
    """Perform a step, or take its result if another process finishes it first.

    Raises:
        MepofError: any failure; the error names log and reproducer. Unexpected exceptions are
            reported as bugs in mepof, with the traceback in the log.
    """
    log = store.log(job.step.id, job.fingerprint)
    try:
        with contextlib.ExitStack() as locks:
            note = partial(_note, emit, job.step.id)
            # The device first: a process may keep it for its later steps, which must not wait for
            # the lock of a step that waits for the device.
            if job.resources.device is not None:
                locks.enter_context(_reserved(job.resources.device, store, note, cancel))
            waiting = partial(note, "waiting: another run is making the same result")
            locks.enter_context(store.lock(job.fingerprint, waiting, cancel))
            if not job.again:
                action = store.find(job.fingerprint)
                if action is not None:
                    return Done(action, cached=True)
            store.bring(job.artifacts, note)
            action = _make(job, store, log, emit, cancel)
        if job.journal is None:  # nobody takes what runs every time
            store.share(action, note, replace=job.again)
        return Done(action, cached=False)
    except Exception as error:
        failure = _failure(error, job.step, store, log)
        if failure is error:
            raise
        raise failure from error


def execute_part(
    job: Job,
    name: str,
    store: Store,
    log: Path,
    emit: Callable[[Event], None],
    cancel: threading.Event,
) -> bytes:
    """Perform a part of a step for another machine, which runs the step itself.

    Raises:
        MepofError: any failure.
        AttributeError: steps of this kind have no parts.
    """
    identity = f"{job.fingerprint}-{name.replace(' ', '-')}"
    # The machine that runs the step may have died and another one have taken its place.
    waiting = partial(emit, StepNote(job.step.id, f"waiting: another run makes {name}"))
    with store.lock(identity, waiting, cancel):
        store.bring(job.artifacts, partial(_note, emit, job.step.id))
        work, left = store.take_work(identity)
        if left:
            end_orphans(work)
        log.write_text(f"--- {utc_now()} {job.step.id} {name} {job.fingerprint}\n")
        context = RecordingContext(
            step=job.step,
            inputs=job.inputs,
            output=work,
            work=work,
            cores=job.resources.cores,
            log=log,
            cache=store.cache,
            emit=emit,
            cancel=cancel,
            script=log.with_suffix(".sh"),
        )
        try:
            with _full_disk_detected(store, log):
                made: bytes = job.body.part(context, name)  # type: ignore[attr-defined]
                return made
        finally:
            store.drop_work(identity)


def _note(emit: Callable[[Event], None], step: str, text: str) -> None:
    emit(StepNote(step, text))


@contextlib.contextmanager
def _reserved(
    claim: Claim, store: Store, note: Callable[[str], None], cancel: threading.Event
) -> Iterator[None]:
    if claim.reserve is not None:
        claim.reserve(note, cancel)
        yield
    else:
        waiting = partial(note, f"waiting: another run uses the device {claim.name}")
        with store.lock(f"device-{claim.name}", waiting, cancel):
            yield


def _make(
    job: Job,
    store: Store,
    log: Path,
    emit: Callable[[Event], None],
    cancel: threading.Event,
) -> Action:
    step = job.step
    script, recipe = log.with_suffix(".sh"), log.with_suffix(".json")
    write_recipe(recipe, step, job.inputs)
    write_reproducer(script, store.root, recipe, step)
    with log.open("a") as file:
        file.write(f"--- {utc_now()} {step.id} ({step.kind}) {job.fingerprint}\n")
    work, left = store.take_work(job.fingerprint)
    if left:
        end_orphans(work)
    with store.scratch() as output:
        started = time.monotonic()
        context = RecordingContext(
            step=step,
            inputs=job.inputs,
            output=output,
            work=work,
            cores=job.resources.cores,
            log=log,
            cache=store.cache,
            emit=emit,
            cancel=cancel,
            journal=job.journal,
            parts=job.parts,
            tools=job.ingredients.tools,
            script=script,
        )
        with _full_disk_detected(store, log):
            job.body.run(context)
            _check_host_inputs(job, store, cancel)
            artifact = store.commit(output)
        seconds = round(time.monotonic() - started, 3)
    action = Action(job.fingerprint, step.id, job.ingredients, artifact, seconds, utc_now())
    store.record(action)
    store.drop_work(job.fingerprint)
    return action


@contextlib.contextmanager
def _full_disk_detected(store: Store, log: Path) -> Iterator[None]:
    # Detected while the unfinished output still exists, so that the free space is right.
    paths = (store.root, Path(tempfile.gettempdir()))
    try:
        yield
    except Exception as error:
        if means_full(error):
            raise store_full(*paths) from error
        if isinstance(error, WorkError) and child_ran_out(log, *paths):
            raise store_full(*paths) from error
        raise


def _check_host_inputs(job: Job, store: Store, cancel: threading.Event) -> None:
    # A file that is edited while a step reads it may match neither digest.
    host = HostDigests(store.host_memory)
    for name in sorted(job.host):
        if host.digest(job.inputs[name], cancel) != job.ingredients.inputs[name]:
            raise WorkError(f"{job.inputs[name]} changed while it was being read", "run again")


def _failure(error: Exception, step: Step, store: Store, log: Path) -> MepofError:
    if isinstance(error, Interrupted | StoreFull | ArtifactLost):
        return error
    if means_full(error):
        return store_full(store.root)
    if not isinstance(error, MepofError):
        with contextlib.suppress(OSError), log.open("a") as file:
            file.write("".join(traceback.format_exception(error)))
        text = " ".join(str(error).split())
        failure: MepofError = WorkError(
            f"this is a bug in mepof: {type(error).__name__}: {text}",
            "please report it with the log",
        )
    else:
        failure = error
    failure.message = f"{step.id}: {failure.message}"
    pointers = [f"see {log}"] if str(log) not in (failure.remedy or "") else []
    script = log.with_suffix(".sh")
    if script.exists():
        pointers.append(f"run it alone with {script}")
    failure.remedy = "; ".join([*([failure.remedy] if failure.remedy else []), *pointers])
    return failure
