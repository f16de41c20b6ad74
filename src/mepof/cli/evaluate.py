"""``mepof eval``: measure images without writing a program."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mepof.arch import DEFAULT
from mepof.cli.metrics import Metrics, chosen_metrics, chosen_repetitions
from mepof.cli.output import Json
from mepof.cli.run import Cores, StoreRoot, local, run_document, run_plan
from mepof.errors import InputError
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.g4.diagnostics import quote
from mepof.g4.formatter import format_word
from mepof.kernel.image import read_image
from mepof.plan.journal import refusals_noted
from mepof.plan.preflight import keep_apart
from mepof.plan.store import default_store


def evaluate(
    images: Annotated[
        list[Path],
        typer.Argument(
            help="Bootable kernel images (bzImage, Image, Image.gz); the first is the baseline.",
            metavar="IMAGE",
        ),
    ],
    metric: Metrics = None,
    repetitions: Annotated[
        str, typer.Option(metavar="N|N-M", help="Boots of each image, such as 8 or 5-12.")
    ] = "5-12",
    goal: Annotated[
        list[str] | None,
        typer.Option(
            "--goal",
            help='Bound that every other image must keep, such as "geomean 8" or "worst -1": see '
            "`goal` in docs/g4.md. Give it several times for several goals.",
            metavar="GOAL",
        ),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare",
            help='Two cases of each image, such as "unix-4 pipe-4 ratio cycles": see `compare` in '
            "docs/g4.md. Give it several times for several pairs.",
            metavar="PAIR",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Directory for results.", metavar="DIR")
    ] = Path("out/eval"),
    store: StoreRoot = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Boot images, run benchmarks on them and compare.

    The document of --json is that of OUT/report.json, with the files of the run.
    """
    with refusals_noted(out):
        judged = [*map(_goal, goal or ()), *map(_pair, compare or ())]
        text = program_of(
            images, _arch_of(images), chosen_metrics(metric, apps=True), repetitions, judged
        )
        plan = plan_of(Source("the command line", text))
        keep_apart(plan, {"--out": out, "--store": store or default_store()})
    run_plan(plan, out, local(store, cores), as_json, _document)


def program_of(
    images: Sequence[Path],
    arch: str,
    metrics: Sequence[str],
    repetitions: str,
    judged: Sequence[str] = (),
) -> str:
    """The program that the command stands for.

    Args:
        judged: the statements ``goal`` and ``compare``.

    Raises:
        InputError: the repetitions are not a number or a range.
    """
    chosen_repetitions(repetitions)
    settings = {"repetitions": repetitions}
    if arch != DEFAULT:
        settings["arch"] = arch
    lines = [f"set {key} {value}.\n" for key, value in settings.items()]
    lines += judged
    operands = ";".join(format_word(str(image.resolve())) for image in images)
    lines.append(f"eval {operands} {';'.join(map(format_word, metrics))}".rstrip() + ".\n")
    return "".join(lines)


def _goal(text: str) -> str:
    """The statement of a goal, such as ``geomean 8`` or ``worst -1 kernel_cycles``."""
    return _statement("goal", text, 2, 'a quantity and a bound, such as "geomean 8"')


def _pair(text: str) -> str:
    """The statement of two cases, such as ``unix-4 pipe-4 ratio cycles;instructions``."""
    return _statement("compare", text, 3, 'two cases and a way, such as "unix-4 pipe-4 ratio"')


def _statement(verb: str, text: str, operands: int, form: str) -> str:
    """A statement of an option's words.

    Args:
        operands: how many words come before the list of metrics, which may be missing.

    Raises:
        InputError: there are fewer words, or more than one list.
    """
    words = text.split()
    if not operands <= len(words) <= operands + 1:
        raise InputError(f"invalid {verb} {quote(text)}", f"--{verb}: {form}")
    lists = [";".join(map(format_word, re.split("[,;]", each))) for each in words[operands:]]
    return " ".join((verb, *map(format_word, words[:operands]), *lists)) + ".\n"


def _document(finished: Finished, out: Path) -> dict[str, object]:
    """The report, and where it and the other files are."""
    report = json.loads(finished.files["report.json"].read_text(encoding="utf-8"))
    return {**run_document(finished, out), **report}


def _arch_of(images: Sequence[Path]) -> str:
    """The architecture of all images.

    Raises:
        InputError: one of them is not bootable, or they are of several architectures.
    """
    archs = {read_image(image).arch: image for image in images}
    if len(archs) > 1:
        named = ", ".join(f"{image} ({arch})" for arch, image in archs.items())
        raise InputError(
            f"the images are of different architectures: {named}",
            "compare images of one architecture",
        )
    return next(iter(archs))
