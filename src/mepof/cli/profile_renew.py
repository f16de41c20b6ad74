"""``mepof profile renew``: the decay of the loop, for profiles that no program makes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.console import ErrorConsole
from mepof.cli.output import Json, Output, print_json
from mepof.cli.stdin import spooled
from mepof.errors import InputError, WorkError
from mepof.g4.settings import decay as read_decay
from mepof.profile.aging import Aged, Decay
from mepof.profile.published import published
from mepof.profile.quality import Quality


def renew(
    new: Annotated[Path, typer.Argument(help="Profile of the last round.", metavar="NEW")],
    old: Annotated[Path, typer.Argument(help="Profile that is older.", metavar="OLD")],
    output: Output,
    decay: Annotated[
        str,
        typer.Option(help="Total of the old profile relative to the new one's.", metavar="0-1"),
    ] = "0.5",
    same_source: Annotated[
        bool,
        typer.Option(
            "--same-source",
            help="Both are of the same source, so that their lines add up.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Add what is left of an old profile to a new one.

    Both are AutoFDO profiles, or both of instrumented kernels (.profdata).

    Raises:
        InputError: the profiles are of different kinds, damaged or have no counts, or the decay is
            not from 0 to 1.
    """
    try:
        weight = read_decay(decay)
    except ValueError as error:
        raise InputError(f"the decay {decay} is not valid", str(error)) from error
    by = Decay(weight, same_source)
    with spooled([new, old]) as (added, aged), published(output) as written:
        renewed = _renewed_counts if _are_counts(added, aged) else _renewed_samples
        quality, left = renewed(added.resolve(), aged.resolve(), by, written.resolve())
    if as_json:
        done = {"output": str(output), "functions": quality.functions, "old": asdict(left)}
        print_json({"schema": "mepof-profile-renew/1", **done})
    else:
        ErrorConsole(highlight=False, soft_wrap=True).print(
            f"{quality.functions:,} functions: {left}\nwritten {output}", markup=False
        )


def _renewed_samples(new: Path, old: Path, decay: Decay, output: Path) -> tuple[Quality, Aged]:
    from mepof.algorithm.branches import renew_samples  # loads all toolchains

    return renew_samples(new, old, decay, output)


def _renewed_counts(new: Path, old: Path, decay: Decay, output: Path) -> tuple[Quality, Aged]:
    from mepof.process import run
    from mepof.profile.instrumentation import check_finished, renew_profile, toolchain_reading
    from mepof.toolchain.protocol import Tools

    tools = Tools(toolchain_reading((new, old)), run)
    try:
        return renew_profile(new, old, decay, output, tools)
    except WorkError:
        for path in (new, old):
            check_finished(path, tools, raw=True)
        raise


def _are_counts(new: Path, old: Path) -> bool:
    from mepof.profile.instrumentation import are_instrumentation  # loads all toolchains

    return are_instrumentation((new, old), "renew a profile by one of its own kind")
