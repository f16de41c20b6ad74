"""The device qemu on a real kernel: what it reports about guests that run and guests that die."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.device import agent
from mepof.device.initramfs import Entry, archive
from mepof.device.observation import Measure
from mepof.device.protocol import (
    DEVICES,
    GuestReset,
    KernelHang,
    KernelPanic,
    Outcome,
    Session,
)
from mepof.executor.protocol import Finished
from mepof.process import run
from mepof.suite.cases import selfcheck

from .conftest import session_of

pytestmark = pytest.mark.boot


@pytest.fixture
def session(finished: Finished) -> Session:
    return session_of(finished, "opt/build")


def boot(session: Session, directory: Path) -> Outcome:
    return DEVICES.get("qemu").boot(session, directory, run, lambda count: None)


def with_init(session: Session, init: bytes | None, directory: Path) -> Session:
    """The session with another first process, or with none."""
    entries = [
        Entry("bin", 0o755),
        Entry("dev", 0o755),
        Entry("dev/console", 0o600, b"", device=(5, 1)),
        Entry("bin/busybox", 0o755, Path("/bin/busybox").read_bytes()),
    ]
    if init is not None:
        entries.append(Entry("init", 0o755, init))
    path = directory / "initramfs"
    path.write_bytes(archive(entries))
    return replace(session, initramfs=path)


def test_files_go_both_ways_and_commands_have_limits(session: Session, tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    requests: Sequence[agent.Request] = (
        agent.Put("/tmp/there/file", 0o644, content),
        agent.Exec(("/bin/busybox", "wc", "-c", "/tmp/there/file"), 10),
        agent.Get("/tmp/there/file"),
        agent.Exec(("/bin/busybox", "sleep", "100"), 1),
        agent.Get("/not/there"),
    )
    outcome = boot(replace(session, requests=tuple(requests)), tmp_path / "boot")
    put, counted, got, slept, absent = outcome.replies
    assert put == agent.PutResult(0)
    assert isinstance(counted, agent.ExecResult) and str(len(content)) in counted.text
    assert got == agent.GetResult(0, content)
    assert isinstance(slept, agent.ExecResult) and slept.status == agent.TIMED_OUT
    assert isinstance(absent, agent.GetResult) and absent.errno == 2


def test_a_boot_repeats_to_the_last_instruction(
    session: Session, plugins: Mapping[str, Path], tmp_path: Path
) -> None:
    work = (
        agent.Exec(("/bin/kbench", "run", "proc"), 60),
        agent.Exec(("/bin/kbench", "run", "pipe128"), 60),
    )
    counted = replace(session, requests=work, measure=Measure(), artifacts=plugins)
    first, second = (boot(counted, tmp_path / name) for name in ("first", "second"))
    assert first.intervals == second.intervals
    assert first.replies == second.replies
    assert len(first.intervals) == 2


@pytest.mark.parametrize("cpus", [2, 4])
def test_a_boot_with_several_cpus_repeats_too(
    session: Session, plugins: Mapping[str, Path], tmp_path: Path, cpus: int
) -> None:
    work = (
        agent.Exec(("/bin/busybox", "nproc"), 30),
        agent.Exec(selfcheck(), 120),
        agent.Exec(("/bin/kbench", "run", "proc"), 120),
    )
    counted = replace(session, requests=work, measure=Measure(), artifacts=plugins, cpus=cpus)
    first, second = (boot(counted, tmp_path / name) for name in ("first", "second"))
    present, checked, _ = first.replies
    assert isinstance(present, agent.ExecResult) and present.text.strip() == str(cpus)
    assert isinstance(checked, agent.ExecResult) and checked.status == 0
    assert first.intervals == second.intervals
    assert first.replies == second.replies
    assert len(first.intervals) == 1


def test_a_panic_is_reported_with_the_end_of_the_console(session: Session, tmp_path: Path) -> None:
    broken = with_init(session, None, tmp_path)
    with pytest.raises(KernelPanic, match=r"No working init found|not syncing"):
        boot(broken, tmp_path / "boot")


def test_a_hang_is_reported(session: Session, tmp_path: Path) -> None:
    spinning = with_init(session, b"#!/bin/busybox sh\nwhile :; do :; done\n", tmp_path)
    with pytest.raises(KernelHang, match="did not come up"):
        boot(replace(spinning, boot_seconds=8), tmp_path / "boot")


def test_a_reset_is_reported(session: Session, tmp_path: Path) -> None:
    leaving = with_init(session, b"#!/bin/busybox sh\n/bin/busybox reboot -f\n", tmp_path)
    with pytest.raises(GuestReset, match="before its agent answered"):
        boot(leaving, tmp_path / "boot")


def test_a_crash_during_a_request_is_distinguished_from_a_reply(
    session: Session, tmp_path: Path
) -> None:
    requests = (
        agent.Exec(("/bin/busybox", "true"), 10),
        agent.Exec(("/bin/busybox", "reboot", "-f"), 10),
        agent.Exec(("/bin/busybox", "true"), 10),
    )
    with pytest.raises(GuestReset, match="after 1 of 3 requests"):
        boot(replace(session, requests=requests), tmp_path / "boot")
