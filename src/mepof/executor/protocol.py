"""The protocol of executors, which run plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mepof.events import Sink, unheard
from mepof.plan.engine import RunResult
from mepof.plan.explain import Explanation
from mepof.plan.model import Plan
from mepof.registry import Registry


@dataclass(frozen=True)
class Finished:
    """The outcome of a run: files in the output directory by result name, and the run itself."""

    files: Mapping[str, Path]
    run: RunResult


@dataclass(frozen=True)
class Tls:
    """The files by which machines of a cluster know each other.

    Attributes:
        ca: certificates of those who sign.
        cert: our certificate.
        key: its key.
    """

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True)
class Settings:
    """What an executor is made from.

    Attributes:
        store: root of the store of this machine.
        cores: how many cores to use.
        shared: URL of the store that other machines share, if there is one.
        scheduler: address of the scheduler of a cluster, if one is named.
        workers: how many workers to start, if that is said.
        tls: how machines of the cluster know each other, if that is said.
    """

    store: Path
    cores: int
    shared: str | None = None
    scheduler: str | None = None
    workers: int | None = None
    tls: Tls | None = None


class Executor(Protocol):
    """Runs plans with one store."""

    def explain(self, plan: Plan, sink: Sink = unheard) -> tuple[Explanation, ...]:
        """What a run of the plan would do; nothing is run.

        Args:
            sink: receives what is said while the plan is settled.
        """

    def run(self, plan: Plan, out: Path, sink: Sink) -> Finished:
        """Run a plan and copy its results to ``out``.

        Raises:
            MepofError: as of :meth:`mepof.plan.engine.Engine.run`.
        """


#: Each is called with its settings.
#:
#: Raises:
#:     InputError: the store cannot be used, or a setting is not for this executor.
EXECUTORS: Registry[Callable[[Settings], Executor]] = Registry(
    "mepof.executor", "EXECUTOR", "executor"
)
