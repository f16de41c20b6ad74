"""``mepof phone``: a virtual phone that the real ``fastboot`` talks to."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from mepof.bootimg.model import read_model
from mepof.cli.application import completing
from mepof.errors import InputError
from mepof.phone.bootloader import FAULTS, Bootloader
from mepof.phone.server import ADDRESS, listening, serve_tcp, serve_udp
from mepof.phone.state import DEFAULT_MODEL, Storage


def phone(
    directory: Annotated[
        Path,
        typer.Argument(help="What the phone keeps: made if it is not there.", metavar="DIR"),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.", metavar="N")
    ] = 5554,
    udp: Annotated[bool, typer.Option("--udp", help="Speak fastboot over UDP, not TCP.")] = False,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Description of the model of phone, a TOML file.  [default: one with 1 GiB]",
            metavar="FILE",
        ),
    ] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            help=f"What goes wrong: {', '.join(FAULTS)}.",
            metavar="NAME",
            autocompletion=completing(*FAULTS),
        ),
    ] = None,
) -> None:
    """Be a phone in fastboot, until interrupted.

    It listens on the loopback interface. A new one is locked, and its slots are empty.

    Raises:
        InputError: the model or the state in the directory is wrong, or the port is taken.
    """
    if fault is not None and fault not in FAULTS:
        raise InputError(f"unknown fault `{fault}`", f"known: {', '.join(FAULTS)}")
    described = DEFAULT_MODEL if model is None else read_model(model)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory} cannot be made: {error.strerror}") from error
    bootloader = Bootloader(Storage(directory, described), described, typer.echo, fault)
    try:
        server = listening(socket.SOCK_DGRAM if udp else socket.SOCK_STREAM, port)
    except OSError as error:
        raise InputError(
            f"port {port} cannot be used: {error.strerror}", "name another with --port"
        ) from error
    with server:
        name = f"{'udp' if udp else 'tcp'}:{ADDRESS}:{server.getsockname()[1]}"
        typer.echo(f"fastboot -s {name} getvar all")
        (serve_udp if udp else serve_tcp)(server, bootloader)
