"""``mepof eval``: measure images without a program of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mepof.cli.output import Json
from mepof.cli.run import Cores, Out, StoreRoot, local, run_plan
from mepof.errors import InputError
from mepof.executor.local import plan_of
from mepof.g4 import Source
from mepof.g4.formatter import format_word


def evaluate(
    images: Annotated[list[Path], typer.Argument(help="Images; the first is the baseline.")],
    metric: Annotated[
        str, typer.Option("--metric", help="Metrics, joined by `;` [default: the suite mepof's].")
    ] = "",
    repetitions: Annotated[
        str, typer.Option(metavar="N|N-M", help="Boots of each image, such as 8 or 5-12.")
    ] = "5-12",
    out: Out = None,
    store: StoreRoot = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Boot images, run benchmarks on them and compare."""
    for image in images:
        try:
            image.stat()
        except OSError as error:
            raise InputError(f"{image} cannot be read: {error.strerror}") from error
        if not image.is_file():
            raise InputError(f"{image} is not a file")
    operands = ";".join(format_word(str(image.resolve())) for image in images)
    metrics = ";".join(format_word(m.strip()) for m in metric.split(";") if m.strip())
    text = f"set repetitions {repetitions}.\neval {operands} {metrics}".rstrip() + ".\n"
    plan = plan_of(Source("the command line", text))
    run_plan(plan, out or Path("out/eval"), local(store, cores), False, as_json)
