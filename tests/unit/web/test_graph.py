from __future__ import annotations

import re
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from mepof.web.graph import HEIGHT, WIDTH, Graph, draw


def arrows(graph: Graph) -> set[tuple[str, str]]:
    return {(arrow.source, arrow.target) for arrow in graph.arrows}


def test_steps_lie_below_what_they_read() -> None:
    graph = draw({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    y = {node.step: node.y for node in graph.nodes}
    assert y["a"] < y["b"] == y["c"] < y["d"]
    assert arrows(graph) == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    graph = draw({"source": [], "build": ["source"], "report": ["build", "source"]})
    assert arrows(graph) == {("source", "build"), ("build", "report")}


def test_crossings_that_can_be_avoided_are_avoided() -> None:
    graph = draw({"a": [], "b": [], "under-b": ["b"], "under-a": ["a"]})
    x = {node.step: node.x for node in graph.nodes}
    assert (x["a"] < x["b"]) == (x["under-a"] < x["under-b"])


def test_long_names_keep_their_ends() -> None:
    (node,) = draw({"a-very-long-name-of-a-statement/instrument": []}).nodes
    assert node.label.startswith("…") and node.label.endswith("/instrument")


def test_nothing_is_an_empty_drawing() -> None:
    assert draw({}).nodes == ()


@given(
    st.lists(st.sets(st.integers(0, 14), max_size=4), max_size=15).map(
        lambda read: {str(i): sorted(map(str, given)) for i, given in enumerate(read)}
    )
)
def test_any_steps_are_drawn_once_inside_and_apart(read: dict[str, list[str]]) -> None:
    """Circles and unknown names included: a journal may say anything."""
    graph = draw(read)
    assert sorted(node.step for node in graph.nodes) == sorted(read)
    for node in graph.nodes:
        assert 0 <= node.x <= graph.width - WIDTH and 0 <= node.y <= graph.height - HEIGHT
    for one, other in combinations(graph.nodes, 2):
        assert abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT
    for arrow in graph.arrows:
        assert re.fullmatch(r"M-?\d+ \d+([CV][-\d ]+)+", arrow.path)
