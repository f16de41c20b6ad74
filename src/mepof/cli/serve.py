"""``mepof serve``: runs, reports and the store in a browser."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.run import StoreRoot
from mepof.errors import EnvironmentLack, InputError
from mepof.plan.store import Store, default_store

_MIN_TOKEN = 16
_VARIABLE = "MEPOF_SERVE_TOKEN"


def serve(
    directory: Annotated[
        Path,
        typer.Argument(help="Directory of the runs' output directories.", metavar="DIR"),
    ] = Path("out"),
    store: StoreRoot = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. One beyond loopback needs a token.", metavar="ADDRESS"
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Port to listen on; 0 for any that is free.", metavar="N"
        ),
    ] = 8340,
    token: Annotated[
        bool,
        typer.Option(
            "--token",
            help=f"Ask for an access token on loopback, too: that in {_VARIABLE}, or a new one.",
        ),
    ] = False,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", help="Further host name of this server; repeat it for more.", metavar="NAME"
        ),
    ] = None,
    programs: Annotated[
        Path | None,
        typer.Option(help="Directory of programs that can be started.", metavar="DIR"),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Start, cancel and resume nothing.")
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM file, to serve HTTPS.", metavar="FILE")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="PEM file of the certificate's key.", metavar="FILE")
    ] = None,
) -> None:
    """Show runs, reports and the store in a browser."""
    try:
        from mepof.web.guard import Sessions
        from mepof.web.server import Listening, is_loopback
        from mepof.web.server import serve as serve_site
        from mepof.web.site import Site
    except ModuleNotFoundError as error:
        raise EnvironmentLack(
            f"{error.name} is not installed", "pip install 'mepof[web]'"
        ) from error

    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is not a directory", "name the parent of `mepof run --out`")
    if programs is not None and not programs.is_dir():
        raise InputError(f"{programs} is not a directory", "name one that holds programs")
    if key is not None and certificate is None:
        raise InputError("--key is for --certificate", "give both")
    here = Store(store or default_store())
    if here.root.exists() and not here.root.is_dir():
        raise InputError(f"{here.root} is not a directory", "name a store with --store")
    # Taken out of the environment, which the runs that are started here inherit.
    given = os.environ.pop(_VARIABLE, None)
    secret = _token(given) if token or not is_loopback(host) else None
    site = Site(
        directory.absolute(),
        here,
        Sessions(secret),
        programs.resolve() if programs else None,
        may_start=not read_only,
    )

    def ready(address: str) -> None:
        print(f"mepof serves {directory} on {address}", file=sys.stderr)
        if not directory.exists():
            print(f"{directory} does not exist yet: a run makes it", file=sys.stderr)
        if secret is not None and not given:
            print(f"access token: {secret}", file=sys.stderr)
        if not is_loopback(host) and certificate is None:
            print("without --certificate, the token crosses the network in clear", file=sys.stderr)

    serve_site(site, Listening(host, port, tuple(names or ()), certificate, key), ready)


def _token(given: str | None) -> str:
    """The token that the user set, or a new one.

    Raises:
        InputError: the user's is too short to be a secret.
    """
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given.strip()) < _MIN_TOKEN:
        raise InputError(
            f"the token in {_VARIABLE} has fewer than {_MIN_TOKEN} characters",
            f"leave {_VARIABLE} unset for a new one",
        )
    return given.strip()
