"""A report's heatmaps as one picture, as publications show them: a panel for each image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from mepof.report.plots.heat import level_paths

# Pixels of a panel, of what is between two, and of the title above each.
_WIDTH, _HEIGHT, _GAP, _TITLE = 300, 240, 12, 20
_IN_A_ROW = 3


def drawn(heatmaps: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """SVG of some images.

    Args:
        heatmaps: of a report.
        titles: of the panels, by image, in their order.

    Raises:
        KeyError: the report has no heatmap of an image.
    """
    levels = {each["image"]: each["levels"] for each in heatmaps["images"]}
    brightest = len(heatmaps["level_from"])
    rows = -(-len(titles) // _IN_A_ROW)
    width, height = _IN_A_ROW * (_WIDTH + _GAP), rows * (_HEIGHT + _TITLE + _GAP)
    panels = "".join(
        line
        for number, (image, title) in enumerate(titles.items())
        for line in _panel(number, title, levels[image], brightest)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{panels}</svg>\n'
    )


def _panel(number: int, title: str, rows: tuple[str, ...], brightest: int) -> Iterator[str]:
    row, column = divmod(number, _IN_A_ROW)
    x, y = column * (_WIDTH + _GAP), row * (_HEIGHT + _TITLE + _GAP)
    yield f'<text x="{x}" y="{y + _TITLE - 6}">{escape(title)}</text>\n'
    yield (
        f'<svg x="{x}" y="{y + _TITLE}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {len(rows[0])} {len(rows)}" preserveAspectRatio="none">\n'
        f'<rect width="100%" height="100%"/>\n'
    )
    for level, path in level_paths(rows):
        grey = 55 + 200 * int(level) // brightest
        yield f'<path fill="rgb({grey},{grey},{grey})" d="{path}"/>\n'
    yield "</svg>\n"
