"""``cases.csv``: one row for each image, case and metric, for spreadsheets and data frames.

``report.json`` has all of it too. A cell without a number is empty.
"""

from __future__ import annotations

import csv
import io

from mepof.report.model import CaseRow, Report
from mepof.report.text import printable

COLUMNS = (
    "image",
    "suite",
    "case",
    "group",
    "metric",
    "kind",
    "unit",
    "baseline",
    "value",
    "improvement_percent",
    "low_percent",
    "high_percent",
    "interval_method",
    "verdict",
    "p_value",
    "adjusted_p",
    "boots",
    "baseline_boots",
    "outliers",
    "trained",
    "control",
    "reduction_percent",
    "reduction_low_percent",
    "reduction_high_percent",
)


def cases_csv(report: Report) -> str:
    """The cases of all images, then those of the controls, whose kind is in the last column."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_cells(row, "") for row in report.cases)
    for control in report.controls:
        writer.writerows(_cells(row, control.kind) for row in control.cases)
    return file.getvalue()


def _cells(row: CaseRow, control: str) -> list[object]:
    low, high = row.interval_percent or (None, None)
    reduction_low, reduction_high = row.reduction_interval_percent or (None, None)
    fields: dict[str, object] = {
        **row.model_dump(),
        "low_percent": low,
        "high_percent": high,
        "reduction_low_percent": reduction_low,
        "reduction_high_percent": reduction_high,
        "outliers": len(row.outliers),
        "trained": None if row.trained is None else "yes" if row.trained else "no",
        "control": control,
    }
    values = (fields[name] for name in COLUMNS)
    return [printable(value) if isinstance(value, str) else value for value in values]
