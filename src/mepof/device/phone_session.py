"""A session on a phone: the guest's programs below its data, and the agent that serves requests.

The agent runs in the background and writes its replies to a file, so a connection that is lost for
a while changes nothing. It runs in a directory of its own as root (``chroot``), where the programs
have the paths that they have in a guest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mepof.device import agent, batch
from mepof.device.adb import AdbShell, NoRoot
from mepof.device.handset import Handset, patiently
from mepof.device.protocol import GuestReset, KernelHang, Outcome, Session
from mepof.device.pstore import last_words
from mepof.device.shell import LostConnection, Ran
from mepof.device.simpleperf import recording
from mepof.errors import WorkError

_ROOT = "/data/local/tmp/mepof"
_ANSWER = 60.0
_TRANSFER = 300.0
_LOOK = 1.0
# adb may lose a phone while it runs a heavy workload.
_RETURN = 60.0

# What programs of a guest expect. A phone may have mounted debugfs elsewhere, or not at all.
_MOUNTS = """
cd {root}/{name} && mkdir -p proc sys dev tmp mepof || exit 1
rm -f mepof/*
[ -e proc/version ] && exit
mount -o bind /dev dev && mount -t proc proc proc && mount -t sysfs sysfs sys || exit 1
mount -t debugfs debugfs sys/kernel/debug 2>/dev/null
mount -t tmpfs tmpfs tmp
"""
_UNMOUNT = """
cd {root}/{name} && for each in tmp sys/kernel/debug sys proc dev; do umount $each; done 2>/dev/null
rm -f mepof/*; true
"""


def run_session(
    handset: Handset,
    shell: AdbShell,
    session: Session,
    directory: Path,
    replied: Callable[[int], None],
) -> Outcome:
    """Serve a session's requests on a phone whose kernel has been booted, and do what comes between
    them.

    Args:
        directory: scratch on this machine.
        replied: called with the number of requests that have been answered.

    Raises:
        GuestReset, FellBack: the phone went down meanwhile.
        KernelHang: it no longer answers.
        WorkError: its data partition is full, or a program is missing on it.
        EnvironmentLack: it cannot record branches, and the session asks for that.
    """
    boot_id = handset.boot_id(shell)
    try:
        return _ran(handset, shell, boot_id, session, directory, replied)
    except LostConnection:
        _explain(handset, boot_id)
        raise


def _ran(
    handset: Handset,
    shell: AdbShell,
    boot_id: str,
    session: Session,
    directory: Path,
    replied: Callable[[int], None],
) -> Outcome:
    name = _installed(handset, shell, session)
    interlude, requests = session.interlude, session.requests
    branches = None if session.record is None else directory / "branches"
    observed = nullcontext() if branches is None else recording(handset, shell, boot_id, branches)
    if interlude is None:
        # The agent serves all requests by itself, so what sets up the actions is recorded, too.
        with observed:
            release, answers = _served(handset, shell, boot_id, name, session, directory, replied)
        return Outcome(release, answers, (), "", branches)
    first = replace(session, requests=requests[: interlude.after])
    _, before = _served(handset, shell, boot_id, name, first, directory, replied)
    with observed:
        interlude.act(_Patient(shell))
    handset.check_same_boot(shell, boot_id)
    last = replace(session, requests=requests[interlude.after :])
    release, after = _served(
        handset, shell, boot_id, name, last, directory, lambda count: replied(len(before) + count)
    )
    return Outcome(release, (*before, *after), (), "", branches)


@dataclass(frozen=True)
class _Patient:
    """A phone's shell that says again what it did not hear the answer to."""

    shell: AdbShell

    @property
    def name(self) -> str:
        return self.shell.name

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        return patiently(self.shell, lambda: self.shell.run(argv, timeout))


def _served(
    handset: Handset,
    shell: AdbShell,
    boot_id: str,
    name: str,
    session: Session,
    directory: Path,
    replied: Callable[[int], None],
) -> tuple[str, tuple[agent.Reply, ...]]:
    """The kernel's release, and the replies to a session's requests.

    Args:
        name: of the directory with the guest's programs.
    """
    requests, replies = directory / "requests", directory / "replies"
    log = directory / "agent.log"
    wanted = (*session.requests, agent.PowerOff())
    requests.write_bytes(b"".join(agent.encode(each) for each in wanted))
    replies.unlink(missing_ok=True)
    _must(shell, _MOUNTS.format(root=_ROOT, name=name), "prepare its directory")
    try:
        _push(shell, requests, f"{_ROOT}/requests", "requests")
        start = (
            # Said twice, if an answer is lost, it starts one agent.
            f"cd {_ROOT}/{name} && {{ [ -e mepof/replies ] || {{ : > mepof/replies && "
            f"cp {_ROOT}/requests mepof/requests && "
            f"(setsid sh -c 'chroot . /init mepof/requests mepof/replies; : > mepof/ended' "
            f"< /dev/null > tmp/log 2>&1 &)"
            f"; }}; }}"
        )
        _must(shell, start, "start the agent")
        _wait(handset, shell, boot_id, name, session, directory, replied)
        path = f"{_ROOT}/{name}/mepof/replies"
        patiently(shell, lambda: shell.pull(path, replies, _TRANSFER))
        handset.check_same_boot(shell, boot_id)
        said = patiently(shell, lambda: shell.read(f"{_ROOT}/{name}/tmp/log"))
        log.write_text(said or "", encoding="utf-8")
    finally:
        with suppress(WorkError):  # the phone may be gone, and its mounts with it
            shell.run(("sh", "-c", _UNMOUNT.format(root=_ROOT, name=name)), _ANSWER)
    return batch.answers(session, log, replies)


def _installed(handset: Handset, shell: AdbShell, session: Session) -> str:
    """Lay the guest's programs onto the phone; the name of their directory."""
    archives = (session.initramfs, *session.archives)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in archives)).hexdigest()[:16]
    if shell.run(("test", "-e", f"{_ROOT}/{digest}/complete"), _ANSWER).status == 0:
        return digest
    handset.note(f"copying the programs to {handset.name}")
    where = f"{_ROOT}/{digest}"
    _must(shell, f"rm -rf {where} && mkdir -p {where} && chmod 777 {_ROOT}", "make a directory")
    for path in archives:
        _push(shell, path, f"{_ROOT}/archive", "programs")
        _must(shell, f"cd {where} && cpio -idu < {_ROOT}/archive", "unpack the programs")
    _must(shell, f"rm -f {_ROOT}/archive && : > {where}/complete", "finish its directory")
    return digest


def _push(shell: AdbShell, path: Path, to: str, what: str) -> None:
    try:
        patiently(shell, partial(shell.push, path, to, _TRANSFER))
    except LostConnection:
        raise
    except WorkError as error:
        raise WorkError(
            f"the {what} cannot be copied to {shell.name}: {error.message}",
            "make space in its /data",
        ) from error


def _must(shell: AdbShell, script: str, what: str) -> None:
    done = patiently(shell, lambda: shell.run(("sh", "-c", script), _TRANSFER))
    if done.status != 0:
        raise WorkError(f"{shell.name} cannot {what}: {done.last}", "see its /data/local/tmp/mepof")


def _wait(
    handset: Handset,
    shell: AdbShell,
    boot_id: str,
    name: str,
    session: Session,
    directory: Path,
    replied: Callable[[int], None],
) -> None:
    """Until the agent has ended; replies are counted as they come."""
    path = f"{_ROOT}/{name}/mepof/replies"
    look = f"wc -c < {path}; [ -e {_ROOT}/{name}/mepof/ended ]; echo $?"
    heard, size, lost = handset.now(), 0, 0.0
    while True:
        handset.pause(_LOOK)
        try:
            words = shell.run(("sh", "-c", look), _ANSWER).output.split()
            lost = 0.0
        except LostConnection:
            lost = lost or handset.now()
            _reconnected(handset, boot_id, lost)
            continue
        grown = int(words[0]) if words and words[0].isdigit() else 0
        if grown > size:
            heard, size = handset.now(), grown
            replied(_count(shell, path, directory))
        if words[1:2] == ["0"]:
            return
        if handset.now() - heard > session.quiet_seconds:
            raise KernelHang(
                f"{handset.name} answered nothing for {session.quiet_seconds:g} s",
                "look at its screen",
            )


def _explain(handset: Handset, boot_id: str) -> None:
    """Say what became of a phone that was lost, unless it is there again as it was."""
    lost = handset.now()
    while not _reconnected(handset, boot_id, lost):
        handset.pause(_LOOK)


def _reconnected(handset: Handset, boot_id: str, since: float) -> bool:
    """Whether a phone that was lost is there again, and runs what it was started with."""
    again = running = None
    with suppress(NoRoot):  # after a reset, su comes later than adbd
        again = handset.shell()
    if again is None and handset.fastboot.present():
        raise GuestReset(f"the kernel reset {handset.name}, which is in its boot loader")
    if again is not None:
        with suppress(LostConnection):
            running = handset.boot_id(again)
    if again is None or running is None:
        if handset.now() - since > max(_RETURN, handset.model.boot_seconds):
            raise KernelHang(f"{handset.name} no longer answers", "look at its screen")
        return False
    if running != boot_id:
        raise GuestReset(f"the kernel reset {handset.name}{last_words(again)}")
    return True


def _count(shell: AdbShell, path: str, directory: Path) -> int:
    """Requests that have been answered."""
    so_far = directory / "replies.partial"
    try:
        shell.pull(path, so_far, _TRANSFER)
    except LostConnection:
        return 0
    return max(0, len(agent.Decoder().feed(so_far.read_bytes())) - 1)
