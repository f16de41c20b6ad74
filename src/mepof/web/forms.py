"""The bodies of POST requests: small, of the one kind that our forms send, and with our token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mepof.web.guard import Sessions, same

# A program of the largest size, each of whose bytes takes three in a form.
_MAX_BYTES = 4 << 20
_MAX_FIELDS = 16


async def form_of(request: Request, sessions: Sessions) -> Mapping[str, str]:
    """The fields of a form of ours.

    Raises:
        HTTPException: it is too large, is not a form, or does not have the form token.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "this is not a form of ours")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise HTTPException(413, "the form is too large")
    try:
        fields = dict(
            parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
            )
        )
    except ValueError as error:
        raise HTTPException(400, "the form cannot be read") from error
    if not same(fields.get("csrf_token", ""), sessions.csrf_token):
        raise HTTPException(403, "the form is of an earlier start of the server: load it again")
    return fields


def posted(
    sessions: Sessions, act: Callable[[Request, Mapping[str, str]], Response]
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for a form of ours, whose token is checked before anything is done."""

    async def endpoint(request: Request) -> Response:
        form = await form_of(request, sessions)
        return await run_in_threadpool(act, request, form)

    return endpoint
