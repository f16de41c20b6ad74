"""Measuring an image: what is a result, and what is an error."""

from __future__ import annotations

import pytest

from mepof.device import agent
from mepof.device.protocol import Interval, KernelHang, KernelPanic, Outcome
from mepof.errors import InputError, WorkError
from mepof.evaluate.runner import measure_image
from mepof.evaluate.suite import cases_of, load_suite, metric_names, suite_names

CASES = cases_of(["pipe"])
GOOD = "case={} operations=100 elapsed_ns=5000 check=ok\n"


def exec_result(text: str, status: int = 0) -> agent.ExecResult:
    return agent.ExecResult(status, 1, text.encode(), False)


def outcome(*texts: str, selfcheck: int = 0, intervals: int = len(CASES)) -> Outcome:
    """A boot whose cases print these texts, or what they should."""
    said = texts or tuple(GOOD.format(case.name) for case in CASES)
    replies = (exec_result("selfcheck", selfcheck), *(exec_result(text) for text in said))
    return Outcome("6.12", replies, tuple(Interval(n, 2, 3, 4) for n in range(intervals)), "")


def test_every_seed_is_a_boot_with_all_cases() -> None:
    seen: list[tuple[int, tuple[agent.Request, ...]]] = []

    def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        seen.append((seed, requests))
        return outcome()

    found = measure_image(CASES, [3, 5], boot)
    assert (found.booted, found.self_check) == (True, "passed")
    assert [b.seed for b in found.boots] == [seed for seed, _ in seen] == [3, 5]
    first = seen[0][1]
    assert isinstance(first[0], agent.Exec) and first[0].argv == load_suite("mepof").selfcheck
    assert len(first) == 1 + len(CASES)
    case = found.boots[0].cases[1]
    assert (case.case, case.metric_group, case.operations) == ("pipe512", "pipe", 100)
    assert (case.kernel_instructions, case.guest_nanoseconds) == (1, 5000)


def test_a_device_that_models_nothing_is_told_when_a_core_is_asked_for() -> None:
    with pytest.raises(WorkError, match="modelled no events of the core zen4"):
        measure_image(CASES, [3, 5], lambda seed, requests: outcome(), core="zen4")


def test_an_image_that_does_not_boot_is_a_result() -> None:
    def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        if seed == 2:
            raise KernelPanic("the kernel went down: BUG")
        return outcome()

    found = measure_image(CASES, [1, 2, 3], boot)
    assert (found.booted, found.self_check) == (False, "the kernel went down: BUG")
    assert [b.seed for b in found.boots] == [1]


def test_a_hang_is_an_error_because_the_host_may_be_the_cause() -> None:
    def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        raise KernelHang("the guest answered nothing for 600 s")

    with pytest.raises(KernelHang):
        measure_image(CASES, [1], boot)


def test_a_spent_budget_ends_the_boots_but_two_are_always_made() -> None:
    found = measure_image(CASES, [1, 2, 3, 4], lambda seed, requests: outcome(), lambda: True)
    assert [b.seed for b in found.boots] == [1, 2]


def test_an_image_that_fails_its_self_check_is_a_result() -> None:
    found = measure_image(CASES, [1], lambda seed, requests: outcome(selfcheck=1))
    assert found.booted
    assert "selfcheck` failed with status 1" in found.self_check
    assert found.boots == ()


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
    with pytest.raises(WorkError, match="the case pipe128 gave no result line"):
        measure_image(CASES, [1], lambda seed, requests: outcome(*texts))


def test_missing_intervals_are_an_error() -> None:
    with pytest.raises(WorkError, match="2 cases ran but 1 intervals were counted"):
        measure_image(CASES, [1], lambda seed, requests: outcome(intervals=1))


def test_the_suites_have_the_five_metrics_in_eight_cases() -> None:
    assert suite_names() == ("mepof",)
    assert sorted(metric_names()) == ["file", "overhead", "pipe", "proc", "syscall"]
    assert len(cases_of(())) == 8
    assert [case.name for case in cases_of(["proc", "syscall"])] == ["syscall", "proc"]
    with pytest.raises(InputError, match="unknown suite `none`"):
        load_suite("none")
