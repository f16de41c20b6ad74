from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mepof.executor.programs import compiled
from mepof.g4 import check, parse
from mepof.g4.ast import Eval, Merge, Opt, Program, Statement
from mepof.g4.vocabulary import vocabulary
from mepof.spec.profile_collect import ProfileCollect
from mepof.steps import profile_collect

from .reading import headlines, sound, source


def only(text: str) -> Statement:
    result = parse(source(text))
    assert result.diagnostics == ()
    (statement,) = result.program.statements
    return statement


PUBLISHED = [
    "opt /sys/src pgo rand kbench O2;ThinLTO.",
    "opt debian:linux-source-6.12 pgo rand kbench.",
    "opt /sys/src autofdo+propeller manual - O3.",
    "opt ./linux-6.12.tar.xz cspgo trav.",
    "profile /sys/src pgo rand kbench.",
    "profile /sys/src pgo script kbench:actions.txt.",
    "merge /out/a.profdata;/out/b.profdata 2;0.5.",
    "merge /out/a.profdata;/out/b.profdata.",
    "adap https://cdn.kernel.org/pub/linux/kernel/v6.x/linux-6.12.tar.xz pgo rand kbench O2.",
    "recomp /sys/src /sys/out/opt.profdata O2;FullLTO.",
    "recomp /sys/src /sys/out/opt.profdata.",
    "build /sys/src.",
    "build debian:linux-source-6.12 O3;ThinLTO.",
    "eval /sys/out/opt.img file;pipe.",
    "eval /sys/out/opt.img;/sys/out/opt2.img.",
    "goal geomean 8. eval /sys/out/opt.img;/sys/out/opt2.img.",
    "goal worst -1 time_per_byte. eval /sys/out/opt.img;/sys/out/opt2.img.",
    "goal worst:input -1 latency. goal geomean 1 latency. eval /a.img;/b.img pipe;input.",
    "goal worst -1 guest_time. eval /sys/out/opt.img;/sys/out/opt2.img.",
    "set core zen4. goal worst +0.5 kernel_cycles. eval /a.img;/b.img.",
    "compare pipe-4 unix-4 ratio. eval /a.img ipc.",
    "set core zen4. compare walk-4k walk-2m per-event:dtlb_misses. eval /a.img pages.",
]


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_one_liners_are_valid(text: str) -> None:
    assert headlines(text) == []
    assert headlines(text + "\n") == []


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_one_liners_have_something_to_train(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "actions.txt").write_text("syscall\n")
    interactive = vocabulary().interactive
    for step in compiled(source(text)).steps:
        if step.kind == ProfileCollect.kind and step.params["scenario"] not in interactive:
            profile_collect.BODY.check(step)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("opt ./linux-6.12.tar.xz icc-pgo trav.", "unknown algorithm `icc-pgo`"),
        (
            "profile /sys/src pgo rand kbench;com.android.settings.",
            "unknown app `com.android.settings`",
        ),
    ],
)
def test_one_liners_with_unknown_words_parse(text: str, unknown: str) -> None:
    words = replace(vocabulary(), algorithms=("pgo",), apps=("kbench",))
    for ending in ("", "\n"):
        parsed = parse(source(text + ending))
        assert parsed.diagnostics == ()
        assert [found.message for found in check(parsed.program, words)] == [unknown]


def test_a_dot_inside_a_path_does_not_end_the_statement() -> None:
    statement = only("eval /sys/out/opt.img file;pipe.")
    assert isinstance(statement, Eval)
    assert [word.text for word in statement.images] == ["/sys/out/opt.img"]
    assert [word.text for word in statement.metrics] == ["file", "pipe"]


def test_trailing_lists_are_optional_or_a_dash() -> None:
    assert only("opt s pgo rand.") == only("opt s pgo rand -.") == only("opt s pgo rand - -.")
    statement = only("opt s pgo rand - O2.")
    assert isinstance(statement, Opt)
    assert statement.apps == ()
    assert [word.text for word in statement.options] == ["O2"]


def test_a_quoted_dash_is_a_word() -> None:
    statement = only('eval "-".')
    assert isinstance(statement, Eval)
    assert [word.text for word in statement.images] == ["-"]


def test_blanks_around_semicolons_do_not_matter() -> None:
    assert only("merge /a;/b 1;2.") == only("merge /a ; /b\n  1 ;\n  2 .")


def test_strings_may_contain_blanks_quotes_and_trailing_dots() -> None:
    statement = only(r'merge "a b";"say \"x\" \\";"#";"end." 1;2;3;4.')
    assert isinstance(statement, Merge)
    assert [word.text for word in statement.profiles] == ["a b", r'say "x" \ '[:-1], "#", "end."]


def test_a_hash_inside_a_word_does_not_begin_a_comment() -> None:
    statement = only("eval /out/a#1.img file. # x")
    assert isinstance(statement, Eval)
    assert statement.images[0].text == "/out/a#1.img"


def test_windows_line_ends_and_a_byte_order_mark_are_accepted() -> None:
    from mepof.g4 import Source

    data = b"\xef\xbb\xbf# c\r\nset seed 1.\r\n\r\neval /a.img file. # t\r\n"
    result = parse(Source.from_bytes("p.g4", data))
    assert result.diagnostics == ()
    assert result.program == sound("# c\nset seed 1.\n\neval /a.img file. # t\n")


def test_an_empty_program_is_valid() -> None:
    assert sound("") == sound(" \n") == Program(())


def test_comments_are_attached_to_statements() -> None:
    program = sound("# first\n\n# about\nset seed 1. # why\nset arch # within\n  arm64.\n\n# end\n")
    seed, arch = program.statements
    assert (seed.leading, seed.trailing) == (("# first", "", "# about"), "# why")
    assert arch.leading == ("# within",)
    assert program.closing == ("", "# end")


def test_equality_ignores_layout() -> None:
    assert sound("set seed 1. set arch arm64.") == sound("set\n  seed 1.\nset   arch arm64.")


def test_an_indented_line_may_begin_with_a_word_that_is_a_verb() -> None:
    assert headlines("opt /src pgo rand kbench.\neval\n  opt\n  file.") == []


def test_after_a_semicolon_a_line_may_begin_with_a_word_that_is_a_verb() -> None:
    assert headlines("opt /src pgo rand kbench.\neval plain;\nopt\n  file.") == []
