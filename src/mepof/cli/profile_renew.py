"""``mepof profile renew``: the decay of the loop, for profiles that no program makes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console

from mepof import _engine
from mepof.cli.output import Json, print_json
from mepof.errors import InputError
from mepof.g4.settings import decay as read_decay
from mepof.profile.aging import Aged, Decay


@dataclass(frozen=True)
class Kind:
    """How profiles of one kind are aged and added up."""

    age: Callable[[Path, Path, Decay, Path], Aged]
    merge: Callable[[list[Path], Path], int]


def renew(
    new: Annotated[Path, typer.Argument(help="Profile of the last round.", metavar="NEW")],
    old: Annotated[Path, typer.Argument(help="Profile that is older.", metavar="OLD")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.", metavar="OUT")],
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
        InputError: the profiles are of different kinds or have no counts, or the decay is not
            above 0 and at most 1.
    """
    try:
        weight = read_decay(decay)
    except ValueError as error:
        raise InputError(f"the decay {decay} is not valid", str(error)) from error
    if not weight:
        raise InputError("a decay of 0 leaves nothing of the old profile", "use the new one alone")
    kind = _counts() if _are_counts(new, old) else _samples()
    try:
        with TemporaryDirectory() as scratch:
            aged = Path(scratch) / "aged"
            left = kind.age(old, new, Decay(weight, same_source), aged)
            partial = output.with_name(f".{output.name}.{os.getpid()}")
            try:
                functions = kind.merge([new, aged] if left.kept else [new], partial)
                partial.replace(output)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error
    if as_json:
        done = {"output": str(output), "functions": functions, "old": asdict(left)}
        print_json({"schema": "mepof-profile-renew/1", **done})
    else:
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"{functions:,} functions: {left}"
        )


def _samples() -> Kind:
    from mepof.algorithm.branches import age_samples  # loads all toolchains

    def merge(parts: list[Path], output: Path) -> int:
        done = json.loads(_engine.merge([(part, 1) for part in parts], output, "autofdo"))
        output.with_name(f"{output.name}.provenance.json").unlink(missing_ok=True)
        functions: int = done["statistics"]["functions"]
        return functions

    return Kind(age_samples, merge)


def _counts() -> Kind:
    from mepof.process import run
    from mepof.profile.instrumentation import LLVM_INSTRUMENTATION, age_profile, merge_profiles
    from mepof.toolchain.protocol import Tools, select_with

    tools = Tools(select_with(LLVM_INSTRUMENTATION), run)

    def merge(parts: list[Path], output: Path) -> int:
        weighted = [(part.resolve(), Fraction(1)) for part in parts]
        return merge_profiles(weighted, output.resolve(), tools).functions

    return Kind(lambda old, new, by, output: age_profile(old, new, by, output, tools), merge)


def _are_counts(new: Path, old: Path) -> bool:
    from mepof.profile.instrumentation import is_instrumentation  # loads all toolchains

    kinds = {is_instrumentation(path): path for path in (new, old)}
    if len(kinds) > 1:
        raise InputError(
            f"{kinds[True]} is a profile of an instrumented kernel and {kinds[False]} is not",
            "renew a profile by one of its own kind",
        )
    return True in kinds
