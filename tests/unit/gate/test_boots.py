"""Running tests on kernels, also on those that go down."""

from collections.abc import Callable

import pytest

from mepof.device import agent
from mepof.device.protocol import KernelHang, KernelPanic, Outcome
from mepof.gate.boots import run_built_in, run_programs
from mepof.gate.kselftests import TestProgram, collection_names, load_kselftests
from mepof.gate.results import TestBoot

Answer = Callable[[str], agent.ExecResult]


def program(name: str) -> TestProgram:
    return TestProgram(name=name, argv=("/kselftest/enter", "/kselftest", name), seconds=10)


PROGRAMS = tuple(map(program, ("a:one", "a:two", "a:three")))


def ended(status: int, text: str = "", truncated: bool = False) -> agent.ExecResult:
    return agent.ExecResult(status, 1, text.encode(), truncated)


class Kernel:
    """A kernel that answers by program, and goes down in some.

    Attributes:
        boots: the programs that each boot was asked to run.
    """

    def __init__(self, answer: Answer, down: dict[str, type[KernelPanic | KernelHang]]) -> None:
        self.answer = answer
        self.down = down
        self.boots: list[list[str]] = []

    def __call__(self, requests: tuple[agent.Request, ...]) -> Outcome:
        names = [r.argv[-1] for r in requests if isinstance(r, agent.Exec)]
        self.boots.append(names)
        replies: list[agent.Reply] = []
        for name in names:
            if name in self.down:
                failure = self.down[name]("the kernel went down: Kernel panic\n  | console")
                failure.replies = tuple(replies)
                raise failure
            replies.append(self.answer(name))
        return Outcome("6.12", tuple(replies), (), "")


def statuses(boot: TestBoot) -> dict[str, str]:
    return {result.name: result.status for result in boot.results}


def passes(name: str) -> agent.ExecResult:
    return ended(0)


def test_every_program_runs_in_one_boot() -> None:
    kernel = Kernel(passes, {})
    assert set(statuses(run_programs(PROGRAMS, 1, kernel)).values()) == {"pass"}
    assert kernel.boots == [["a:one", "a:two", "a:three"]]


def test_after_a_panic_the_rest_runs_in_a_further_boot() -> None:
    kernel = Kernel(passes, {"a:two": KernelPanic})
    boot = run_programs(PROGRAMS, 1, kernel)
    assert statuses(boot) == {
        "boot": "pass", "a:one": "pass", "a:two": "panic", "a:three": "pass"
    }  # fmt: skip
    assert boot.results[2].reason == "the kernel went down: Kernel panic"
    assert kernel.boots[1:] == [["a:three"]]


def test_a_panic_in_the_last_test_ends_the_gate() -> None:
    kernel = Kernel(passes, {"a:three": KernelPanic})
    assert statuses(run_programs(PROGRAMS, 1, kernel))["a:three"] == "panic"
    assert len(kernel.boots) == 1


def test_a_hang_counts_the_second_time() -> None:
    kernel = Kernel(passes, {"a:two": KernelHang})
    assert statuses(run_programs(PROGRAMS, 1, kernel))["a:two"] == "hang"
    assert kernel.boots == [["a:one", "a:two", "a:three"], ["a:two", "a:three"], ["a:three"]]


def test_a_kernel_that_does_not_come_up_has_no_results() -> None:
    def boot(requests: tuple[agent.Request, ...]) -> Outcome:
        raise KernelPanic("the kernel went down: BUG")

    assert run_programs(PROGRAMS, 7, boot) == TestBoot(
        seed=7, results=(), failure="the kernel went down: BUG"
    )
    assert run_built_in(7, boot).failure == "the kernel went down: BUG"


@pytest.mark.parametrize(
    ("answer", "status", "reason"),
    [
        (ended(0), "pass", ""),
        (ended(4, "ok 1 # SKIP not root\n"), "skip", "ok 1 # SKIP not root"),
        (ended(1, "not ok 2 two\n# Totals\n"), "fail", "status 1: not ok 2 two"),
        (ended(255), "fail", "status 255"),
        (ended(139), "crash", "was killed by signal 11"),
        (ended(agent.TIMED_OUT), "timeout", "did not finish within 10 s"),
        (ended(agent.NOT_STARTED, "cannot run"), "fail", "did not start: cannot run"),
        (ended(0, "\0\x7f not TAP \ufffd\n1..x\nok\u2028"), "pass", ""),
    ],
)
def test_how_a_program_ends(answer: agent.ExecResult, status: str, reason: str) -> None:
    boot = run_programs(PROGRAMS[:1], 1, Kernel(lambda name: answer, {}))
    found = next(result for result in boot.results if result.name == "a:one")
    assert (found.status, found.reason) == (status, reason)


def test_results_within_a_program_are_tests() -> None:
    text = "1..3\nok 1 first\nnot ok 2 second\n"
    boot = run_programs(PROGRAMS[:1], 1, Kernel(lambda name: ended(1, text, True), {}))
    assert statuses(boot) == {
        "boot": "pass", "a:one": "fail", "a:one/first": "pass", "a:one/second": "fail"
    }  # fmt: skip
    assert boot.notes == (
        "a:one: 3 results were announced and 2 reported",
        "a:one: the end of its output is not kept",
    )


def test_kunit_keeps_what_a_kernel_reported_before_it_went_down() -> None:
    def boot(requests: tuple[agent.Request, ...]) -> Outcome:
        failure = KernelPanic("the kernel went down: Kernel panic")
        failure.console = "KTAP version 1\n1..2\nok 1 list\nKernel panic - not syncing\n"
        raise failure

    assert statuses(run_built_in(1, boot)) == {"boot": "panic", "list": "pass"}


@pytest.mark.parametrize("second", [None, KernelHang, KernelPanic])
def test_kunit_that_hangs_is_booted_again(second: type[KernelHang | KernelPanic] | None) -> None:
    ends = [KernelHang, second]
    console = "KTAP version 1\n1..1\nok 1 list\n"

    def boot(requests: tuple[agent.Request, ...]) -> Outcome:
        end = ends.pop(0)
        if end is None:
            return Outcome("6.12", (), (), console)
        failure = end("the kernel went down")
        failure.console = console
        raise failure

    found = statuses(run_built_in(1, boot))
    assert ends == []
    ended_as = {None: "pass", KernelHang: "hang", KernelPanic: "panic"}
    assert found == {"boot": ended_as[second], "list": "pass"}


def test_the_catalogue_is_sound() -> None:
    assert {"futex/functional", "mm", "exec", "seccomp", "net"} <= set(collection_names())
    known = load_kselftests()
    for each in known.collections:
        assert set(each.libraries) <= set(known.packages)
        assert not set(each.programs) & set(each.omitted)
