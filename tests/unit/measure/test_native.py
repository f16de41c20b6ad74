"""Native cycles: what the load of kernel code prints, and its comparison."""

from __future__ import annotations

import pytest

from mepof.errors import WorkError
from mepof.measure.native import cycles_in, least, repeats, saving, timed_cases

CONSOLE = """\
Linux version 6.12.117
kload: case=lookup operations=50000 check=ok batch=500 rounds=100 least_cycles=192500 sum=7
[    0.500000] kload: case=tcp operations=50 check=ok batch=50 rounds=1 least_cycles=350000
kload: left out: the cases of ext4, without CONFIG_KLOAD_DISK
kload: done
reboot: Power down
"""


def test_the_shortest_round_is_divided_by_its_operations() -> None:
    assert cycles_in(CONSOLE) == {"lookup": 385.0, "tcp": 7000.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("check=ok batch=50 ", "check=failed error=5 "), "case=tcp .* error=5"),
        (("kload: done", "kload: error: no case tpc"), "no case tpc"),
        (("kload: done", ""), "did not finish .*: reboot: Power down"),
        (("batch=500", "batch=0"), "no cycles of the case lookup"),
        (("least_cycles=350000", ""), "no cycles of the case tcp"),
    ],
)
def test_a_load_that_failed_gives_no_cycles(change: tuple[str, str], message: str) -> None:
    with pytest.raises(WorkError, match=message):
        cycles_in(CONSOLE.replace(*change))


def test_a_kernel_that_prints_nothing_is_an_error() -> None:
    with pytest.raises(WorkError, match="it printed nothing"):
        cycles_in("")


def test_the_fewest_cycles_of_several_runs_count_by_case() -> None:
    assert least([{"a": 3, "b": 5}, {"a": 4, "b": 2}]) == {"a": 3, "b": 2}


def test_a_saving_is_the_percentage_of_fewer_cycles() -> None:
    found = saving([{"a": 100, "b": 100}], [{"a": 50, "b": 98}], ["a", "b"])
    assert found.percent == pytest.approx(30.0)


def test_one_build_of_each_gives_no_verdict() -> None:
    assert saving([{"a": 100}], [{"a": 50}], ["a"]).verdict == "none"


def test_a_saving_beyond_the_spread_of_layouts_is_a_verdict() -> None:
    plain = [{"a": 100.0}, {"a": 101.0}, {"a": 99.5}]
    fewer = saving(plain, [{"a": 80.0}, {"a": 81.0}, {"a": 80.5}], ["a"])
    assert fewer.verdict == "fewer"
    assert fewer.low < fewer.percent < fewer.high
    assert saving([{"a": 80.0}, {"a": 81.0}, {"a": 80.5}], plain, ["a"]).verdict == "more"
    within = [{"a": 98.0}, {"a": 101.5}, {"a": 100.0}]
    assert saving(plain, within, ["a"]).verdict == "none"


def test_the_control_is_not_part_of_the_mean() -> None:
    assert timed_cases({"a": 1, "checksum": 2}) == ("a",)


def test_a_binary_that_differs_from_itself_allows_no_verdict() -> None:
    assert repeats(saving([{"a": 1000}], [{"a": 996}], ["a"]))
    assert not repeats(saving([{"a": 1000}], [{"a": 994}], ["a"]))
    assert not repeats(saving([{"a": 1000}], [{"a": 1006}], ["a"]))
