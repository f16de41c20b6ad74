"""Heatmaps of a run's report, whole or a part of them, with the functions of that part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mepof.report.detail import Heatmaps
from mepof.report.plots.heat import level_paths
from mepof.web.catalogue import Entry
from mepof.web.queries import number_in, text_in
from mepof.web.reports import DIGEST
from mepof.web.site import Site

_MAX_FUNCTIONS = 60
_MIN_CELLS = 4
_SYMBOL = re.compile(r"([0-9a-f]{16}) [tTwW] (\S+)")


@dataclass(frozen=True)
class Window:
    """A part of a heatmap, in cells; ``row`` counts from the lowest address."""

    column: int
    row: int
    columns: int
    rows: int

    @classmethod
    def within(
        cls, column: int, row: int, columns: int, rows: int, all_columns: int, all_rows: int
    ) -> Window:
        """The window nearest to what is asked for that lies inside."""
        columns = min(max(columns, _MIN_CELLS), all_columns)
        rows = min(max(rows, _MIN_CELLS), all_rows)
        return cls(
            min(max(column, 0), all_columns - columns),
            min(max(row, 0), all_rows - rows),
            columns,
            rows,
        )

    def query(self, image: str) -> str:
        """Its address, after the ``?``."""
        return urlencode(
            {"image": image, "x": self.column, "y": self.row, "w": self.columns, "h": self.rows}
        )


def routes(site: Site) -> Sequence[BaseRoute]:
    """The addresses of this view."""

    def heatmap(request: Request) -> Response:
        entry = site.entry(request)
        heat = _heatmaps(site, entry, request.path_params["report"])
        images = [each.image for each in heat.images]
        image = text_in(request, "image")
        image = image if image in images else images[0]
        levels = heat.images[images.index(image)].levels
        columns, rows = sum(case.columns for case in heat.cases), len(levels)
        window = Window.within(
            number_in(request, "x", 0),
            number_in(request, "y", 0),
            number_in(request, "w", columns),
            number_in(request, "h", rows),
            columns,
            rows,
        )
        shown = [
            level.ljust(columns, "0")[window.column : window.column + window.columns]
            for level in levels[window.row : window.row + window.rows]
        ]
        low = heat.address + window.row * heat.row_bytes
        high = low + window.rows * heat.row_bytes
        names, more = _functions(site, entry, image, low, high)
        return site.page(
            request,
            "heatmap",
            entry=entry,
            report=request.path_params["report"],
            heat=heat,
            image=image,
            images=[(each, window.query(each)) for each in images],
            window=window,
            whole=(window.columns, window.rows) == (columns, rows),
            paths=level_paths(shown),
            moves=[
                (title, moved.query(image))
                for title, moved in _moves(window, columns, rows)
                if moved != window
            ],
            low=low,
            high=high,
            cases=[
                case
                for case in heat.cases
                if case.first < window.column + window.columns
                and case.first + case.columns > window.column
            ],
            functions=names,
            more=more,
        )

    return (Route("/runs/{run}/heatmaps/{report:path}", heatmap),)


def _heatmaps(site: Site, entry: Entry, name: str) -> Heatmaps:
    for place in site.reports.places(entry):
        if place.name == name:
            heat = site.reports.read(place).heatmaps
            if heat is not None and heat.images and heat.images[0].levels and heat.cases:
                return heat
    raise HTTPException(404, "the run has no heatmaps")


def _moves(window: Window, columns: int, rows: int) -> Iterator[tuple[str, Window]]:
    """Where links lead: closer, farther, and half a window to each side."""
    x, y, w, h = window.column, window.row, window.columns, window.rows

    def at(x: int, y: int, w: int = w, h: int = h) -> Window:
        return Window.within(x, y, w, h, columns, rows)

    yield "Closer", at(x + w // 4, y + h // 4, w // 2, h // 2)
    yield "Farther", at(x - w // 2, y - h // 2, w * 2, h * 2)
    yield "Earlier", at(x - max(1, w // 2), y)
    yield "Later", at(x + max(1, w // 2), y)
    yield "Higher addresses", at(x, y + max(1, h // 2))
    yield "Lower addresses", at(x, y - max(1, h // 2))
    yield "Whole", at(0, 0, columns, rows)


def _functions(
    site: Site, entry: Entry, image: str, low: int, high: int
) -> tuple[list[tuple[int, str]], int]:
    """The functions of an image that begin between two addresses, and how many more there are."""
    step = entry.run.steps.get(f"{image}/build")
    if step is None or not DIGEST.fullmatch(step.digest or ""):
        return [], 0
    symbols = _symbols(site.store.object(str(step.digest)) / "System.map")
    found = [symbol for symbol in symbols if low <= symbol[0] < high]
    return found[:_MAX_FUNCTIONS], max(0, len(found) - _MAX_FUNCTIONS)


@lru_cache(maxsize=8)
def _symbols(path: Path) -> tuple[tuple[int, str], ...]:
    """The functions of a kernel by address; none if they are not there."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return ()
    return tuple((int(address, 16), name) for address, name in _SYMBOL.findall(text))
