"""Measuring images in boots."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mepof.device import agent
from mepof.device.protocol import Interval, KernelHang, KernelPanic, Outcome
from mepof.errors import WorkError
from mepof.measure.measurement import Boot, Repeats
from mepof.measure.metrics import METRICS
from mepof.measure.runner import (
    Design,
    Images,
    OneBoot,
    Turn,
    measure_boot,
    measure_images,
)
from mepof.measure.work import work_of
from mepof.pmu.core import load_core
from mepof.suite.cases import load_suite

WORK = work_of(["pipe"], ())
CASES = WORK[0].cases
MEMINFO_TEXT = b"""MemTotal: 503848 kB
MemFree: 479504 kB
Buffers: 0 kB
Cached: 2072 kB
Slab: 12600 kB
SReclaimable: 172 kB
KernelStack: 448 kB
PageTables: 300 kB
"""
GOOD = "case={} operations=100 elapsed_ns=5000 check=ok\n"


def exec_result(text: str, status: int = 0) -> agent.ExecResult:
    return agent.ExecResult(status, 1, text.encode(), False)


def outcome(*texts: str, selfcheck: int = 0, intervals: int = len(CASES)) -> Outcome:
    """A boot whose cases print these texts, by default valid results."""
    said = texts or tuple(GOOD.format(case.name) for case in CASES)
    ran = (exec_result("selfcheck", selfcheck), *(exec_result(text) for text in said))
    replies: tuple[agent.Reply, ...] = (*ran, agent.GetResult(0, MEMINFO_TEXT))
    return Outcome("6.12", replies, tuple(Interval(n, 2, 3, 4) for n in range(intervals)), "")


def test_a_boot_checks_itself_and_runs_all_cases() -> None:
    seen: list[tuple[int, tuple[agent.Request, ...]]] = []

    def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        seen.append((seed, requests))
        return outcome()

    found = measure_boot(WORK, 3, boot)
    assert (found.booted, found.self_check) == (True, "passed")
    assert found.boot is not None
    ((seed, requests),) = seen
    assert seed == found.boot.seed == 3
    assert isinstance(requests[0], agent.Exec)
    assert requests[0].argv == load_suite("mepof").selfcheck
    assert len(requests) == 2 + len(CASES)
    # Anything before the cases would shift the timer ticks in them.
    assert requests[-1] == agent.Get("/proc/meminfo")
    assert found.boot.memory is not None
    assert found.boot.memory.slab == 12600 * 1024
    case = found.boot.cases[1]
    assert (case.case, case.metric_group, case.operations) == ("pipe512", "pipe", 100)
    assert (case.kernel_instructions, case.guest_nanoseconds) == (1, 5000)


def test_a_device_that_cannot_model_the_core_is_an_error() -> None:
    with pytest.raises(WorkError, match="modelled no events of the core zen4"):
        measure_boot(WORK, 3, lambda seed, requests: outcome(), core="zen4")


def test_an_image_that_does_not_boot_is_a_result() -> None:
    def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        raise KernelPanic("the kernel went down: BUG")

    assert measure_boot(WORK, 1, boot) == OneBoot(False, "the kernel went down: BUG")


def test_a_hang_is_an_error_because_the_host_may_be_the_cause() -> None:
    def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        raise KernelHang("the guest answered nothing for 600 s")

    with pytest.raises(KernelHang):
        measure_boot(WORK, 1, boot)


def test_an_image_that_fails_its_self_check_is_a_result() -> None:
    found = measure_boot(WORK, 1, lambda seed, requests: outcome(selfcheck=1))
    assert found.booted
    assert "selfcheck` failed with status 1" in found.self_check
    assert found.boot is None


def made(turns: Sequence[Turn]) -> list[OneBoot]:
    return [OneBoot(True, "passed", Boot(seed=seed, cases=())) for _, seed in turns]


def test_images_are_booted_in_turns_and_take_every_position_equally_often() -> None:
    rounds: list[list[Turn]] = []

    def round_of(turns: Sequence[Turn]) -> list[OneBoot]:
        rounds.append(list(turns))
        return made(turns)

    images, ended = measure_images([1, 1, 1001], Design(2, 3), round_of, lambda images: False)
    assert rounds == [
        [(0, 1), (1, 1), (2, 1001)],
        [(1, 2), (2, 1002), (0, 2)],
        [(2, 1003), (0, 3), (1, 3)],
    ]
    assert [[b.seed for b in image.boots] for image in images] == [
        [1, 2, 3],
        [1, 2, 3],
        [1001, 1002, 1003],
    ]
    assert ended == "the maximum number of boots was reached"
    # A steady drift from boot to boot affects every image alike.
    when = {turn: at for at, turn in enumerate(turn for turns in rounds for turn in turns)}
    sums = [sum(at for (i, _), at in when.items() if i == image) for image in range(3)]
    assert sums == [12, 12, 12]


def test_boots_end_when_they_suffice_but_not_below_the_minimum() -> None:
    asked: list[int] = []

    def enough(images: Images) -> bool:
        asked.append(len(images[0].boots))
        return len(images[0].boots) >= 4

    images, ended = measure_images([1, 1], Design(3, 9), made, enough)
    assert asked == [3, 4]
    assert [len(image.boots) for image in images] == [4, 4]
    assert ended == "every interval was narrow enough"


def test_a_spent_budget_ends_the_boots_but_two_rounds_are_always_made() -> None:
    images, ended = measure_images([1, 1], Design(4, 4), made, lambda images: False, lambda: True)
    assert [len(image.boots) for image in images] == [2, 2]
    assert ended == "the budget was spent"


def test_an_image_that_failed_is_not_booted_again() -> None:
    def round_of(turns: Sequence[Turn]) -> list[OneBoot]:
        return [
            OneBoot(False, "panic") if turn == (1, 2) else boot
            for turn, boot in zip(turns, made(turns), strict=True)
        ]

    images, _ = measure_images([1, 1], Design(4, 4), round_of, lambda images: False)
    assert [len(image.boots) for image in images] == [4, 1]
    assert (images[1].booted, images[1].self_check) == (False, "panic")
    images, ended = measure_images(
        [2], Design(4, 4), lambda turns: [OneBoot(True, "no")], lambda images: False
    )
    assert (images[0].sound, ended) == (False, "no image is sound")


@pytest.mark.parametrize(
    "text",
    [
        "",
        GOOD.format("other"),
        "case=pipe128 operations=100 elapsed_ns=5 check=bad",
        "case=pipe128 elapsed_ns=5 check=ok",
        "case=pipe128 operations=many elapsed_ns=5 check=ok",
        "case=pipe128 operations=100 elapsed_ns=-5 check=ok",
        "case=pipe128 operations=\u00b2 elapsed_ns=5 check=ok",
        "\ufffd\x00",
    ],
)
def test_a_case_without_its_result_line_is_an_error_that_names_it(text: str) -> None:
    texts = (text, GOOD.format("pipe512"))
    with pytest.raises(WorkError, match="the case pipe128 printed no valid result line"):
        measure_boot(WORK, 1, lambda seed, requests: outcome(*texts))


def test_missing_intervals_are_an_error() -> None:
    with pytest.raises(WorkError, match="2 cases ran but 1 intervals were counted"):
        measure_boot(WORK, 1, lambda seed, requests: outcome(intervals=1))


def test_other_numbers_that_a_case_prints_are_its_figures() -> None:
    said = "case={} operations=100 bytes=7 elapsed_ns=5 p99_ns=80 speed=1.5 check=ok\n"
    texts = [said.format(case.name) for case in CASES]
    found = measure_boot(WORK, 1, lambda seed, requests: outcome(*texts))
    assert found.boot is not None
    assert found.boot.cases[0].figures == {"bytes": 7, "p99_ns": 80}


def unsupported(text: str, intervals: int = 1) -> Outcome:
    """A boot whose first case prints this and ends with the status of one that cannot run."""
    replies = (
        exec_result("selfcheck"),
        exec_result(text, 77),
        exec_result(GOOD.format(CASES[1].name)),
        agent.GetResult(0, MEMINFO_TEXT),
    )
    return Outcome("6.12", replies, (Interval(1, 2, 3, 4),) * intervals, "")


def test_a_case_that_the_kernel_cannot_run_fails_nothing() -> None:
    text = f"case={CASES[0].name} check=unsupported needs=CONFIG_VETH\n"
    found = measure_boot(WORK, 1, lambda seed, requests: unsupported(text))
    assert (found.booted, found.self_check) == (True, "passed")
    boot = found.boot
    assert boot is not None
    assert [(u.case, u.needs) for u in boot.unsupported] == [(CASES[0].name, "CONFIG_VETH")]
    assert [(c.case, c.kernel_instructions) for c in boot.cases] == [(CASES[1].name, 1)]


@pytest.mark.parametrize("text", ["", "case=other needs=X", f"case={CASES[0].name}"])
def test_a_case_that_cannot_run_must_say_what_is_missing(text: str) -> None:
    with pytest.raises(WorkError, match=f"the case {CASES[0].name} printed no valid result line"):
        measure_boot(WORK, 1, lambda seed, requests: unsupported(text))


def test_an_interval_of_a_case_that_did_not_run_is_an_error() -> None:
    text = f"case={CASES[0].name} check=unsupported needs=CONFIG_VETH\n"
    with pytest.raises(WorkError, match="1 cases ran but 2 intervals were counted"):
        measure_boot(WORK, 1, lambda seed, requests: unsupported(text, intervals=2))


def test_a_self_check_cannot_be_skipped() -> None:
    found = measure_boot(WORK, 1, lambda seed, requests: outcome(selfcheck=77))
    assert "failed with status 77" in found.self_check


def test_memory_that_cannot_be_read_is_an_error() -> None:
    good = outcome()
    lost = Outcome("6.12", (*good.replies[:-1], agent.GetResult(2, b"")), good.intervals, "")
    with pytest.raises(WorkError, match="could not read /proc/meminfo"):
        measure_boot(WORK, 1, lambda seed, requests: lost)


def test_repeats_are_priced_by_a_core() -> None:
    repeats = {"instructions": 10, "iterations": 500, "bytes": 640}
    interval = Interval(1000, 2, 3, 4, kernel_repeats=repeats)
    good = outcome()
    counted = Outcome("6.12", good.replies, (interval,) * len(CASES), "")
    found = measure_boot(WORK, 1, lambda seed, requests: counted, priced_by="skylake").boot
    assert found is not None
    core = load_core("skylake")
    cycles = 10 * core.pipeline.repeat_start + 10 * core.pipeline.repeat_line
    assert {case.kernel_repeats for case in found.cases} == {
        Repeats(instructions=10, iterations=500, bytes=640, cycles=cycles, core="skylake")
    }
    costs = {metric.name: metric.cost(found.cases[0]) for metric in METRICS}
    each = found.cases[0].operations
    assert costs["kernel_work"] == (1000 + cycles) / each
    assert costs["kernel_repeat_iterations"] == 500 / each
    assert costs["kernel_repeat_bytes"] == 640 / each


def test_without_a_price_or_a_count_there_is_no_work() -> None:
    found = measure_boot(WORK, 1, lambda seed, requests: outcome(), priced_by="skylake").boot
    assert found is not None
    assert found.cases[0].kernel_repeats is None
    (work,) = (metric for metric in METRICS if metric.name == "kernel_work")
    assert work.cost(found.cases[0]) is None
