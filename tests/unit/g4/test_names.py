from __future__ import annotations

from mepof.g4 import Diagnostic, bind
from mepof.g4.ast import Word
from mepof.g4.names import Bindings, HostPath, Made, Plain, Role
from mepof.g4.source import Span

from .reading import sound

PROGRAM = """
profile /a pgo rand kbench.
opt /b pgo rand kbench.
set name fast.
set seed 3.
opt /c pgo rand kbench.
opt /d pgo rand kbench.
merge opt;fast.profdata;profile.
recomp /e merge.
eval plain;opt.img;fast;opt2;recomp file.
"""


def bound() -> Bindings:
    return bind(sound(PROGRAM))


def refer(text: str, role: Role, at: int) -> object:
    return bound().resolve(Word(text, Span(0, len(text))), role, at)


def test_results_are_named_after_their_verb_or_by_set_name() -> None:
    assert [(made.name, made.statement) for made in bound().results] == [
        ("profile", 0),
        ("opt", 1),
        ("fast", 4),
        ("opt2", 5),
        ("merge", 6),
        ("recomp", 7),
    ]


def test_the_index_of_a_statement_gives_its_result() -> None:
    bindings = bound()
    assert {index: made.name for index, made in bindings.by_statement.items()}[4] == "fast"
    assert 8 not in bindings.by_statement


def test_an_image_is_referred_to_with_or_without_its_suffix() -> None:
    made = refer("opt", "image", 8)
    assert isinstance(made, Made)
    assert made.statement == 1
    assert refer("opt.img", "image", 8) == made
    assert isinstance(refer("opt.profdata", "image", 8), Diagnostic)


def test_an_optimised_kernel_has_a_profile_of_the_same_name() -> None:
    assert refer("opt", "profile", 8) == refer("opt.profdata", "profile", 8)
    assert refer("opt", "profile", 8) == refer("opt", "image", 8)
    # Each algorithm has its own suffix.
    assert refer("opt", "profile", 8) == refer("opt.afdo", "profile", 8)
    assert isinstance(refer("opt.img", "profile", 8), Diagnostic)
    assert isinstance(refer("other.afdo", "profile", 8), Diagnostic)


def test_builds_are_images_and_plain_is_the_kernel_of_the_last_one() -> None:
    bindings = bind(sound("build /a. build /b O3. set name small. build /c Os. eval plain;build."))
    assert [(made.name, made.roles) for made in bindings.results] == [
        ("build", ("image",)),
        ("build2", ("image",)),
        ("small", ("image",)),
    ]
    assert bindings.resolve(Word("plain", Span(0, 5)), "image", 4) == Plain(3)
    assert bindings.resolve(Word("plain", Span(0, 5)), "image", 1) == Plain(0)


def test_a_word_with_a_slash_is_a_path() -> None:
    assert refer("./opt.img", "image", 8) == HostPath("./opt.img")


def test_plain_is_the_kernel_of_the_last_earlier_statement_that_names_one() -> None:
    assert refer("plain", "image", 8) == Plain(7)
    assert refer("plain.img", "image", 4) == Plain(1)
    assert isinstance(refer("plain", "image", 0), Diagnostic)
