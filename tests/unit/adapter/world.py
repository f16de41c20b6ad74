"""A watcher whose kernels are built by nobody: what a run would leave is written instead."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mepof.adapter.attempt import RunProgram
from mepof.adapter.feed.git import FEED
from mepof.adapter.feed.protocol import Follow, Release, Seen
from mepof.adapter.history import History
from mepof.adapter.watch import Watcher
from mepof.adapter.watched import read_task
from mepof.errors import InputError
from mepof.executor.protocol import Executor
from mepof.plan.journal import Journal
from mepof.plan.model import Plan
from mepof.plan.store import Store
from mepof.process import Completed, run
from mepof.source.protocol import Workshop

FILE = """
program = "update.g4"
publish = "out"

[[follow]]
name = "stable"
feed = "git"
url = "https://example.org/linux.git"
match = "v6.12.*"
"""
PROGRAM = "adap {source} autofdo rand kbench.\neval plain;adap syscall.\n"
PROFILE = "vfs_read:{}:10\n 1: {}\nvfs_write:{}:10\n 1: {}\n"


def profile(changed: int) -> str:
    """A profile in which ``vfs_write`` has that share of samples, in percent."""
    return PROFILE.format(100 - changed, 100 - changed, changed, changed)


def lay(tree: Path, sublevel: int, write: str = "return 1;") -> Path:
    """A kernel with two functions that have samples."""
    (tree / "fs").mkdir(parents=True, exist_ok=True)
    (tree / "Makefile").write_text(f"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = {sublevel}\n")
    (tree / "Kbuild").write_text("obj-y += fs/\n")
    (tree / "fs/read.c").write_text("int vfs_read(void)\n{\n\treturn 0;\n}\n")
    (tree / "fs/write.c").write_text(f"int vfs_write(void)\n{{\n\t{write}\n}}\n")
    return tree


@dataclass
class Builder:
    """Stands for ``mepof run``.

    Attributes:
        outcomes: the status and what is said, by release; by ``RELEASE/full`` and the like of one
            kind of run alone.
        speeds: of the image of a release; 100 if it is not here.
        ran: every run, as ``RELEASE/full``, ``RELEASE/reuse`` or ``RELEASE/full/last-good``.
        changed: the share of samples of ``vfs_write``, in percent.
        size: of a report, in bytes.
        counts: the profile, if it is one of counters.
    """

    outcomes: dict[str, tuple[int, str]] = field(default_factory=dict)
    speeds: dict[str, int] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    programs: dict[str, str] = field(default_factory=dict)
    changed: int = 5
    size: int = 0
    counts: bytes | None = None

    def __call__(self, program: Path, out: Path) -> Completed:
        parts = out.parts[out.parts.index("runs") + 1 :]
        release = parts[0].partition("-")[2]
        name = "/".join([release, *parts[1:]])
        self.ran.append(name)
        text = program.read_text()
        self.programs[name] = text
        if out.name == "last-good":
            old, new = (int(Path(p).read_text()) for p in re.findall(r"[^\s;]+\.img", text)[:2])
            allowed = float(re.findall(r"goal geomean (\S+)\.\n", text)[0])
            percent = 100 * (new - old) / old
            missed = f"mepof: goal missed: adap, geomean: {percent:.1f} of {allowed}"
            return Completed((), int(percent < allowed), missed)
        status, said = self.outcomes.get(name, self.outcomes.get(release, (0, "")))
        if status == 0:
            (out / "adap.img").write_text(str(self.speeds.get(release, 100)))
            (out / "journal.jsonl").touch()
            if self.size:
                (out / "report.html").write_bytes(bytes(self.size))
            if not text.lstrip().startswith("set name adap.\nrecomp"):
                if self.counts is None:
                    (out / "adap.afdo").write_text(profile(self.changed))
                else:
                    (out / "adap.profdata").write_bytes(self.counts)
        return Completed((), status, said)


@dataclass
class Trees:
    """Stands for an executor: the trees of releases, and builds with what drift they have.

    Attributes:
        matched: percent of samples that match a build, by release.
        gone: the releases that no archive has any more.
    """

    trees: dict[str, Path] = field(default_factory=dict)
    matched: dict[str, float] = field(default_factory=dict)
    error: Exception | None = None
    gone: set[str] = field(default_factory=set)
    built: list[str] = field(default_factory=list)
    root: Path = Path()

    def run(self, plan: Plan, out: Path, sink: object) -> Any:
        steps = {}
        release = ""
        for step in plan.steps:
            if step.kind == "kernel-source":
                if self.error is not None:
                    raise self.error
                release = str(step.params["address"]).rpartition("=")[2]
                if release in self.gone:
                    raise InputError(f"linux-source-6.12 has no version {release}")
                if release in self.trees:
                    steps[step.id] = SimpleNamespace(path=self.trees[release])
            else:
                path = self.root / f"build-{release.rpartition('/')[2]}"
                path.mkdir(exist_ok=True)
                self.built.append(release)
                drift = f'{{"matched_percent": {self.matched.get(release, 99.0)}}}'
                (path / "drift.json").write_text(drift)
                steps[step.id] = SimpleNamespace(path=path)
        return SimpleNamespace(run=SimpleNamespace(steps=steps, plan=plan))


@dataclass
class Sources:
    """Fetches sources as a run does; builds are those of :class:`Trees`, or like them."""

    real: Executor
    builds: Any

    def run(self, plan: Plan, out: Path, sink: Any) -> Any:
        if all(step.kind == "kernel-source" for step in plan.steps):
            return self.real.run(plan, out, sink)
        return self.builds.run(plan, out, sink)


def watcher_of(
    root: Path, executor: Any, builder: RunProgram, clock: Callable[[], float], said: list[str]
) -> Watcher:
    """A watcher on ``root/watch.toml``, with real programs for all but building."""
    work = root / "work"
    work.mkdir(exist_ok=True)
    workshop = Workshop(
        root / "cache", work, run, said.append, threading.Event(), lambda *shown: None
    )
    (root / "cache").mkdir(exist_ok=True)
    return Watcher(read_task(root / "watch.toml"), workshop, executor, builder, clock, said.append)


def states(root: Path) -> dict[str, str]:
    return {e.name: e.state for e in History(root / "out/history.sqlite").entries()}


def reason(root: Path, name: str) -> str:
    entries = History(root / "out/history.sqlite").entries()
    return next(e.reason for e in entries if e.name == name)


def events(root: Path, name: str) -> list[tuple[str, str]]:
    history = History(root / "out/history.sqlite")
    entry = next(e for e in history.entries() if e.name == name)
    return [(event.what, event.text) for event in history.events(entry)]


@dataclass
class World:
    """A watcher whose feed and runs are given by the test, and a clock that it moves."""

    root: Path
    tags: list[str] = field(default_factory=list)
    feed_error: Exception | None = None
    builder: Builder = field(default_factory=Builder)
    executor: Trees = field(default_factory=Trees)
    said: list[str] = field(default_factory=list)
    asked: int = 0
    clock: float = 1_000_000.0

    def look(self, follow: Follow, memory: str, workshop: Workshop) -> Seen:
        self.asked += 1
        if self.feed_error is not None:
            raise self.feed_error
        made = [FEED.current(follow, Release(tag, "")) for tag in self.tags]
        return Seen(None, memory) if memory == str(self.tags) else Seen(tuple(made), str(self.tags))

    def watcher(self) -> Watcher:
        return watcher_of(self.root, self.executor, self.builder, lambda: self.clock, self.said)

    def round(self) -> bool:
        return self.watcher().round()

    def add(self, tag: str, write: str = "return 1;") -> None:
        """A release appears, whose tree is there."""
        tree = lay(self.root / "trees" / tag, 1, write)
        self.executor.trees[tag] = tree
        self.tags.append(tag)

    def configure(self, text: str) -> None:
        """Put lines before the tables of the file."""
        whole = FILE.replace("[[follow]]", f"{text}\n[[follow]]", 1)
        (self.root / "watch.toml").write_text(whole)

    def states(self) -> dict[str, str]:
        return states(self.root)

    def published(self) -> list[str]:
        found = self.root.glob("out/published/[!.]*/provenance.json")
        return sorted(path.parent.name for path in found)

    def provenance(self, name: str) -> dict[str, Any]:
        path = self.root / f"out/published/stable-{name}/provenance.json"
        made: dict[str, Any] = json.loads(path.read_text())
        return made

    def index(self) -> list[str]:
        text = (self.root / "out/published/index.json").read_text()
        return [each["release"] for each in json.loads(text)["releases"]]


def finish(out: Path, store: Store, digests: dict[str, str]) -> None:
    """Write the journal of a run that made artifacts."""
    journal = Journal(out)
    journal.write("run", program="", seed=0, tools={}, versions={}, store=str(store.root), cores=1)
    for step, digest in digests.items():
        shown = {"step": step, "kind": "k", "phase": "build", "fingerprint": "f", "inputs": []}
        journal.write("finish", **shown, digest=digest, seconds=1.0, log="")  # type: ignore[arg-type]
    journal.close()
