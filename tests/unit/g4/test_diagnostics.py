from __future__ import annotations

import pytest

from mepof.g4 import Diagnostic, Source, check, parse, render
from mepof.g4.diagnostics import nearest, suggestion
from mepof.g4.source import Span

from .reading import VOCABULARY, errors, headlines, source


def rendered(text: str) -> list[str]:
    return render(errors(text), source(text)).splitlines()


def test_a_diagnostic_shows_the_line_and_points_at_the_error() -> None:
    assert rendered("\n\nopt debian:linux-source-6.12 pgoo rand kbench.") == [
        "p.g4:3:30: error: unknown algorithm `pgoo`",
        "  3 | opt debian:linux-source-6.12 pgoo rand kbench.",
        "    |                              ^^^^",
        "    help: did you mean `pgo`?",
    ]


def test_a_long_list_of_known_words_is_cut() -> None:
    known = [f"word{number:03}" for number in range(130)]
    assert suggestion("xyz", known) == f"known: {', '.join(known[:24])} and 106 more"
    assert suggestion("xyz", known[:24]) == f"known: {', '.join(known[:24])}"


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("boots", "repetitions"),
        ("Runs", "repetitions"),
        ("iterations", "repetitions"),
        ("compiler", "toolchain"),
        ("kernel_config", "config"),
    ],
)
def test_a_word_for_the_same_thing_comes_before_similar_spellings(key: str, meant: str) -> None:
    assert rendered(f"set {key} 8.")[-1].endswith(f"help: did you mean `{meant}`?")


def test_a_word_for_the_same_thing_is_named_only_where_it_is_known() -> None:
    assert suggestion("boots", ["boot", "run"]) == "did you mean `boot`?"
    assert suggestion("measure", ["eval", "merge"]) == "did you mean `eval`?"


def test_carets_align_after_wide_characters_and_tabs() -> None:
    _, line, carets, *_ = rendered("eval\t/漢字/é files.")
    assert line == "  1 | eval /漢字/é files."
    assert carets == "    |              ^^^^^"


def test_a_span_of_several_lines_is_marked_on_its_first_line() -> None:
    _, line, carets, _ = rendered("opt\n  /src.")
    assert (line, carets) == ("  1 | opt", "    | ^^^")


def test_terminal_escapes_of_a_program_do_not_reach_the_terminal() -> None:
    shown = render(errors('eval "\x1b[2J\u202e" x.'), Source("\x1b.g4", 'eval "\x1b[2J\u202e" x.'))
    assert all(c.isprintable() or c == "\n" for c in shown)


def test_a_very_long_line_is_shortened_around_the_error() -> None:
    text = f"eval {';'.join(['/a'] * 1000)} files;{'file;' * 1000}pipe."
    _, line, carets, _ = rendered(text)[:4]
    assert len(line) < 150
    assert line[carets.index("^") :].startswith("files")


def test_carets_can_mark_the_end_of_an_empty_last_line() -> None:
    text = "set seed 1.\n"
    assert render([Diagnostic(Span(12, 12), "here")], source(text)).splitlines() == [
        "p.g4:2:1: error: here",
        "  2 |",
        "    | ^",
    ]


def test_more_errors_than_the_limit_are_counted() -> None:
    found = errors("x. " * 30)
    assert render(found, source("x. " * 30), limit=20).endswith("\n\np.g4: 10 more errors")
    assert render(found[:21], source("x. " * 30), limit=20).endswith("1 more error")


def test_the_nearest_word_ignores_case_and_may_be_none() -> None:
    assert nearest("FULLLTO", ("FullLTO", "ThinLTO")) == "FullLTO"
    assert nearest("zzz", ("FullLTO", "ThinLTO")) is None


def test_one_run_finds_errors_of_every_kind_and_sorts_them() -> None:
    text = "\n".join(
        [
            "set sed 1.",
            "opt /src pgoo rand kbench",
            "eval plain;opt fil.",
            "evl /a.img file.",
            'recomp /src "/p.',
            "profile /src.",
            "eval /a\0.img file.",
            "merge /a;/b 1.",
        ]
    )
    assert headlines(text) == [
        "p.g4:1:5: error: unknown setting `sed`",
        "p.g4:2:10: error: unknown algorithm `pgoo`",
        "p.g4:2:26: error: `.` is missing at the end of the `opt` statement",
        "p.g4:3:16: error: unknown metric `fil`",
        "p.g4:4:1: error: unknown verb `evl`",
        "p.g4:5:13: error: unterminated string",
        "p.g4:6:1: error: `profile` is missing its algorithm and click",
        "p.g4:7:8: error: control character U+0000",
        "p.g4:8:13: error: expected one weight per profile, found 1 for 2",
    ]


def test_a_statement_that_does_not_parse_causes_no_errors_about_names() -> None:
    assert headlines("op /src pgo rand.\nset name x.\nopr /a.\neval plain;opt;nobody file.") == [
        "p.g4:1:1: error: unknown verb `op`",
        "p.g4:3:1: error: unknown verb `opr`",
    ]


FIL = "eval /a.img fil."


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (f"# f\u00fcr\n{FIL}".encode("latin-1"), ["1:4", "2:13"]),
        (FIL.encode("utf-16"), ["1:1", "1:13"]),
        (f"\ufeff{FIL}".encode("utf-16-be"), ["1:1", "1:13"]),
    ],
    ids=["latin-1", "utf-16", "utf-16-be"],
)
def test_bytes_that_are_not_utf8_are_one_error_beside_the_programs(
    data: bytes, found: list[str]
) -> None:
    saved = Source.from_bytes("p.g4", data)
    result = parse(saved)
    shown = render([*result.diagnostics, *check(result.program, VOCABULARY)], saved)
    assert [line for line in shown.splitlines() if line.startswith("p.g4:")] == [
        f"p.g4:{found[0]}: error: the program is not UTF-8",
        f"p.g4:{found[1]}: error: unknown metric `fil`",
    ]


def test_diagnostics_of_one_parse_are_in_the_order_of_the_text() -> None:
    starts = [d.span.start for d in parse(source("a\0. b. eval. opt. eval x;;. set")).diagnostics]
    assert len(starts) > 3
    assert starts == sorted(starts)
