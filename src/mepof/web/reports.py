"""The reports of runs: the artifacts of their report steps, read once."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from mepof.errors import InputError
from mepof.plan.store import Store
from mepof.report.files import HTML_NAME, JSON_NAME, read_report
from mepof.report.metrics import MAIN
from mepof.report.model import Report, SummaryRow
from mepof.web.catalogue import Entry

DIGEST = re.compile(r"[0-9a-f]{64}")

_MAX_WHOLE = 64
_MAIN = {metric.name: position for position, metric in enumerate(MAIN)}


@dataclass(frozen=True)
class Headline:
    """What lists of many runs need of a report.

    Attributes:
        summary: the geometric means of the main metrics.
        algorithms: by image.
    """

    name: str
    kernel: str
    baseline: str | None
    images: tuple[str, ...]
    algorithm: str | None
    summary: tuple[SummaryRow, ...]
    has_heatmaps: bool


@dataclass(frozen=True)
class Place:
    """Where a report of a run is.

    Attributes:
        name: the step that made it, without ``/report``; the result's name in the program.
        key: changes with its content.
    """

    name: str
    directory: Path
    key: str


class Reports:
    """Reads reports; safe to use from several threads.

    Args:
        store: where artifacts are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._headlines: dict[str, Headline | None] = {}
        self._whole: OrderedDict[str, Report] = OrderedDict()

    def places(self, entry: Entry) -> tuple[Place, ...]:
        """The reports of a run that can be read, in the program's order."""
        found = []
        for step in entry.run.steps.values():
            if step.kind != "report" or not DIGEST.fullmatch(step.digest or ""):
                continue
            path = self._store.object(str(step.digest))
            if (path / JSON_NAME).is_file():
                found.append(Place(step.step, path, str(step.digest)))
            elif entry.latest and entry.state == "done":
                # The store is another one, or was cleaned: what the run left beside its journal.
                beside = entry.out if step.step == "report" else entry.out / step.step
                if beside.is_dir() and (beside / JSON_NAME).is_file():
                    status = (beside / JSON_NAME).stat()
                    key = f"{beside}:{status.st_mtime_ns}:{status.st_size}"
                    found.append(Place(step.step, beside, key))
        return tuple(found)

    def headlines(self, entry: Entry) -> tuple[Headline, ...]:
        """The reports of a run in brief; those that are not readable are left out."""
        found = []
        for place in self.places(entry):
            if place.key not in self._headlines:
                try:
                    headline = _headline(place.name, read_report(place.directory))
                except InputError:
                    headline = None
                self._headlines[place.key] = headline
            if (known := self._headlines[place.key]) is not None:
                found.append(known)
        return tuple(found)

    def read(self, place: Place) -> Report:
        """A whole report.

        Raises:
            InputError: it is not one.
        """
        with self._lock:
            if place.key in self._whole:
                self._whole.move_to_end(place.key)
                return self._whole[place.key]
        report = read_report(place.directory)
        with self._lock:
            self._whole[place.key] = report
            while len(self._whole) > _MAX_WHOLE:
                self._whole.popitem(last=False)
        return report

    def page(self, place: Place) -> bytes:
        """The report's own page.

        Raises:
            InputError: it is missing.
        """
        try:
            return (place.directory / HTML_NAME).read_bytes()
        except OSError as error:
            raise InputError(f"the report has no page: {error.strerror}") from error


def _headline(name: str, report: Report) -> Headline:
    return Headline(
        name,
        report.provenance.kernel,
        report.baseline,
        tuple(image.name for image in report.images),
        report.profile.algorithm if report.profile else None,
        tuple(
            sorted(
                (row for row in report.summary if row.metric in _MAIN),
                key=lambda row: _MAIN[row.metric],
            )
        ),
        report.heatmaps is not None,
    )
