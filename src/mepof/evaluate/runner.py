"""Measuring one image: boots with different seeds, every case once in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mepof.device import agent
from mepof.device.protocol import GuestReset, KernelPanic, Outcome
from mepof.errors import WorkError
from mepof.evaluate.measurement import Boot, CaseMeasurement, Unsupported
from mepof.evaluate.suite import Case, load_suite

# Generous: under emulation a case takes some seconds of the host's time, and the guest's
# limit counts guest time.
_CASE_SECONDS = 120.0
_FEWEST_BOOTS = 2
_SELF_CHECK_SUITE = "mepof"
_FIELD = re.compile(r"(\w+)=(\S+)")
_READ = ("operations", "elapsed_ns", "round")
# What automake's test programs say when they cannot run here.
_SKIPPED = 77


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
) -> ImageBoots:
    """Boot an image once for each seed, check it, and run the cases.

    An image that goes down or fails its checks is a result, not an error. A hang is an
    error: from outside it cannot be told from a host that is too busy.

    Args:
        boot: boots with a seed and has some requests done, counting between marks.
        spent: whether the budget is used up; asked before every boot but the first two,
            without which there is no interval.
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
                if request is check or not _skipped(reply):
                    agent.expect_success(request, reply)
        except WorkError as failure:
            return ImageBoots(True, failure.message, tuple(boots))
        boots.append(_boot(seed, cases, outcome))
    return ImageBoots(True, "passed", tuple(boots))


def _skipped(reply: agent.Reply) -> bool:
    return isinstance(reply, agent.ExecResult) and reply.status == _SKIPPED


def _boot(seed: int, cases: Sequence[Case], outcome: Outcome) -> Boot:
    ran, unsupported = [], []
    for case, reply in zip(cases, outcome.replies[1:], strict=True):
        assert isinstance(reply, agent.ExecResult)
        fields = dict(_FIELD.findall(reply.text))
        if not _skipped(reply):
            ran.append((case, reply, fields))
        elif fields.get("case") == case.name and "needs" in fields:
            unsupported.append(Unsupported(suite=case.suite, case=case.name, needs=fields["needs"]))
        else:
            raise _no_result_line(case, reply)
    if len(outcome.intervals) != len(ran):
        raise WorkError(f"{len(ran)} cases ran but {len(outcome.intervals)} intervals were counted")
    measured = []
    for (case, reply, fields), interval in zip(ran, outcome.intervals, strict=True):
        counted = (fields.get("operations", ""), fields.get("elapsed_ns", ""))
        sound = fields.get("case") == case.name and fields.get("check") == "ok"
        if not sound or not all(_is_number(text) for text in counted):
            raise _no_result_line(case, reply)
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
                figures={
                    name: int(text)
                    for name, text in fields.items()
                    if name not in _READ and _is_number(text)
                },
            )
        )
    return Boot(seed=seed, cases=tuple(measured), unsupported=tuple(unsupported))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _no_result_line(case: Case, reply: agent.ExecResult) -> WorkError:
    return WorkError(f"the case {case.name} gave no result line: {reply.output[:80]!r}")
