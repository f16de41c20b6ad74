"""The interface between the engine and step bodies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from mepof.events import Event, StepNote, StepProgress
from mepof.plan.model import Json, Step
from mepof.process import Completed, run

#: What a step needs that works with the user's terminal.
TERMINAL = "terminal"

Phase = Literal["build", "boot", "run", "convert", "other"]


@dataclass(frozen=True)
class Claim:
    """What a step has for itself while it runs.

    Attributes:
        name: of the device.
        reserve: waits until this process has one of several such devices. Its arguments are what
            it calls with a line for the user, such as why it must wait, and what is set to give up,
            upon which it raises Interrupted. Without it there is one device, which runs with one
            store share.
        release: gives back what ``reserve`` took. A process that performs steps of several runs
            calls it when a run ends; otherwise the end of the process gives it back.
    """

    name: str
    reserve: Callable[[Callable[[str], None], threading.Event], None] | None = None
    release: Callable[[], None] | None = None


@dataclass(frozen=True)
class Resources:
    """What a step occupies while it runs.

    Attributes:
        cores: how many cores it can make use of; the engine grants at most its budget.
        device: the device that it needs exclusively, if any.
        yields: it keeps all granted cores busy, but a single free one is enough to start it, and
            other steps may start beside it: as ``make -j`` beside a boot. One such step runs at a
            time.
        needs: what else the machine must offer, such as ``x86-64``: that it can build and boot
            kernels of this architecture.
        memory: MiB that it takes at most, as far as is known; a cluster shares out the memory of
            its machines by it.
        part: what each of its parts asks for, if other machines can perform them.
        first: it starts before steps on which more depends, since what it leaves behind shortens
            them.
    """

    cores: int = 1
    device: Claim | None = None
    yields: bool = False
    needs: frozenset[str] = frozenset()
    memory: int = 0
    part: Resources | None = None
    first: bool = False

    @property
    def reserved(self) -> int:
        """How many cores must be free to start it, and are then taken from other steps."""
        return 1 if self.yields else self.cores


@dataclass(frozen=True)
class Elsewhere:
    """Other machines, which perform parts of a step.

    Attributes:
        width: how many parts they perform at a time.
        call: has one of them perform the part of that name, and gives what
            :class:`StepBody`'s ``part`` returned there. Any thread may call it.
    """

    width: int
    call: Callable[[str], bytes]


@dataclass(frozen=True)
class StepContext:
    """Everything that a running step may use.

    Attributes:
        inputs: directory (or host file) of every input, by name; read only.
        output: empty directory to fill; it becomes the artifact when ``run`` returns.
        work: scratch directory that survives an interruption of the same step (same
            fingerprint), so that a build can resume; deleted after success.
        cores: granted cores.
        log: the step's log file.
        cache: directory for derived data that any step may reuse and anyone may delete.
        emit: receives events.
        cancel: set when the run is interrupted.
        journal: the journal of the run so far for ``volatile`` bodies; None for all others,
            whose results must not depend on it.
        parts: performs parts of the step on other machines; None if there are none.
        tools: what the body's ``identity`` gave when the step was planned.
    """

    step: Step
    inputs: Mapping[str, Path]
    output: Path
    work: Path
    cores: int
    log: Path
    cache: Path
    emit: Callable[[Event], None]
    cancel: threading.Event
    journal: Path | None = None
    parts: Elsewhere | None = None
    tools: Mapping[str, str] = field(default_factory=dict)

    @property
    def params(self) -> Mapping[str, Json]:
        """The step's parameters."""
        return self.step.params

    def progress(self, done: int, total: int | None, unit: str, text: str = "") -> None:
        """Report how far the step has come."""
        self.emit(StepProgress(self.step.id, done, total, unit, text))

    def note(self, text: str) -> None:
        """Show the user one line."""
        self.emit(StepNote(self.step.id, text))

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        on_line: Callable[[str], None] | None = None,
        watch: Callable[[], str | None] | None = None,
        interactive: bool = False,
        check: bool = True,
    ) -> Completed:
        """Run a program with its output in the step's log; an interrupt of the run ends it.

        Takes the arguments of :func:`mepof.process.run`.
        """
        return run(
            argv,
            cwd=cwd,
            env=self.command_started(argv, cwd, env or {}),
            log=self.log,
            on_line=on_line,
            timeout=timeout,
            cancel=self.cancel,
            watch=watch,
            interactive=interactive,
            check=check,
        )

    def command_started(
        self, argv: Sequence[str | Path], cwd: Path | None, env: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Called with every command before it runs; returns its environment variables."""
        return env


class StepBody(Protocol):
    """Performs one kind of step. Bodies are stateless; the engine may run many at once.

    Seven more attributes are optional. ``version: int | str`` is part of the fingerprint: raise it
    when the body makes a different result from the same ingredients. ``volatile: bool``
    set to True makes the step run every time, even if the store has its result (a
    report). ``check(step: Step) -> None`` refuses wrong input before anything is made
    (:func:`mepof.plan.preflight.preflight`); it needs no tool, and neither does
    ``check_in(step: Step, plan: Plan) -> None``, which looks at the steps that it reads from as
    well. ``pin(step, pinning) -> Step`` settles what the step leaves open when a run is planned
    (:func:`mepof.plan.pin.pinned`). ``recover(plan: Plan, step: Step, error: Exception | None) ->
    Plan | None`` gives the plan with further steps in which a step that failed can succeed
    (:func:`mepof.plan.recovery.replaced`). Without an error it gives the same plan: the engine
    looks whether an earlier run has made these steps. ``part(context, name) -> bytes`` performs a
    part of the step on another machine (:class:`Elsewhere`), with scratch and no output.
    """

    kind: str
    phase: Phase

    def resources(self, step: Step) -> Resources:
        """The resources that the step occupies."""

    def identity(self, step: Step) -> Mapping[str, str]:
        """Everything except params and inputs that determines the result: versions of the tools
        that it runs, digests of mepof's native sources, of a distribution's tarball.

        Raises:
            EnvironmentLack: a tool is missing.
        """

    def run(self, context: StepContext) -> None:
        """Fill ``context.output``."""
