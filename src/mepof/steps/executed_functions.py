"""``executed-functions``: counts in which functions each measured case executes how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mepof.device import modules, observation
from mepof.device.modules import ModuleNotLoaded
from mepof.device.protocol import (
    DEVICES,
    EMULATOR_MEMORY,
    INITRAMFS,
    GuestReset,
    KernelPanic,
    Session,
    quiet_seconds,
)
from mepof.errors import WorkError
from mepof.measure.executed import CaseFunctions, ExecutedFunctions, executed_functions
from mepof.measure.runner import requests_of, results_of
from mepof.measure.work import Work, memory_of, work_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Input, Step
from mepof.pmu.locations import read_raw
from mepof.spec import executed_functions as spec
from mepof.steps.app_programs import archives
from mepof.steps.measured_boots import apps_in, cases_in, planned_work
from mepof.suite.cases import cases_digest


class ExecutedFunctionsBody:
    """Makes ``functions.json``, without cases if the kernel is not sound."""

    kind = spec.ExecutedFunctions.kind
    phase: Phase = "run"

    def check(self, step: Step) -> None:
        """There is nothing that the measurement does not check."""

    def resources(self, step: Step) -> Resources:
        asked = spec.ExecutedFunctions[Input].of(step, step.inputs)
        return Resources(
            device=DEVICES.get(asked.device).claim(asked.arch),
            needs=frozenset({asked.arch}),
            memory=memory_of(planned_work(asked.metrics, asked.apps)) + EMULATOR_MEMORY,
        )

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = spec.ExecutedFunctions[Input].of(step, step.inputs)
        work = planned_work(asked.metrics, asked.apps)
        return {
            **DEVICES.get(asked.device).identity(asked.arch),
            "cases": cases_digest(cases_in(work)),
            "memory": str(memory_of(work)),
        }

    def run(self, context: StepContext) -> None:
        asked = spec.ExecutedFunctions[Path].of(context.step, context.inputs)
        work = work_of(asked.metrics, apps_in(app.file for app in asked.apps))
        try:
            cases = _cases(context, asked, work)
        except (KernelPanic, GuestReset, ModuleNotLoaded) as failure:
            cases = _unknown(context, failure)
        ExecutedFunctions(cases=cases).write(context.output)


def _cases(
    context: StepContext, asked: spec.ExecutedFunctions[Path], work: Sequence[Work]
) -> tuple[CaseFunctions, ...]:
    names = [name for each in work for name in each.names]
    own = (request for each in work if each.is_own for request in each.commands)

    def replied(count: int) -> None:
        done = min(max(0, count), len(names))
        context.progress(done, len(names), "requests", names[done - 1] if done else "booting")

    outcome = modules.boot(
        DEVICES.get(asked.device),
        Session(
            arch=asked.arch,
            kernel=asked.kernel / "kernel",
            initramfs=asked.guest / INITRAMFS,
            requests=requests_of(work),
            seed=asked.seed,
            measure=observation.Measure(locations=True),
            artifacts=asked.artifacts,
            archives=archives(asked.suites, [app.programs for app in asked.apps]),
            memory=memory_of(work),
            quiet_seconds=quiet_seconds(own),
            cpus=asked.cpus,
        ),
        asked.kernel,
        context.work / "boot",
        context.run,
        replied,
    )
    assert outcome.locations is not None
    try:
        ran = [case for case, _, can_run in results_of(work, outcome.replies) if can_run]
    except WorkError as failure:
        return _unknown(context, failure)
    return executed_functions(
        [(case.suite, case.name) for case in ran], read_raw(outcome.locations), asked.kernel
    )


def _unknown(context: StepContext, failure: WorkError) -> tuple[CaseFunctions, ...]:
    """The measurement says more about a kernel that is not sound."""
    why = failure.message.partition("\n")[0]
    context.note(f"it remains unknown which functions the cases execute: {why}")
    return ()


BODY = ExecutedFunctionsBody()
