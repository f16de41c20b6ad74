"""Boots that serve a batch: the requests lie in the initramfs, and the replies go to a file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from mepof.device import agent, console, initramfs
from mepof.device.initramfs import Entry
from mepof.device.protocol import (
    BootFailure,
    GuestReset,
    KernelPanic,
    Session,
)
from mepof.errors import WorkError

REQUESTS = "mepof/requests"
"""The path of the requests in the guest (``BATCH_FILE`` of the agent)."""


def initramfs_of(session: Session, *entries: Entry) -> bytes:
    """The archives that the kernel unpacks one over the other, the requests last.

    Args:
        entries: further files in the directory of the requests.
    """
    requests = b"".join(agent.encode(each) for each in (*session.requests, agent.PowerOff()))
    return (
        session.initramfs.read_bytes()
        + b"".join(path.read_bytes() for path in session.archives)
        + initramfs.archive((Entry("mepof", 0o755), Entry(REQUESTS, 0o600, requests), *entries))
    )


def answers(session: Session, log: Path, port: Path) -> tuple[str, tuple[agent.Reply, ...]]:
    """The kernel's release, and a reply for each request of a session.

    Args:
        log: what the kernel wrote.
        port: what the agent wrote.

    Raises:
        GuestReset: the guest went down before it had answered.
        BootFailure: the port has something else than replies.
    """
    decoder = agent.Decoder()
    try:
        replies = decoder.feed(port.read_bytes() if port.exists() else b"")
    except WorkError as error:
        raise failure(BootFailure, error.message, log, port) from error
    if not replies or not isinstance(replies[0], agent.Hello):
        raise failure(GuestReset, "the guest went down before its agent answered", log, port)
    found = tuple(replies[1:-1])
    if len(found) != len(session.requests) or not isinstance(replies[-1], agent.PoweredOff):
        done = f"{max(0, len(replies) - 1)} of {len(session.requests)} requests"
        raise failure(GuestReset, f"the guest went down after {done}", log, port)
    return replies[0].release, found


def raise_if_panicked(log: Path, port: Path) -> None:
    """Look for a panic on the console.

    Raises:
        KernelPanic: there is one.
    """
    panic = console.panic_in(console.text_of(log))
    if panic is not None:
        raise failure(KernelPanic, f"the kernel went down: {panic}", log, port)


def failure(kind: type[BootFailure], what: str, log: Path, port: Path) -> BootFailure:
    """The error of a boot, with the last lines of its console and the replies before it."""
    written = console.text_of(log)
    made = kind(f"{what}{console.tail(written)}", f"see {log}")
    made.replies, made.console = _replies_so_far(port), written
    return made


def _replies_so_far(port: Path) -> tuple[agent.Reply, ...] | None:
    """The answers of a guest that went down; None if its agent did not come up."""
    decoder = agent.Decoder()
    with suppress(OSError, WorkError):
        hello, *replies = decoder.feed(port.read_bytes()) or (None,)
        if isinstance(hello, agent.Hello):
            return tuple(reply for reply in replies if not isinstance(reply, agent.PoweredOff))
    return None
