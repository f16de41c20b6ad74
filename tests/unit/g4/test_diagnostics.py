from __future__ import annotations

from mepof.g4 import Diagnostic, Source, render
from mepof.g4.diagnostics import nearest, suggestion
from mepof.g4.source import Span

from .reading import errors, source


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
