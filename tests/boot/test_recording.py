"""The device qemu records the branches of a real kernel, between the agent's requests."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.device import agent
from mepof.device.observation import Branches, Measure
from mepof.device.protocol import Outcome, Session, branch_source
from mepof.executor.protocol import Finished
from mepof.process import run

from .conftest import session_of

pytestmark = pytest.mark.boot

CASES = ("pipe128", "proc")
WORK: tuple[agent.Request, ...] = (
    agent.Record(True),
    *(agent.Exec(("/bin/kbench", "run", case), 60) for case in CASES),
    agent.Record(False),
    agent.Exec(("/bin/kbench", "run", "file8k"), 60),
)
BRANCHES, SAMPLE, COUNTERS, TAKEN = 1, 3, 4, 6


@pytest.fixture
def session(finished: Finished) -> Session:
    return replace(session_of(finished, "opt/build"), requests=WORK)


def boot(session: Session, directory: Path) -> Outcome:
    outcome = branch_source("qemu").boot(session, directory, run, lambda count: None)
    assert [type(reply) for reply in outcome.replies] == [
        agent.RecordResult,
        agent.ExecResult,
        agent.ExecResult,
        agent.RecordResult,
        agent.ExecResult,
    ]
    return outcome


def bodies(outcome: Outcome, kind: int) -> list[bytes]:
    """The bodies of the trace's records of one kind."""
    assert outcome.branches is not None
    data, at, found = outcome.branches.read_bytes(), 128, []
    while at < len(data):
        one, size = struct.unpack_from("<II", data, at)
        if one == kind:
            found.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return found


def branches(outcome: Outcome) -> Counter[tuple[int, int]]:
    total: Counter[tuple[int, int]] = Counter()
    for body in bodies(outcome, BRANCHES):
        for source, target, count in struct.iter_unpack("<QQQ", body):
            total[source, target] += count
    return total


def taken(outcome: Outcome) -> int:
    counters = bodies(outcome, COUNTERS)
    return sum(
        value
        for body in counters
        for kind, value in struct.iter_unpack("<QQ", body)
        if kind == TAKEN
    )


def test_a_branch_trace_spans_processes_and_repeats(
    session: Session, plugins: Mapping[str, Path], tmp_path: Path
) -> None:
    session = replace(session, artifacts=plugins)
    recorded = replace(session, record=Branches())
    first, second = (boot(recorded, tmp_path / name) for name in ("first", "second"))
    assert first.branches is not None and second.branches is not None
    assert first.branches.read_bytes() == second.branches.read_bytes()
    assert sum(branches(first).values()) == taken(first)
    # Only the code between kbench's marks is counted; the branch trace also contains the start
    # and end of the cases, and nothing of the third.
    counted = boot(replace(session, measure=Measure()), tmp_path / "counted").intervals
    inside, after = (
        sum(i.kernel_taken_branches for i in part) for part in (counted[:2], counted[2:])
    )
    assert inside < taken(first) < inside + after


def test_a_branch_trace_of_several_cpus_repeats_and_has_their_code(
    finished: Finished, session: Session, plugins: Mapping[str, Path], tmp_path: Path
) -> None:
    recorded = replace(session, artifacts=plugins, record=Branches())
    several = replace(recorded, cpus=4)
    first, second = (boot(several, tmp_path / name) for name in ("first", "second"))
    assert first.branches is not None and second.branches is not None
    assert first.branches.read_bytes() == second.branches.read_bytes()
    assert struct.unpack_from("<I", first.branches.read_bytes(), 20) == (4,)
    assert sum(branches(first).values()) == taken(first)
    # CPUs wake each other by interrupts, which one CPU does not.
    wakes = function(finished, "sysvec_reschedule_ipi")
    alone = boot(recorded, tmp_path / "alone")
    assert any(source in wakes for source, _ in branches(first))
    assert not any(source in wakes for source, _ in branches(alone))


def function(finished: Finished, name: str) -> range:
    """The addresses of a function of the recorded kernel."""
    symbols = (finished.run.steps["opt/build"].path / "System.map").read_text().splitlines()
    addresses = sorted({int(line.split()[0], 16) for line in symbols})
    (start,) = (int(line.split()[0], 16) for line in symbols if line.endswith(f" {name}"))
    return range(start, addresses[addresses.index(start) + 1])


def test_samples_contain_only_branches_that_were_taken(
    session: Session, plugins: Mapping[str, Path], tmp_path: Path
) -> None:
    session = replace(session, artifacts=plugins)
    exact = boot(replace(session, record=Branches()), tmp_path / "exact")
    sampled = boot(replace(session, record=Branches(10007, 16)), tmp_path / "sampled")
    samples = bodies(sampled, SAMPLE)
    assert taken(sampled) == taken(exact)
    assert len(samples) == taken(sampled) // 10007
    known = branches(exact)
    for body in samples:
        entries = list(struct.iter_unpack("<QQ", body[24:]))
        assert 1 <= len(entries) <= 16
        assert all(known[entry] for entry in entries if entry != (0, 0))
