"""Which functions of a kernel the actions of an app execute, and how often."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.apps import Action, load_app, memory_of
from mepof.app.launch import request
from mepof.device import agent
from mepof.device.protocol import DEVICES, INITRAMFS, Session
from mepof.errors import WorkError
from mepof.events import Event, StepStarted
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.plan.model import Plan, Result
from mepof.process import run
from mepof.profile.counts import read_counts

# What only the suites execute is counted too.
_PROGRAM = """set arch {arch}.
set scout off.
set config suites.
opt debian:linux-source-6.12 pgo trav {apps} O2.
"""
_KERNEL = "opt/instrument"
# Between two replies: a case may take minutes on an emulated, instrumented kernel.
_QUIET_SECONDS = 1800

#: The sum of a function's counters, for each function that ran.
Counts = Mapping[str, int]


class CountingKernel:
    """An instrumented kernel with a guest that has the programs of some apps.

    Args:
        arch: of the guest.
        apps: whose actions :meth:`counts` may run.
        store: where the kernel is, or will be.
    """

    def __init__(self, arch: str, apps: Sequence[str], store: Path) -> None:
        text = _PROGRAM.format(arch=arch, apps=";".join(apps))
        planned = plan_of(Source("general.g4", text))
        used = ("source", _KERNEL, "guest", *(f"suite/{name}" for name in apps))
        steps = tuple(step for step in planned.steps if step.id in used)
        self._plan = Plan(text, planned.seed, steps, (Result("kernel", "image", _KERNEL),))
        self._executor = LocalExecutor(store, os.cpu_count() or 1)
        self._arch = arch
        self._steps: dict[str, Path] = {}

    def missing(self) -> list[str]:
        """The steps that :meth:`make` would run."""
        return [each.step for each in self._executor.explain(self._plan) if each.state != "cached"]

    def make(self, out: Path) -> Path:
        """Build what is not in the store; the build's directory."""
        finished = self._executor.run(self._plan, out, _say)
        self._steps = {name: step.path for name, step in finished.run.steps.items()}
        return self._steps[_KERNEL]

    def counts(self, name: str, directory: Path) -> dict[str, Counts]:
        """What each action of an app executes in one boot.

        Args:
            directory: scratch for the boot.

        Raises:
            WorkError: an action failed, or the kernel did not give its counters.
        """
        app = load_app(name)
        added = self._steps.get(f"suite/{name}")
        algorithm = ALGORITHMS.get("pgo")
        reset, read = algorithm.reset(), algorithm.collect(False)
        session = Session(
            arch=self._arch,
            kernel=self._steps[_KERNEL] / "kernel",
            initramfs=self._steps["guest"] / INITRAMFS,
            requests=tuple(
                each for action in app.actions for each in (*reset, request(action), *read)
            ),
            seed=1,
            archives=() if added is None else (added / "archive.cpio",),
            memory=memory_of([app]),
            quiet_seconds=_QUIET_SECONDS,
        )

        def replied(count: int) -> None:
            done = count // 3
            if count % 3 == 0 and done < len(app.actions):
                _print(f"{name}: {done} of {len(app.actions)} {app.actions[done].name}")

        outcome = DEVICES.get("qemu").boot(session, directory, run, replied)
        groups = [outcome.replies[at : at + 3] for at in range(0, len(outcome.replies), 3)]
        return {
            action.name: _counts(action, replies, directory / "raw")
            for action, replies in zip(app.actions, groups, strict=True)
        }


def _counts(action: Action, replies: Sequence[agent.Reply], file: Path) -> Counts:
    _, done, read = replies
    if not isinstance(done, agent.ExecResult) or not isinstance(read, agent.GetResult):
        raise WorkError(f"the action {action.name} had no result")
    agent.expect_success(request(action), done)
    if read.errno or not read.data:
        raise WorkError("the kernel has no raw profile")
    file.write_bytes(read.data)
    found: Counter[str] = Counter()
    for function in read_counts(file):
        if function.total:
            found[function.name] += function.total
    return found


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _say(event: Event) -> None:
    if isinstance(event, StepStarted):
        _print(f"{event.step}: {event.reason}")
