"""The details of a report: figures of the cases, the modelled core, locations, training.

Parts of ``report.json``, under the same rules as those of ``model.py``.
"""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt

from mepof.measure.measurement import Record
from mepof.measure.metrics import Kind


class Figure(Record):
    """A figure that a case printed on one image.

    Attributes:
        figure: ``p1``, ``p50``, ``p90``, ``p99`` and ``mean`` are latencies of operations;
            ``throughput`` is the bytes that they moved, divided by the guest's time; any other
            figure has the name that the case printed.
        unit: empty where the case printed none.
        value: the median over the boots.
        low: the smallest of any boot; ``high`` is the largest.
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
    """The kernel's work in one case on the modelled core; means over the boots.

    Attributes:
        instructions: of the kernel, per operation.
        events: per operation, by the plugin's name of the event (docs/pmu.md).
        cycles: per operation, by what they are spent on; their sum is the total.
    """

    image: str
    suite: str
    case: str
    instructions: NonNegativeFloat
    events: dict[str, NonNegativeFloat]
    cycles: dict[str, NonNegativeFloat]


class FunctionShare(Record):
    """A function in the baseline and in an image, matched by name.

    All figures are percent of all kernel cycles or instructions in the baseline, every case with
    the same weight, in the first boot of each image.

    Attributes:
        function: without the suffixes of parts and copies that the compiler splits off; null for
            the sum of all functions without a row of their own.
        functions: how many functions the row sums up.
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
        pages: how many were executed.
        pages_of_90_percent: how many of the hottest pages hold 90 % of the instructions.
    """

    image: str
    suite: str
    case: str
    pages: NonNegativeInt
    pages_of_90_percent: NonNegativeInt


class HeatmapCase(Record):
    """The ``columns`` of a case, which start at ``first``."""

    suite: str
    case: str
    first: NonNegativeInt
    columns: NonNegativeInt


class ImageHeat(Record):
    """An image's heatmap.

    Attributes:
        levels: a string for each row, the lowest address first, with a digit for each column: 0
            is nothing, and n > 0 is at least ``level_from[n - 1]`` instructions.
    """

    image: str
    levels: tuple[str, ...]


class Heatmaps(Record):
    """Instructions by address and time, for all images on the same axes and scale.

    Attributes:
        address: of the kernel text in the first row.
        row_bytes: bytes of text per row.
        column_instructions: approximate instructions, of kernel and user, per column.
        level_from: the smallest number of instructions in a cell of each level; the first level
            also covers smaller numbers.
        cases: in the order of time. A case has as many columns as the image that takes longest.
        left_out_percent: share of the kernel's instructions that are too far from the rest of the
            text to be drawn, such as those of modules.
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
        actions: how often each action ran.
        never: actions of the apps that did not run.
        cases: those that the actions ran, as ``suite/case``; empty for training by hand.
    """

    image: str
    scenario: str
    apps: tuple[str, ...]
    actions: dict[str, int]
    never: tuple[str, ...]
    cases: tuple[str, ...]
    seed: int
    kernel: str


class Instrumented(Record):
    """What of a kernel was instrumented, by the program's choice.

    Attributes:
        files: how many of the ``of_files`` that can be.
        text_percent: share of the kernel's code.
        time_percent: share of what ran that ran in it, before anything was counted; null where
            that is unknown.
        image_bytes: of the instrumented image, which the program may have limited to
            ``limit_bytes``.
        growth_percent: by how much that image is larger than the one without instrumentation.
    """

    files: NonNegativeInt
    of_files: NonNegativeInt
    text_percent: float
    time_percent: float | None
    image_bytes: NonNegativeInt
    growth_percent: float
    limit_bytes: NonNegativeInt | None


class ProfileQuality(Record):
    """A profile of the program, and whether it can be trusted.

    Attributes:
        functions: how many functions it describes; ``executed`` of them ran.
        reasons: why it is poor.
        exact: whether its counts are complete rather than sampled.
        instrumented: the part of the kernel that was counted, where the program chose one.
    """

    name: str
    algorithm: str
    functions: NonNegativeInt
    executed: NonNegativeInt
    coverage_percent: float
    verdict: Literal["good", "poor"]
    reasons: tuple[str, ...] = ()
    exact: bool = False
    instrumented: Instrumented | None = None
