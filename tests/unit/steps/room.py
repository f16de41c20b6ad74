"""Step contexts, and a scripted device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mepof.device import agent
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.protocol import Description, Interval, Outcome, Session
from mepof.events import Event
from mepof.kernel.description import BuildDescription, BuildSize, Origin
from mepof.measure.memory import MEMINFO
from mepof.plan.body import Claim, StepContext
from mepof.plan.model import Json, Step
from mepof.profile.artifact import ProfileDescription
from mepof.profile.quality import Quality
from mepof.registry import Registry


@dataclass
class Room:
    """Makes contexts of steps, and keeps their events."""

    root: Path
    events: list[Event] = field(default_factory=list)

    def context(self, kind: str, params: Mapping[str, Json], **given: Path) -> StepContext:
        """The context of a step; ``__`` in the name of an input stands for its dot."""
        inputs = {name.replace("__", "."): path for name, path in given.items()}
        output, work = self.root / f"{kind}-output", self.root / f"{kind}-work"
        for path in (output, work, self.root / "cache"):
            path.mkdir(exist_ok=True)
        return StepContext(
            step=Step(f"x/{kind}", kind, params),
            inputs=inputs,
            output=output,
            work=work,
            cores=2,
            log=self.root / "log",
            cache=self.root / "cache",
            emit=self.events.append,
            cancel=threading.Event(),
        )

    def directory(self, name: str, **files: str) -> Path:
        path = self.root / name
        path.mkdir()
        for file, text in files.items():
            (path / file.replace("_", ".")).write_text(text)
        return path


#: Of a guest with 512 MiB.
MEMINFO_TEXT = b"""MemTotal:         503848 kB
MemFree:          479504 kB
MemAvailable:     473472 kB
Buffers:               0 kB
Cached:             2072 kB
Slab:              12600 kB
SReclaimable:        172 kB
KernelStack:         448 kB
PageTables:          300 kB
"""

ORIGIN = Origin(source="linux", config="c", compiler="22.1.8", flags="f")
BUILD = BuildDescription(
    version="6.12.7",
    origin=ORIGIN,
    arch="x86-64",
    size_bytes=BuildSize(text=7, image=5),
    sections={".text": 7},
    cflags=(),
    ldflags=(),
    variables={},
    config_lines=(),
    overlays=(),
)


def describe(
    directory: Path,
    algorithm: str,
    quality: Quality,
    build: Origin | None = None,
    objects: tuple[str, ...] | None = None,
) -> None:
    """Write the description of a profile next to it."""
    ProfileDescription(
        algorithm=algorithm, build=build, quality=quality, executed_objects=objects
    ).write(directory)


class FakeDevice:
    """Gives scripted answers to requests, and keeps the sessions.

    Attributes:
        read: sessions that only read the guest's memory; not part of ``sessions``.
    """

    records_all = True

    def __init__(self, answer: Callable[[agent.Request], agent.Reply]) -> None:
        self.answer = answer
        self.sessions: list[Session] = []
        self.read: list[Session] = []
        self.intervals: tuple[Interval, ...] = ()
        self.error: Exception | None = None
        self.branches: bytes | None = None
        self.mode = ""
        self.locations: str | None = None
        self.claimed: str | None = None
        self.most_cpus = 1

    def check(self, arch: str) -> None:
        """It boots anything."""

    def identity(self, arch: str) -> Mapping[str, str]:
        return {"qemu": "fake"}

    def describe(self, arch: str) -> Description:
        return Description(name="qemu", accel="tcg", cpu="max", mode=self.mode)

    def claim(self, arch: str) -> Claim | None:
        return None if self.claimed is None else Claim(self.claimed)

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        name = "record" if isinstance(observed, Branches) else observed.core or "count"
        return {name: ArtifactNeed("made-for-it", files=("made",))}

    def max_cpus(self, arch: str) -> int:
        return self.most_cpus

    def counter(self, arch: str) -> str:
        return "fake"

    def branch_recorder(self, arch: str) -> str:
        return "fake"

    def boot(
        self, session: Session, directory: Path, runner: object, replied: Callable[[int], None]
    ) -> Outcome:
        reading = session.requests == (agent.Get(MEMINFO),)
        (self.read if reading else self.sessions).append(session)
        if self.error is not None:
            raise self.error
        for count in range(len(session.requests) + 1):
            replied(count)
        replies = tuple(self.answer(request) for request in session.requests)
        if reading:
            return Outcome("6.12.7", replies, (), "")
        branches = None
        if self.branches is not None:
            directory.mkdir(exist_ok=True)
            branches = directory / "branches.trace"
            branches.write_bytes(self.branches)
        locations = None
        if self.locations is not None and session.measure and session.measure.locations:
            directory.mkdir(exist_ok=True)
            locations = directory / "places.jsonl"
            locations.write_text(self.locations)
        return Outcome("6.12.7", replies, self.intervals, "", branches, locations)


def well(request: agent.Request) -> agent.Reply:
    match request:
        case agent.Put():
            return agent.PutResult(0)
        case agent.Get(path) if path == MEMINFO:
            return agent.GetResult(0, MEMINFO_TEXT)
        case agent.Get():
            return agent.GetResult(0, b"raw profile")
        case agent.Shell():
            return agent.ShellResult(0)
        case agent.Record():
            return agent.RecordResult()
        case _:
            return agent.ExecResult(0, 1, b"fine", False)


def register(monkeypatch: pytest.MonkeyPatch, registry: Registry[Any], variant: object) -> None:
    """Make a registry return one variant for every name."""
    get = Registry.get

    def only(self: Registry[Any], name: str) -> Any:
        return variant if self is registry else get(self, name)

    monkeypatch.setattr(Registry, "get", only)
