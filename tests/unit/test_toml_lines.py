"""Lines of the keys, tables and elements of a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mepof.toml_lines import Location, lines_of

HERE = Path(__file__)
FILES = [
    *(HERE.parents[2] / "src").rglob("*.toml"),
    *(HERE.parents[2] / "native").rglob("*.toml"),
    HERE.parents[2] / "pyproject.toml",
]


def locations(value: object, above: Location = ()) -> Iterator[Location]:
    """Every location below a value that was read."""
    entries = value.items() if isinstance(value, dict) else ()
    elements = enumerate(value) if isinstance(value, list) else ()
    for key, inner in (*entries, *elements):
        yield (*above, key)
        yield from locations(inner, (*above, key))


@pytest.mark.parametrize(
    ("text", "location", "line"),
    [
        ("a = 1\nb = 2\n", ("b",), 2),
        ("# [t]\n\na.b = 1 # c = 2\nc = 2\n", ("c",), 4),
        ("a.b = 1\na.c = 2\n", ("a", "c"), 2),
        ("a.b = 1\na.c = 2\n", ("a",), 1),
        ("\n\"b.c\".'d e' = 2\n", ("b.c", "d e"), 2),
        ('"\\u0061" = 1\n', ("a",), 1),
        ("[t]\na = 1\n", ("t", "a"), 2),
        ("\n[ t . u ]\na = 1\n", ("t", "u"), 2),
        ("[[q]]\na = 1\n[[q]]\na = 2\n", ("q", 1), 3),
        ("[[q]]\na = 1\n[[q]]\na = 2\n", ("q", 1, "a"), 4),
        ("[[q]]\n[q.r]\na = 1\n[[q]]\n[q.r]\na = 2\n", ("q", 1, "r", "a"), 6),
        ("[[q]]\n[[q.l]]\n[[q.l]]\na = 1\n[[q]]\n[[q.l]]\na = 2\n", ("q", 0, "l", 1, "a"), 4),
        ("[[q]]\n[[q.l]]\n[[q.l]]\na = 1\n[[q]]\n[[q.l]]\na = 2\n", ("q", 1, "l", 0, "a"), 7),
        ("a = [\n 1, # one\n 2,\n]\nb = 3\n", ("a", 1), 3),
        ("a = [\n 1, # one\n 2,\n]\nb = 3\n", ("b",), 5),
        ("a = [\n [1, 2],\n [3,\n  4] ]\n", ("a", 1, 1), 4),
        ("a = [\n {b = 1},\n {b = [\n  2]},\n]\n", ("a", 1, "b", 0), 4),
        ("a = {b.c = 1, d = {e = 2}}\nf = 1\n", ("a", "d", "e"), 1),
        ('a = """\nb = 1\n[c]\\"""\n""""\nd = 1\n', ("d",), 5),
        ("a = '''\nb = 1\n[c]'''\nd = 1\n", ("d",), 4),
        ('a = "#"\nb = "[,\\"]"\nc = \'\\\'\nd = 1\n', ("d",), 4),
        ("a = 1979-05-27 07:32:00.5\nb = 1.5e-3\nc = -inf\n", ("c",), 3),
        ("a = 1\r\nb = 2\r\n", ("b",), 2),
    ],
)
def test_a_location_has_the_line_on_which_it_is_written(
    text: str, location: Location, line: int
) -> None:
    assert location in set(locations(tomllib.loads(text)))
    assert lines_of(text)[location] == line


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_exactly_the_locations_of_a_file_have_lines(path: Path) -> None:
    text = path.read_text()
    assert set(lines_of(text)) == set(locations(tomllib.loads(text)))


def test_an_empty_file_has_no_locations() -> None:
    assert lines_of("") == {}
