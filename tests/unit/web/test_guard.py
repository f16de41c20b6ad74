"""Requests that must not pass; the application behind the guard answers every one with 200."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from mepof.web.guard import COOKIE, Guard, Message, Receive, Scope, Send, Sessions

TOKEN = "correct horse battery staple"


async def behind(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"passed"})


def ask(
    method: str = "GET",
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
    loopback: bool = True,
    own: bool = True,
    sessions: Sessions | None = None,
    repeated: tuple[tuple[str, str], ...] = (),
) -> tuple[int, dict[str, str]]:
    """The status and the headers of the answer to a request."""
    port = 8340
    given = {"host": f"127.0.0.1:{port}", **(headers or {})}
    pairs = [*given.items(), *repeated]
    server = ("127.0.0.1" if loopback else "192.0.2.7", port)
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in pairs],
        "client": ("127.0.0.1", 50000),
        "server": server,
    }
    names = ("localhost", "127.0.0.1", "::1") if loopback else ("farm.example",)
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("the body is not for the guard")

    guard = Guard(
        behind, sessions or Sessions(token), names, loopback, is_own=lambda client, server: own
    )
    asyncio.run(guard(scope, receive, send))
    fields = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], fields


def test_an_own_process_on_loopback_passes_without_a_token() -> None:
    assert ask()[0] == 200
    assert ask(headers={"host": "localhost:8340"})[0] == 200
    assert ask(headers={"host": "[::1]:8340"})[0] == 200


def test_another_users_process_on_loopback_is_refused() -> None:
    assert ask(own=False)[0] == 403
    assert ask("POST", own=False)[0] == 403
    assert ask(path="/login", own=False)[0] == 403


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8340",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8340",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil",
        "127.0.0.2:8340",
        "0.0.0.0:8340",
        "[::1",
        "localhost:port",
        "192.0.2.7:8340",
    ],
)
def test_a_foreign_host_is_refused(host: str) -> None:
    """What a page of a foreign name, made to point to this machine, would send."""
    assert ask(headers={"host": host})[0] == 421


def test_a_forwarded_port_passes() -> None:
    assert ask(headers={"host": "localhost:9000"})[0] == 200


def test_beyond_loopback_the_addressed_host_passes_with_a_token() -> None:
    bearer = {"authorization": f"Bearer {TOKEN}"}
    for host, status in (
        ("farm.example:8340", 200),
        ("FARM.example", 200),
        ("192.0.2.7:8340", 200),
        ("192.0.2.8:8340", 421),
        ("localhost:8340", 421),
    ):
        assert ask(headers={"host": host, **bearer}, token=TOKEN, loopback=False)[0] == status


def test_two_hosts_are_refused() -> None:
    assert ask(repeated=(("host", "evil.example"),))[0] == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
def test_other_methods_are_refused(method: str) -> None:
    assert ask(method)[0] == 405


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=lambda headers: "-".join(headers.values()),
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str]) -> None:
    assert ask("POST", headers=headers)[0] == 403


def test_a_form_of_ours_passes() -> None:
    headers = {"origin": "http://127.0.0.1:8340", "sec-fetch-site": "same-origin"}
    assert ask("POST", headers=headers)[0] == 200


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xff"],
)
@pytest.mark.parametrize("loopback", [True, False])
def test_with_a_token_everything_needs_it(authorization: str, loopback: bool) -> None:
    host = "localhost" if loopback else "farm.example"
    headers = {"host": host, "authorization": authorization}
    for method in ("GET", "HEAD", "POST"):
        assert ask(method, headers=headers, token=TOKEN, loopback=loopback)[0] == 401


def test_a_browser_without_a_session_is_sent_to_the_login() -> None:
    status, headers = ask(headers={"accept": "text/html"}, token=TOKEN)
    assert (status, headers["location"]) == (303, "/login")
    assert ask(path="/login", token=TOKEN)[0] == 200
    assert ask(path="/login/../runs", token=TOKEN)[0] == 401


def test_a_session_begins_with_the_token_and_ends() -> None:
    sessions = Sessions(TOKEN)
    assert sessions.begin("wrong") is None
    assert sessions.begin("") is None
    secret = sessions.begin(TOKEN)
    assert secret is not None and secret not in (TOKEN, sessions.csrf_token)
    cookie = {"cookie": f"{COOKIE}={secret}"}
    assert ask(headers=cookie, sessions=sessions)[0] == 200
    assert ask(headers={"cookie": f"{COOKIE}={secret}x"}, sessions=sessions)[0] == 401
    assert ask(headers={"cookie": "\xff=;;"}, sessions=sessions)[0] == 401
    sessions.end(secret)
    assert ask(headers=cookie, sessions=sessions)[0] == 401


def test_sessions_are_bounded() -> None:
    sessions = Sessions(TOKEN)
    first = sessions.begin(TOKEN)
    others = [sessions.begin(TOKEN) for _ in range(300)]
    assert first is not None and not sessions.knows(first)
    assert sessions.knows(str(others[-1]))


def test_nobody_logs_in_where_there_is_no_token() -> None:
    assert Sessions(None).begin("") is None


@pytest.mark.parametrize("own", [True, False], ids=["passed", "refused"])
def test_every_answer_forbids_what_a_page_of_ours_does_not_do(own: bool) -> None:
    _, headers = ask(own=own)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
