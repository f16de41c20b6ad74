"""Which functions of a kernel the actions of an app execute, and how many instructions of each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from platform import machine

from mepof.app.apps import Action, load_app, memory_of
from mepof.app.launch import request
from mepof.device import agent
from mepof.device.protocol import DEVICES, INITRAMFS, Session
from mepof.errors import WorkError
from mepof.events import Event, StepStarted
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.measure.result_line import SKIPPED
from mepof.plan.model import Plan, Result
from mepof.pmu.locations import functions_of, locations_of, read_raw
from mepof.pmu.settings import modelling
from mepof.process import run
from mepof.suite.cases import suite_names

ROOT = Path(__file__).parents[2]
_PROGRAM = """set config {config}.
set core {core}.
opt debian:linux-source-6.12 pgo trav {apps} O2.
eval plain.img;opt.img.
"""
_KERNEL = "plain/build"
_CORE = "skylake"
_MARKED = "/tmp/marked"
# Between two replies: an action may take minutes on a modelled core.
_QUIET_SECONDS = 3600

#: Instructions of each function that ran.
Instructions = Mapping[str, int]


class LocatingKernel:
    """A plain kernel on the emulated PMU, which tells functions apart, with some apps' programs.

    Args:
        apps: whose actions :meth:`instructions` may run.
        store: where the kernel is, or will be.
    """

    def __init__(self, config: str, apps: Sequence[str], store: Path) -> None:
        text = _PROGRAM.format(config=config, core=_CORE, apps=";".join(apps))
        planned = plan_of(Source("overlap.g4", text))
        used = ("source", _KERNEL, "guest", "pmu", *(f"suite/{name}" for name in apps))
        steps = tuple(step for step in planned.steps if step.id in used)
        self._plan = Plan(text, planned.seed, steps, (Result("kernel", "image", _KERNEL),))
        self._executor = LocalExecutor(store, os.cpu_count() or 1)
        self._steps: dict[str, Path] = {}

    def make(self, out: Path) -> Path:
        """Build what is not in the store; the kernel's directory."""
        finished = self._executor.run(self._plan, out, _say)
        self._steps = {name: step.path for name, step in finished.run.steps.items()}
        return self._steps[_KERNEL]

    def instructions(self, name: str, directory: Path) -> dict[str, Instructions]:
        """What each action of an app executes in one boot; those that the kernel cannot run are
        left out.

        Args:
            directory: scratch for the boot.

        Raises:
            WorkError: an action failed.
        """
        app = load_app(name)
        added = self._steps.get(f"suite/{name}")
        # The cases of suites mark their work themselves.
        marked = () if name in suite_names() else (_MARKED,)
        requests = [replace_argv(request(action), marked) for action in app.actions]
        session = Session(
            arch="x86-64",
            kernel=self._steps[_KERNEL] / "kernel",
            initramfs=self._steps["guest"] / INITRAMFS,
            requests=(agent.Put(_MARKED, 0o755, _marked(directory)), *requests),
            seed=1,
            measure=replace(modelling(_CORE), locations=True),
            artifacts={"pmu": self._steps["pmu"]},
            archives=() if added is None else (added / "archive.cpio",),
            memory=memory_of([app]),
            quiet_seconds=_QUIET_SECONDS,
        )

        def replied(count: int) -> None:
            if 0 < count <= len(app.actions):
                _print(f"{name}: {count} of {len(app.actions)} {app.actions[count - 1].name}")

        outcome = DEVICES.get("qemu").boot(session, directory / "boot", run, replied)
        ran = list(_ran(app.actions, requests, outcome.replies[1:]))
        assert outcome.locations is not None
        located = locations_of(
            _CORE,
            [(name, action) for action in ran],
            read_raw(outcome.locations),
            functions_of(self._steps[_KERNEL]),
        )
        return {
            case.case: {function.name: function.instructions for function in case.functions}
            for case in located.cases
        }


def replace_argv(asked: agent.Exec, before: tuple[str, ...]) -> agent.Exec:
    """The request, with words before its program and without a limit that modelling exceeds."""
    return agent.Exec((*before, *asked.argv), _QUIET_SECONDS)


def _ran(
    actions: Sequence[Action], requests: Sequence[agent.Exec], replies: Sequence[agent.Reply]
) -> list[str]:
    found = []
    for action, asked, reply in zip(actions, requests, replies, strict=True):
        if not isinstance(reply, agent.ExecResult):
            raise WorkError(f"the action {action.name} had no result")
        if reply.status == SKIPPED:
            continue
        agent.expect_success(asked, reply)
        found.append(action.name)
    return found


def _marked(directory: Path) -> bytes:
    directory.mkdir(parents=True, exist_ok=True)
    made, abi = directory / "marked", ROOT / "native" / "abi"
    flags = ("-std=c17", "-O2", "-static", f"-I{abi}", f"-I{abi / machine()}")
    run(["musl-gcc", *flags, "-o", made, ROOT / "bench" / "overlap" / "marked.c"])
    return made.read_bytes()


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _say(event: Event) -> None:
    if isinstance(event, StepStarted):
        _print(f"{event.step}: {event.reason}")
