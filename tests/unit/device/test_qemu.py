"""The device ``qemu``, with a QEMU that does what the test says."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mepof import distribution
from mepof.device import agent, qemu
from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.device.protocol import (
    INITRAMFS,
    BootFailure,
    GuestReset,
    Interval,
    KernelHang,
    KernelPanic,
    LocationSource,
    Outcome,
    Session,
)
from mepof.device.qemu_command import BootFiles, command
from mepof.errors import EnvironmentLack, InputError
from mepof.process import run

from .fake_qemu import HELLO, POWERED_OFF, PROGRAM, FakeQemu, frame, result

PLUGINS = {"plugins": Path("/made")}

WORK = (agent.Exec(("/bin/true",), 5), agent.Exec(("/bin/kbench", "run"), 5))
GOOD = HELLO + result(b"one") + result(b"two") + POWERED_OFF
COUNTS = {
    "kernel_instructions": 10,
    "user_instructions": 20,
    "kernel_taken_branches": 3,
    "user_taken_branches": 4,
}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeQemu]:
    made = FakeQemu(tmp_path / "bin")
    made.install()
    monkeypatch.setenv("PATH", f"{made.directory}:/usr/bin:/bin")
    qemu._version.cache_clear()
    yield made
    qemu._version.cache_clear()


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "initramfs.cpio").write_bytes(b"shared image")
    return Session(
        arch="x86-64",
        kernel=tmp_path / "kernel",
        initramfs=tmp_path / INITRAMFS,
        requests=WORK,
        seed=7,
    )


def boot(tmp_path: Path, session: Session, replied: list[int] | None = None) -> Outcome:
    log: list[int] = [] if replied is None else replied
    return qemu.DEVICE.boot(session, tmp_path / "boot", run, log.append)


def test_a_boot_gives_a_reply_for_each_request(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(console=b"Linux version 6.12.7\r\nDEBUG: fine\r\n", replies=GOOD)
    outcome = boot(tmp_path, session)
    assert outcome.release == "6.12.7"
    assert [r.text for r in outcome.replies if isinstance(r, agent.ExecResult)] == ["one", "two"]
    assert outcome.intervals == ()
    assert "DEBUG: fine" in outcome.console


def test_a_guest_gets_its_requests_behind_the_shared_image(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(replies=GOOD)
    boot(tmp_path, session)
    given = (tmp_path / "boot/initramfs").read_bytes()
    assert given.startswith(b"shared image070701")
    assert b"".join(agent.encode(r) for r in (*WORK, agent.PowerOff())) in given


def test_what_suites_add_lies_between_the_shared_image_and_the_requests(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(f"070701 {name}".encode())
    fake.will(replies=GOOD)
    added = replace(session, archives=(tmp_path / "one", tmp_path / "two"), memory=1024)
    boot(tmp_path, added)
    given = (tmp_path / "boot/initramfs").read_bytes()
    assert given.startswith(b"shared image070701 one070701 two070701")
    words = command(qemu._machine("x86-64"), added, BootFiles(tmp_path))
    assert words[words.index("-m") + 1] == "1024"


def test_the_machine_is_seeded_and_counts_time_in_instructions(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(replies=GOOD, counts=json.dumps({"intervals": [COUNTS]}).encode())
    boot(tmp_path, session)
    words = fake.arguments()
    assert words[words.index("-seed") + 1] == "7"
    assert "shift=0" in words[words.index("-icount") + 1]
    assert words[words.index("-kernel") + 1] == str(session.kernel)
    assert "-plugin" not in words
    counted = replace(session, measure=Measure(), artifacts={"plugins": tmp_path})
    assert boot(tmp_path, counted).intervals == (Interval(10, 20, 3, 4),)
    assert f"{tmp_path}/count.so,out={tmp_path}/boot/counts.json" in fake.arguments()


def test_a_core_is_modelled_by_a_plugin_that_counts_too(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    events = {"kernel_events": {"l1i_misses": 5}, "user_events": {"l1i_misses": 6}}
    fake.will(replies=GOOD, counts=json.dumps({"intervals": [COUNTS | events]}).encode())
    measure = Measure("zen4", ("line=64", "l1i=64:8"))
    counted = replace(session, measure=measure, artifacts={"pmu": tmp_path / "a,b"})
    (interval,) = boot(tmp_path, counted).intervals
    assert interval == Interval(10, 20, 3, 4, {"l1i_misses": 5}, {"l1i_misses": 6})
    words = fake.arguments()
    assert words.count("-plugin") == 1
    plugin = words[words.index("-plugin") + 1]
    assert plugin == f"{tmp_path}/a,,b/pmu.so,out={tmp_path}/boot/counts.json,line=64,l1i=64:8"


def test_missing_locations_are_a_boot_failure(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(replies=GOOD, counts=json.dumps({"intervals": []}).encode())
    measure = Measure("zen4", locations=True)
    counted = replace(session, measure=measure, artifacts={"pmu": tmp_path})
    with pytest.raises(BootFailure, match="did not write which code was executed"):
        boot(tmp_path, counted)
    assert f",where={tmp_path}/boot/places.jsonl" in " ".join(fake.arguments())


def test_executed_code_is_reported_instead_of_counts(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(replies=GOOD, places=b"{}")
    measure = Measure(locations=True)
    located = replace(session, measure=measure, artifacts={"executions": tmp_path}, cpus=2)
    outcome = boot(tmp_path, located)
    assert (outcome.intervals, outcome.locations) == ((), tmp_path / "boot/places.jsonl")
    words = fake.arguments()
    plugin = words[words.index("-plugin") + 1]
    # It needs no help to tell CPUs apart.
    assert plugin == f"{tmp_path}/executions.so,out={tmp_path}/boot/places.jsonl"
    assert qemu.DEVICE.needs("x86-64", measure) == {
        "executions": ArtifactNeed("executions", files=("executions.so",))
    }
    assert isinstance(qemu.DEVICE, LocationSource)
    assert qemu.DEVICE.locator("arm") == "every executed block, emulated"


def test_an_arm64_guest_gets_its_own_machine(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    (fake.directory / PROGRAM).rename(fake.directory / "qemu-system-aarch64")
    fake.will(replies=GOOD)
    assert boot(tmp_path, replace(session, arch="arm64")).release == "6.12.7"
    words = fake.arguments()
    assert words[words.index("-machine") + 1].startswith("virt,")
    assert "console=ttyAMA0" in words[words.index("-append") + 1]
    assert qemu.DEVICE.identity("arm64")["qemu command"]


def test_a_comma_in_a_path_does_not_end_an_option(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    with pytest.raises(GuestReset):
        qemu.DEVICE.boot(session, tmp_path / "a,b", run, lambda count: None)
    assert f"file,path={tmp_path}/a,,b/console.log,id=console" in fake.arguments()
    assert f"file,id=agent,path={tmp_path}/a,,b/replies" in fake.arguments()


@pytest.mark.parametrize(
    "line",
    [
        "[    0.5] Kernel panic - not syncing: VFS: Unable to mount root fs",
        "[    1.0] BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "[    1.0] Oops: 0000 [#1] PREEMPT",
        "[    1.0] Unable to handle kernel paging request at ffff",
    ],
)
def test_a_panic_is_reported_with_the_end_of_the_console(
    fake: FakeQemu, session: Session, tmp_path: Path, line: str
) -> None:
    console = "\n".join([*(f"early {n}" for n in range(30)), line, "Call Trace:"])
    fake.will(console=console.encode(), replies=HELLO)
    with pytest.raises(KernelPanic) as caught:
        boot(tmp_path, session)
    message = caught.value.message
    assert message.startswith(f"the kernel went down: {line.partition('] ')[2]}")
    assert message.endswith("\n  | Call Trace:")
    assert len(message.splitlines()) == 13
    assert "early 1\n" not in message
    assert caught.value.remedy == f"see {tmp_path}/boot/console.log"


@pytest.mark.parametrize(
    "where", ["RIP: 0010:shmem_write_begin+0x1a/0x90", "pc : el0_svc+0x28/0x80"]
)
def test_a_panic_is_reported_with_where_it_happened(
    fake: FakeQemu, session: Session, tmp_path: Path, where: str
) -> None:
    lines = ["Oops: 0000 [#1] PREEMPT", f"[  1.0] {where}", *("below" for _ in range(30))]
    fake.will(console="\n".join(lines).encode(), replies=HELLO)
    with pytest.raises(KernelPanic, match=re.escape(f"PREEMPT, {where}\n")):
        boot(tmp_path, session)


@pytest.mark.parametrize("time", ["", "[    1.0] "])
def test_a_call_of_panic_is_reported_with_the_caller(
    fake: FakeQemu, session: Session, tmp_path: Path, time: str
) -> None:
    frames = (
        "panic+0x103/0x2a0",
        "? left_over+0x1/0x2",
        "checks_place+0x2f/0x30",
        "caller+0x1/0x2",
    )
    trace = ["Call Trace:", " <TASK>", *(f" {f}" for f in frames), "RIP: 0033:0x7f12a0"]
    lines = ["Kernel panic - not syncing: no", *trace]
    console = "".join(f"{time}{line}\n" for line in [*lines, *("below" for _ in range(30))])
    fake.will(console=console.encode(), replies=HELLO)
    with pytest.raises(KernelPanic, match=re.escape("syncing: no, in checks_place+0x2f/0x30\n")):
        boot(tmp_path, session)


def silent(fake: FakeQemu) -> None:
    os.mkfifo(fake.directory / "silent.fifo")
    fake.will(silent=b"")


def test_a_guest_that_does_not_come_up_is_a_hang(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    silent(fake)
    fake.will(console=b"Booting the kernel.\n")
    with pytest.raises(KernelHang, match=r"did not come up for 0\.3 s\n  \| Booting the kernel\."):
        boot(tmp_path, replace(session, boot_seconds=0.3, quiet_seconds=100))


def test_a_guest_that_falls_silent_is_a_hang(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    silent(fake)
    fake.will(replies=HELLO + result())
    replied: list[int] = []
    with pytest.raises(KernelHang, match=r"answered nothing for 0\.3 s"):
        boot(tmp_path, replace(session, boot_seconds=100, quiet_seconds=0.3), replied)
    assert replied == [1]


def test_a_panic_that_ends_in_silence_is_a_panic(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    silent(fake)
    fake.will(console=b"Kernel panic - not syncing: stuck\n")
    with pytest.raises(KernelPanic, match="not syncing: stuck"):
        boot(tmp_path, replace(session, boot_seconds=0.2))


def test_a_reset_before_the_agent_answers_is_reported(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(console=b"Decompressing Linux...\n")
    with pytest.raises(GuestReset, match=r"before its agent answered\n  \| Decompressing"):
        boot(tmp_path, session)


@pytest.mark.parametrize(
    "replies", [HELLO + result(), HELLO + result() + result()[:-3], HELLO + result() + POWERED_OFF]
)
def test_a_reset_between_requests_is_reported(
    fake: FakeQemu, session: Session, tmp_path: Path, replies: bytes
) -> None:
    fake.will(replies=replies)
    with pytest.raises(GuestReset, match="of 2 requests"):
        boot(tmp_path, session)


@pytest.mark.parametrize("replies", [b"garbage on the port" * 9, frame(0x55), HELLO + b"x" * 99])
@pytest.mark.parametrize("goes_on", [False, True])
def test_garbage_on_the_port_is_a_boot_failure_that_ends_the_guest(
    fake: FakeQemu, session: Session, tmp_path: Path, replies: bytes, goes_on: bool
) -> None:
    if goes_on:
        silent(fake)
    fake.will(replies=replies, console=b"last words\n")
    with pytest.raises(BootFailure, match=r"agent.*\n  \| last words"):
        boot(tmp_path, session)


def test_an_error_of_qemu_itself_is_reported(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(complaint=b"warning: x\nqemu: could not load kernel 'k'\n")
    with pytest.raises(BootFailure, match="ended with status 1: qemu: could not load kernel 'k'"):
        boot(tmp_path, session)


@pytest.mark.parametrize("counts", [b"", b"{", b"{}", b'{"intervals": [{"x": 1}]}', b"[]"])
def test_missing_counts_are_a_boot_failure(
    fake: FakeQemu, session: Session, tmp_path: Path, counts: bytes
) -> None:
    fake.will(replies=GOOD, counts=counts)
    with pytest.raises(BootFailure, match="the counting plugin wrote no valid counts"):
        boot(tmp_path, replace(session, measure=Measure(), artifacts=PLUGINS))


@pytest.mark.parametrize(
    ("branches", "how"),
    [
        (Branches(), "span=session"),
        (Branches(depth=16), "span=session"),
        (Branches(period=10007), "span=session,sample=10007,depth=32"),
        (Branches(period=1, depth=16), "span=session,sample=1,depth=16"),
    ],
)
def test_branches_are_recorded_between_the_agents_marks(
    fake: FakeQemu, session: Session, tmp_path: Path, branches: Branches, how: str
) -> None:
    fake.will(replies=GOOD, trace=b"MEPOFTRC")
    outcome = boot(tmp_path, replace(session, record=branches, artifacts=PLUGINS))
    assert outcome.branches == tmp_path / "boot/branches.trace"
    assert outcome.branches.read_bytes() == b"MEPOFTRC"
    assert outcome.intervals == ()
    assert f"/made/record.so,out={outcome.branches},{how}" in fake.arguments()
    assert boot(tmp_path, session).branches is None


def test_a_missing_trace_is_a_boot_failure(
    fake: FakeQemu, session: Session, tmp_path: Path
) -> None:
    fake.will(replies=GOOD)
    with pytest.raises(BootFailure, match="the recording plugin wrote no branch trace"):
        boot(tmp_path, replace(session, record=Branches(), artifacts=PLUGINS))


def test_one_boot_cannot_count_and_record(fake: FakeQemu, session: Session, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot count and record"):
        boot(
            tmp_path,
            replace(session, measure=Measure(), record=Branches(), artifacts=PLUGINS),
        )


@pytest.mark.parametrize("banner", ["QEMU emulator version 7.2.9", "QEMU emulator version 9.2", ""])
def test_an_old_qemu_is_refused_with_what_installs_a_new_one(
    fake: FakeQemu, banner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "RELEASE", Path("/nowhere"))
    fake.will(version=banner.encode())
    with pytest.raises(EnvironmentLack, match=r"is older than 10\.0") as caught:
        qemu.DEVICE.identity("x86-64")
    assert caught.value.remedy == "apt-get install qemu-system-x86"


def test_a_qemu_that_loads_no_plugin_of_ours_is_refused(fake: FakeQemu) -> None:
    fake.will(version=b"QEMU emulator version 11.0.2")
    with pytest.raises(EnvironmentLack, match=r"11\.0\.2 does not load mepof's plugins") as caught:
        qemu.DEVICE.identity("x86-64")
    assert caught.value.remedy == "install 11.1 or later, or 10.x"


@pytest.mark.parametrize("version", ["10.0.2", "10.2.0", "11.1.3", "12.0.0"])
def test_other_versions_of_qemu_are_used(fake: FakeQemu, version: str) -> None:
    fake.will(version=f"QEMU emulator version {version}".encode())
    assert qemu.DEVICE.identity("x86-64")["qemu"] == f"QEMU emulator version {version}"


def test_a_missing_qemu_is_reported(fake: FakeQemu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentLack, match=f"{PROGRAM} is not installed"):
        qemu.DEVICE.identity("x86-64")


def test_the_identity_is_qemus_version(fake: FakeQemu) -> None:
    assert "10.0.2" in qemu.DEVICE.identity("x86-64")["qemu"]
    with pytest.raises(InputError, match="no machine for um"):
        qemu.DEVICE.identity("um")


@pytest.mark.parametrize("option", ["span=session", ",depth=", "counts.json"])
def test_the_identity_changes_with_how_it_counts_and_records(
    fake: FakeQemu, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    before = qemu.DEVICE.identity("x86-64")

    def other(*arguments: Any) -> list[str]:
        return [word.replace(option, "") for word in command(*arguments)]

    monkeypatch.setattr(qemu, "command", other)
    assert qemu.DEVICE.identity("x86-64") != before


@pytest.mark.parametrize(
    ("observed", "needs"),
    [
        (Measure(), {"plugins": ArtifactNeed("plugins", files=("count.so",))}),
        (Measure("zen4"), {"pmu": ArtifactNeed("pmu", files=("pmu.so",))}),
        (Branches(), {"plugins": ArtifactNeed("plugins", files=("record.so",))}),
        (Branches(10007, 16), {"plugins": ArtifactNeed("plugins", files=("record.so",))}),
    ],
)
def test_it_needs_the_plugin_for_what_is_observed(
    observed: Measure | Branches, needs: dict[str, ArtifactNeed]
) -> None:
    assert qemu.DEVICE.needs("x86-64", observed) == needs


def test_any_number_of_boots_run_at_the_same_time() -> None:
    assert qemu.DEVICE.claim("x86-64") is None
