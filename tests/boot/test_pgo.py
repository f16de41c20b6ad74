"""The kernel side of ``pgo``, in an instrumented kernel that really runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.algorithm.pgo import ALGORITHM
from mepof.algorithm.protocol import Conversion
from mepof.device import agent
from mepof.device.protocol import DEVICES, Session
from mepof.errors import WorkError
from mepof.executor.protocol import Finished
from mepof.process import run
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

from .conftest import session_of

pytestmark = pytest.mark.boot

READ = agent.Exec(("/bin/kbench", "run", "pipe128", "--operations", "5000"), 60)


@pytest.fixture
def session(finished: Finished) -> Session:
    return session_of(finished, "opt/instrument")


def raw_profile(session: Session, requests: tuple[agent.Request, ...], directory: Path) -> Path:
    requests = (*requests, *ALGORITHM.collect(modules=False))
    outcome = DEVICES.get("qemu").boot(
        replace(session, requests=requests), directory, run, lambda count: None
    )
    reply = outcome.replies[-1]
    assert isinstance(reply, agent.GetResult) and reply.errno == 0
    path = directory / "raw"
    path.write_bytes(reply.data)
    return path


def count_of(raw: Path, function: str) -> int:
    """The largest count of a function in a raw profile."""
    tool = select("clang").tool("profile-merger")
    indexed = raw.with_suffix(".profdata")
    run([tool, "merge", "-o", indexed, raw])
    shown = run([tool, "show", f"--function={function}", "--counts", indexed]).output
    blocks = re.search(r"Block counts: \[([\d, ]+)\]", shown)
    assert blocks is not None, shown
    return max(int(n) for n in blocks.group(1).split(","))


def test_counters_count_what_ran(session: Session, tmp_path: Path) -> None:
    raw = raw_profile(session, (*ALGORITHM.reset(), READ), tmp_path / "boot")
    assert count_of(raw, "pipe_write") >= 5000


def test_reset_clears_earlier_counts(session: Session, tmp_path: Path) -> None:
    raw = raw_profile(session, (READ, *ALGORITHM.reset()), tmp_path / "boot")
    assert count_of(raw, "pipe_write") < 100


def test_value_profiles_name_the_targets_of_indirect_calls(
    session: Session, tmp_path: Path
) -> None:
    raw = raw_profile(session, (*ALGORITHM.reset(), READ), tmp_path / "boot")
    tool = select("clang").tool("profile-merger")
    indexed = tmp_path / "profile"
    run([tool, "merge", "-o", indexed, raw])
    shown = run([tool, "show", "--ic-targets", "--function=vfs_write", indexed]).output
    assert "pipe_write" in shown


def test_a_damaged_raw_profile_is_refused(session: Session, tmp_path: Path) -> None:
    raw = raw_profile(session, (), tmp_path / "boot")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(raw.read_bytes()[:5000])
    with pytest.raises(WorkError, match="the profile cannot be read"):
        ALGORITHM.convert(Conversion((damaged,), tmp_path, tmp_path, Tools(select("clang"), run)))
