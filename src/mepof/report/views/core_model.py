"""The modelled core: what its cycles are spent on, and its events side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mepof.pmu.events import CYCLES
from mepof.report.detail import Core, CoreCase
from mepof.report.model import Report
from mepof.report.plots.bars import Stacks, stacks
from mepof.report.views.image_set import ImageSet

#: What cycles are spent on.
PARTS: tuple[str, ...] = tuple(CYCLES.values())

# With more values the page would be slow to load; all are in report.json.
_MAX_VALUES = 2000


@dataclass(frozen=True)
class Comparison:
    """A quantity in every image; None where it is unknown. The first image is the reference."""

    title: str
    values: tuple[float | None, ...]

    @property
    def reductions(self) -> tuple[float | None, ...]:
        """Percent fewer than in the first image; None for the first and where it has none."""
        first, *others = self.values
        return (None, *(100 * (1 - v / first) if first and v is not None else None for v in others))


@dataclass(frozen=True)
class CoreView:
    """The section.

    Attributes:
        parts: titles of what cycles are spent on.
        plot: None, and ``composition`` and ``events`` empty, if no case ran on all images.
        composition: cycles in percent of the baseline's, every case with the same weight.
        events: per 1,000 instructions that the baseline takes for the same work, likewise.
        cases: by case, events per operation; empty if there are too many for a page.
    """

    core: Core
    images: tuple[str, ...]
    parts: tuple[str, ...]
    plot: Stacks | None
    composition: tuple[Comparison, ...]
    events: tuple[Comparison, ...]
    cases: tuple[tuple[str, tuple[Comparison, ...]], ...]


Rows = Mapping[tuple[str, str], CoreCase]


def core_view(report: Report, image_set: ImageSet) -> CoreView | None:
    """What the section shows; None where no core was modelled."""
    images = [
        i.name for i in image_set.all_sound if any(c.image == i.name for c in report.core_cases)
    ]
    if report.core is None or not images:
        return None
    by_image: dict[str, Rows] = {
        name: {(row.suite, row.case): row for row in report.core_cases if row.image == name}
        for name in images
    }
    first = by_image[images[0]]
    # The mean covers the cases that all images ran, so that it is of the same work.
    cases = [case for case in first if all(case in rows for rows in by_image.values())]
    rows = [by_image[name] for name in images]
    plot, composition = _cycles(rows, cases, [image_set.numbers[name] for name in images])
    by_case = [(f"{case[0]}/{case[1]}", _per_operation(by_image, case)) for case in first]
    values = sum(len(images) * len(events) for _, events in by_case)
    return CoreView(
        core=report.core,
        images=tuple(images),
        parts=PARTS,
        plot=plot,
        composition=tuple(composition),
        events=tuple(_events(rows, cases)),
        cases=tuple(by_case) if values <= _MAX_VALUES else (),
    )


def _cycles(
    rows: Sequence[Rows], cases: Sequence[tuple[str, str]], numbers: Sequence[int]
) -> tuple[Stacks | None, list[Comparison]]:
    """What cycles are spent on in each case, and in the mean; nothing without a case.

    Args:
        numbers: of the images in drawings.
    """
    if not cases:
        return None, []
    shares = {case: [_shares(found[case], rows[0][case]) for found in rows] for case in cases}
    means = [
        [fmean(shares[case][n][part] for case in cases) for part in range(len(PARTS))]
        for n in range(len(rows))
    ]
    tracks = [("Mean of the cases", True, list(zip(numbers, means, strict=True)))]
    tracks += [(case[1], False, list(zip(numbers, shares[case], strict=True))) for case in cases]
    composition = [
        Comparison(title, tuple(mean[n] for mean in means)) for n, title in enumerate(PARTS)
    ]
    return stacks(tracks), [*composition, Comparison("all", tuple(map(sum, means)))]


def _shares(row: CoreCase, baseline: CoreCase) -> list[float]:
    """Cycles by part, in percent of all of the baseline's."""
    whole = sum(baseline.cycles.values()) or 1.0
    return [100 * row.cycles[part] / whole for part in PARTS]


def _events(rows: Sequence[Rows], cases: Sequence[tuple[str, str]]) -> list[Comparison]:
    names = list(rows[0][cases[0]].events) if cases else []
    return [
        Comparison(
            event_title(name),
            tuple(
                fmean(1000 * r[case].events[name] / rows[0][case].instructions for case in cases)
                for r in rows
            ),
        )
        for name in names
    ]


def _per_operation(by_image: Mapping[str, Rows], case: tuple[str, str]) -> tuple[Comparison, ...]:
    rows = [found.get(case) for found in by_image.values()]
    known = next(row for row in rows if row is not None)
    instructions = [None if r is None else r.instructions for r in rows]
    cycles = [None if r is None else sum(r.cycles.values()) for r in rows]
    return (
        Comparison("instructions", tuple(instructions)),
        Comparison("cycles", tuple(cycles)),
        *(
            Comparison(
                event_title(name), tuple(None if r is None else r.events[name] for r in rows)
            )
            for name in known.events
        ),
    )


def event_title(name: str) -> str:
    """The title of an event, from the name that the plugin gives it."""
    words = {"l1i": "L1I", "l1d": "L1D", "l2": "L2", "btb": "BTB", "itlb": "iTLB", "dtlb": "dTLB"}
    return " ".join(words.get(word, word) for word in name.split("_"))
