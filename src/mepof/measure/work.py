"""What a boot measures: cases of suites, and actions of the user's apps with what they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mepof.app.apps import memory_together
from mepof.app.launch import (
    check_action,
    check_setup,
    log_requests,
    port_requests,
    start_requests,
    stop_requests,
)
from mepof.app.measured import OwnCase, own_cases
from mepof.app.own import OwnApp, Setup
from mepof.device import agent
from mepof.measure.result_line import SKIPPED
from mepof.suite.cases import Case, cases_of
from mepof.suite.cases import memory_of as memory_of_suites

# A case takes a few seconds of the host's time under emulation; the limit is in guest time.
_CASE_SECONDS = 120.0
# To settle before an action, and to copy what it wrote.
_TELLING_SECONDS = 5.0


@dataclass(frozen=True)
class Work:
    """Cases that run one after another.

    Attributes:
        memory: MiB that the guest needs.
        setups: what runs before them; services among them stop after them.
        ports: what is asked for before that, so that services can listen on them.
        app: title of the user's app that it is; None for suites.
    """

    cases: tuple[Case, ...]
    memory: int
    setups: tuple[Setup, ...] = ()
    ports: tuple[agent.Put, ...] = ()
    app: str | None = None

    @property
    def is_own(self) -> bool:
        """Whether it is an app of the user's."""
        return any(isinstance(case, OwnCase) for case in self.cases)

    @property
    def requests(self) -> tuple[agent.Request, ...]:
        """What a guest is asked to do for it."""
        return (*self.ports, *self.commands)

    @property
    def commands(self) -> tuple[agent.Exec, ...]:
        """The programs among it."""
        return (
            *start_requests(self.setups),
            *map(_request_of, self.cases),
            *stop_requests(self.setups),
        )

    @property
    def logs(self) -> dict[str, agent.Get]:
        """The requests for what its services wrote, by their names: for the end of the boot."""
        return log_requests(self.setups)

    @property
    def names(self) -> tuple[str, ...]:
        """What each of its requests is called."""
        stopped = len(stop_requests(self.setups))
        return (
            *("setting up",) * len(self.ports),
            *(f"setting up {each.name}" for each in self.setups),
            *(case.name for case in self.cases),
            *("stopping",) * stopped,
        )

    def results(
        self, replies: Sequence[agent.Reply]
    ) -> Iterator[tuple[Case, agent.ExecResult, bool]]:
        """Each case with the reply to it, and whether it could run.

        Args:
            replies: to all of its requests.

        Raises:
            WorkError: the setup or a case failed.
        """
        replies = replies[len(self.ports) :]
        first, last = len(start_requests(self.setups)), len(stop_requests(self.setups))
        end = len(replies) - last
        check_setup(self.setups, replies[:first], replies[end:])
        for case, reply in zip(self.cases, replies[first:end], strict=True):
            can_run = not _is_skipped(case, reply)
            if can_run:
                _check(case, reply)
            assert isinstance(reply, agent.ExecResult)
            yield case, reply, can_run


def memory_of(work: Sequence[Work]) -> int:
    """MiB of memory that a guest needs for all of it."""
    shared = (each.memory for each in work if not each.is_own)
    return max((*shared, memory_together(each.memory for each in work if each.is_own)))


def work_of(metrics: Sequence[str], apps: Sequence[OwnApp]) -> tuple[Work, ...]:
    """What an ``eval`` measures; the default suite if it names nothing.

    The cases of suites come first, so that no service runs beside them.
    """
    own = tuple(
        Work(own_cases(app), app.memory, app.setup, port_requests([app]), app.title) for app in apps
    )
    if apps and not metrics:
        return own
    cases = cases_of(metrics)
    return (Work(cases, memory_of_suites(cases)), *own)


def _request_of(case: Case) -> agent.Exec:
    """The request that runs a case."""
    if not isinstance(case, OwnCase):
        return agent.Exec(case.argv, _CASE_SECONDS)
    # The program that measures it ends it at its limit, and then tells what it wrote.
    return agent.Exec(case.argv, case.action.seconds + _TELLING_SECONDS)


def _is_skipped(case: Case, reply: agent.Reply) -> bool:
    """Whether a case says that it cannot run; programs of the user's do not."""
    skipped = isinstance(reply, agent.ExecResult) and reply.status == SKIPPED
    return skipped and not isinstance(case, OwnCase)


def _check(case: Case, reply: agent.Reply) -> None:
    if isinstance(case, OwnCase) and isinstance(reply, agent.ExecResult):
        check_action(case.action, _said_by(reply))
    else:
        agent.expect_success(_request_of(case), reply)


def _said_by(reply: agent.ExecResult) -> agent.ExecResult:
    """The reply of an action, without the result line above what it wrote."""
    head, _, rest = reply.output.partition(b"\n")
    if not head.startswith(b"case="):
        return reply
    return agent.ExecResult(reply.status, reply.elapsed_ns, rest, reply.truncated)


def result_text(case: Case, reply: agent.ExecResult) -> str:
    """The part of a case's output that is its own result line, and perhaps more."""
    return reply.text.partition("\n")[0] if isinstance(case, OwnCase) else reply.text
