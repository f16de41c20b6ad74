"""Serves the site until it is interrupted."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from uvicorn import Config, Server

from mepof.errors import InputError
from mepof.web.application import application
from mepof.web.site import Site

_GRACE_SECONDS = 1
_MAX_CONNECTIONS = 256
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Listening:
    """Where the server listens.

    Attributes:
        host: a name or an address; ``port`` 0 is any free one.
        names: further names by which it is asked for.
        certificate: a PEM file, with ``key``, for HTTPS; None serves HTTP.
    """

    host: str = "127.0.0.1"
    port: int = 8340
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone; names other than ``localhost`` are not."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(site: Site, listening: Listening, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        ready: called with the address once connections are accepted.

    Raises:
        InputError: the host, the port or the certificate cannot be used.
    """
    with bound(listening.host, listening.port) as found:
        server = server_of(site, listening)
        site.begin_reading()
        shown = f"[{listening.host}]" if ":" in listening.host else listening.host
        scheme = "https" if listening.certificate else "http"
        ready(f"{scheme}://{shown}:{found.getsockname()[1]}/")
        server.run(sockets=[found])


def server_of(site: Site, listening: Listening) -> Server:
    """The server, which runs once it is given a socket.

    Raises:
        InputError: the certificate cannot be used.
    """
    secure = listening.certificate is not None
    config = Config(
        application(site, names_of(listening), listening.loopback, secure),
        log_level="warning",
        # Addresses hold names of programs, and nobody reads the lines.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise InputError(
            f"the certificate {listening.certificate} cannot be used: {error.strerror or error}",
            "give a PEM file, and its key with --key",
        ) from error
    server = Server(config)
    site.stopping.asked = lambda: bool(server.should_exit)
    return server


def names_of(listening: Listening) -> Collection[str]:
    """The names by which the server may be asked for."""
    own = _LOOPBACK_NAMES if listening.loopback else (socket.gethostname(), socket.getfqdn())
    return {*own, listening.host, *listening.names}


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        InputError: the host is unknown, or the port is taken or not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        raise InputError(
            f"{host} port {port} cannot be listened on: {error.strerror or error}",
            "choose another with --host and --port",
        ) from error
    return found
