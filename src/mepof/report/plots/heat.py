"""A heatmap as one path for each level, so that it stays small."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby


def level_paths(rows: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Path data of each level that occurs, by its digit.

    A cell is one unit wide and high, and the first row lies at the bottom. ``0`` is not drawn.
    """
    paths: dict[str, list[str]] = {}
    for number, row in enumerate(rows):
        y = len(rows) - 1 - number
        x = 0
        for level, run in groupby(row):
            length = len(list(run))
            if level != "0":
                paths.setdefault(level, []).append(f"M{x} {y}h{length}v1h-{length}z")
            x += length
    return tuple((level, "".join(paths[level])) for level in sorted(paths))
