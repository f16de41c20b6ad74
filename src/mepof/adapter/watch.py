"""Follows releases: finds new ones, checks and runs each once, publishes it or holds it back.

One watcher works on a file's history at a time; others wait. A release that a killed watcher was at
is continued by the next one: its run finds the finished steps in the store, and what was published
already is only noted.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from mepof.adapter.feed.protocol import FEEDS, Follow
from mepof.adapter.fit import check_fit
from mepof.adapter.history import Entry, History
from mepof.adapter.publish import is_published, publish, write_index
from mepof.arch import get as architecture
from mepof.described import Described, check_distinct, read_described
from mepof.errors import EnvironmentLack, InputError, Interrupted, MepofError, WorkError
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Executor
from mepof.g4 import Source
from mepof.plan.model import Input, Plan, Step, StepInput
from mepof.source.protocol import Workshop, locked
from mepof.spec.kernel_build import KernelBuild
from mepof.toolchain.protocol import select

MAX_ATTEMPTS = 5
_FIRST_RETRY, _LONGEST_RETRY = 600.0, 24 * 3600.0
_MARK = "{source}"
_MEPOF = "from mepof.cli.main import main; main()"


class Watched(Described):
    """The file that a watcher reads.

    Attributes:
        program: path of a G4 program in which ``{source}`` stands for the release.
        publish: directory for what is published, the history and the runs.
        interval: seconds between two looks at a feed.
        sign: GnuPG key that signs the index.
        notify: command that is called with the state, the release and the reason.
        follow: what is followed.
    """

    program: str
    publish: str
    interval: int = Field(default=3600, ge=60)
    sign: str | None = None
    notify: tuple[str, ...] = ()
    follow: tuple[Follow, ...] = ()


@dataclass(frozen=True)
class Task:
    """What a watcher does: the file, its program's text, and where everything goes."""

    watched: Watched
    text: str
    directory: Path

    def history(self) -> History:
        """What was seen and done."""
        return History(self.directory / "history.sqlite")


def read_task(path: Path) -> Task:
    """The task that a file describes. Paths in it are relative to it.

    Raises:
        InputError: the file, its program or a table in it is wrong.
    """
    watched = read_described(path, Watched, "watch file")
    try:
        check_distinct(follow.name for follow in watched.follow)
    except ValueError as error:
        raise InputError(f"{path}: {error}", "give each [[follow]] its own name") from error
    if not watched.follow:
        raise InputError(f"{path} follows nothing", "add a table [[follow]]")
    for follow in watched.follow:
        FEEDS.get(follow.feed).check(follow)
    source = Source.read(path.parent / watched.program)
    if _MARK not in source.text:
        raise InputError(
            f"{path.parent / watched.program} does not say where the release goes",
            f"write {_MARK} for the kernel: adap {_MARK} pgo rand kbench.",
        )
    return Task(watched, source.text, (path.parent / watched.publish).absolute())


@dataclass(frozen=True)
class Watcher:
    """Works on a task.

    Attributes:
        workshop: for feeds.
        executor: runs programs.
        now: seconds since the epoch.
        say: shows the user a line.
    """

    task: Task
    workshop: Workshop
    executor: Executor
    now: Callable[[], float]
    say: Callable[[str], None]
    store: Path

    def round(self) -> None:
        """Look at every feed that is due, and process what is.

        Raises:
            Interrupted: the user asked to stop.
        """
        self.task.directory.mkdir(parents=True, exist_ok=True)
        with locked(self.task.directory / "lock", self.workshop, str(self.task.directory)):
            history = self.task.history()
            for follow in self.task.watched.follow:
                self._look(history, follow)
            for entry in history.due(self.now()):
                self._process(history, entry)

    def _look(self, history: History, follow: Follow) -> None:
        known = history.memory(follow.name)
        if known.next_at > self.now() and known.failures:
            return
        try:
            seen = FEEDS.get(follow.feed).look(follow, known.memory, self.workshop)
        except Interrupted:
            raise
        except MepofError as error:
            later = min(_LONGEST_RETRY, self.task.watched.interval * 2.0**known.failures)
            history.failed(follow.name, self.now() + _jittered(later))
            self.say(f"{follow.name}: {error}; again in about {later / 60:.0f} minutes")
            return
        later = self.now() + self.task.watched.interval
        added = history.saw(follow.name, seen.releases or (), seen.memory, later, self._time())
        for name in added:
            self.say(f"{follow.name}: {name} is new")

    def _process(self, history: History, entry: Entry) -> None:
        name = _directory(entry)
        target = self.task.directory / "published" / name
        if not is_published(target):
            history.begun(entry)
            self.say(f"{entry.follow}: {entry.name} begins")
            try:
                self._make(entry, self.task.directory / "runs" / name, target)
            except Interrupted:
                raise
            except MepofError as error:
                self._not_published(history, entry, error)
                return
        # After kill -9 between the two: what is published is noted, not made again.
        write_index(target.parent, self.task.watched.sign)
        history.ended(entry, "published", "", self._time())
        self._tell("published", entry, str(target))

    def _not_published(self, history: History, entry: Entry, error: MepofError) -> None:
        reason = " ".join(str(error).split())
        # A server, a full disk or a missing tool may be otherwise the next time; a release is not.
        passing = isinstance(error, _Unfetched | EnvironmentLack)
        if passing and entry.attempts + 1 < MAX_ATTEMPTS:
            later = min(_LONGEST_RETRY, _FIRST_RETRY * 2.0**entry.attempts)
            at = self.now() + _jittered(later)
            history.ended(entry, "retry", reason, self._time(), at)
            self._tell("retry", entry, reason)
        else:
            history.ended(entry, "held", reason, self._time())
            self._tell("held", entry, reason)

    def _make(self, entry: Entry, out: Path, target: Path) -> None:
        """Fetch, check, run and publish a release.

        Raises:
            MepofError: why it is not published.
        """
        text = self.task.text.replace(_MARK, f'"{entry.address}"')
        plan = plan_of(Source(f"{entry.name}.g4", text))
        sources = tuple(step for step in plan.steps if step.kind == "kernel-source")
        out.mkdir(parents=True, exist_ok=True)
        try:
            fetched = self.executor.run(
                Plan(plan.program, plan.seed, sources, ()), out, lambda event: None
            )
        except WorkError as error:
            raise _Unfetched(error.message, error.remedy) from error
        trees = {name: step.path for name, step in fetched.run.steps.items()}
        for step in plan.steps:
            if step.kind == "kernel-build":
                _check(step, trees)
        self._run(entry, out, text)
        publish(
            out,
            target,
            {
                "follow": entry.follow,
                "release": entry.name,
                "address": entry.address,
                "program": text,
                "published_at": self._time(),
            },
        )

    def _run(self, entry: Entry, out: Path, text: str) -> None:
        """``mepof run``, whose exit status includes goals, gates and tests."""
        program = out / "program.g4"
        program.write_text(text, encoding="utf-8")
        argv = [sys.executable, "-c", _MEPOF, "run", program, "--out", out]
        done = self.workshop.run([*argv, "--store", self.store], check=False)
        if done.status == Interrupted.exit_status:
            raise Interrupted("interrupted")
        reason = _reason(done.output) or f"mepof run ended with status {done.status}"
        if done.status == EnvironmentLack.exit_status or os.strerror(errno.ENOSPC) in reason:
            raise EnvironmentLack(reason)
        if done.status != 0:
            raise WorkError(reason)

    def _tell(self, state: str, entry: Entry, reason: str) -> None:
        self.say(f"{entry.follow}: {entry.name} {state}: {reason}")
        if self.task.watched.notify:
            message = json.dumps({"state": state, "release": entry.name, "reason": reason})
            try:
                argv = [*self.task.watched.notify, state, entry.name, message]
                self.workshop.run(argv, check=False, timeout=60.0)
            except MepofError as error:
                self.say(f"the notification failed: {error}")

    def _time(self) -> str:
        return datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="seconds")


class _Unfetched(WorkError):
    """A release could not be fetched, for a reason that may pass."""


def _check(step: Step, trees: dict[str, Path]) -> None:
    """Refuse a build that does not fit its tree, before anything is compiled."""
    asked = KernelBuild[Input].of(step, step.inputs)
    tree = trees.get(asked.source.step) if isinstance(asked.source, StepInput) else None
    if tree is None:
        return
    made = asked.instrumented
    names = (*asked.uses, *((made.algorithm,) if made is not None else ()))
    # A user's own file is left to the build.
    config = "+".join(part for part in asked.config if isinstance(part, str))
    toolchain = select(asked.toolchain)
    fit = check_fit(tree, architecture(asked.arch), toolchain, config, names)
    reasons = [*fit.reasons, *fit.config, *(r for each in fit.algorithms for r in each.reasons)]
    if reasons:
        near = f" ({reasons[0].nearest})" if reasons[0].nearest else ""
        raise WorkError(f"it does not fit: {reasons[0].message}{near}")


def _reason(output: str) -> str:
    """What ``mepof run`` says went wrong: its own lines."""
    lines = (line for line in output.splitlines() if line.startswith("mepof: "))
    return "; ".join(line.removeprefix("mepof: ") for line in lines)


def _directory(entry: Entry) -> str:
    """A name for directories: no two releases of a history have the same."""
    plain = re.sub(r"[^A-Za-z0-9.+~_-]", "_", entry.name)
    if plain != entry.name:
        plain += f"-{sha256(entry.name.encode()).hexdigest()[:8]}"
    return f"{entry.follow}-{plain}"


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(1.0, 1.25)
