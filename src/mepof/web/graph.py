"""A plan as a drawing: steps in layers, from the top down, and arrows between them.

The layout is Sugiyama's (1981): layers by the longest path, bends where an arrow passes a layer,
and the order within a layer by the mean position of the neighbours. Arrows that follow from others
are left out, as in a transitive reduction; the table beside the drawing has all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import fsum

WIDTH, HEIGHT = 164, 46
_GAP, _LAYER_GAP, _BEND = 18, 34, 12
_MARGIN = 8
_SWEEPS = 6
_MAX_LABEL = 22


@dataclass(frozen=True)
class Node:
    """A step: the upper left corner of its box, and its name as far as it fits."""

    step: str
    label: str
    x: int
    y: int


@dataclass(frozen=True)
class Arrow:
    """From a step to one that reads it, as the data of a path."""

    source: str
    target: str
    path: str


@dataclass(frozen=True)
class Graph:
    """A whole drawing, in pixels."""

    width: int
    height: int
    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]


# A step, or the bend of an arrow in a layer: its source, its target and the layer.
_Item = str | tuple[str, str, int]


def draw(inputs: Mapping[str, Iterable[str]]) -> Graph:
    """Lay out a plan.

    Args:
        inputs: the steps that each step reads. Names that are no steps, and steps that read each
            other in a circle, which no plan has, do no harm.
    """
    read = _reduced({step: [i for i in given if i in inputs] for step, given in inputs.items()})
    layer = _layers(read)
    rows: list[list[_Item]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    above: dict[_Item, list[_Item]] = {}
    below: dict[_Item, list[_Item]] = {}
    chains: dict[tuple[str, str], list[_Item]] = {}
    for step in inputs:
        rows[layer[step]].append(step)
    for target, sources in read.items():
        for source in sources:
            chain: list[_Item] = [source]
            for number in range(layer[source] + 1, layer[target]):
                bend = (source, target, number)
                rows[number].append(bend)
                chain.append(bend)
            chain.append(target)
            chains[source, target] = chain
            for upper, lower in pairwise(chain):
                below.setdefault(upper, []).append(lower)
                above.setdefault(lower, []).append(upper)
    for sweep in range(_SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if near is above else reversed(rows):
            _sort(row, near, rows)
    return _placed(rows, chains)


def _reduced(read: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Without what a step reads of a step whose other readers it reads, too."""
    beyond: dict[str, set[str]] = {}

    def ancestors(step: str) -> set[str]:
        pending = [step]
        while pending:
            last = pending[-1]
            beyond.setdefault(last, set())
            missing = [s for s in read[last] if s not in beyond]
            if missing:
                pending += missing
                continue
            beyond[last] = set(read[last]).union(*(beyond[s] for s in read[last])) - {last}
            pending.pop()
        return beyond[step]

    for step in read:
        ancestors(step)
    return {
        step: [
            s
            for s in dict.fromkeys(sources)
            if s != step and not any(s in beyond[o] for o in sources if o not in (s, step))
        ]
        for step, sources in read.items()
    }


def _layers(read: Mapping[str, list[str]]) -> dict[str, int]:
    layer = dict.fromkeys(read, 0)
    for _ in range(len(read)):
        moved = False
        for step, sources in read.items():
            least = max((layer[s] + 1 for s in sources), default=0)
            if least > layer[step] and least < len(read):
                layer[step], moved = least, True
        if not moved:
            break
    return layer


def _sort(row: list[_Item], near: Mapping[_Item, list[_Item]], rows: list[list[_Item]]) -> None:
    position = {item: i / max(1, len(r) - 1) for r in rows for i, item in enumerate(r)}

    def mean(item: _Item) -> float:
        neighbours = near.get(item, [])
        if not neighbours:
            return position[item]
        return fsum(position[n] for n in neighbours) / len(neighbours)

    row.sort(key=mean)


def _placed(rows: list[list[_Item]], chains: Mapping[tuple[str, str], list[_Item]]) -> Graph:
    widths = [sum(_width(i) for i in row) + _GAP * max(0, len(row) - 1) for row in rows]
    full = max(widths, default=0)
    centre: dict[_Item, int] = {}
    top: dict[_Item, int] = {}
    nodes: list[Node] = []
    for number, row in enumerate(rows):
        x = _MARGIN + (full - widths[number]) // 2
        y = _MARGIN + number * (HEIGHT + _LAYER_GAP)
        for item in row:
            centre[item], top[item] = x + _width(item) // 2, y
            if isinstance(item, str):
                nodes.append(Node(item, _label(item), x, y))
            x += _width(item) + _GAP
    arrows = [
        Arrow(source, target, _path([(centre[i], top[i], isinstance(i, str)) for i in chain]))
        for (source, target), chain in chains.items()
    ]
    height = len(rows) * (HEIGHT + _LAYER_GAP) - _LAYER_GAP
    return Graph(full + 2 * _MARGIN, max(0, height) + 2 * _MARGIN, tuple(nodes), tuple(arrows))


def _path(points: list[tuple[int, int, bool]]) -> str:
    """From below the first box, through the bends, to above the last one."""
    x, y, _ = points[0]
    path = [f"M{x} {y + HEIGHT}"]
    y += HEIGHT
    for to_x, to_y, is_step in points[1:]:
        middle = (y + to_y) // 2
        path.append(f"C{x} {middle} {to_x} {middle} {to_x} {to_y}")
        x, y = to_x, to_y
        if not is_step:
            path.append(f"V{to_y + HEIGHT}")
            y = to_y + HEIGHT
    return "".join(path)


def _width(item: _Item) -> int:
    return WIDTH if isinstance(item, str) else _BEND


def _label(step: str) -> str:
    return step if len(step) <= _MAX_LABEL else f"…{step[1 - _MAX_LABEL :]}"
