"""``mepof profile merge`` of directories and buckets of profiles."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from mepof.cli.output import warn
from mepof.disk import existing
from mepof.errors import InputError
from mepof.executor.protocol import Settings, Tls
from mepof.plan.store import default_store
from mepof.profile.fleet import SCALE, Aging, Fleet, Map, members, merge_fleet

HalfLife = Annotated[
    str | None,
    typer.Option(
        "--half-life",
        help="For directories and buckets: days after which a profile counts half.",
        metavar="DAYS",
    ),
]
Weigh = Annotated[
    list[str] | None,
    typer.Option(
        "--weigh",
        help="Weight of the profiles whose names fit, such as 'rack7/*=3'; the first that fits "
        "counts.",
        metavar="PATTERN=N",
    ),
]
Like = Annotated[
    Path | None,
    typer.Option(
        "--like",
        help="Profile of the build that all profiles must be of.  [default: the oldest]",
        metavar="PROFILE",
    ),
]
Least = Annotated[
    str | None,
    typer.Option(
        "--least-overlap",
        help="For directories and buckets: refuse profiles whose flow overlap with --like is "
        "smaller.",
        metavar="PERCENT",
    ),
]
Where = Annotated[
    str | None,
    typer.Option("--executor", help="Where to merge: local, dask.", metavar="NAME"),
]

_MAX_SHOWN = 10


@dataclass(frozen=True)
class Options:
    """How a fleet's profiles are merged, and where."""

    half_life: str | None
    weigh: Sequence[str]
    like: Path | None
    least: str | None
    executor: str | None
    scheduler: str | None
    workers: int | None
    tls: Tls | None = None


def is_fleet(profiles: Sequence[str]) -> bool:
    """Whether directories or buckets are to be merged.

    Raises:
        InputError: files as well, or one of them twice.
    """
    named = [(text, existing(text)) for text in profiles]
    many = [text for text, path in named if "://" in text or (path is not None and path.is_dir())]
    if many and len(many) != len(profiles):
        raise InputError("files cannot be merged with directories", "merge the directories first")
    places = {str(path.resolve()) if path is not None else text for text, path in named}
    if many and len(places) != len(profiles):
        raise InputError("a directory or bucket is given twice", "name each of them once")
    return bool(many)


def merged(urls: Sequence[str], output: Path, form: str, options: Options) -> dict[str, Any]:
    """Merge them; what came of it, as JSON.

    Raises:
        InputError: an option is wrong, or no profile is left.
    """
    weights = dict(map(weight_of, options.weigh))
    found, denied = members(urls, weights)
    for pattern in weights:
        if not any(fnmatchcase(each.name, pattern) for each in found):
            warn(
                f"note: --weigh {pattern} fits no profile; the first is {found[0].name}, by its "
                "path below the directory"
            )
    aging = Aging(half_life_of(options.half_life), max(each.day for each in found))
    settings = Settings(
        default_store(),
        os.cpu_count() or 1,
        scheduler=options.scheduler,
        workers=options.workers,
        tls=options.tls,
    )
    if options.executor not in (None, "local", "dask"):
        raise InputError(
            f"profiles cannot be merged by `{options.executor}`", "choose local or dask"
        )
    if options.executor == "dask":
        from mepof.executor.dask import mapping

        where: AbstractContextManager[Map] = mapping(settings, lambda text: warn(f"note: {text}"))
    else:
        from mepof.executor.local import local_executor

        local_executor(settings)  # refuses what is for a cluster
        where = nullcontext(map)
    cache = settings.store.absolute() / "cache" / "fleet"
    least = least_of(options.least)
    with where as run:
        fleet = merge_fleet(found, aging, output, form, cache, run, options.like, least)
    return _document(replace(fleet, refused=(*denied, *fleet.refused)), aging, output)


def _document(fleet: Fleet, aging: Aging, output: Path) -> dict[str, Any]:
    return {
        "kind": "fleet",
        "output": str(output),
        "profiles": fleet.profiles,
        "refused": [asdict(each) for each in fleet.refused],
        "faded": [str(day) for day in fleet.faded],
        "newest": str(aging.newest),
        "half_life_days": None if aging.half_life is None else float(aging.half_life),
        "weight_scale": 1 if aging.half_life is None else SCALE,
        "groups": fleet.groups,
        "groups_reused": fleet.reused,
        "saturated": fleet.saturated,
        "statistics": fleet.statistics,
    }


def show(done: dict[str, Any]) -> None:
    """Print what came of a merge."""
    for each in done["refused"][:_MAX_SHOWN]:
        print(f"refused: {each['name']}: {each['reason']}", file=sys.stderr)
    more = len(done["refused"]) - _MAX_SHOWN
    if more > 0:
        print(f"refused: {more} more, see --json", file=sys.stderr)
    if done["faded"]:
        print(f"faded: {len(done['faded'])} days", file=sys.stderr)
    if done["saturated"]:
        print("full: counters reached their limit of 64 bits", file=sys.stderr)
    print(
        f"{done['profiles']} profiles merged into {done['output']}, {len(done['refused'])} refused;"
        f" {done['groups_reused']} of {done['groups']} groups were merged before",
        file=sys.stderr,
    )


def half_life_of(text: str | None) -> Fraction | None:
    """A number of days.

    Raises:
        InputError: it is not a positive number.
    """
    if text is None:
        return None
    try:
        days = Fraction(text)
    except (ValueError, ZeroDivisionError):
        days = Fraction(0)
    if days <= 0:
        raise InputError(f"invalid half-life `{text}`", "write a number of days, such as 7")
    return days


def least_of(text: str | None) -> Fraction:
    """A share of one, from a number of percent.

    Raises:
        InputError: it is not a number from 0 to 100.
    """
    try:
        share = Fraction(text or 0) / 100
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if not 0 <= share <= 1:
        raise InputError(f"invalid overlap `{text}`", "write a number of percent, such as 10")
    return share


def weight_of(text: str) -> tuple[str, int]:
    """``PATTERN=N``.

    Raises:
        InputError: it is not that.
    """
    pattern, _, weight = text.rpartition("=")
    if not pattern or not weight.isdecimal() or not 0 < int(weight) < 1 << 32:
        raise InputError(
            f"invalid weight `{text}`",
            "write PATTERN=N with a whole number, such as 'rack7/*=3'",
        )
    return pattern, int(weight)
