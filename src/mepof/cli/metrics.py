"""What is measured and how often: ``--metric`` and ``--repetitions``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.application import completing
from mepof.errors import InputError
from mepof.g4.diagnostics import quote, suggestion
from mepof.g4.settings import boots
from mepof.plan.preflight import unreadable
from mepof.suite.cases import metric_names

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        help=f"What to measure: {', '.join(metric_names())}; `mepof eval` also takes the path of a "
        "file that describes an app. Give it several times, or a list with commas.  "
        "[default: the metrics of the suite mepof]",
        metavar="METRIC[,…]",
        autocompletion=completing(*metric_names()),
    ),
]


def chosen_repetitions(given: str) -> tuple[int, int]:
    """The fewest and the most boots.

    Raises:
        InputError: they are not a number or a range.
    """
    try:
        return boots(given)
    except ValueError as error:
        raise InputError(
            f"invalid repetitions {quote(given)}", f"--repetitions: {error}"
        ) from error


def chosen_metrics(given: Sequence[str] | None, *, apps: bool = False) -> list[str]:
    """The metrics of all options, of which several add up, separated by commas or semicolons.

    Args:
        apps: whether a path is one, of a file that describes an app.

    Raises:
        InputError: one of them is unknown, missing or given twice, or an option has none.
    """
    chosen: list[str] = []
    for name in (word.strip() for text in given or () for word in re.split("[;,]", text)):
        if not name:
            continue
        if not (apps and "/" in name) and name not in metric_names():
            own = apps and name.endswith(".toml")
            hint = f"write {quote(f'./{name}')}" if own else suggestion(name, metric_names())
            raise InputError(f"unknown metric {quote(name)}", f"--metric: {hint}")
        if "/" in name and not _exists(name):
            remedy = f"--metric: paths are relative to {Path.cwd()}"
            raise InputError(f"{name} does not exist", remedy)
        if name in chosen:
            raise InputError(f"the metric {quote(name)} is given twice", "--metric: name it once")
        chosen.append(name)
    if given and not chosen:
        raise InputError("no metric is given", f"--metric: known: {', '.join(metric_names())}")
    return chosen


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError as error:
        raise unreadable(error) from error
