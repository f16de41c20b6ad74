"""The engine: runs the steps that the store does not have, in parallel where possible."""

from __future__ import annotations

import contextlib
import os
import platform
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import mepof
from mepof.errors import InputError, Interrupted, MepofError
from mepof.events import Event, Sink, StepFailed, StepFinished, StepNote, StepStarted
from mepof.plan.action import Action, Artifact
from mepof.plan.body import Resources, StepBody
from mepof.plan.digest import HostDigests
from mepof.plan.disk_full import full_disk_named, means_full
from mepof.plan.execute import Done, Job, Perform, execute
from mepof.plan.explain import VOLATILE, is_volatile, latest_actions, why_it_runs
from mepof.plan.fingerprint import Ingredients, body_of
from mepof.plan.interrupt import stop_on_signals
from mepof.plan.journal import Journal
from mepof.plan.model import HostInput, Json, Plan, Step, StepInput
from mepof.plan.progress import ProgressFile
from mepof.plan.recovery import affected, known_recovery, recovered
from mepof.plan.store import ArtifactLost, Store

# An artifact that is lost more often than this is lost for good.
_MAX_LOSSES = 3


@dataclass(frozen=True)
class StepResult:
    """The result of a step.

    Attributes:
        path: the artifact, a read-only directory in the store. If others share the store, it is
            there only if it was read here, or is a result of the program.
        cached: it was already in the store.
        seconds: how long it took; for a cached step, when it was first made.
    """

    digest: str
    path: Path
    cached: bool
    seconds: float
    fingerprint: str


@dataclass(frozen=True)
class RunResult:
    """The results of steps by id: of all, unless one failed.

    Attributes:
        plan: as it was carried out: with the steps by which it recovered from failures.
    """

    steps: Mapping[str, StepResult]
    plan: Plan


class Engine:
    """Runs plans on one store.

    Args:
        bodies: the body for each kind of step.
        cores: how many cores all running steps may use together.
        sink: receives events; called by one thread at a time.
        perform: performs one step; by default on this machine.
        placed: ``perform`` finds where a step can run and waits until it can, so the engine starts
            all that are ready.
    """

    def __init__(
        self,
        store: Store,
        bodies: Mapping[str, StepBody],
        cores: int,
        sink: Sink,
        perform: Perform = execute,
        placed: bool = False,
    ) -> None:
        self._store = store
        self._bodies = bodies
        self._cores = max(1, cores)
        self._sink = sink
        self._perform = perform
        self._placed = placed

    def run(
        self,
        plan: Plan,
        out: Path,
        *,
        again: bool = False,
        cancel: threading.Event | None = None,
        salvage: Callable[[RunResult], str] = lambda finished: "",
    ) -> RunResult:
        """Run a plan to its end and journal it.

        Where the body of a step that failed can recover, its plan is carried out instead. After
        another failure, the steps that do not need its result are carried out, unless the error
        concerns all of them. What happens to a device may rest on what failed, so no step that
        claims one starts after that.

        A missing host input or tool is reported before the first step runs. In the main
        thread, SIGINT and SIGTERM stop the run as ``cancel`` does; a second signal stops it at
        once.

        Args:
            out: the run's output directory, created if missing; it holds the journal.
            again: run every step even if the store has its result.
            cancel: set it from another thread to stop the run.
            salvage: called with what is finished, if a step failed. What it answers is added to
                the remedy of the error.

        Raises:
            InputError: a host input is missing, a kind of step is unknown, or the store or
                ``out`` is not writable.
            EnvironmentLack: a tool is missing.
            StoreFull: the file system of the store or of ``out`` is full.
            Interrupted: the run was stopped; finished steps are kept.
            MepofError: the first error of a step, after the steps that could still run.
        """
        event = cancel or threading.Event()
        with full_disk_named(self._store.root, out), stop_on_signals(event):
            self._store.open()
            try:
                out.mkdir(parents=True, exist_ok=True)
                journal = Journal(out)
            except OSError as error:
                if means_full(error):
                    raise
                raise InputError(
                    f"{out} cannot be written: {error.strerror}",
                    "choose another directory with --out",
                ) from error
            with contextlib.closing(journal), contextlib.closing(ProgressFile(out)) as progress:
                return _Run(self, plan, journal, progress, again, event).run(salvage)


class _Run:
    """The state of one run. Only the thread that called ``Engine.run`` uses it; the threads of
    steps only put their outcome into ``_ended``."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        journal: Journal,
        progress: ProgressFile,
        again: bool,
        cancel: threading.Event,
    ) -> None:
        self._store = engine._store
        self._cores = engine._cores
        self._sink = engine._sink
        self._perform = engine._perform
        self._placed = engine._placed
        self._plan = plan
        self._journal = journal
        self._progress = progress
        self._again = again
        self._cancel = cancel
        self._kinds = engine._bodies
        self._bodies = {step.id: body_of(step, engine._bodies) for step in plan.steps}
        self._emitting = threading.Lock()
        self._done: dict[str, StepResult] = {}
        self._ready: dict[str, Job] = {}
        self._running: dict[str, Job] = {}
        self._ended: queue.SimpleQueue[tuple[str, Done | Exception, float]] = queue.SimpleQueue()
        # By step: its fingerprint, and why it failed.
        self._failed: dict[str, tuple[str, Exception]] = {}
        # Steps that run although the plan has changed what they read, and those of which is known
        # whether an earlier run recovered from their failure.
        self._outdated: set[str] = set()
        self._artifacts: dict[str, Artifact] = {}
        self._losses: dict[str, int] = {}
        self._looked_up: set[str] = set()

    def run(self, salvage: Callable[[RunResult], str]) -> RunResult:
        try:
            self._prepare()
            self._loop()
            if self._cancel.is_set():
                raise Interrupted("interrupted")
            if self._failed:
                _, first = next(iter(self._failed.values()))
                left = salvage(RunResult(dict(self._done), self._plan))
                if left and isinstance(first, MepofError):
                    first.remedy = f"{first.remedy}; {left}" if first.remedy else left
                raise first
        except BaseException as error:
            self._end_running(error)
            reported = self._close(error)
            if reported is error:
                raise
            raise reported from error
        self._journal.write("end", state="done")
        return RunResult(dict(self._done), self._plan)

    def _end_running(self, error: BaseException) -> None:
        """After an error of the engine itself (its disk is full), leave no step running."""
        if self._running:
            self._cancel.set()
        # At a second signal, the user does not want to wait.
        if not isinstance(error, KeyboardInterrupt):
            while self._running:
                del self._running[self._ended.get()[0]]

    def _close(self, error: BaseException) -> BaseException:
        if isinstance(error, KeyboardInterrupt | Interrupted):
            error = Interrupted(
                "interrupted", "finished steps are kept; run the same command again to continue"
            )
        state = "interrupted" if isinstance(error, Interrupted) else "failed"
        # The disk may be full; the error itself matters more.
        with contextlib.suppress(OSError):
            self._journal.write("end", state=state, message=str(error))
        return error

    def _prepare(self) -> None:
        self._tools = {
            step.id: dict(self._bodies[step.id].identity(step)) for step in self._plan.steps
        }
        tools: dict[str, set[str]] = {}
        for identity in self._tools.values():
            for name, value in identity.items():
                tools.setdefault(name, set()).add(value)
        self._journal.write(
            "run",
            program=self._plan.program,
            seed=self._plan.seed,
            tools={name: ", ".join(sorted(values)) for name, values in sorted(tools.items())},
            versions={
                "mepof": mepof.__version__,
                "python": platform.python_version(),
                "host": f"{platform.system()} {platform.release()} {platform.machine()}",
            },
            store=str(self._store.root),
            cores=self._cores,
            pid=os.getpid(),
            directory=str(Path.cwd()),
        )
        self._journal_plan()
        host = HostDigests(self._store.host_memory)
        self._host: dict[str, str] = {}
        for step in self._plan.steps:
            for given in step.inputs.values():
                if isinstance(given, HostInput) and given.path not in self._host:
                    notify = partial(self._emit, StepNote(step.id, f"reading {given.path}"))
                    self._host[given.path] = host.digest(Path(given.path), self._cancel, notify)
        self._urgency = _longest_paths(self._plan)

    def _loop(self) -> None:
        while True:
            if not self._is_over():
                self._settle()
                self._start_what_fits()
            if not self._running:
                if not self._is_over() and self._lost_results():
                    continue
                return
            self._finish(*self._ended.get())

    def _is_over(self) -> bool:
        """Whether nothing more may start."""
        return self._cancel.is_set() or any(
            # An error that is not ours is the cluster's.
            not isinstance(error, MepofError) or error.ends_run
            for _, error in self._failed.values()
        )

    def _lost_results(self) -> bool:
        """Bring what the user reads; whether some of it is lost and has to be made again."""
        read = {
            i.step for s in self._plan.steps for i in s.inputs.values() if isinstance(i, StepInput)
        }
        names = [r.step for r in self._plan.results] or self._done.keys() - read
        wanted = {name: self._artifacts[name] for name in names if name in self._done}
        try:
            self._store.bring(wanted, lambda text: self._emit(StepNote("results", text)))
        except ArtifactLost as error:
            if self._rewind(error, "results"):
                return True
            self._failed["results"] = ("", error)
        return False

    def _rewind(self, error: ArtifactLost, reader: str) -> bool:
        """Make lost artifacts again; False if that has been tried too often."""
        lost = [n for n, result in self._done.items() if result.digest in error.digests]
        for name in lost or [reader]:
            self._losses[name] = self._losses.get(name, 0) + 1
            if self._losses[name] > _MAX_LOSSES:
                return False
        for name in lost:
            self._store.refuse(self._done.pop(name).fingerprint)
            self._emit(StepNote(name, f"running again: {error.why}"))
        for name, job in list(self._ready.items()):
            if any(each.digest in error.digests for each in job.artifacts.values()):
                del self._ready[name]
        return True

    def _settle(self) -> None:
        """Take results from the store, and make jobs of the other steps whose inputs exist."""
        for step in self._plan.steps:
            if step.id in self._done or step.id in self._running:
                continue
            job = self._ready.get(step.id) or self._job(step)
            if job is None:
                continue
            if any(job.fingerprint == failed for failed, _ in self._failed.values()):
                self._ready.pop(step.id, None)
                continue
            self._ready[step.id] = job
            if job.again or any(r.fingerprint == job.fingerprint for r in self._running.values()):
                continue
            action = self._store.find(job.fingerprint)
            if action is not None:
                del self._ready[step.id]
                self._settle_as(job, Done(action, cached=True))
            elif (known := self._known_recovery(job)) is not None:
                self._adopt(known)
                self._settle()
                return

    def _known_recovery(self, job: Job) -> Plan | None:
        """The recovery that an earlier run found for a step."""
        if job.step.id in self._looked_up:
            return None
        self._looked_up.add(job.step.id)
        return known_recovery(self._plan, job.step, job.body, self._in_store)

    def _in_store(self, step: Step) -> bool:
        self._know(step)
        job = self._job(step)
        return job is not None and self._store.find(job.fingerprint) is not None

    def _adopt(self, plan: Plan) -> None:
        """Go on with another plan; what it does not change remains done."""
        changed = affected(plan, self._plan)
        self._plan = plan
        self._urgency = _longest_paths(plan)
        for step in plan.steps:
            self._know(step)
        for name in changed:
            self._done.pop(name, None)
            self._ready.pop(name, None)
            self._failed.pop(name, None)
        self._outdated |= changed & self._running.keys()
        self._journal_plan()

    def _journal_plan(self) -> None:
        """Write what is to be made, so that readers see the steps that have not begun."""
        steps: list[Json] = [
            {"step": step.id, "kind": step.kind, "inputs": list(_sources(step))}
            for step in self._plan.steps
        ]
        self._journal.write("plan", sync=False, steps=steps)

    def _know(self, step: Step) -> None:
        if step.id not in self._bodies:
            self._bodies[step.id] = body_of(step, self._kinds)
            self._tools[step.id] = dict(self._bodies[step.id].identity(step))

    def _job(self, step: Step) -> Job | None:
        digests: dict[str, str] = {}
        paths: dict[str, Path] = {}
        artifacts: dict[str, Artifact] = {}
        for name, given in step.inputs.items():
            if isinstance(given, HostInput):
                digests[name] = self._host[given.path]
                paths[name] = Path(given.path).absolute()
            elif given.step in self._done:
                digests[name] = self._done[given.step].digest
                paths[name] = self._done[given.step].path
                artifacts[name] = self._artifacts[given.step]
            else:
                return None
        body = self._bodies[step.id]
        volatile = is_volatile(body)
        ingredients = Ingredients.of(step, body, digests, self._tools[step.id])
        asked = body.resources(step)
        return Job(
            step,
            body,
            ingredients,
            ingredients.fingerprint(),
            paths,
            artifacts,
            frozenset(n for n, given in step.inputs.items() if isinstance(given, HostInput)),
            asked if self._placed else replace(asked, cores=max(1, min(asked.cores, self._cores))),
            self._journal.path if volatile else None,
            self._again or volatile or step.id in self._losses,
        )

    def _start_what_fits(self) -> None:
        # The longest path to the end first; a smaller step after it may fill a gap.
        def order(job: Job) -> tuple[bool, int]:
            return not job.resources.first, -self._urgency[job.step.id]

        for job in sorted(self._ready.values(), key=order):
            if self._failed and job.resources.device is not None:
                continue
            if all(r.fingerprint != job.fingerprint for r in self._running.values()) and (
                self._placed or self._fits(job.resources)
            ):
                self._start(job)

    def _fits(self, wanted: Resources) -> bool:
        running = [job.resources for job in self._running.values()]
        return (
            sum(r.reserved for r in running) + wanted.reserved <= self._cores
            and (wanted.device is None or all(r.device != wanted.device for r in running))
            and not (wanted.yields and any(r.yields for r in running))
        )

    def _start(self, job: Job) -> None:
        del self._ready[job.step.id]
        self._running[job.step.id] = job
        reason = self._reason(job)
        self._write("start", job, reason=reason)
        self._emit(StepStarted(job.step.id, job.step.kind, reason))
        # A daemon, so that a second signal can end the process without waiting for the step.
        threading.Thread(target=self._work, args=(job,), name=job.step.id, daemon=True).start()

    def _work(self, job: Job) -> None:
        started = time.monotonic()
        outcome: Done | Exception
        try:
            outcome = self._perform(job, self._store, self._emit, self._cancel)
        except Exception as error:
            outcome = error
        self._ended.put((job.step.id, outcome, round(time.monotonic() - started, 3)))

    def _finish(self, step: str, outcome: Done | Exception, seconds: float) -> None:
        job = self._running.pop(step)
        outdated = step in self._outdated
        self._outdated.discard(step)
        if isinstance(outcome, Done):
            self._settle_as(job, outcome)
            if outdated:
                del self._done[step]
            return
        if self._cancel.is_set():
            # A child that we killed may fail its step with another error.
            outcome = Interrupted("interrupted")
        retried = False
        if not self._is_over() and not isinstance(outcome, Interrupted):
            plan = None if outdated else recovered(self._plan, job.step, job.body, outcome)
            if plan is not None:
                self._adopt(plan)
            retried = outdated or plan is not None
            if isinstance(outcome, ArtifactLost):
                retried = self._rewind(outcome, step)
        if isinstance(outcome, Interrupted):
            self._cancel.set()
        elif not retried:
            self._failed[step] = (job.fingerprint, outcome)
        message = outcome.message if isinstance(outcome, MepofError) else str(outcome)
        log = str(self._store.log(step, job.fingerprint))
        interrupted = isinstance(outcome, Interrupted)
        self._emit(StepFailed(step, job.step.kind, message, seconds, log, interrupted, retried))
        with contextlib.suppress(OSError):
            self._write("fail", job, seconds=seconds, message=message, log=log)

    def _settle_as(self, job: Job, done: Done) -> None:
        action = done.action
        digest = action.artifact.digest
        self._failed.pop(job.step.id, None)
        self._artifacts[job.step.id] = action.artifact
        self._done[job.step.id] = StepResult(
            digest, self._store.object(digest), done.cached, action.seconds, job.fingerprint
        )
        # The store also knows that a step is cached, so there is no need to sync.
        self._write(
            "cached" if done.cached else "finish",
            job,
            sync=not done.cached,
            digest=digest,
            seconds=action.seconds,
            log=str(self._store.log(action.step, job.fingerprint)),
        )
        self._emit(StepFinished(job.step.id, job.step.kind, digest, action.seconds, done.cached))

    def _write(self, event: str, job: Job, *, sync: bool = True, **fields: str | float) -> None:
        self._journal.write(
            event,
            sync=sync,
            step=job.step.id,
            kind=job.step.kind,
            phase=job.body.phase,
            fingerprint=job.fingerprint,
            inputs=list(_sources(job.step)),
            **fields,
        )

    def _emit(self, event: Event) -> None:
        with self._emitting:
            self._progress.take(event)
            self._sink(event)

    @cached_property
    def _past(self) -> Mapping[str, Action]:
        return latest_actions(self._store)

    def _reason(self, job: Job) -> str:
        if job.again:
            return "asked to run again" if self._again else VOLATILE
        why = why_it_runs(self._store, self._past, job.step, job.ingredients)
        return "; ".join(change.text for change in why)


def _sources(step: Step) -> tuple[str, ...]:
    """The steps whose artifacts a step reads."""
    return tuple(g.step for g in step.inputs.values() if not isinstance(g, HostInput))


def _longest_paths(plan: Plan) -> dict[str, int]:
    """For every step, the number of steps on the longest path from it to an end of the plan."""
    length = {step.id: 1 for step in plan.steps}
    for step in reversed(plan.steps):
        for given in step.inputs.values():
            if not isinstance(given, HostInput):
                length[given.step] = max(length[given.step], length[step.id] + 1)
    return length
