"""``mepof explored``: what scenarios have learned about the apps of a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.output import Json, print_json
from mepof.errors import InputError
from mepof.scenario.graph import Graph, Memory


def explored(
    file: Annotated[Path, typer.Argument(help="The memory.json of a run.", metavar="FILE")],
    as_json: Json = False,
) -> None:
    """Show what was learned about the apps of a phone."""
    remedy = f"name the {Memory.file} that a run with `learned` wrote"
    try:
        memory = Memory.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{file} cannot be read: {why}", remedy) from error
    except ValueError as error:
        raise InputError(f"{file} is not the {Memory.file} of a run", remedy) from error
    if as_json:
        print_json(memory.model_dump(mode="json"))
        return
    for package, graph in memory.apps.items():
        typer.echo("\n".join(lines(package, graph)))


def lines(package: str, graph: Graph) -> Iterator[str]:
    """What is known of an app: its states, the most seen first, and the kinds of actions."""
    offered = sum(len(state.actions) for state in graph.states.values())
    tried = sum(state.tried for state in graph.states.values())
    yield f"{package}: {len(graph.states)} states, {tried} of {offered} actions tried"
    yield "  seen  actions tried  led to new  state"
    for state in sorted(graph.states.values(), key=lambda each: -each.seen):
        tries = f"{state.tried} of {len(state.actions)}"
        yield f"  {state.seen:>4}  {tries:>13}  {state.found:>10}  {state.title}"
    yield "  tried  led to new  kind of action"
    for kind, (count, found) in sorted(graph.kinds.items(), key=lambda each: -each[1][0]):
        yield f"  {count:>5}  {found:>10}  {kind}"
