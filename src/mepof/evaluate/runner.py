"""Measuring one image: boots with different seeds, every case once in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mepof.device import agent
from mepof.device.protocol import GuestReset, Interval, KernelPanic, Outcome
from mepof.errors import WorkError
from mepof.evaluate.core import load_core
from mepof.evaluate.measurement import Boot, CaseMeasurement, Modelled, ModelledSide
from mepof.evaluate.suite import Case, load_suite

# Generous: under emulation a case takes some seconds of the host's time, and the guest's
# limit counts guest time.
_CASE_SECONDS = 120.0
_FEWEST_BOOTS = 2
_SELF_CHECK_SUITE = "mepof"
_FIELD = re.compile(r"(\w+)=(\S+)")


@dataclass(frozen=True)
class ImageBoots:
    """What came of an image's boots: its measurements, or why it is not sound."""

    booted: bool
    self_check: str
    boots: tuple[Boot, ...]


def measure_image(
    cases: Sequence[Case],
    seeds: Sequence[int],
    boot: Callable[[int, tuple[agent.Request, ...]], Outcome],
    spent: Callable[[], bool] = lambda: False,
    core: str | None = None,
) -> ImageBoots:
    """Boot an image once for each seed, check it, and run the cases.

    An image that goes down or fails its checks is a result, not an error. A hang is an
    error: from outside it cannot be told from a host that is too busy.

    Args:
        boot: boots with a seed and has some requests done, counting between marks.
        spent: whether the budget is used up; asked before every boot but the first two,
            without which there is no interval.
        core: name of the core that the boots model, if any.
    """
    check = agent.Exec(load_suite(_SELF_CHECK_SUITE).selfcheck, _CASE_SECONDS)
    requests = (check, *(agent.Exec(case.argv, _CASE_SECONDS) for case in cases))
    boots: list[Boot] = []
    for seed in seeds:
        if len(boots) >= _FEWEST_BOOTS and spent():
            break
        try:
            outcome = boot(seed, requests)
        except (KernelPanic, GuestReset) as failure:
            return ImageBoots(False, failure.message, tuple(boots))
        try:
            for request, reply in zip(requests, outcome.replies, strict=True):
                agent.expect_success(request, reply)
        except WorkError as failure:
            return ImageBoots(True, failure.message, tuple(boots))
        boots.append(Boot(seed=seed, cases=_cases(cases, outcome, core)))
    return ImageBoots(True, "passed", tuple(boots))


def _cases(
    cases: Sequence[Case], outcome: Outcome, core: str | None
) -> tuple[CaseMeasurement, ...]:
    if len(outcome.intervals) != len(cases):
        raise WorkError(
            f"{len(cases)} cases ran but {len(outcome.intervals)} intervals were counted"
        )
    measured = []
    for case, reply, interval in zip(cases, outcome.replies[1:], outcome.intervals, strict=True):
        assert isinstance(reply, agent.ExecResult)
        fields = dict(_FIELD.findall(reply.text))
        counted = (fields.get("operations", ""), fields.get("elapsed_ns", ""))
        sound = fields.get("case") == case.name and fields.get("check") == "ok"
        if not sound or not all(number.isdecimal() for number in counted):
            raise WorkError(f"the case {case.name} gave no result line: {reply.output[:80]!r}")
        measured.append(
            CaseMeasurement(
                suite=case.suite,
                case=case.name,
                metric_group=case.metric,
                operations=int(fields["operations"]),
                check=fields["check"],
                kernel_instructions=interval.kernel_instructions,
                user_instructions=interval.user_instructions,
                kernel_taken_branches=interval.kernel_taken_branches,
                user_taken_branches=interval.user_taken_branches,
                guest_nanoseconds=int(fields["elapsed_ns"]),
                modelled=modelled(interval, core) if core is not None else None,
            )
        )
    return tuple(measured)


def modelled(interval: Interval, name: str) -> Modelled:
    """What an interval's events cost on the core of that name.

    Raises:
        WorkError: the interval has no events.
    """
    if interval.kernel_events is None or interval.user_events is None:
        raise WorkError(f"the device modelled no events of the core {name}")
    core = load_core(name)
    kernel = core.cycles(
        interval.kernel_instructions, interval.kernel_taken_branches, interval.kernel_events
    )
    user = core.cycles(
        interval.user_instructions, interval.user_taken_branches, interval.user_events
    )
    return Modelled(
        core=name,
        kernel=ModelledSide(events=dict(interval.kernel_events), cycles=kernel),
        user=ModelledSide(events=dict(interval.user_events), cycles=user),
    )
