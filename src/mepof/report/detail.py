"""What stands behind a report's rows: figures of the cases, the modelled core, places, training.

Parts of ``report.json``, like those of ``model.py`` and by the same promise.
"""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt

from mepof.measure.measurement import Record
from mepof.measure.metrics import Kind


class Figure(Record):
    """What a case told of itself on one image.

    Attributes:
        figure: ``p1``, ``p50``, ``p90``, ``p99`` and ``mean`` are latencies of operations;
            ``throughput`` is what they moved by the guest's time; anything else has the name that
            the case gave it.
        unit: empty where the case said none.
        value: the median over the boots.
        low: the least of any boot, and ``high`` the most.
    """

    image: str
    suite: str
    case: str
    figure: str
    unit: str
    kind: Kind
    value: NonNegativeFloat
    low: NonNegativeFloat
    high: NonNegativeFloat
    boots: int


class Core(Record):
    """The core that was modelled."""

    name: str
    title: str


class CoreCase(Record):
    """What the model of a core made of the kernel's work in one case; means over the boots.

    Attributes:
        instructions: of the kernel, per operation.
        events: per operation, by the plugin's name (docs/pmu.md).
        cycles: per operation, by what they go to; the sum is the whole.
    """

    image: str
    suite: str
    case: str
    instructions: NonNegativeFloat
    events: dict[str, NonNegativeFloat]
    cycles: dict[str, NonNegativeFloat]


class FunctionShare(Record):
    """A function in the baseline and in an image, matched by name.

    All figures are percent of what the kernel took in the baseline, each case weighing the same,
    in the first boot of each.

    Attributes:
        function: without the suffixes of parts and copies that a compiler makes; null for all
            functions that have no row of their own.
        functions: how many it stands for.
    """

    image: str
    function: str | None
    functions: int
    baseline_cycles_percent: NonNegativeFloat
    cycles_percent: NonNegativeFloat
    baseline_instructions_percent: NonNegativeFloat
    instructions_percent: NonNegativeFloat


class Footprint(Record):
    """How much kernel text a case executed, in pages of 4 KiB.

    Attributes:
        pages: that were executed.
        pages_of_90_percent: the fewest that hold nine tenths of the instructions.
    """

    image: str
    suite: str
    case: str
    pages: NonNegativeInt
    pages_of_90_percent: NonNegativeInt


class HeatmapCase(Record):
    """The columns of a case: from ``first`` on, ``columns`` of them."""

    suite: str
    case: str
    first: NonNegativeInt
    columns: NonNegativeInt


class ImageHeat(Record):
    """An image's heatmap.

    Attributes:
        levels: a text for each row, the lowest address first, with a digit for each column: 0 is
            nothing, and n > 0 at least ``level_from[n - 1]`` instructions.
    """

    image: str
    levels: tuple[str, ...]


class Heatmaps(Record):
    """Instructions by address and time, of all images on the same axes and by the same scale.

    Attributes:
        address: of kernel text where the first row begins.
        row_bytes: how much text a row is.
        column_instructions: about how many instructions, of kernel and user, a column is.
        level_from: the least number of instructions in a cell of each level; the first also has
            all that is less.
        cases: in the order of time. A case has as many columns as the image that takes longest.
        left_out_percent: share of the kernel's instructions that is too far from the rest of the
            text to be drawn, such as that of modules.
    """

    address: NonNegativeInt
    row_bytes: int
    column_instructions: int
    level_from: tuple[NonNegativeInt, ...]
    cases: tuple[HeatmapCase, ...]
    images: tuple[ImageHeat, ...]
    left_out_percent: float


class Training(Record):
    """A run in which a profile of an image was collected.

    Attributes:
        actions: how often each was run.
        never: actions of the apps that were not run.
        cases: those that the actions ran, as ``suite/case``; empty where a user worked by hand.
    """

    image: str
    scenario: str
    apps: tuple[str, ...]
    actions: dict[str, int]
    never: tuple[str, ...]
    cases: tuple[str, ...]
    seed: int
    kernel: str


class ProfileQuality(Record):
    """A profile of the program, and whether it is worth trusting.

    Attributes:
        functions: that it knows, and ``executed`` those of them that ran.
        reasons: why it is poor.
        exact: everything was counted, nothing sampled.
    """

    name: str
    algorithm: str
    functions: NonNegativeInt
    executed: NonNegativeInt
    coverage_percent: float
    verdict: Literal["good", "poor"]
    reasons: tuple[str, ...] = ()
    exact: bool = False
