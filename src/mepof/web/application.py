"""The application: every view under its address, behind the guard."""

from __future__ import annotations

import mimetypes
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from mepof.errors import EnvironmentLack, InputError, MepofError
from mepof.web.forms import form_of, posted
from mepof.web.guard import COOKIE, App, Guard, Receive, Scope, Send
from mepof.web.site import Site
from mepof.web.views import compare, heatmap, runs, start, store, trends

_VIEWS = (runs, heatmap, compare, trends, store, start)
# A guess takes this long.
_WRONG_TOKEN_SECONDS = 1.0
_STATIC = ("page.css", "page.js", "icon.svg")
_TITLES: Mapping[int, str] = {
    404: "Not found",
    403: "Refused",
    500: "A bug in mepof",
    503: "One moment",
}
# What is shown while the runs are being read.
_AT_ONCE = ("/static/", "/login", "/logout")


def application(
    site: Site, names: Collection[str], loopback: bool = True, secure: bool = False, **guard: Any
) -> App:
    """The site as an ASGI application.

    Args:
        names, loopback, secure, guard: as of :class:`mepof.web.guard.Guard`.
    """
    routes: list[BaseRoute] = [
        Route("/static/{name}", _static),
        Route("/login", _login_page(site)),
        Route("/login", _login(site, secure), methods=["POST"]),
        Route("/logout", posted(site.sessions, _logout(site)), methods=["POST"]),
    ]
    for view in _VIEWS:
        routes += view.routes(site)

    async def refused(request: Request, error: Exception) -> Response:
        return await run_in_threadpool(_message, site, request, error)

    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: refused, MepofError: refused, Exception: refused},
    )

    async def patient(scope: Scope, receive: Receive, send: Send) -> None:
        waits = scope["type"] == "http" and not scope["path"].startswith(_AT_ONCE)
        if waits and not site.is_read:
            try:
                await run_in_threadpool(site.wait)
            except Exception as error:
                answer = await refused(Request(scope, receive), error)
                await answer(scope, receive, send)
                return
        await app(scope, receive, send)

    return Guard(patient, site.sessions, names, loopback, secure, **guard)


def _message(site: Site, request: Request, error: Exception) -> Response:
    headers: Mapping[str, str] = {}
    remedy: str | None = None
    match error:
        case HTTPException():
            status, text, headers = error.status_code, error.detail, error.headers or {}
        case MepofError():
            status = 400 if isinstance(error, InputError) else 500
            status = 501 if isinstance(error, EnvironmentLack) else status
            text, remedy = error.message, error.remedy
        case _:
            status, text = 500, f"{type(error).__name__}; the server's terminal says more"
    title = _TITLES.get(status, "That does not work")
    values = {"title": title, "text": text, "remedy": remedy}
    return site.page(request, "message", status, headers, **values)


@cache
def _file(name: str) -> bytes:
    data = (files("mepof.web") / "static" / name).read_bytes()
    if name == "page.css":
        report = files("mepof.report") / "templates" / "report.css"
        data = report.read_bytes() + data
    return data


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404, "there is no such file")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(_file(name), media_type=kind, headers={"cache-control": "no-cache"})


def _login_page(site: Site) -> Callable[[Request], Response]:
    def page(request: Request) -> Response:
        if site.sessions.token is None:
            return RedirectResponse("/", 303)
        return site.page(request, "login", wrong=False)

    return page


def _login(site: Site, secure: bool) -> Callable[[Request], Awaitable[Response]]:
    guesses = anyio.CapacityLimiter(1)

    async def login(request: Request) -> Response:
        form = await form_of(request, site.sessions)
        session = site.sessions.begin(form.get("token", "").strip())
        if session is None:
            async with guesses:
                await anyio.sleep(_WRONG_TOKEN_SECONDS)
            return site.page(request, "login", 403, wrong=True)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, session, httponly=True, samesite="strict", secure=secure)
        return answer

    return login


def _logout(site: Site) -> Callable[[Request, Mapping[str, str]], Response]:
    def logout(request: Request, form: Mapping[str, str]) -> Response:
        site.sessions.end(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    return logout
