"""Options that say which cluster works for a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mepof.errors import InputError
from mepof.executor.protocol import Tls

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        help="With --executor dask: scheduler of a cluster.  [default: start one here]",
        metavar="ADDRESS",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="With --executor dask: processes to start here.", metavar="N"
    ),
]
TlsCa = Annotated[
    Path | None,
    typer.Option("--tls-ca", help="Certificates that the cluster trusts.", metavar="FILE"),
]
TlsCert = Annotated[
    Path | None,
    typer.Option("--tls-cert", help="Certificate of this machine.", metavar="FILE"),
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", help="Key of this machine.", metavar="FILE")
]


def tls_of(ca: Path | None, cert: Path | None, key: Path | None) -> Tls | None:
    """The files of TLS, if they are named.

    Raises:
        InputError: only some of them are.
    """
    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise InputError("TLS needs three files", "give --tls-ca, --tls-cert and --tls-key")
    return Tls(ca, cert, key)
