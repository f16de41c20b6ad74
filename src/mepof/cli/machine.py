"""The options of commands that measure a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mepof.cli.console import ErrorConsole
from mepof.errors import InputError

if TYPE_CHECKING:
    from mepof.pmu.counter import Counters

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


def programs_on(programs: Path, elsewhere: str | None) -> str:
    """The whole path of what ``--programs`` names: cases run in another directory.

    Args:
        elsewhere: the machine that has them; None for this one.

    Raises:
        InputError: it is relative, and is not of this machine.
    """
    if elsewhere is not None and not programs.is_absolute():
        raise InputError(
            f"--programs {programs} is relative", f"write its whole path on {elsewhere}, from `/`"
        )
    return str(programs.absolute())


def counters_of(name: str) -> Counters | None:
    """What ``--counters`` names; None if nothing is counted.

    Raises:
        InputError: they do not exist, or their file is wrong.
    """
    from mepof.pmu.counter import load_counters

    return None if name == "none" else load_counters(name)


def say(text: str) -> None:
    """Print a line on standard error."""
    ErrorConsole(highlight=False, soft_wrap=True, markup=False, emoji=False).print(text)
