"""From measurements to a report: a pure function of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mepof.errors import InputError
from mepof.gate.verdict import CheckVerdict
from mepof.measure.case_pairs import CasePair, own_pairs, pair_rows
from mepof.measure.comparison import (
    Build,
    Row,
    Total,
    baseline_builds,
    rows_of,
    totals_of,
)
from mepof.measure.goal import Goal, verdicts_of
from mepof.measure.index import indices
from mepof.measure.measurement import Evaluation, Measurement
from mepof.measure.memory import median_memory
from mepof.pmu.locations import Locations
from mepof.report.between import between_images
from mepof.report.detail import FunctionShare, ProfileQuality, Training
from mepof.report.disagreements import disagreements_of
from mepof.report.figures import core_cases_of, core_of, figures_of
from mepof.report.likeness import KINDS, Kind, Likeness
from mepof.report.locations import footprints_of, functions_of, heatmaps_of
from mepof.report.method_statement import method_of
from mepof.report.model import (
    CaseRow,
    Control,
    GroupRow,
    Image,
    Outlier,
    Phase,
    ProfileSummary,
    Provenance,
    Report,
    RuntimeMemory,
    SummaryRow,
    TrainingRow,
)
from mepof.report.summary_row import summary_row
from mepof.report.warnings import unsupported_by, warnings_of
from mepof.statistics import Comparison, Judged, judge, log_costs, mean_cost, outliers


def build_report(
    evaluation: Evaluation,
    phases: Sequence[Phase],
    profile: ProfileSummary | None,
    provenance: Provenance,
    *,
    engine_share_percent: float | None = None,
    notes: Sequence[str] = (),
    likeness: Mapping[str, Likeness] | None = None,
    trainings: Sequence[Training] = (),
    profiles: Sequence[ProfileQuality] = (),
    locations: Mapping[str, Locations] | None = None,
    goals: Sequence[Goal] = (),
    checks: Sequence[CheckVerdict] = (),
    pairs: Sequence[CasePair] = (),
) -> Report:
    """Compare every image with the first and assemble the report.

    Args:
        evaluation: images under the names that the program gives them, the baseline first; a
            single image is reported without a comparison.
        phases: steps in the order in which they finished.
        profile: None if no profile was made.
        engine_share_percent: share of the wall time not spent building, booting or running.
        notes: remarks on the builds, shown before the warnings.
        likeness: of the cases to the work that an image's profile counted, by image; images
            without a profile are left out.
        trainings: the runs in which profiles of the images were collected.
        profiles: of the program, in its order.
        locations: of events by image; images whose events were not located are left out.
        goals: of the program, for every image except the baseline.
        checks: the results of the program's tests.
        pairs: cases that the program compares with each other, beside those of their suites.

    Raises:
        InputError: there is no image, or two images have the same name.
    """
    measurements = evaluation.images
    if not measurements:
        raise InputError("there is no image to report on")
    names = [m.image for m in measurements]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two images are called `{name}`", "give each image its own name")

    baseline = measurements[0] if len(measurements) > 1 else None
    tables = [
        _Table.of(baseline_builds(evaluation) if baseline else (), m, (likeness or {}).get(m.image))
        for m in measurements[1:] or measurements
    ]
    groups = [_Groups.of(table) for table in tables]
    _judge([*tables, *groups], evaluation.precision_percent)
    summary = [row for table in tables for row in table.summary()]
    cases = [row for table in tables for row in table.cases()]
    controls = _controls(evaluation) if baseline else ()
    repetitions = "`set repetitions`" if provenance.program else "`--repetitions`"
    # An unsound image may have skipped work, so its events are not comparable.
    sound = [m.image for m in measurements if m.sound]
    known = {name: locations[name] for name in sound if locations and name in locations}
    return Report(
        baseline=baseline.image if baseline else None,
        images=tuple(_image(m, m is baseline) for m in measurements),
        summary=tuple(summary),
        cases=tuple(cases),
        phases=tuple(phases),
        profile=profile,
        provenance=provenance,
        warnings=(*notes, *warnings_of(evaluation, summary, cases, controls, repetitions)),
        method=method_of(evaluation),
        engine_share_percent=engine_share_percent,
        by_training=tuple(row for table in tables for row in table.by_training()),
        by_group=tuple(row for each in groups for row in each.judged_rows()),
        controls=controls,
        precision_percent=evaluation.precision_percent,
        figures=figures_of(measurements),
        core=core_of(measurements),
        core_cases=core_cases_of(measurements),
        functions=_functions(baseline.image if baseline else None, known),
        footprints=tuple(row for name, p in known.items() for row in footprints_of(name, p)),
        heatmaps=heatmaps_of(known),
        trainings=tuple(trainings),
        profiles=tuple(profiles),
        disagreements=disagreements_of(summary, cases),
        goals=verdicts_of(goals, evaluation),
        checks=tuple(checks),
        comparisons=pair_rows((*pairs, *own_pairs(evaluation)), evaluation),
        between=between_images(evaluation),
    )


def _functions(
    baseline: str | None, locations: Mapping[str, Locations]
) -> tuple[FunctionShare, ...]:
    if baseline is None or baseline not in locations:
        return ()
    return tuple(
        row
        for name, theirs in locations.items()
        if name != baseline
        for row in functions_of(locations[baseline], name, theirs)
    )


_Family = Literal["main", "explaining", "training", "group"]
"""Rows whose verdicts are corrected for their number together. Booting waits for the main ones, so
nothing else may count among them."""


@dataclass
class _Table:
    """One image's rows and geometric means; verdicts need the tables of all images.

    Attributes:
        by_kind: geometric means over the cases of each kind.
    """

    image: str
    rows: Sequence[Row]
    totals: Sequence[Total]
    by_kind: Sequence[tuple[Kind, Total]]
    likeness: Likeness
    judged: Sequence[Judged] = ()

    @classmethod
    def of(
        cls,
        baseline: Sequence[Build],
        measurement: Measurement,
        likeness: Likeness | None = None,
    ) -> _Table:
        known = likeness or Likeness()
        rows = rows_of(baseline, [Build((measurement,))])
        kinds = {row.case: known.kind((row.case.suite, row.case.case)) for row in rows}
        by_kind = [
            (kind, total)
            for kind in KINDS
            for total in totals_of(rows, {c for c, k in kinds.items() if k == kind}.__contains__)
        ]
        return cls(measurement.image, rows, totals_of(rows), by_kind, known)

    def comparisons(self) -> list[tuple[_Family, Comparison | None]]:
        """Everything that receives a verdict, in the order of ``judged``."""
        compared: list[Row | Total] = [*self.rows, *self.totals]
        found: list[tuple[_Family, Comparison | None]] = [
            ("explaining" if each.metric.explains else "main", each.comparison) for each in compared
        ]
        return found + [("training", total.comparison) for _, total in self.by_kind]

    def cases(self) -> list[CaseRow]:
        return [
            _case(self.image, row, judged, self.likeness)
            for row, judged in zip(self.rows, self.judged, strict=False)
        ]

    def summary(self) -> list[SummaryRow]:
        judged = self.judged[len(self.rows) :]
        return [
            summary_row(self.image, total, each)
            for total, each in zip(self.totals, judged, strict=False)
        ]

    def by_training(self) -> list[TrainingRow]:
        judged = self.judged[len(self.rows) + len(self.totals) :]
        return [
            TrainingRow(**summary_row(self.image, total, each).model_dump(), training=kind)
            for (kind, total), each in zip(self.by_kind, judged, strict=True)
        ]


@dataclass
class _Groups:
    """One image's geometric means by group."""

    image: str
    totals: Sequence[tuple[str, Total]]
    judged: Sequence[Judged] = ()

    @classmethod
    def of(cls, table: _Table) -> _Groups:
        groups = dict.fromkeys(row.case.group for row in table.rows)
        found: list[tuple[str, Total]] = []
        for group in groups:
            rows = [row for row in table.rows if row.case.group == group]
            found += [(group, total) for total in totals_of(rows)]
        return cls(table.image, found)

    def comparisons(self) -> list[tuple[_Family, Comparison | None]]:
        """Everything that receives a verdict, in the order of ``judged``."""
        return [("group", total.comparison) for _, total in self.totals]

    def judged_rows(self) -> list[GroupRow]:
        return [
            GroupRow(**summary_row(self.image, total, each).model_dump(), group=group)
            for (group, total), each in zip(self.totals, self.judged, strict=True)
        ]


def _judge(tables: Sequence[_Table | _Groups], precision_percent: float) -> None:
    """Set the verdicts of all rows of some tables, corrected for the number of each family."""
    families: dict[_Family, list[Comparison | None]] = {}
    for table in tables:
        for family, comparison in table.comparisons():
            families.setdefault(family, []).append(comparison)
    judged = {family: iter(judge(each, precision_percent)) for family, each in families.items()}
    for table in tables:
        table.judged = [next(judged[family]) for family, _ in table.comparisons()]


def _controls(evaluation: Evaluation) -> tuple[Control, ...]:
    """The baseline compared with itself, as a separate evaluation."""
    baseline = evaluation.images[0]
    tables: list[tuple[Measurement, _Table]] = []
    if evaluation.same_build is not None:
        tables.append(
            (evaluation.same_build, _Table.of([Build((baseline,))], evaluation.same_build))
        )
    whole = baseline_builds(evaluation)[:1]
    tables += [(m, _Table.of(whole, m)) for m in evaluation.relinked]
    _judge([table for _, table in tables], evaluation.precision_percent)
    controls: list[Control] = []
    for measurement, table in tables:
        differs = any(judged.verdict in ("faster", "slower") for judged in table.judged)
        controls.append(
            Control(
                kind="same build" if measurement is evaluation.same_build else "relinked",
                image=baseline.image,
                digest=measurement.digest,
                booted=measurement.booted,
                self_check=measurement.self_check,
                boots=len(measurement.boots),
                passed=measurement.sound and not differs,
                summary=tuple(table.summary()),
                cases=tuple(table.cases()),
            )
        )
    return tuple(controls)


def _case(image: str, row: Row, judged: Judged, likeness: Likeness) -> CaseRow:
    found = row.comparison
    name = (row.case.suite, row.case.case)
    return CaseRow(
        image=image,
        suite=row.case.suite,
        case=row.case.case,
        group=row.case.group,
        metric=row.metric.name,
        kind=row.kind,
        baseline=mean_cost(row.baseline) if row.baseline else None,
        value=mean_cost(row.value) if row.value else None,
        unit=row.metric.unit,
        improvement_percent=found.improvement_percent if found else None,
        interval_percent=found.interval_percent if found else None,
        verdict=judged.verdict,
        boots=len(row.value),
        baseline_boots=len(row.baseline),
        interval_method=found.method if found else None,
        p_value=found.p_value if found else None,
        adjusted_p=judged.adjusted_p,
        outliers=tuple(
            Outlier(
                baseline=is_baseline,
                build=outlier.unit.build,
                seed=outlier.unit.seed,
                deviation_percent=outlier.deviation_percent,
            )
            for is_baseline, costs in ((True, row.baseline), (False, row.value))
            for outlier in outliers(log_costs(costs))
        ),
        training=likeness.kind(name),
        trained_percent=likeness.percent.get(name),
    )


def _image(measurement: Measurement, is_baseline: bool) -> Image:
    return Image(
        name=measurement.image,
        digest=measurement.digest,
        baseline=is_baseline,
        booted=measurement.booted,
        self_check=measurement.self_check,
        size_bytes=measurement.size_bytes,
        sections=measurement.sections,
        device=measurement.device,
        boots=len(measurement.boots),
        unsupported=unsupported_by(measurement),
        indices=indices(measurement),
        memory=RuntimeMemory(
            after_boot=measurement.memory,
            after_cases=median_memory([b.memory for b in measurement.boots if b.memory]),
        ),
    )
