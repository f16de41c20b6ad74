"""Follows releases: finds new ones, makes each once, and publishes it or holds it back.

One watcher works on a file's history at a time; others wait. A release that a killed watcher was at
is continued by the next one: its run finds the finished steps in the store, and what was published
already is only noted.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

from mepof.adapter.attempt import Attempt, RunProgram, passes
from mepof.adapter.feed.protocol import FEEDS, Follow, Release, branch_of
from mepof.adapter.history import Entry, History, State
from mepof.adapter.notify import Messenger, messages
from mepof.adapter.publish import is_published, write_index
from mepof.adapter.published import Published
from mepof.adapter.repository.protocol import REPOSITORIES
from mepof.adapter.watched import Task
from mepof.errors import Interrupted, MepofError, WorkError, listed
from mepof.executor.protocol import Executor
from mepof.plan.disk_full import full_disk_named
from mepof.source.download import Busy
from mepof.source.protocol import Workshop, locked

MAX_ATTEMPTS = 5
_MAX_NAMED = 4
_FIRST_RETRY, _MAX_RETRY = 600.0, 24 * 3600.0
# A server may ask for more, but not for ever.
_MAX_BUSY = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Watcher:
    """Works on a task.

    Attributes:
        workshop: for feeds, signatures and notifications.
        executor: fetches sources, and builds with old profiles.
        run: runs programs.
        now: seconds since the epoch.
        say: shows the user a line.
    """

    task: Task
    workshop: Workshop
    executor: Executor
    run: RunProgram
    now: Callable[[], float]
    say: Callable[[str], None]

    def round(self, look: bool = True) -> bool:
        """Process what is due, and tell of it.

        Args:
            look: ask the feeds which releases there are, as far as they may be asked again.

        Returns:
            Whether every feed that it was to ask has answered.

        Raises:
            Interrupted: the user asked to stop.
            MepofError: the history or the directory cannot be used.
        """
        directory = self.task.directory
        try:
            with full_disk_named(directory):
                directory.mkdir(parents=True, exist_ok=True)
                lock = directory / "lock"
                with locked(lock, self.workshop, f"another watcher works on {directory}"):
                    return self._work(self.task.history(), look)
        except OSError as error:
            raise WorkError(f"{directory} cannot be used: {error.strerror or error}") from error

    def next_at(self) -> float | None:
        """When there is something to do before the next look at the feeds, in seconds since the
        epoch; None if there is not."""
        history = self.task.history()
        return history.next_at(self._wanted(history))

    def warn(self) -> None:
        """Say what is to be expected of what was found so far."""
        history = self.task.history()
        for follow in self.task.watched.follow:
            self._warn(history, follow.name)

    def _warn(self, history: History, follow: str) -> None:
        """Say that machines which follow a repository get the highest branch alone."""
        entries = (e for e in history.entries() if e.follow == follow and e.state != "earlier")
        branches = {branch_of(entry.name): entry.name for entry in entries}
        if len(branches) > 1 and not self.task.formats().isdisjoint(REPOSITORIES.names()):
            self.say(
                f"{follow}: {listed(sorted(branches.values()), _MAX_NAMED)} are of different"
                " branches, and its repository has one newest kernel for all of them: give each"
                " branch a [[follow]] with a `match` of its own"
            )

    def _work(self, history: History, look: bool) -> bool:
        messenger = Messenger(self.task, self.workshop, self.now, self.say)
        messenger.deliver(history)
        answered = [self._look(history, each) for each in self.task.watched.follow if look]
        for entry in filter(self._wanted(history), history.due(self.now())):
            self._process(history, entry)
            messenger.deliver(history)
        return all(answered)

    def _wanted(self, history: History) -> Callable[[Entry], bool]:
        """Tells whether a release is of what the file follows. Where it selects otherwise than
        before, none is before the feed has answered."""
        follows = {
            each.name
            for each in self.task.watched.follow
            if history.answered(each.name, each.selection)
        }
        return lambda entry: entry.follow in follows

    def _look(self, history: History, follow: Follow) -> bool:
        known = history.memory(follow.name, follow.selection)
        if known.next_at > self.now() and known.failures:
            later = (known.next_at - self.now()) / 60
            self.say(f"{follow.name}: not asked, since it failed; again in {later:.0f} minutes")
            return False
        try:
            seen = FEEDS.get(follow.feed).look(follow, known.memory, self.workshop)
        except Interrupted:
            raise
        except MepofError as error:
            later = min(_MAX_RETRY, self.task.watched.interval * 2.0**known.failures)
            if isinstance(error, Busy):
                later = max(later, min(_MAX_BUSY, error.seconds))
            next_at = self.now() + _jittered(later)
            history.failed(follow.name, known.failures + 1, next_at, follow.selection)
            self.say(f"{follow.name}: {error}; again in about {later / 60:.0f} minutes")
            return False
        later = self.now() + self.task.watched.interval
        releases = seen.releases or ()
        added = history.saw(
            follow.name, releases, seen.memory, later, self._time(), follow.selection
        )
        for name in added:
            self.say(f"{follow.name}: {name} is new")
        if added:
            self._warn(history, follow.name)
        if seen.releases == ():  # said once: the next time, nothing has changed
            self.say(f"{follow.name}: no release matches `{follow.match}`")
        return True

    def _process(self, history: History, entry: Entry) -> None:
        try:
            name = self._directory(history, entry)
            target = self.task.published / name
            runs = self.task.directory / "runs" / name
            if not is_published(target):
                release = self._current(entry)
                entry = replace(entry, address=release.address)
                history.begun(entry, self._time())
                self.say(f"{entry.follow}: {entry.name} begins")
                self._attempt(history, entry, release).make(runs, target)
        except Interrupted:
            raise
        except (MepofError, OSError) as error:
            self._not_published(history, entry, error)
            return
        # After kill -9 between the two: what is published is noted, not made again.
        try:
            write_index(self.task.published, self.task.signer, self.workshop.run)
        except Interrupted:
            raise
        except (MepofError, OSError) as error:
            self._again(history, entry, f"it is not in the index: {_line(error)}")
            return
        self._end(history, entry, "published", "", directory=name)
        # Its results are copied; what it was made from is in the store.
        shutil.rmtree(runs, ignore_errors=True)

    def _current(self, entry: Entry) -> Release:
        """A release with its address: how it is verified, the file says now, not when the release
        was found."""
        follow = next(each for each in self.task.watched.follow if each.name == entry.follow)
        return FEEDS.get(follow.feed).current(follow, Release(entry.name, entry.address))

    def _attempt(self, history: History, entry: Entry, release: Release) -> Attempt:
        return Attempt(
            task=self.task,
            follow=entry.follow,
            release=release.name,
            address=release.address,
            version=release.version,
            executor=self.executor,
            run=self.run,
            last=self._last(history, entry),
            note=partial(self._note, history, entry),
            now=self.now,
            revision=history.revision(entry),
        )

    def _last(self, history: History, entry: Entry) -> tuple[Published, Path] | None:
        """The last good release of the same branch, if its directory is still there."""
        for each in history.last_published(entry.follow):
            if branch_of(each.name) != branch_of(entry.name):
                continue
            directory = self.task.published / self._directory(history, each)
            if is_published(directory):
                return Published.read(directory), directory
        return None

    def _directory(self, history: History, entry: Entry) -> str:
        """A name for directories: no two releases of a history have the same.

        ``a`` and ``b-c`` would have that of ``a-b`` and ``c``. Of such follows, the longer has
        another name, except where it was published under the plain one.
        """
        plain = re.sub(r"[^A-Za-z0-9.+~_-]", "_", entry.name)
        name = f"{entry.follow}-{plain}"
        apart = f"{name}-{sha256(entry.name.encode()).hexdigest()[:8]}"
        if plain != entry.name:
            return apart
        if is_published(self.task.published / name):
            made = Published.read(self.task.published / name)
            return name if (made.follow, made.release) == (entry.follow, entry.name) else apart
        follows = {each.follow for each in history.entries()}
        return apart if any(entry.follow.startswith(f"{each}-") for each in follows) else name

    def _not_published(self, history: History, entry: Entry, error: Exception) -> None:
        reason = _line(error)
        if passes(error) and entry.attempts + 1 < MAX_ATTEMPTS:
            self._again(history, entry, reason)
        else:
            self._end(history, entry, "held", reason)

    def _again(self, history: History, entry: Entry, reason: str) -> None:
        later = min(_MAX_RETRY, _FIRST_RETRY * 2.0 ** min(entry.attempts, MAX_ATTEMPTS))
        self._end(history, entry, "retry", reason, self.now() + _jittered(later))

    def _end(
        self,
        history: History,
        entry: Entry,
        state: State,
        reason: str,
        next_at: float = 0.0,
        directory: str | None = None,
    ) -> None:
        now = self._time()
        details = {"reason": reason} | ({"directory": directory} if directory else {})
        told = messages(self.task, entry, state, details, now)
        history.ended(entry, state, reason, now, next_at, told)
        self.say(
            ": ".join(part for part in (entry.follow, f"{entry.name} {state}", reason) if part)
        )

    def _note(self, history: History, entry: Entry, what: str, text: str) -> None:
        history.note(entry, self._time(), what, text)
        self.say(f"{entry.follow}: {entry.name} {what}: {text}")

    def _time(self) -> str:
        return datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="seconds")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(1.0, 1.25)
