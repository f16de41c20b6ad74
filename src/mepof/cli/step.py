"""``mepof step``: one step of a plan on its own; the reproducer scripts call it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.run import Cores, local


def step(
    store: Annotated[Path, typer.Option("--store", help="Store of the run.", metavar="DIR")],
    recipe: Annotated[
        Path, typer.Option("--recipe", help="Recipe beside the step's log.", metavar="FILE")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Directory for the journal.", metavar="DIR")
    ] = Path("out/step"),
    cores: Cores = None,
) -> None:
    """Run one step again, from the recipe beside its log."""
    from mepof.cli.progress import progress  # loads scipy
    from mepof.plan.recipe import recipe_plan

    with progress() as sink:
        finished = local(store, cores).run(recipe_plan(recipe), out, sink)
    for made in finished.run.steps.values():
        typer.echo(made.path)
