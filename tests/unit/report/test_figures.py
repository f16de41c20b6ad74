"""The figures that cases printed, the modelled core, and the rows of cases.csv."""

from __future__ import annotations

import csv
import io
from math import exp, log
from statistics import fmean

import pytest

from mepof.measure.measurement import Evaluation
from mepof.report import build_report
from mepof.report.csv import (
    BOOT_COLUMNS,
    COLUMNS,
    boots_csv,
    cases_csv,
    images_csv,
    means_csv,
)
from mepof.report.figures import core_cases_of, core_of, figures_of

from .samples import KVM, OPERATIONS, PROVENANCE, golden_report, measurement, report

BUILDS = (("plain", "0"), ("plain", "1"), ("opt", "0"))


def test_latencies_are_the_median_over_the_boots() -> None:
    figures = figures_of([measurement(factors=(1.0, 3.0, 2.0), figures=True)])
    (p50,) = [f for f in figures if (f.case, f.figure) == ("syscall", "p50")]
    assert (p50.unit, p50.kind, p50.boots) == ("ns", "modelled", 3)
    assert (p50.low, p50.value, p50.high) == (450, 900, 1350)


def test_throughput_is_bytes_divided_by_time() -> None:
    figures = figures_of([measurement(factors=(1.0,), figures=True, device=KVM)])
    (moved,) = [f for f in figures if f.figure == "throughput"]
    assert (moved.case, moved.unit, moved.kind) == ("file-8k", "bytes/s", "timed")
    assert moved.value == pytest.approx(8192 * OPERATIONS / (7040 * OPERATIONS) * 1e9)


def test_an_unsound_image_has_no_figures() -> None:
    broken = measurement(figures=True, core="skylake", self_check="sum is wrong")
    assert figures_of([broken]) == ()
    assert core_cases_of([broken]) == ()


def test_figures_of_the_modelled_core_are_per_operation() -> None:
    made = [measurement(core="skylake", costs={"syscall": 2000.0})]
    core = core_of(made)
    assert core is not None
    assert (core.name, core.title) == ("skylake", "Intel Skylake")
    own = core_of([measurement(core="My core")])
    assert own is not None
    assert (own.name, own.title) == ("My core", "My core")
    (row,) = core_cases_of(made)
    assert row.instructions == 2000
    assert row.events["l1i_misses"] == 2
    assert row.events["taken_branches"] == 250
    assert row.cycles == {"execution": 2000, "fetching": 2, "mispredictions": 2, "data": 2}
    assert core_of([measurement()]) is None


def test_cases_csv_has_a_row_for_every_case_and_control() -> None:
    made = golden_report()
    rows = [*csv.DictReader(io.StringIO(cases_csv(made)))]
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(made.cases) + sum(len(c.cases) for c in made.controls)
    first, case = rows[0], made.cases[0]
    assert (first["image"], first["suite"], first["case"]) == (case.image, case.suite, case.case)
    assert float(first["improvement_percent"]) == case.improvement_percent
    assert case.interval_percent is not None
    assert (float(first["low_percent"]), float(first["high_percent"])) == case.interval_percent
    assert (first["verdict"], first["trained"], first["control"]) == ("faster", "yes", "")
    assert (first["training"], first["trained_percent"]) == ("trained", "99.5")
    assert {row["control"] for row in rows} == {"", "same build", "relinked"}
    assert {row["trained"] for row in rows if row["image"] == "size"} == {""}


def test_cases_csv_leaves_out_what_does_not_exist() -> None:
    (row, *_) = csv.DictReader(io.StringIO(cases_csv(report(measurement("a,b\n\x1b")))))
    assert row["image"] == "a,b\\n\\x1b"
    assert row["baseline"] == row["improvement_percent"] == row["p_value"] == ""


def test_means_csv_has_all_cases_then_groups_then_training() -> None:
    made = golden_report()
    rows = [*csv.DictReader(io.StringIO(means_csv(made)))]
    assert len(rows) == len(made.summary) + len(made.by_group) + len(made.by_training)
    instructions = [r for r in rows if (r["image"], r["metric"]) == ("opt", "kernel_instructions")]
    assert [(r["group"], r["trained"], r["training"]) for r in instructions] == [
        *((group, "", "") for group in ("", "syscall", "pipe", "proc", "file")),
        *(("", "yes", "trained"), ("", "no", "near"), ("", "no", "untrained")),
    ]
    (syscall,) = [r for r in made.by_group if (r.image, r.group, r.metric) == _SYSCALL]
    assert float(instructions[1]["reduction_percent"]) == syscall.geomean_reduction_percent
    assert float(instructions[1]["low_percent"]) == syscall.interval_percent[0]


_SYSCALL = ("opt", "syscall", "kernel_instructions")


def test_the_means_of_cases_csv_are_those_of_boots_csv() -> None:
    evaluation = Evaluation(
        images=(
            measurement("plain", factors=(1.0, 1.01)),
            measurement("opt", factors=(0.9, 0.92, 0.91)),
        ),
        same_build=measurement("plain", factors=(0.99, 1.02), seed=1001),
        relinked=(
            measurement("relinked", factors=(5.0,), self_check="sum is wrong"),
            measurement("relinked", factors=(1.2, 1.1, 1.3)),
        ),
    )
    rows = [*csv.DictReader(io.StringIO(boots_csv(evaluation)))]
    assert tuple(rows[0]) == BOOT_COLUMNS
    boots = {(row["image"], row["build"], row["boot"]) for row in rows}
    assert len(boots) == len(rows) / len({(row["case"], row["metric"]) for row in rows}) == 10
    assert [sum(b[:2] == (image, build) for b in boots) for image, build in BUILDS] == [4, 3, 3]

    made = build_report(evaluation, [], None, PROVENANCE)
    for case in made.cases:
        logs: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            if (row["case"], row["metric"]) == (case.case, case.metric):
                logs.setdefault((row["image"], row["build"]), []).append(log(float(row["value"])))
        means = {build: fmean(values) for build, values in logs.items()}
        assert exp(means["opt", "0"]) == pytest.approx(case.value)
        assert exp(fmean([means["plain", "0"], means["plain", "1"]])) == pytest.approx(
            case.baseline
        )


def test_images_csv_has_sizes_and_memory() -> None:
    rows = [*csv.DictReader(io.StringIO(images_csv(golden_report())))]
    assert [row["image"] for row in rows] == ["plain", "opt", "size", "broken"]
    assert rows[0]["after_boot_used_bytes"] == str(20_000_000 + 22_600_000)
    # The median over the boots.
    assert rows[0]["after_cases_allocated_bytes"] == str(23_000_000 + 3 * 4096)
    assert (rows[3]["after_boot_used_bytes"], rows[3]["self_check"][:9]) == ("", "pipe-128:")
