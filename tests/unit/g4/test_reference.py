"""Checks the examples in docs/g4.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mepof.g4 import check, format_program, parse, render
from mepof.g4.ast import STATEMENTS, form_of
from mepof.g4.settings import SETTINGS
from mepof.g4.vocabulary import vocabulary

from .reading import errors, sound, source

REFERENCE = (Path(__file__).parents[3] / "docs" / "g4.md").read_text()
BLOCKS = re.findall(r"^```(\S*)\n(.*?)^```$", REFERENCE, re.MULTILINE | re.DOTALL)
SOUND = [text for language, text in BLOCKS if language == "g4"]
# A wrong example is followed by what it prints.
WRONG = [
    (text, BLOCKS[index + 1][1])
    for index, (language, text) in enumerate(BLOCKS)
    if language == "g4-wrong"
]


@pytest.mark.parametrize("text", SOUND)
def test_every_example_is_valid_with_the_words_of_mepof(text: str) -> None:
    parsed = parse(source(text))
    assert parsed.diagnostics == ()
    assert check(parsed.program, vocabulary()) == ()


@pytest.mark.parametrize(("text", "shown"), WRONG)
def test_every_wrong_example_prints_what_the_reference_shows(text: str, shown: str) -> None:
    assert render(errors(text), source(text)).replace("p.g4", "program.g4") + "\n" == shown


def test_the_formatting_example_shows_what_the_formatter_does() -> None:
    before, after = (text for language, text in BLOCKS if language in ("g4-before", "g4-after"))
    assert format_program(sound(before)) == after


def test_the_reference_has_every_statement_and_setting() -> None:
    assert SOUND
    assert WRONG
    for verb in STATEMENTS:
        assert f"### `{form_of(verb)}`\n" in REFERENCE
    for key in SETTINGS:
        assert f"| `{key}` |" in REFERENCE
