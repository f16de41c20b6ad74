from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mepof.g4 import Source, check, format_program, parse, render
from mepof.g4.ast import OPERANDS, STATEMENTS, Program, Statement, Word
from mepof.g4.source import Span

from .reading import VOCABULARY, source

NOWHERE = Span(0, 0)
# A slow machine is not a failure.
unhurried = settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow], database=None
)
# Characters with a meaning in G4, and those that terminals and file names may contain.
AWKWARD = [
    "-",
    ".",
    "..",
    "#",
    ";",
    '"',
    "\\",
    " ",
    "\t",
    "a",
    "opt",
    "eval",
    "é",
    "漢",
    "\u00a0",
    "/",
]

texts = st.lists(st.sampled_from(AWKWARD), max_size=6).map("".join) | st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=12
)
words = texts.map(lambda text: Word(text, NOWHERE))
comments = texts.map(lambda text: ("#" + text).rstrip())


def canonical(lines: list[str], first: bool) -> tuple[str, ...]:
    """Lines as the parser returns them: without blank lines in a row or at the start."""
    kept: list[str] = []
    for line in lines:
        if line or (kept[-1] if kept else "" if first else "x"):
            kept.append(line)
    return tuple(kept)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    statements: list[Statement] = []
    for verb in draw(st.lists(st.sampled_from(sorted(STATEMENTS)), max_size=5)):
        values = {
            operand.name: tuple(draw(st.lists(words, max_size=3))) if operand.many else draw(words)
            for operand in OPERANDS[verb]
        }
        lines = draw(st.lists(comments | st.just(""), max_size=4))
        statements.append(
            STATEMENTS[verb](
                **values,  # type: ignore[arg-type]
                span=NOWHERE,
                leading=canonical(lines, first=not statements),
                trailing=draw(st.just("") | comments),
            )
        )
    closing = canonical(draw(st.lists(comments | st.just(""), max_size=3)), first=not statements)
    return Program(tuple(statements), closing[:-1] if closing[-1:] == ("",) else closing)


@given(programs())
@unhurried
def test_parsing_a_formatted_program_gives_the_program(program: Program) -> None:
    text = format_program(program)
    result = parse(source(text))
    assert result.diagnostics == ()
    assert result.program == program
    assert format_program(result.program) == text


pieces = st.sampled_from(
    [
        *AWKWARD,
        "\n",
        "\r\n",
        ". ",
        ".\n",
        "# c\n",
        "opt ",
        "eval ",
        "set ",
        "merge ",
        "a b c",
        "\0",
        '"a b" ',
    ]
)


@given(st.lists(pieces, max_size=40).map("".join))
@unhurried
def test_formatting_keeps_the_meaning_of_a_program(text: str) -> None:
    result = parse(source(text))
    if not result.diagnostics:
        assert parse(source(format_program(result.program))).program == result.program


@given(st.binary(max_size=200) | st.lists(pieces, max_size=40).map(lambda p: "".join(p).encode()))
@unhurried
def test_any_bytes_give_a_program_or_diagnostics(data: bytes) -> None:
    program_text = Source.from_bytes("p.g4", data)
    result = parse(program_text)
    found = [*result.diagnostics, *check(result.program, VOCABULARY)]
    shown = render(found, program_text)
    assert bool(shown) == bool(found)
    assert result.program.complete or result.diagnostics
    shown.encode()


def test_the_published_style_is_one_statement_per_line_with_tight_lists() -> None:
    # Syntax only: mepof does not come with this app.
    parsed = parse(
        source(
            "#!/usr/bin/env g4\n\n\n\nset  seed\n1 .   # why\n"
            "opt /a pgo   # how\n rand kbench ; com.android.settings - .\n\n\n"
            'eval "plain" ; opt  file;pipe.\n\n# end\n\n'
        )
    )
    assert parsed.diagnostics == ()
    assert format_program(parsed.program) == (
        "#!/usr/bin/env g4\n\nset seed 1.  # why\n# how\n"
        "opt /a pgo rand kbench;com.android.settings.\n\neval plain;opt file;pipe.\n\n# end\n"
    )


def test_a_program_with_syntax_errors_is_not_formatted() -> None:
    with pytest.raises(ValueError, match="syntax errors"):
        format_program(parse(source("opr x. set seed 1.")).program)
