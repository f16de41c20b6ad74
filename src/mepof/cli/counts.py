"""The table that ``mepof device count`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from mepof.measure.measurement import Boot, CaseMeasurement
from mepof.measure.metrics import METRICS
from mepof.report.text import amount


def table(boots: Sequence[Boot]) -> Group:
    """Costs per operation of every case, means over the runs, and why some are missing."""
    by_case: dict[tuple[str, str], list[CaseMeasurement]] = {}
    for boot in boots:
        for case in boot.cases:
            by_case.setdefault((case.suite, case.case), []).append(case)
    cases = [case for of_one in by_case.values() for case in of_one]
    shown = [m for m in METRICS if any(m.cost(case) is not None for case in cases)]
    cells = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    cells.add_column("per operation", no_wrap=True)
    for metric in shown:
        unit = metric.unit.removesuffix("/operation")
        cells.add_column(f"{metric.title.lower()} ({unit})", justify="right")
    for (_, name), of_one in by_case.items():
        means = [_mean([metric.cost(case) for case in of_one]) for metric in shown]
        cells.add_row(name, *map(amount, means))
    notes = dict.fromkeys(
        f"{name} is not counted: {why}"
        for case in cases
        if case.counted is not None
        for name, why in case.counted.lacking.items()
    )
    lacking = dict.fromkeys(
        f"{case.case} cannot run: it needs {case.needs}"
        for boot in boots
        for case in boot.unsupported
    )
    return Group(cells, *(Text(note) for note in (*notes, *lacking)))


def _mean(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return fsum(known) / len(known) if known else None
