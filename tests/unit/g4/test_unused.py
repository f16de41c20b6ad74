"""Settings that change nothing of what a program does."""

from __future__ import annotations

from functools import partial

import pytest

from mepof.g4 import render
from mepof.g4.compiler import compile_program
from mepof.g4.unused import without_effect

from .planning import VARIANTS
from .reading import sound, source

OPT = "opt debian:linux-source-6.12 pgo rand kbench O2."
SAMPLED = "opt debian:linux-source-6.12 autofdo rand kbench O2."


def unused(text: str) -> list[str]:
    """The settings without effect, as they are written."""
    program = sound(text)
    compiled = partial(compile_program, text=text, variants=VARIANTS)
    found = without_effect(program, compiled(program), compiled)
    return [text[each.span.start : each.span.end] for each in found]


@pytest.mark.parametrize(
    ("setting", "rest"),
    [
        ("set decay 0.25.", SAMPLED),
        ("set hotness ./a.profdata.", SAMPLED),
        ("set period 100003.", OPT),
        ("set depth 16.", OPT),
        ("set core zen4.", OPT),
        ("set actions 12.", "build debian:linux-source-6.12."),
        ("set config server.", f"set config slim. {OPT}"),
        ("set arch arm64.", ""),
    ],
)
def test_a_setting_that_nothing_uses(setting: str, rest: str) -> None:
    assert unused(f"{setting} {rest}") == [setting]


@pytest.mark.parametrize(
    "text",
    [
        f"set decay 0.25. set base ./a.afdo. {SAMPLED}",
        f"set decay 0.25. set rounds 2. {SAMPLED}",
        f"set hotness ./a.profdata. set instrument 95%. {OPT}",
        f"set period 100003. set depth 16. {SAMPLED}",
        f"set core zen4. {OPT} eval plain;opt pipe.",
        f"set name a. {OPT} set config server. set name b. {OPT}",
        # What holds anyway may be said.
        f"set seed 1. set rounds 1. set base none. set instrument all. set share on. {OPT}",
        f"set config server. {OPT} set config server. build debian:linux-source-6.12.",
    ],
)
def test_what_is_used_or_holds_anyway(text: str) -> None:
    assert unused(text) == []


def test_the_warning_says_what_uses_the_setting() -> None:
    text = f"set decay 0.25. {OPT}"
    compiled = partial(compile_program, text=text, variants=VARIANTS)
    program = sound(text)
    found = render(without_effect(program, compiled(program), compiled), source(text))
    assert "p.g4:1:1: error: `set decay` has no effect: nothing that follows uses it" in found
    assert "help: it is for `set base`, and `set rounds` above 1" in found
