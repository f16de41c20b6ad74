"""``mepof doctor``: what this machine has, what mepof needs, and how to get what is missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from textwrap import fill
from typing import Annotated

import typer

from mepof.cli.output import Json, print_json
from mepof.errors import EnvironmentLack
from mepof.plan.store import default_store
from mepof.toolchain.probe import EXTRAS, KERNELS, Finding
from mepof.toolchain.requirements import findings

_MAX_VERSION = 24


def doctor(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="List everything that was looked for.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check what this machine can do, and name what is missing.

    Raises:
        EnvironmentLack: something is missing without which mepof cannot work.
    """
    found = findings(default_store())
    stopping = [finding for finding in found if finding.stops]
    if as_json:
        print_json(
            {
                "schema": "mepof-doctor/1",
                "ok": not stopping,
                "findings": [asdict(finding) for finding in found],
            }
        )
    else:
        width = shutil.get_terminal_size().columns
        parts: list[Iterable[str]] = [problems(stopping), goals(found, width)]
        if verbose:
            parts += [every(found, width), remedies(f for f in found if not f.stops)]
        else:
            parts.append(["`mepof doctor --verbose` lists every tool, and how to install it."])
        print("\n\n".join("\n".join(lines) for lines in map(list, parts) if lines))
    if stopping:
        remedy = next((each.remedy for each in stopping if not each.installs), None)
        if any(each.installs for each in stopping):
            remedy = "run `make setup`"
        raise EnvironmentLack(f"mepof cannot run here: {lacking(stopping)}", remedy)


def problems(stopping: Sequence[Finding]) -> Iterator[str]:
    """What stops every run, each with its remedy."""
    for finding in stopping:
        yield f"{finding.name} is {finding.state}: {finding.purpose}"
        if finding.found:
            yield f"  found {finding.found}, needed {finding.needed}"
        if finding.remedy:
            yield f"  {finding.remedy}"


def goals(found: Sequence[Finding], width: int) -> Iterator[str]:
    """One line for each goal: whether this machine is ready for it, or what it is missing."""
    by_goal = _by_goal(found)
    column = max(map(len, by_goal), default=0) + 2
    for goal, group in by_goal.items():
        text = lacking([finding for finding in group if finding.state != "ok"]) or "ready"
        yield _wrapped(f"{goal:{column}}{text}", column, width)


def lacking(found: Iterable[Finding]) -> str:
    """What is missing, too old, broken or too little, by its name."""
    by_state: dict[str, list[str]] = {}
    for finding in found:
        by_state.setdefault(finding.state, []).append(finding.name)
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in by_state.items())


def every(found: Sequence[Finding], width: int) -> Iterator[str]:
    """Everything that was looked for, by goal."""
    names = max((len(finding.name) for finding in found), default=0)
    versions = max(
        (length for f in found if (length := len(_version(f))) <= _MAX_VERSION), default=0
    )
    for number, (goal, group) in enumerate(_by_goal(found).items()):
        yield f"\n{goal}" if number else goal
        for finding in group:
            head, version = f"  {finding.state:8} {finding.name:{names}}  ", _version(finding)
            column = len(head) + versions + 2
            if len(version) > versions:  # the purpose is below it, in its column
                yield _wrapped(head + version, len(head), width)
                head = version = ""
            yield _wrapped(f"{head + version:{column}}{finding.purpose}", column, width)


def remedies(found: Iterable[Finding]) -> Iterator[str]:
    """Each command that installs something, after the names of what it installs."""
    by_command: dict[str, list[str]] = {}
    for finding in found:
        if finding.remedy is not None:
            by_command.setdefault(finding.remedy, []).append(finding.name)
    for command, names in by_command.items():
        yield f"{', '.join(names)}:"
        yield f"  {command}"


def _by_goal(found: Sequence[Finding]) -> dict[str, list[Finding]]:
    by_goal: dict[str, list[Finding]] = {KERNELS: []}
    for finding in sorted(found, key=lambda finding: finding.goal == EXTRAS):
        by_goal.setdefault(finding.goal, []).append(finding)
    return by_goal


def _version(finding: Finding) -> str:
    needed = "" if finding.needed in ("any", finding.found) else f"({finding.needed})"
    return " ".join(filter(None, (finding.found, needed)))


def _wrapped(line: str, indent: int, width: int) -> str:
    """A line that is continued below its last column, between words only."""
    return fill(
        line,
        max(width, indent + 1),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
