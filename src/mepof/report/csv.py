"""The report's tables, for spreadsheets and data frames: cases, means, images, comparisons, boots.

``report.json`` has all of it too, except the boots. A cell without a number is empty.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mepof.measure.case_pairs import PairRow
from mepof.measure.comparison import Build, baseline_builds, rows_of
from mepof.measure.measurement import Evaluation, MemoryBytes
from mepof.report.model import CaseRow, Interval, Report, SummaryRow
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
    "training",
    "trained_percent",
)

MEAN_COLUMNS = (
    "image",
    "group",
    "trained",
    "metric",
    "kind",
    "improvement_percent",
    "low_percent",
    "high_percent",
    "reduction_percent",
    "reduction_low_percent",
    "reduction_high_percent",
    "interval_method",
    "verdict",
    "p_value",
    "adjusted_p",
    "cases",
    "boots",
    "baseline_boots",
    "training",
)

_MEMORY = (*MemoryBytes.model_fields, *MemoryBytes.model_computed_fields)
_READ = ("after_boot", "after_cases")

IMAGE_COLUMNS = (
    "image",
    "baseline",
    "booted",
    "self_check",
    "boots",
    "text_bytes",
    "image_bytes",
    *(f"{when}_{name}_bytes" for when in _READ for name in _MEMORY),
)

COMPARISON_COLUMNS = (
    "image",
    "title",
    "suite",
    "first",
    "second",
    "by",
    "metric",
    "event",
    "kind",
    "native",
    "unit",
    "side",
    "first_cost",
    "second_cost",
    "first_events",
    "second_events",
    "value",
    "low",
    "high",
    "boots",
    "reason",
)

BOOT_COLUMNS = ("image", "build", "boot", "suite", "case", "metric", "value")


def cases_csv(report: Report) -> str:
    """``cases.csv``: each image, case and metric.

    The cases of all images, then those of the controls, whose kind is in the column `control`.
    """
    rows = [_case(row, "") for row in report.cases]
    rows += [_case(row, control.kind) for control in report.controls for row in control.cases]
    return _table(COLUMNS, rows)


def means_csv(report: Report) -> str:
    """``means.csv``: geometric means of each image and metric.

    Over all cases, then over those of a group, then over those of each likeness to the training.
    """
    rows = [_mean(row) for row in report.summary]
    rows += [_mean(row) | {"group": row.group} for row in report.by_group]
    rows += [
        _mean(row) | {"trained": _yes_or_no(row.trained), "training": row.training}
        for row in report.by_training
    ]
    return _table(MEAN_COLUMNS, rows)


def images_csv(report: Report) -> str:
    """``images.csv``: state, sizes and memory of each image."""
    return _table(IMAGE_COLUMNS, _images(report))


def comparisons_csv(report: Report) -> str:
    """``comparisons.csv``: cases against each other, with a row for each side that was measured."""
    rows = (row for pair in report.comparisons for row in _sides(pair))
    return _table(COMPARISON_COLUMNS, rows)


def boots_csv(evaluation: Evaluation) -> str:
    """``boots.csv``: what each boot of each image gave, for each case and metric."""
    return _table(BOOT_COLUMNS, _boots(evaluation))


def _boots(evaluation: Evaluation) -> Iterator[Mapping[str, object]]:
    _, *others = evaluation.images
    for builds in (baseline_builds(evaluation), *((Build((m,)),) for m in others)):
        for row in rows_of((), builds):
            for unit, value in sorted(row.value.items()):
                yield {
                    "image": builds[0].measurements[0].image,
                    "build": unit.build,
                    "boot": unit.seed,
                    "suite": row.case.suite,
                    "case": row.case.case,
                    "metric": row.metric.name,
                    "value": value,
                }


def _sides(pair: PairRow) -> Iterator[Mapping[str, object]]:
    for name in ("kernel", "user", "both"):
        side = getattr(pair, name)
        if side is None or (side.first is None and side is not pair.shown):
            continue
        low, high = side.interval or (None, None)
        yield {
            **pair.model_dump(),
            "native": _yes_or_no(pair.native),
            "side": name,
            **side.model_dump(),
            "first": pair.first,
            "second": pair.second,
            "first_cost": side.first,
            "second_cost": side.second,
            "low": low,
            "high": high,
            "reason": pair.reason if side is pair.shown else None,
        }


def _images(report: Report) -> Iterator[Mapping[str, object]]:
    for image in report.images:
        memory = image.memory.model_dump()
        yield {
            "image": image.name,
            "baseline": _yes_or_no(image.baseline),
            "booted": _yes_or_no(image.booted),
            "self_check": image.self_check,
            "boots": image.boots,
            "text_bytes": image.size_bytes.text,
            "image_bytes": image.size_bytes.image,
            **{
                f"{when}_{name}_bytes": value
                for when in _READ
                for name, value in (memory[when] or {}).items()
            },
        }


def _case(row: CaseRow, control: str) -> dict[str, object]:
    return {
        **row.model_dump(),
        **_ends("", row.interval_percent),
        **_ends("reduction_", row.reduction_interval_percent),
        "outliers": len(row.outliers),
        "trained": _yes_or_no(row.trained),
        "control": control,
    }


def _mean(row: SummaryRow) -> dict[str, object]:
    return {
        **row.model_dump(),
        "improvement_percent": row.geomean_improvement_percent,
        **_ends("", row.interval_percent),
        "reduction_percent": row.geomean_reduction_percent,
        **_ends("reduction_", row.reduction_interval_percent),
        "group": None,
        "trained": None,
        "training": None,
    }


def _ends(prefix: str, interval: Interval | None) -> dict[str, object]:
    low, high = interval or (None, None)
    return {f"{prefix}low_percent": low, f"{prefix}high_percent": high}


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(name) for name in columns)
        writer.writerow([printable(v) if isinstance(v, str) else v for v in values])
    return file.getvalue()
