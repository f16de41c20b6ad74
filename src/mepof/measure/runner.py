"""Measuring images in turns, in boots with different seeds that run every case once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mepof.app.launch import ServiceFailure
from mepof.app.service_logs import logs_of, remedy_of, with_end
from mepof.device import agent
from mepof.device.modules import ModuleNotLoaded
from mepof.device.protocol import GuestReset, Interval, KernelPanic, Outcome
from mepof.errors import WorkError
from mepof.measure.measurement import (
    PASSED,
    Boot,
    CaseMeasurement,
    Checked,
    MemoryBytes,
    Modelled,
    ModelledSide,
    Repeats,
    failure_of_app,
)
from mepof.measure.memory import MEMINFO, memory_of
from mepof.measure.result_line import result_of, unsupported_of
from mepof.measure.work import Work, result_text
from mepof.pmu.core import label_of, load_core
from mepof.pmu.events import cycles_of
from mepof.suite.cases import Case, selfcheck

# Of a command that no user limits, in the guest's time.
_CHECK_SECONDS = 120.0
_MIN_BOOTS = 2

CONTROL_SEEDS = 1000
"""Distance of the A/A control's seeds from those of the image. It is the maximal number of boots
of an image, so that evaluations with more boots can use a control's boots again."""


@dataclass(frozen=True)
class OneBoot(Checked):
    """The result of one boot: its measurements, or why the image is not sound.

    Attributes:
        service_logs: what each service wrote, if the image is not sound.
    """

    booted: bool
    self_check: str
    boot: Boot | None = None
    service_logs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ImageBoots(Checked):
    """The results of an image's boots: whether each was sound, and otherwise how one failed."""

    booted: bool
    self_check: str
    boots: tuple[Boot, ...]


@dataclass(frozen=True)
class Design:
    """How often each image is booted.

    Attributes:
        fewest: at least.
        most: at most; up to 1000.
    """

    fewest: int
    most: int


Turn = tuple[int, int]
"""An image, by its number, and the seed of its boot."""

Images = tuple[ImageBoots, ...]


def requests_of(work: Sequence[Work]) -> tuple[agent.Request, ...]:
    """What a guest does in a boot: the self-check, every case, and only then its memory and what
    services wrote.

    Reading that earlier would shift the timer ticks in every case, and so their counts.
    """
    check = agent.Exec(selfcheck(), _CHECK_SECONDS)
    done = (request for each in work for request in each.requests)
    return (check, *done, agent.Get(MEMINFO), *_logs(work).values())


def _logs(work: Sequence[Work]) -> dict[str, agent.Get]:
    return {name: request for each in work for name, request in each.logs.items()}


def _parted(
    work: Sequence[Work], replies: Sequence[agent.Reply]
) -> tuple[Sequence[agent.Reply], agent.Reply, dict[str, str]]:
    """The replies to the self-check and the cases, the one with the memory, and services' logs."""
    services = [*_logs(work)]
    end = len(replies) - len(services)
    return replies[: end - 1], replies[end - 1], logs_of(services, replies[end:])


def results_of(
    work: Sequence[Work], replies: Sequence[agent.Reply]
) -> list[tuple[Case, agent.ExecResult, bool]]:
    """Each case with the reply to it, and whether it could run.

    Args:
        replies: to what :func:`requests_of` gave.

    Raises:
        WorkError: the self-check, a setup or a case failed.
    """
    (first, *done), _, _ = _parted(work, replies)
    agent.expect_success(agent.Exec(selfcheck(), _CHECK_SECONDS), first)
    results: list[tuple[Case, agent.ExecResult, bool]] = []
    for each in work:
        count = len(each.requests)
        try:
            results += each.results(done[:count])
        except WorkError as failure:
            if each.app is not None:
                failure.message = failure_of_app(each.app, failure.message)
            raise
        del done[:count]
    return results


def measure_boot(
    work: Sequence[Work],
    seed: int,
    boot: Callable[[int, tuple[agent.Request, ...]], Outcome],
    core: str | None = None,
    machine_bytes: int | None = None,
    priced_by: str | None = None,
) -> OneBoot:
    """Boot an image, check it, and run the cases.

    An image that panics, resets, does not load a module or fails its checks is a result, not an
    error. A hang is an error, since it cannot be distinguished from an overloaded host.

    Args:
        work: what it measures.
        boot: boots with a seed, executes requests, and counts between marks.
        core: name of the core that the boot models, if any.
        machine_bytes: the machine's memory, if it is known.
        priced_by: name of the core by whose costs REP string instructions are priced; None where
            there are none.
    """
    requests = requests_of(work)
    try:
        outcome = boot(seed, requests)
    except (KernelPanic, GuestReset, ModuleNotLoaded) as failure:
        return OneBoot(False, failure.message)
    _, memory, logs = _parted(work, outcome.replies)
    try:
        results = results_of(work, outcome.replies)
    except WorkError as failure:
        return OneBoot(True, _explained(failure, logs), service_logs=logs)
    used = _memory(memory, machine_bytes)
    return OneBoot(True, PASSED, _boot(seed, results, outcome, core, used, priced_by))


def _explained(failure: WorkError, logs: Mapping[str, str]) -> str:
    """Why an image is not sound, with what may help, and the last lines of a service's log."""
    why, remedy = failure.message, failure.remedy
    if isinstance(failure, ServiceFailure):
        why, remedy = with_end(failure, logs), remedy_of(failure, logs)
    how, *lines = why.split("\n")
    return "\n".join((how if remedy is None else f"{how} ({remedy})", *lines))


def measure_memory(
    boot: Callable[[tuple[agent.Request, ...]], Outcome], machine_bytes: int | None
) -> MemoryBytes | None:
    """Boot an image only to see how much memory it takes then; None if it does not boot.

    Args:
        boot: boots and executes requests.
    """
    try:
        outcome = boot((agent.Get(MEMINFO),))
    except (KernelPanic, GuestReset, ModuleNotLoaded):
        return None  # the boots with cases say why
    return _memory(outcome.replies[0], machine_bytes)


def measure_images(
    first_seeds: Sequence[int],
    design: Design,
    round_of: Callable[[Sequence[Turn]], Sequence[OneBoot]],
    enough: Callable[[Images], bool],
    spent: Callable[[], bool] = lambda: False,
) -> tuple[Images, str]:
    """Boot images in turns until the results suffice.

    Every round boots each sound image once. The order is rotated by one from round to round, so
    that after as many rounds as images each image has been in every position once, and a steady
    drift over the evaluation (a machine that warms up) affects all alike. An image that failed is
    not booted again.

    Args:
        first_seeds: of each image; its further boots have the following seeds. A control's
            differs from that of its image.
        round_of: makes the boots of a round, in the given order.
        enough: whether the boots so far suffice; called from ``design.fewest`` rounds on.
        spent: whether the budget is used up; called from two rounds on, since an interval needs
            two boots.

    Returns:
        The boots of every image, and why there were no further ones.
    """
    images = [ImageBoots(True, PASSED, ()) for _ in first_seeds]
    for number in range(design.most):
        order = [(number + i) % len(images) for i in range(len(images))]
        turns = [(i, first_seeds[i] + number) for i in order if images[i].sound]
        for (image, _), made in zip(turns, round_of(turns), strict=True):
            boots = images[image].boots + ((made.boot,) if made.boot else ())
            images[image] = ImageBoots(made.booted, made.self_check, boots)
        if not any(image.sound for image in images):
            return tuple(images), "no image is sound"
        if number + 1 >= _MIN_BOOTS and spent():
            return tuple(images), "the budget was spent"
        if design.fewest <= number + 1 < design.most and enough(tuple(images)):
            return tuple(images), "every interval was narrow enough"
    return tuple(images), "the maximum number of boots was reached"


def _memory(reply: agent.Reply, machine_bytes: int | None) -> MemoryBytes:
    if not isinstance(reply, agent.GetResult) or reply.errno:
        raise WorkError(f"the guest agent could not read {MEMINFO}: {reply}")
    return memory_of(reply.data.decode("ascii", "replace"), machine_bytes)


def _boot(
    seed: int,
    results: Sequence[tuple[Case, agent.ExecResult, bool]],
    outcome: Outcome,
    core: str | None,
    memory: MemoryBytes,
    priced_by: str | None,
) -> Boot:
    ran = [(case, reply) for case, reply, can_run in results if can_run]
    unsupported = [
        unsupported_of(case, reply.text) for case, reply, can_run in results if not can_run
    ]
    if len(outcome.intervals) != len(ran):
        raise WorkError(f"{len(ran)} cases ran but {len(outcome.intervals)} intervals were counted")
    measured = []
    for (case, reply), interval in zip(ran, outcome.intervals, strict=True):
        result = result_of(case, result_text(case, reply))
        measured.append(
            CaseMeasurement(
                suite=case.suite,
                case=case.name,
                metric_group=case.metric,
                operations=result.operations,
                check=result.check,
                kernel_instructions=interval.kernel_instructions,
                user_instructions=interval.user_instructions,
                kernel_taken_branches=interval.kernel_taken_branches,
                user_taken_branches=interval.user_taken_branches,
                kernel_repeats=repeats_of(interval, priced_by),
                guest_nanoseconds=result.nanoseconds,
                figures=dict(result.figures),
                modelled=modelled(interval, core) if core is not None else None,
            )
        )
    return Boot(seed=seed, cases=tuple(measured), unsupported=tuple(unsupported), memory=memory)


def repeats_of(interval: Interval, priced_by: str | None) -> Repeats | None:
    """The kernel's REP string instructions, at the costs of the core of that name, if any."""
    counted = interval.kernel_repeats
    if counted is None or priced_by is None:
        return None
    cycles = load_core(priced_by).repeat_cycles(counted)
    return Repeats(**counted, cycles=cycles, core=label_of(priced_by))


def modelled(interval: Interval, name: str) -> Modelled:
    """The events and cycles of an interval on the core of that name.

    Raises:
        WorkError: the interval has no events.
    """
    if interval.kernel_events is None or interval.user_events is None:
        raise WorkError(f"the device modelled no events of the core {name}")
    return Modelled(
        core=label_of(name),
        kernel=_side(interval.kernel_events),
        user=_side(interval.user_events),
    )


def _side(events: Mapping[str, int]) -> ModelledSide:
    return ModelledSide(events=dict(events), cycles=cycles_of(events))
