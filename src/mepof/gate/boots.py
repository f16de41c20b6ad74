"""Running tests in boots of a kernel, also of one that goes down in the middle of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mepof.device import agent
from mepof.device.protocol import BootFailure, KernelHang, Outcome
from mepof.gate.kselftests import TestProgram
from mepof.gate.ktap import console_part, parse
from mepof.gate.results import Result, Status, TestBoot

BOOT = "boot"
"""The test that every gate begins with: the kernel comes up, and powers off when it is told to."""

# kselftest.h: KSFT_SKIP.
_SKIPPED = 4
_MAX_SIGNAL = 64
# What a guest wrote is not trusted to be short.
_MAX_REASON = 300

Boot = Callable[[tuple[agent.Request, ...]], Outcome]


def run_programs(programs: Sequence[TestProgram], seed: int, boot: Boot) -> TestBoot:
    """Run test programs. If the kernel goes down, the rest run in a further boot.

    A kernel that hangs is booted again with the test that it hung in, because a loaded host can
    look like a hang; the second time it counts.

    Args:
        boot: boots with requests.
    """
    results: list[Result] = []
    notes: list[str] = []
    end: Result | None = None
    hung: TestProgram | None = None
    left = list(programs)
    while end is None:
        requests = tuple(agent.Exec(each.argv, each.seconds) for each in left)
        try:
            replies, failure = boot(requests).replies, None
        except BootFailure as error:
            if error.replies is None:
                # A kernel that boots only sometimes is of as little use as one that never does.
                return TestBoot(seed=seed, results=(), failure=error.message)
            replies, failure = error.replies, error
        for program, reply in zip(left, replies, strict=False):
            found, remarks = _results_of(program, reply)
            results += found
            notes += remarks
        left = left[len(replies) :]
        if failure is None:
            end = Result(name=BOOT, status="pass")
        elif not left:
            end = Result(
                name=BOOT, status=_how(failure), reason=_short(failure.message.partition("\n")[0])
            )
        elif isinstance(failure, KernelHang) and hung is not left[0]:
            hung = left[0]
        else:
            first, *left = left
            reason = _short(failure.message.partition("\n")[0])
            results.append(Result(name=first.name, status=_how(failure), reason=reason))
            end = None if left else Result(name=BOOT, status="pass")
    return TestBoot(seed=seed, results=(end, *results), notes=tuple(notes))


def run_built_in(seed: int, boot: Boot) -> TestBoot:
    """Boot a kernel that runs its KUnit tests, and read what it wrote to the console.

    A kernel that hangs is booted once more, as in :func:`run_programs`.

    Args:
        boot: boots with requests.
    """
    console, failure = _console(boot)
    if isinstance(failure, KernelHang):
        console, failure = _console(boot)
    parsed = parse(console_part(console))
    results = [Result(name=p.name, status=p.status, reason=p.reason) for p in parsed.points]
    if failure is None:
        results.insert(0, Result(name=BOOT, status="pass"))
    elif not results:
        return TestBoot(seed=seed, results=(), failure=failure.message)
    else:
        # The test that it went down in has no result; those after it did not run.
        reason = _short(failure.message.partition("\n")[0])
        results.insert(0, Result(name=BOOT, status=_how(failure), reason=reason))
    return TestBoot(seed=seed, results=tuple(results), notes=parsed.notes)


def _console(boot: Boot) -> tuple[str, BootFailure | None]:
    """What a kernel wrote to the console, and how it went down if it did."""
    try:
        return boot(()).console, None
    except BootFailure as error:
        return error.console, error


def _how(failure: BootFailure) -> Status:
    return "hang" if isinstance(failure, KernelHang) else "panic"


def _results_of(program: TestProgram, reply: agent.Reply) -> tuple[list[Result], list[str]]:
    """The result of a program, followed by those of the tests within it, and remarks on them."""
    name = program.name
    if not isinstance(reply, agent.ExecResult):
        why = f"the guest's agent answered {type(reply).__name__}"
        return [Result(name=name, status="fail", reason=why)], []
    parsed = parse(reply.text)
    notes = [f"{name}: {note}" for note in parsed.notes]
    if reply.truncated:
        notes.append(f"{name}: the end of its output is not kept")
    status, reason = _program(program, reply)
    whole = Result(name=name, status=status, reason=reason)
    within = (
        Result(name=f"{name}/{p.name}", status=p.status, reason=_short(p.reason))
        for p in parsed.points
    )
    return [whole, *within], notes


def _program(program: TestProgram, reply: agent.ExecResult) -> tuple[Status, str]:
    """How a program ended, and why it did not pass."""
    match reply.status:
        case 0:
            return "pass", ""
        case status if status == _SKIPPED:
            return "skip", _last(_saying("skip", reply.text)) or _last(_lines(reply.text))
        case agent.TIMED_OUT:
            return "timeout", f"did not finish within {program.seconds} s"
        case agent.NOT_STARTED:
            return "fail", f"did not start: {_last(_lines(reply.text))}"
        # The agent reports a signal as shells do; beyond the last one it is an exit status.
        case signalled if 128 < signalled <= 128 + _MAX_SIGNAL:
            return "crash", f"was killed by signal {signalled - 128}"
        case status:
            said = _last(_saying("not ok", reply.text)) or _last(_lines(reply.text))
            return "fail", f"status {status}: {said}" if said else f"status {status}"


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())


def _saying(word: str, text: str) -> Iterator[str]:
    return (line for line in _lines(text) if word in line.lower())


def _last(lines: Iterator[str]) -> str:
    return _short(next(iter(reversed([*lines])), ""))


def _short(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= _MAX_REASON else f"{first[:_MAX_REASON]}…"
