"""``profile-collect``: boot an instrumented kernel, work it, and take the raw profile."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import cast

from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.apps import Action, App, load_app
from mepof.app.training import without
from mepof.device import agent
from mepof.device.observation import Branches
from mepof.device.protocol import DEVICES, INITRAMFS, Outcome, Session, branch_source
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.events import ConsoleReturned, ConsoleTaken
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Json, Step
from mepof.scenario.protocol import SCENARIOS
from mepof.scenario.script import read_script
from mepof.toolchain import guest


class ProfileCollect:
    """Params: ``algorithm``, ``scenario``, ``apps``, ``actions``, ``arch``, ``device``,
    ``seed``; ``without``, which cases the training must not run; for recordings of branches
    ``depth`` and ``period``, without which every branch is counted. Inputs: ``kernel``,
    ``guest``, ``script0``…, and what the device needs for recordings.

    Makes ``raw0``… and ``collection.json`` (actions and their coverage).
    """

    kind = "profile-collect"
    phase: Phase = "run"

    def resources(self, step: Step) -> Resources:
        device = DEVICES.get(str(step.params["device"]))
        return Resources(device=device.claim(str(step.params["arch"])))

    def identity(self, step: Step) -> Mapping[str, str]:
        # A scenario that cannot be played is told before the kernel for it is built.
        _require_shell(step.params)
        actions = _actions(
            step.params,
            {
                name: Path(given.path)
                for name, given in step.inputs.items()
                if isinstance(given, HostInput)
            },
        )
        name = str(step.params["device"])
        if ALGORITHMS.get(str(step.params["algorithm"])).records_branches:
            # So is a device that cannot record.
            branch_source(name).branch_recorder(str(step.params["arch"]))
        device = DEVICES.get(name)
        return {
            **device.identity(str(step.params["arch"])),
            "actions": sha256(repr(actions).encode()).hexdigest(),
        }

    def run(self, context: StepContext) -> None:
        params = context.params
        algorithm = ALGORITHMS.get(str(params["algorithm"]))
        scenario = SCENARIOS.get(str(params["scenario"]))
        apps = _apps(params)
        seed = cast(int, params["seed"])
        actions = _actions(params, context.inputs)
        work: list[agent.Request] = [agent.Exec(action.argv, action.seconds) for action in actions]
        if scenario.interactive:
            work = [agent.Shell()]
            context.note("at the guest's console: work the kernel, then leave with `exit`")
        before, after = algorithm.reset(), algorithm.collect()
        device, arch = DEVICES.get(str(params["device"])), str(params["arch"])
        branches, artifacts = None, {}
        if algorithm.records_branches:
            branches = Branches(cast(int | None, params.get("period")), cast(int, params["depth"]))
            artifacts = {name: context.inputs[name] for name in device.needs(arch, branches)}
            before, after = (*before, agent.Record(True)), (agent.Record(False), *after)
        session = Session(
            arch=arch,
            kernel=context.inputs["kernel"] / "kernel",
            initramfs=context.inputs["guest"] / INITRAMFS,
            requests=(*before, *work, *after),
            seed=seed,
            interactive=scenario.interactive,
            record=branches,
            artifacts=artifacts,
        )

        def replied(count: int) -> None:
            done = min(max(0, count - len(before)), len(actions))
            name = actions[done].name if done < len(actions) else "reading the profile"
            context.progress(done, len(actions), "actions", name)

        with _terminal(context) if scenario.interactive else nullcontext():
            outcome = device.boot(session, context.work / "boot", context.run, replied)
        _check(before, work, outcome)
        if outcome.branches is not None:
            shutil.move(outcome.branches, context.output / "raw0")
        answers = outcome.replies[-len(algorithm.collect()) :] if algorithm.collect() else ()
        for number, reply in enumerate(answers):
            if not isinstance(reply, agent.GetResult) or reply.errno:
                raise WorkError("the kernel offers no raw profile; was it built to?")
            (context.output / f"raw{number}").write_bytes(reply.data)
        collection = _collection(str(params["scenario"]), apps, actions)
        text = json.dumps({**collection, "seed": seed, "release": outcome.release}, indent=1)
        (context.output / "collection.json").write_text(text + "\n", encoding="utf-8")


def _require_shell(params: Mapping[str, Json]) -> None:
    """Refuse a scenario whose user would find no shell in the guest."""
    scenario, arch = str(params["scenario"]), str(params["arch"])
    if SCENARIOS.get(scenario).interactive and not guest.target(arch).shell:
        raise InputError(
            f"the scenario {scenario} needs a shell, and a guest of {arch} has none",
            "choose another scenario",
        )


def _apps(params: Mapping[str, Json]) -> tuple[App, ...]:
    apps = tuple(load_app(name) for name in cast(list[str], params["apps"]))
    return without(apps, cast(list[str], params.get("without", [])))


def _actions(params: Mapping[str, Json], inputs: Mapping[str, Path]) -> tuple[Action, ...]:
    """What the scenario picks, given the script files among the inputs."""
    apps = _apps(params)
    scripts = tuple(
        read_script(inputs[name])
        for number in range(len(apps))
        if (name := f"script{number}") in inputs
    )
    return SCENARIOS.get(str(params["scenario"])).pick(
        apps, cast(int, params["actions"]), cast(int, params["seed"]), scripts
    )


@contextmanager
def _terminal(context: StepContext) -> Iterator[None]:
    """The user's terminal, with nobody else writing to it."""
    if not sys.stdin.isatty():
        raise EnvironmentLack(
            "the scenario `manual` needs a terminal", "run the program from one, or use `script`"
        )
    context.emit(ConsoleTaken(context.step.id))
    try:
        yield
    finally:
        context.emit(ConsoleReturned(context.step.id))


def _check(before: tuple[agent.Request, ...], work: list[agent.Request], outcome: Outcome) -> None:
    for reply in outcome.replies[: len(before)]:
        if isinstance(reply, agent.PutResult) and reply.errno:
            raise WorkError("the kernel's counters cannot be reset; was it built to be profiled?")
    replies = outcome.replies[len(before) : len(before) + len(work)]
    for request, reply in zip(work, replies, strict=True):
        if isinstance(request, agent.Exec) and isinstance(reply, agent.ExecResult):
            agent.expect_success(request, reply)


def _collection(
    scenario: str, apps: tuple[App, ...], actions: tuple[Action, ...]
) -> dict[str, object]:
    counts = Counter(action.name for action in actions)
    every = [action.name for app in apps for action in app.actions]
    return {
        "scenario": scenario,
        "apps": [app.name for app in apps],
        "actions": [action.name for action in actions],
        "coverage": {
            "actions": len(every),
            "ran": sum(1 for name in every if counts[name]),
            "never": [name for name in every if not counts[name]],
        },
    }


BODY = ProfileCollect()
