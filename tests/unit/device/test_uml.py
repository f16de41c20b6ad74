"""The device ``uml``, with a kernel that is a script."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.device import agent, uml
from mepof.device.protocol import (
    INITRAMFS,
    BootFailure,
    GuestReset,
    KernelHang,
    KernelPanic,
    Outcome,
    Session,
    counter_source,
)
from mepof.errors import EnvironmentLack, InputError
from mepof.process import run

from .fake_qemu import HELLO, POWERED_OFF, result

WORK = (agent.Exec(("/bin/true",), 5), agent.Exec(("/bin/kbench", "run"), 5))
GOOD = HELLO + result(b"one") + result(b"two") + POWERED_OFF


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "initramfs.cpio").write_bytes(b"shared image")
    return Session("um", tmp_path / "kernel", tmp_path / INITRAMFS, WORK, seed=7)


def will(session: Session, script: str, replies: bytes = GOOD) -> None:
    """Make the kernel a script that runs in the boot's directory."""
    session.kernel.with_name("canned").write_bytes(replies)
    session.kernel.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > ../arguments\ncat ../canned > replies\n{script}\n'
    )
    session.kernel.chmod(0o755)


def boot(session: Session) -> Outcome:
    return uml.DEVICE.boot(session, session.kernel.with_name("boot"), run, lambda count: None)


def test_a_boot_gives_a_reply_for_each_request(session: Session) -> None:
    will(session, "echo Linux version 6.12.7")
    outcome = boot(session)
    assert outcome.release == "6.12.7"
    assert [r.text for r in outcome.replies if isinstance(r, agent.ExecResult)] == ["one", "two"]
    assert "Linux version 6.12.7" in outcome.console


def test_the_guest_gets_its_requests_and_the_script_that_serves_them(session: Session) -> None:
    will(session, "")
    boot(session)
    given = session.kernel.with_name("boot").joinpath("initramfs").read_bytes()
    assert given.startswith(b"shared image070701")
    assert b"".join(agent.encode(r) for r in (*WORK, agent.PowerOff())) in given
    assert b"mepof/start" in given
    assert b"/init /mepof/requests /mepof/host/replies" in given


def test_no_parameter_has_a_path_that_could_contain_a_space(session: Session) -> None:
    will(session, "")
    boot(replace(session, memory=768, parameters=("quiet",)))
    words = session.kernel.with_name("arguments").read_text().split("\n")
    assert {"mem=768M", "quiet", "rdinit=/mepof/start", "hostfs=/proc/self/cwd"} < set(words)
    assert not [word for word in words if str(session.kernel.parent) in word]


def test_a_panic_is_named_with_the_replies_before_it(session: Session) -> None:
    panic = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b"
    will(session, f"echo '{panic}'\nexit 134", HELLO + result(b"one"))
    with pytest.raises(KernelPanic, match="Attempted to kill init") as caught:
        boot(session)
    assert caught.value.replies is not None
    assert len(caught.value.replies) == 1


def test_a_silent_guest_is_a_hang_and_is_ended(session: Session) -> None:
    will(session, "exec sleep 60", b"")
    with pytest.raises(KernelHang, match=r"did not come up for 0\.1 s"):
        boot(replace(session, boot_seconds=0.1))


def test_a_guest_that_goes_down_early_is_a_reset(session: Session) -> None:
    will(session, "", HELLO + result(b"one"))
    with pytest.raises(GuestReset, match="went down after 1 of 2 requests"):
        boot(session)


def test_a_kernel_that_cannot_start_says_why(session: Session) -> None:
    will(session, "echo 'Unable to find a writable directory' >&2\nexit 1", b"")
    with pytest.raises(BootFailure, match=r"status 1\n  \| Unable to find a writable directory"):
        boot(session)


def test_kernels_of_other_architectures_are_refused(session: Session) -> None:
    with pytest.raises(InputError, match="cannot boot arm64 kernels") as caught:
        boot(replace(session, arch="arm64"))
    assert caught.value.remedy == "write `set arch um`"


def test_other_machines_cannot_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(EnvironmentLack, match="x86-64 machines, and this is aarch64"):
        uml.DEVICE.identity("um")


def test_it_does_not_count() -> None:
    with pytest.raises(EnvironmentLack, match="does not count"):
        counter_source("uml")
