"""Step bodies in a few lines, for the tests of the engine."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mepof.events import Event
from mepof.plan.body import Claim, Phase, Resources, StepContext
from mepof.plan.engine import Engine, RunResult
from mepof.plan.model import Input, Json, Plan, Step, StepInput
from mepof.plan.recipe import recipe_plan
from mepof.plan.store import Store


def write_all(context: StepContext) -> None:
    """Make one file out of the parameters and everything in the inputs."""
    lines = [json.dumps(dict(context.params), sort_keys=True)]
    for name, source in sorted(context.inputs.items()):
        files = [source] if source.is_file() else sorted(p for p in source.rglob("*"))
        lines += [f"{name}: {p.read_text()}" for p in files if p.is_file()]
    (context.output / "text").write_text("\n".join(lines))


@dataclass
class Toy:
    """A body that does what ``do`` says and remembers which steps it ran."""

    do: Callable[[StepContext], None] = write_all
    kind: str = "toy"
    phase: Phase = "other"
    cores: int = 1
    device: str | None = None
    yields: bool = False
    first: bool = False
    tools: dict[str, str] = field(default_factory=dict)
    volatile: bool = False
    version: int | None = None
    ran: list[str] = field(default_factory=list)

    def resources(self, step: Step) -> Resources:
        claim = None if self.device is None else Claim(self.device)
        return Resources(self.cores, claim, self.yields, first=self.first)

    def identity(self, step: Step) -> Mapping[str, str]:
        return self.tools

    def run(self, context: StepContext) -> None:
        self.ran.append(context.step.id)
        self.do(context)


def toy(identifier: str, *after: str, kind: str = "toy", **params: Json) -> Step:
    """A step that reads the artifacts of the steps ``after``."""
    inputs: dict[str, Input] = {name: StepInput(name) for name in after}
    return Step(identifier, kind, params, inputs)


def plan_of(*steps: Step) -> Plan:
    """A plan of these steps."""
    return Plan("a program.", 7, steps, ())


def run(
    root: Path,
    plan: Plan,
    *bodies: Toy,
    cores: int = 2,
    sink: Callable[[Event], None] = lambda event: None,
    again: bool = False,
) -> RunResult:
    """Run a plan with the store ``root/store`` and the output directory ``root/out``."""
    engine = Engine(Store(root / "store"), {b.kind: b for b in bodies}, cores, sink)
    return engine.run(plan, root / "out", again=again)


DIAMOND = plan_of(
    toy("first"),
    toy("left", "first", n=1),
    toy("right", "first", n=2),
    toy("last", "left", "right"),
)


def main(arguments: list[str]) -> None:
    """A process of its own.

    ``diamond ROOT N``: run DIAMOND, and be killed at the N-th fsync.
    ``shared ROOT MARKS``: run one step, printing every event; MARKS gets a line per execution.
    ``orphan ROOT PIDFILE``: run one step whose child kills us and stays.
    ``step --store S --recipe R``: as the command line's ``mepof step``.
    """
    verb, *rest = arguments
    if verb == "diamond":
        _die_at_fsync(int(rest[1]))
        run(Path(rest[0]), DIAMOND, Toy(use_work))
    elif verb == "shared":
        run(Path(rest[0]), plan_of(toy("one")), Toy(marking(Path(rest[1]))), sink=_print)
    elif verb == "orphan":
        run(Path(rest[0]), plan_of(toy("one")), Toy(lambda context: _leave_child(context, rest[1])))
    elif verb == "step":
        store, recipe = rest[1], Path(rest[3])
        engine = Engine(Store(Path(store)), {"toy": Toy()}, 2, lambda event: None)
        engine.run(recipe_plan(recipe), Path(store).parent / "alone")


def use_work(context: StepContext) -> None:
    """Count the attempts of this step in its scratch directory, then write as usual."""
    with (context.work / "attempts").open("a") as file:
        file.write("attempt\n")
    write_all(context)


def marking(marks: Path) -> Callable[[StepContext], None]:
    """Leave a mark for every execution."""

    def do(context: StepContext) -> None:
        with marks.open("a") as file:
            file.write("executed\n")
        write_all(context)

    return do


def _leave_child(context: StepContext, pid_file: str) -> None:
    context.run(
        ["sh", "-c", 'echo $$ > "$1"; kill -9 $PPID; exec sleep 1000', "sh", pid_file],
    )


def _die_at_fsync(number: int) -> None:
    real, calls = os.fsync, [0]

    def fsync(fd: Any) -> None:
        calls[0] += 1
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        real(fd)

    os.fsync = fsync


def _print(event: Event) -> None:
    print(event, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
