"""Server-sent events: what changed, within half a second.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

_LOOK_SECONDS = 0.25
# So that a proxy keeps the connection, and a closed one is noticed.
_IDLE_SECONDS = 15.0

Look = Callable[[], dict[str, object] | None]
"""What is new as JSON values; None where the stream ends."""


@dataclass
class Stopping:
    """Whether the server is about to end, and streams with it."""

    asked: Callable[[], bool] = lambda: False


def stream(request: Request, stopping: Stopping, look: Look) -> StreamingResponse:
    """A stream of events.

    Args:
        look: called several times a second; what it returns is sent unless it is empty.
    """
    return StreamingResponse(
        _events(request, stopping, look),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def _events(request: Request, stopping: Stopping, look: Look) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    idle = 0.0
    while not (stopping.asked() or await request.is_disconnected()):
        news = await run_in_threadpool(look)
        if news is None:
            yield b"event: end\ndata: {}\n\n"
            return
        if news:
            idle = 0.0
            yield f"data: {json.dumps(news)}\n\n".encode()
        elif (idle := idle + _LOOK_SECONDS) >= _IDLE_SECONDS:
            idle = 0.0
            yield b": still here\n\n"
        await anyio.sleep(_LOOK_SECONDS)
