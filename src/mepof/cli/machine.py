"""The options of commands that measure a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.console import ErrorConsole

Ssh = Annotated[
    str | None,
    typer.Option(
        help="Machine that ssh reaches, as root or with sudo.  [default: this machine]",
        metavar="[USER@]HOST",
    ),
]
Programs = Annotated[
    Path,
    typer.Option(help="Directory on the machine that holds the suites' programs.", metavar="DIR"),
]
CounterNames = Annotated[
    str,
    typer.Option(
        "--counters",
        help="Kind of core whose events perf counts, a TOML file, or none.",
        metavar="NAME",
    ),
]
Scratch = Annotated[
    str | None,
    typer.Option(
        help="Directory that cases may write to.  [default: /tmp, on a phone /data/local/tmp]",
        metavar="DIR",
    ),
]


def say(text: str) -> None:
    """Print a line on standard error."""
    ErrorConsole(highlight=False, soft_wrap=True, markup=False, emoji=False).print(text)
