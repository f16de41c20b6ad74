"""Who may ask: hosts, tokens, sessions and forms; and what every answer forbids the browser.

A page of this server acts on the user's machine, so another site must not be able to use it:

- The ``Host`` header must be a name of this server: a foreign name that was made to point here
  (DNS rebinding) is refused.
- What changes something is a POST that carries the server's own form token, comes from the same
  origin and, away from loopback, has a session.
- Beyond loopback every request needs the access token, and on loopback a process of another user
  does.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from mepof.web.peer import is_own_process

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "mepof_session"
#: What is there without a session: the form that begins one, and its style.
OPEN_PATHS = frozenset({"/login", "/static/page.css"})

_MAX_SESSIONS = 256
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # `no-referrer` would take the origin out of our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    "content-security-policy": _POLICY,
}


@dataclass
class Sessions:
    """The sessions that the access token began, and the token of forms; both end with the server.

    Attributes:
        token: what every request beyond loopback needs; None needs none on loopback.
        csrf_token: what every form has; another site cannot read it.
    """

    token: str | None
    csrf_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _known: dict[str, None] = field(default_factory=dict)

    def begin(self, token: str) -> str | None:
        """A new session's secret, if the access token is right."""
        if self.token is None or not same(token, self.token):
            return None
        session = secrets.token_urlsafe(32)
        while len(self._known) >= _MAX_SESSIONS:
            del self._known[next(iter(self._known))]
        self._known[session] = None
        return session

    def end(self, session: str) -> None:
        """Forget a session."""
        self._known.pop(session, None)

    def knows(self, session: str) -> bool:
        """Whether a secret is that of a session."""
        found = False
        for known in self._known:
            found |= same(session, known)
        return found


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are the same, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())


class Guard:
    """Lets requests pass to an application, or answers them itself.

    Args:
        names: the host names by which the server is asked for, beside addresses of its own.
        loopback: whether it listens on loopback only.
        secure: whether it is reached by HTTPS, so that the cookie is sent by HTTPS only.
        is_own: whether the process at the other end of a connection on loopback, given both
            addresses and ports, is of the same user.
    """

    def __init__(
        self,
        app: App,
        sessions: Sessions,
        names: Collection[str],
        loopback: bool,
        secure: bool = False,
        is_own: Callable[[tuple[str, int], tuple[str, int]], bool] = is_own_process,
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._names = frozenset(name.lower() for name in names)
        self._loopback = loopback
        self._is_own = is_own
        self._headers = dict(_HEADERS)
        if secure:
            self._headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.encode(), value.encode())
                        for name, value in self._headers.items()
                        if name.encode() not in present
                    ),
                ]
            await send(message)

        refused = self._refusal(scope)
        if refused is None:
            await self._app(scope, receive, guarded)
            return
        status, text, headers = refused
        body = text.encode()
        await guarded(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (b"content-type", b"text/plain; charset=utf-8"),
                    (b"content-length", str(len(body)).encode()),
                    *headers,
                ],
            }
        )
        await guarded({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in headers and name in (b"host", b"origin", b"authorization"):
                return 400, "a header is given twice\n", []
            headers[name] = value
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._is_ours(host, scope):
            return 421, "this server has another name; mepof serve --name adds one\n", []
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "only GET, HEAD and POST\n", [(b"allow", b"GET, HEAD, POST")]
        if scope["method"] == "POST" and not _same_origin(headers, host):
            return 403, "the form was sent by another site\n", []
        if self._may(scope, headers) or (scope["path"] in OPEN_PATHS and self._sessions.token):
            return None
        if self._sessions.token is None:
            return 403, "another user serves this; they can start it with --token\n", []
        if scope["method"] == "POST" or b"text/html" not in headers.get(b"accept", b""):
            return 401, "the access token is missing\n", [(b"www-authenticate", b"Bearer")]
        return 303, "", [(b"location", b"/login")]

    def _may(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        if self._sessions.token is None:
            client, server = scope.get("client"), scope.get("server")
            return self._loopback and bool(
                client and server and self._is_own(tuple(client), tuple(server))
            )
        scheme, _, given = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer" and same(given.strip(), self._sessions.token):
            return True
        return self._sessions.knows(session_of(headers.get(b"cookie", b"")))

    def _is_ours(self, host: str, scope: Scope) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.username is not None or parts.path:
            return False
        server = scope.get("server") or (None, None)
        if port is not None and port != server[1] and self._loopback:
            # A port that is forwarded keeps its name, as `ssh -L` does.
            return name in self._names
        if name in self._names:
            return True
        try:
            # An address cannot be made to point elsewhere.
            return not self._loopback and ipaddress.ip_address(name) == ipaddress.ip_address(
                str(server[0])
            )
        except ValueError:
            return False


def session_of(cookies: bytes) -> str:
    """The session in a ``Cookie`` header; empty if there is none."""
    try:
        found = SimpleCookie(cookies.decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _same_origin(headers: dict[bytes, bytes], host: str) -> bool:
    """Whether a browser says that a form is of this site; programs that say nothing have none."""
    if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
        return False
    origin = headers.get(b"origin")
    if origin is None:
        return True
    return urlsplit(origin.decode("latin-1").lower()).netloc == host
