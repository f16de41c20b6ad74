from __future__ import annotations

from fractions import Fraction

import pytest

from mepof.g4.settings import SETTINGS, Value, weight

from .reading import headlines


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("arch", "arm64", "arm64"),
        ("config", "slim", ("slim",)),
        ("config", "slim+android", ("slim", "android")),
        ("config", "./c++/my.config", ("./c++/my.config",)),
        ("toolchain", "clang", "clang"),
        ("device", "qemu", "qemu"),
        ("seed", "0", 0),
        ("repetitions", "11", 11),
        ("actions", "400", 400),
        ("budget", "90s", 90),
        ("budget", "30m", 1800),
        ("budget", "2h", 7200),
    ],
)
def test_a_setting_has_a_typed_value(key: str, text: str, value: Value) -> None:
    assert SETTINGS[key].read(text) == value
    assert headlines(f"set {key} {text}.") == []


@pytest.mark.parametrize("text", ["0s", "-1s", "1.5h", "h", "10", "1d", "٣s", ""])
def test_a_budget_is_a_positive_whole_number_with_a_unit(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        SETTINGS["budget"].read(text)


@pytest.mark.parametrize(
    ("key", "text"),
    [("repetitions", "0"), ("repetitions", "1001"), ("actions", "9" * 18), ("seed", "9" * 19)],
)
def test_a_number_that_nothing_could_work_off_is_refused(key: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"a whole number from \d to \d+ is expected"):
        SETTINGS[key].read(text)


def test_weights_are_exact() -> None:
    assert weight("0.1") + weight("2") == Fraction(21, 10)


@pytest.mark.parametrize("text", ["0", "0.0", "-1", "1e3", "1/2", ".5", "nan", "٣", "9" * 5000])
def test_a_weight_is_a_positive_decimal(text: str) -> None:
    with pytest.raises(ValueError, match="positive number"):
        weight(text)
