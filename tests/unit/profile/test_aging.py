"""What an old profile counts beside a new one: the numbers of ``set decay``."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mepof.errors import InputError
from mepof.profile.aging import MIN_SHARE, Aged, Decay, Refreshed, age_counts, renew_samples

HALF = Decay(Fraction(1, 2), same_source=True)

# Lines of their own, a call with a target, an inlined function, and a line that did not run.
OLD = """\
busy:1000:100
 1: 100 callee:60
 2.3: 0
 4: inlined:500
  1: 50
 !Attributes: 1
gone:1000:10
 1: 10
"""
NEW = "busy:6000:9\n 9: 9\n"


def age_samples(old: str, new: str, decay: Decay) -> tuple[str, Aged]:
    """What an old profile counts beside a new one."""
    _, aged, left = renew_samples(new, old, decay)
    return aged, left


def test_the_old_profile_is_scaled_to_a_part_of_the_new_total() -> None:
    aged, left = age_samples(OLD, NEW, HALF)
    # Half of 6000 is one and a half times the old total of 2000.
    assert aged == (
        "busy:1500:150\n 1: 150 callee:90\n 2.3: 0\n 4: inlined:750\n  1: 75\n !Attributes: 1\n"
        "gone:1500:15\n 1: 15\n"
    )
    assert left == Aged(again=1, unseen=1, dropped=0, replaced=0)


@pytest.mark.parametrize("weight", ["1", "0.5", "0.1", "0.333"])
@pytest.mark.parametrize("longer", [1, 1000])
def test_the_decay_is_the_ratio_of_the_totals_however_long_a_round_was(
    weight: str, longer: int
) -> None:
    decay = Decay(Fraction(weight), same_source=True)
    new = f"busy:{60_000 * longer}:9\n 1: 9\n"
    aged, _ = age_samples("a:7000000:1\n 1: 1\nb:3000000:1\n 1: 1\n", new, decay)
    totals = [int(line.split(":")[1]) for line in aged.splitlines() if not line.startswith(" ")]
    # Whole counts are rounded down.
    assert sum(totals) == pytest.approx(float(weight) * 60_000 * longer, abs=2)
    assert totals[0] / totals[1] == pytest.approx(7 / 3, rel=1e-3)


def test_counts_neither_grow_nor_vanish_in_a_loop_of_equal_rounds() -> None:
    """The sum of rounds that all count the same is that count, 1 + decay times."""
    total = 1_000_000
    profile = f"f:{total}:4\n 1: 400000\n 2: 600000\n"
    known = profile
    for _ in range(30):
        aged, _ = age_samples(known, profile, HALF)
        first, second = (int(line.rpartition(" ")[2]) for line in aged.splitlines()[1:])
        known = f"f:{total + total // 2}:4\n 1: {400000 + first}\n 2: {600000 + second}\n"
        assert (first, second) == (200000, 300000)


def test_a_function_that_is_not_seen_again_fades_and_is_dropped_in_the_end() -> None:
    total = 10**9
    known, shares = f"f:{total // 2}:1\n 1: 9\ngone:{total // 2}:1\n 1: 9\n", []
    for _ in range(20):
        aged, left = age_samples(known, f"f:{total}:1\n 1: 9\n", HALF)
        totals = {line.split(":")[0]: int(line.split(":")[1]) for line in aged.splitlines()[::2]}
        if left.dropped:
            break
        shares.append(totals["gone"] / (total + sum(totals.values())))
        known = f"f:{total + totals['f']}:1\n 1: 9\ngone:{totals['gone']}:1\n 1: 9\n"
    # Each round leaves it decay / (1 + decay) of its share.
    assert shares[:3] == pytest.approx([1 / 6, 1 / 18, 1 / 54], rel=1e-6)
    assert "gone" not in totals
    assert shares[-1] > MIN_SHARE / 3
    assert len(shares) == 12  # 1/6 divided by 3 twelve times is below a millionth of the new total


def test_without_weight_nothing_of_the_old_profile_is_left() -> None:
    new, aged, left = renew_samples(NEW, OLD, Decay(Fraction(0), same_source=True))
    assert (new, aged) == (NEW, "")
    assert left == Aged(again=0, unseen=0, dropped=2, replaced=0)


def test_a_count_that_fades_to_nothing_is_unknown_and_not_zero() -> None:
    old = "f:1000:1\n 1: 1000\n 2: 1 g:1\n 3: 0\n 4: h:1\n  1: 1\n"
    aged, _ = age_samples(old, "f:100:1\n 1: 100\n", HALF)
    assert aged == "f:50:0\n 1: 50\n 3: 0\n"


def test_a_target_that_fades_leaves_its_line() -> None:
    aged, _ = age_samples("f:100:1\n 1: 100 g:99 h:1\n", "f:100:1\n 1: 100\n", HALF)
    assert aged == "f:50:0\n 1: 50 g:49\n"


def test_a_function_that_is_only_inlined_by_now_was_seen() -> None:
    _, left = age_samples("g:100:1\n 1: 100\n", "f:100:1\n 1: g:90\n  1: 90\n", HALF)
    assert left == Aged(again=1, unseen=0, dropped=0, replaced=0)


def test_of_another_source_only_functions_that_were_not_seen_again_are_kept() -> None:
    aged, left = age_samples(OLD, NEW, Decay(Fraction(1, 2), same_source=False))
    assert aged == "gone:1500:15\n 1: 15\n"
    assert left == Aged(again=0, unseen=1, dropped=0, replaced=1)


def test_functions_with_checksums_are_kept_for_the_merge_to_compare() -> None:
    old = "f:100:1\n 1: 100\n !CFGChecksum: 7\n"
    aged, left = age_samples(old, old, Decay(Fraction(1, 2), same_source=False))
    assert aged == "f:50:0\n 1: 50\n !CFGChecksum: 7\n"
    assert left.again == 1


def test_a_profile_without_counts_is_refused() -> None:
    for old, new, which in (("f:0:0\n", NEW, "old"), (OLD, "f:0:0\n", "new")):
        with pytest.raises(InputError, match=f"the {which} profile has no counts"):
            age_samples(old, new, HALF)
    with pytest.raises(InputError, match="is not a line of a text profile"):
        age_samples("what\n", NEW, HALF)


def record(name: str, flow: int, *counters: int, values: str = "") -> str:
    lines = [name, "# Func Hash:", flow, "# Num Counters:", len(counters), "# Counter Values:"]
    return "".join(f"{line}\n" for line in (*lines, *counters)) + f"{values}\n"


HEAD = "# IR level Instrumentation Flag\n:ir\n"
VALUES = """\
# Num Value Kinds:
1
# ValueKind = IPVK_IndirectCallTarget:
0
# NumValueSites:
2
1
file.c;callee:40
0
"""


def test_counters_and_the_counts_of_their_values_are_scaled() -> None:
    old = HEAD + record("f.c;f", 7, 60, 40, values=VALUES)
    aged, left = age_counts(old, HEAD + record("f.c;f", 7, 400, 0), HALF)
    assert aged == HEAD + record("f.c;f", 7, 120, 80, values=VALUES.replace(":40", ":80"))
    assert left == Aged(again=1, unseen=0, dropped=0, replaced=0)


def test_traces_of_which_function_ran_when_are_left_out() -> None:
    traces = ":temporal_prof_traces\n# Num Temporal Profile Traces:\n1\n# Weight:\n1\nf,g,\n\n"
    old = HEAD + traces + record("f", 7, 60)
    aged, left = age_counts(old, HEAD + traces + record("f", 7, 60), HALF)
    assert aged == HEAD + record("f", 7, 30)
    assert left == Aged(again=1, unseen=0, dropped=0, replaced=0)


def test_a_function_with_another_control_flow_is_replaced() -> None:
    old = HEAD + record("f", 7, 50) + record("g", 1, 50) + record("never", 1, 0)
    aged, left = age_counts(old, HEAD + record("f", 8, 100) + record("g", 1, 0), HALF)
    assert aged == HEAD + record("g", 1, 25)
    assert left == Aged(again=0, unseen=1, dropped=0, replaced=1)


def test_counters_below_the_limit_are_dropped() -> None:
    old = HEAD + record("f", 7, 10**9) + record("rare", 1, 100)
    aged, left = age_counts(old, HEAD + record("f", 7, 10**9) + record("rare", 1, 0), HALF)
    assert "rare" not in aged
    assert left == Aged(again=1, unseen=0, dropped=1, replaced=0)


FILES = Decay(Fraction(0), same_source=False, part=True)


def telling(times: int = 1) -> str:
    """Functions that did not change, and ran so many times as often."""
    return "".join(record(f"told{i}", 7, 10 * times) for i in range(10))


def test_what_was_not_counted_again_keeps_its_counts_at_the_scale_of_the_new_training() -> None:
    old = HEAD + record("f", 7, 100, 20) + record("a.c;g", 1, 50, values=VALUES)
    old += record("b.c;other", 5, 30) + record("cold", 1, 0)
    new = HEAD + record("f", 7, 300, 60) + record("a.c;g", 1, 150) + telling(3)
    aged, left = age_counts(old + telling(), new, FILES)
    assert aged == HEAD + record("b.c;other", 5, 90) + record("cold", 1, 0)
    assert left == Refreshed(0, unseen=1, dropped=0, replaced=12, scale=Fraction(3), telling=12)
    assert str(left) == (
        "the new training ran 3 times as much as the old one, by 12 functions that both counted, "
        "1 functions that were not counted again are kept, 12 are replaced"
    )


def test_what_ran_does_not_become_cold_by_a_short_training() -> None:
    old = HEAD + record("b.c;other", 5, 1000, 3, 0, values=VALUES)
    old += "".join(record(f"told{i}", 7, 1000) for i in range(10))
    aged, _ = age_counts(old, HEAD + telling(), FILES)
    kept = record("b.c;other", 5, 10, 1, 0, values=VALUES.replace(":40", ":1"))
    assert aged == HEAD + kept


@pytest.mark.parametrize("mark", [";", ":"])
def test_of_files_that_were_counted_again_nothing_old_is_left_beside_the_new(mark: str) -> None:
    a, b = f"a.c{mark}", f"b.c{mark}"
    old = HEAD + record("same", 7, 100) + record(f"{a}flow", 1, 50) + record(f"{a}gone", 1, 9)
    old += record(f"{b}gone", 1, 9) + record("stopped", 3, 5)
    new = HEAD + record("same", 7, 100) + record(f"{a}flow", 2, 10) + record("stopped", 3, 0)
    aged, left = age_counts(old + telling(), new + telling(), FILES)
    assert aged == HEAD + record(f"{b}gone", 1, 9)
    assert (left.unseen, left.dropped, left.replaced) == (1, 1, 13)


def test_a_function_that_is_called_otherwise_does_not_shift_the_scale() -> None:
    old = HEAD + record("f", 7, 100) + record("g", 1, 90) + record("h", 2, 80)
    old += record("b.c;other", 5, 30) + telling()
    new = HEAD + record("f", 7, 200) + record("g", 1, 180) + record("h", 2, 10**9) + telling(2)
    assert age_counts(old, new, FILES)[0] == HEAD + record("b.c;other", 5, 60)


def test_with_a_weight_the_other_files_keep_their_share_of_the_sum() -> None:
    old = HEAD + record("f", 7, 100) + record("b.c;other", 5, 30) + record("a.c;flow", 1, 50)
    new = HEAD + record("f", 7, 200) + record("a.c;flow", 2, 7)
    half = Decay(Fraction(1, 2), same_source=False, part=True)
    aged, left = age_counts(old + telling(), new + telling(2), half)
    # 200 + 100 beside 90, as 100 beside 30 before.
    assert aged == HEAD + record("f", 7, 100) + record("b.c;other", 5, 90) + telling()
    assert left == Refreshed(11, unseen=1, dropped=0, replaced=1, scale=Fraction(2), telling=11)


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (record("f", 8, 100), "0 functions that were counted again are as they were"),
        (record("f", 7, 100), "1 functions .* 10 are needed"),
        (record("f", 7, 100) + telling(), "one function has more than half of the counts"),
    ],
)
def test_what_a_few_functions_say_is_no_scale(new: str, why: str) -> None:
    old = HEAD + record("f", 7, 101) + record("b.c;other", 5, 30) + telling()
    with pytest.raises(InputError, match=f"the scale of the old counts is unknown: {why}"):
        age_counts(old, HEAD + new, FILES)


def test_large_counts_are_said_with_separators() -> None:
    assert str(Aged(again=1234, unseen=5678, dropped=1000, replaced=2000)) == (
        "1,234 functions of the old profile ran again, 5,678 that did not are kept, "
        "1,000 have faded, 2,000 are replaced"
    )
