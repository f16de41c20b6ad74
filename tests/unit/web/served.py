"""A server in a thread, and a client that is a browser's only as far as headers go."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mepof.plan.store import Store
from mepof.web.guard import Sessions
from mepof.web.server import Listening, bound, server_of
from mepof.web.site import Site


@dataclass(frozen=True)
class Answer:
    """Status, headers and text of an answer."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(frozen=True)
class Client:
    """Asks one server."""

    site: Site
    port: int

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, form: Mapping[str, str] | None = None, **headers: str) -> Answer:
        fields = {"csrf_token": self.site.sessions.csrf_token, **(form or {})}
        kind = {"content_type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, urlencode(fields).encode(), {**kind, **headers})

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {"Accept": "text/html", **named})
            answer = connection.getresponse()
            fields = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, fields, answer.read().decode())
        finally:
            connection.close()

    @contextmanager
    def events(self, path: str) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of a stream, until it ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield _events(answer)
        finally:
            connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        if line.startswith(b"event: end"):
            return
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


@contextmanager
def serving(
    root: Path, token: str | None = None, listening: Listening | None = None, **site: Any
) -> Iterator[Client]:
    """A server of ``root/out`` and ``root/store``."""
    made = Site(root / "out", Store(root / "store"), Sessions(token), **site)
    with bound("127.0.0.1", 0) as found:
        server = server_of(made, listening or Listening())
        thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
        thread.start()
        try:
            yield Client(made, found.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


def words(html: str) -> str:
    """The text of a page without tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))
