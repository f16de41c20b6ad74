"""A profile of an optimised kernel, in the inlining that an earlier profile has."""

from __future__ import annotations

import pytest

from mepof.errors import InputError
from mepof.profile.reinlining import entries, reinlined
from mepof.profile.sample_tree import parse, render

# A plain kernel: `inner` is inlined into `middle`, which is called.
OLD = """\
outer:500:100
 1: 100
 2: 100 middle:100
middle:3000:100
 1: 100
 4: 100
 5: 20
 3: inner:1000
  1: 100
  2: 50
"""

# An optimised one: everything is inlined into `outer`, and some lines have no instruction left.
NEW = """\
outer:4000:80
 1: 80
 2: middle:3600
  1: 80
  4: 80
  5: 0
  3: inner:900
   1: 80
"""


def restored(new: str, old: str, same_source: bool = True) -> str:
    return render(reinlined(parse(new), parse(old), same_source=same_source))


def test_the_text_form_is_read_and_written_unchanged() -> None:
    text = (
        "f:9:1\n 1: 5\n 1.2: 4 g:3 h:1\n 3: i:2\n  0: 2\n  !CFGChecksum: 7\n"
        " !CFGChecksum: 3\n !Attributes: 1\nstatic.llvm.9:0:0\n"
        # By hashes of names.
        "1234567:9:1\n 1: 5 89:5\n 3: 4567:2\n  1: 2\n"
    )
    assert render(parse(text)) == text


@pytest.mark.parametrize("text", [" 1: 1\n", "f\n", "f:1:1\n what\n", "f:1:1\n   1: 1\n"])
def test_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a line of a text profile"):
        parse(text)


def test_what_was_called_before_is_a_function_of_its_own_again() -> None:
    assert restored(NEW, OLD) == (
        # What is left of it, and the call that was inlined.
        "outer:400:80\n 1: 80\n 2: 80 middle:80\n"
        # What was inlined before stays inlined; a line that ran before and has no instruction any
        # more keeps its share, one that did not run now is zero.
        "middle:3600:80\n 1: 80\n 4: 80\n 5: 0\n 3: inner:900\n  1: 80\n  2: 40\n"
    )


def test_copies_of_several_callers_add_up() -> None:
    new = NEW + NEW.replace("outer", "other")
    old = OLD + "other:9:1\n 1: 1\n"
    found = parse(restored(new, old))
    assert (found["middle"].total, found["middle"].head) == (7200, 160)
    assert found["middle"].lines["4"].count == 160
    assert found["other"].lines["2"].targets == {"middle": 80}


def test_a_copy_stays_where_nothing_else_is_known() -> None:
    # Before, `middle` was inlined everywhere; or `outer` did not run.
    always = OLD.replace("middle:3000:100", "elsewhere:3000:100")
    assert "2: middle:" in restored(NEW, always)
    assert "2: middle:" in restored(NEW, OLD.replace("outer:", "unknown:"))


def test_a_function_has_a_total_as_long_as_its_lines_ran() -> None:
    # All bytes of `outer` were those of the copy.
    new = NEW.replace("outer:4000", "outer:3600")
    assert restored(new, OLD).startswith("outer:160:80\n")


def test_lines_of_another_source_are_not_added_and_sites_may_move() -> None:
    old = OLD.replace(" 3: inner", " 7: inner")
    text = restored(NEW, old, same_source=False)
    assert "  2: 40\n" not in text
    assert " 3: inner:900\n  1: 80\n" in text
    assert " 2: 80 middle:80\n" in text


def test_a_function_whose_control_flow_changed_is_not_completed() -> None:
    new = "f:100:10\n 1: 10\n !CFGChecksum: 1\n"
    same = "f:100:10\n 1: 20\n 2: 20\n !CFGChecksum: 1\n"
    assert " 2: 10\n" in restored(new, same)
    assert restored(new, same.replace("Checksum: 1", "Checksum: 2")) == new


def test_an_inlined_function_without_an_instruction_left_keeps_its_share() -> None:
    new = "f:100:10\n 1: 10\n 2: 0\n 4: 10 g:10\n"
    old = "f:200:20\n 1: 20\n 3: h:40\n  1: 20\n 4: g:40\n  1: 20\n"
    # `g` is called now, and has its counts there.
    expected = "f:120:10\n 1: 10\n 2: 0\n 4: 10 g:10\n 3: h:20\n  1: 10\n"
    assert restored(new, old) == expected


def test_a_loop_of_equal_rounds_changes_nothing() -> None:
    assert restored(OLD, OLD) == OLD


def test_entries_are_the_count_of_the_first_line() -> None:
    of = parse("f:1:0\n 2: 5\n 10: 7\ng:1:0\n 1: h:3\n  4: 3\n 1: i:2\n  1: 2\n 2: 9\nj:0:0\n")
    assert [entries(of[name]) for name in "fgj"] == [5, 5, 0]
