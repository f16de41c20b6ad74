"""What images leave of the costs of their baseline, by the report of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from statistics import geometric_mean
from typing import Any

COUNTED = {"kernel_instructions": "kernel instructions", "kernel_taken_branches": "taken branches"}
MODELLED = {
    "kernel_cycles": "cycles",
    "kernel_l1i_misses": "L1I misses",
    "kernel_itlb_misses": "iTLB misses",
}
#: The metrics of tables, by their names in reports, and what heads their columns.
METRICS = COUNTED | MODELLED
#: In which string instructions count by their length.
WORK = {"kernel_work": "work", "guest_time": "guest time"}

#: Percent of the baseline's cost, by image, metric and case.
Left = dict[str, dict[str, dict[str, float]]]


def left_percent(report: Mapping[str, Any], metrics: Collection[str]) -> Left:
    """Each image's costs in percent of the baseline's, in these metrics.

    Cases in which a modelled event does not happen are left out of its metric.
    """
    left: Left = {}
    for row in report["cases"]:
        happened = row["value"] and row["baseline"]
        if row["metric"] in metrics and row["image"] != report["baseline"] and happened:
            by_case = left.setdefault(row["image"], {}).setdefault(row["metric"], {})
            by_case[row["case"]] = 100 * row["value"] / row["baseline"]
    return left


def geometric(values: Mapping[str, float]) -> float:
    """The geometric mean over the cases."""
    return geometric_mean(values.values())


def fewer(values: Mapping[str, float] | None) -> str:
    """Percent fewer than in the baseline, by the geometric mean; what a cell of a table says."""
    return saved(geometric(values)) if values else "none at all"


def saved(left: float) -> str:
    """Percent fewer than in the baseline."""
    # Rounded first: what rounds to zero has no sign.
    return f"{round(100 - left, 2) + 0.0:.2f}"
