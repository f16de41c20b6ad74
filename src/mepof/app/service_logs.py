"""What services wrote: the end of it in the error of one that failed, and all of it in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mepof.app.launch import ServiceFailure
from mepof.device import agent, console

_MAX_LINES = 20


def logs_of(names: Sequence[str], replies: Sequence[agent.Reply]) -> dict[str, str]:
    """What each service wrote.

    Args:
        names: of the services whose logs were asked for.
        replies: to these requests; a service that was not started has no log.
    """
    return {
        name: reply.data.decode("utf-8", "replace")
        for name, reply in zip(names, replies, strict=True)
        if isinstance(reply, agent.GetResult) and not reply.errno
    }


def with_end(failure: ServiceFailure, logs: Mapping[str, str]) -> str:
    """How a service failed, and below that the last lines that it wrote."""
    text = logs.get(failure.service, "")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return failure.message
    # The launcher says the last line, which the lines below have too.
    how = failure.message.removesuffix(f": {lines[-1]}").removesuffix(f": {lines[-1].strip()}")
    return how + console.tail(text, _MAX_LINES)


def remedy_of(failure: ServiceFailure, logs: Mapping[str, str]) -> str | None:
    """What may help a service that failed, by what it wrote; None if nothing is known."""
    return failure.remedy or agent.remedy_for(logs.get(failure.service, ""))


def keep(logs: Mapping[str, str], log: Path, what: str = "") -> dict[str, Path]:
    """Keep whole logs beside a step's log; the file of each, by the service's name.

    Args:
        what: of which boot they are, where a step makes several: ``.image1``.
    """
    kept = {name: log.with_name(f"{log.stem}{what}.{name}.log") for name in logs}
    for name, path in kept.items():
        path.write_text(logs[name], encoding="utf-8")
    return kept
