from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from mepof.g4.settings import SETTINGS, Value, signed_percent, weight

from .reading import headlines


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("arch", "arm64", "arm64"),
        ("config", "slim", ("slim",)),
        ("config", "slim+android", ("slim", "android")),
        ("config", "./c++/my.config", ("./c++/my.config",)),
        ("config", "slim+android+./a+b.config", ("slim", "android", "./a+b.config")),
        ("config", "/boot/config-6.12+deb13-amd64", ("/boot/config-6.12+deb13-amd64",)),
        ("config", "./a.config+../b.config+/c/d", ("./a.config", "../b.config", "/c/d")),
        ("config", "slim+a/b.config+kunit+./c", ("slim", "a/b.config", "kunit", "./c")),
        ("toolchain", "clang", "clang"),
        ("toolchain", "clang:/opt/clang-r1", "clang:/opt/clang-r1"),
        ("toolchain", "gcc:./x/gcc-14", f"gcc:{Path.cwd()}/x/gcc-14"),
        ("device", "qemu", "qemu"),
        ("seed", "0", 0),
        ("repetitions", "11", (11, 11)),
        ("repetitions", "5-12", (5, 12)),
        ("precision", "0.25", 0.25),
        ("relinked", "0", 0),
        ("without", "pipe,proc", ("pipe", "proc")),
        ("without", "none", ()),
        ("exclude", "kernel/fork.o", ("kernel/fork.o",)),
        ("exclude", "mm/*.c,drivers/gpu/,mm/*.c", ("drivers/gpu/", "mm/*.c")),
        ("exclude", "drivers/**/core.o,fs/[a-f]*", ("drivers/**/core.o", "fs/[a-f]*")),
        ("exclude", "none", ()),
        ("actions", "400", 400),
        ("cpus", "1", 1),
        ("cpus", "8", 8),
        ("decay", "0", Fraction(0)),
        ("decay", "0.5", Fraction(1, 2)),
        ("decay", "1.0", Fraction(1)),
        ("rounds", "5", 5),
        ("base", "none", "none"),
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
    [("relinked", "101"), ("cpus", "0"), ("cpus", "9"), ("actions", "9" * 18), ("seed", "9" * 19)],
)
def test_a_number_out_of_range_is_refused(key: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a whole number from \d to \d+$"):
        SETTINGS[key].read(text)


@pytest.mark.parametrize("text", ["0", "1001", "0-3", "5-4", "5-", "-5", "5-6-7", "a", "5-1001"])
def test_repetitions_are_a_number_or_a_range(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number from 1 to 1000, or a range"):
        SETTINGS["repetitions"].read(text)


@pytest.mark.parametrize("text", ["0", "0.0", "-1", "101", "1e3", "1%", ".5", "\u0663"])
def test_a_precision_is_a_percentage_above_0(text: str) -> None:
    with pytest.raises(ValueError, match="percentage"):
        SETTINGS["precision"].read(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("8", 8.0), ("-1", -1.0), ("+0.5", 0.5), ("-0", 0.0), ("-250.125", -250.125)],
)
def test_a_change_in_percent_has_a_sign(text: str, value: float) -> None:
    assert str(signed_percent(text)) == str(value)


@pytest.mark.parametrize("text", ["1e3", "1%", ".5", "8.", "--1", "- 1", "nan", "1000", "\u0663"])
def test_a_change_is_a_plain_number(text: str) -> None:
    with pytest.raises(ValueError, match="percentage"):
        signed_percent(text)


def test_training_can_leave_out_only_what_is_known() -> None:
    assert headlines("set without pipe,syscal.") == [
        "p.g4:1:18: error: unknown app, case or action `syscal`",
    ]
    assert headlines("set without general,rings,kbench/mix-io,ipc/pipe-4.") == []
    with pytest.raises(ValueError, match="separate names with commas"):
        SETTINGS["without"].read("pipe,,proc")


def test_a_file_cannot_be_relinked() -> None:
    made = "opt /src pgo rand kbench.\n"
    assert headlines(f"set relinked 2.\n{made}eval plain;/a.img.") == []
    assert headlines(f"{made}eval /a.img;plain.\nset relinked 0.\neval /a.img;plain.") == []
    (found,) = headlines("set relinked 1.\neval /a.img;/b.img.")
    assert found == "p.g4:2:6: error: the baseline `/a.img` is a file, which cannot be relinked"


@pytest.mark.parametrize(
    ("verb", "images"), [("eval", "plain;opt"), ("check", "plain;opt"), ("flash", "opt")]
)
def test_images_are_booted_as_the_architecture_that_they_are_built_for(
    verb: str, images: str
) -> None:
    made = "set device phone. set arch arm64. opt /src pgo rand kbench.\n"
    text = f"{verb} {images}."
    assert headlines(f"{made}{text}") == []
    assert headlines(f"{made}set arch x86-64. set arch arm64. {text}") == []
    found = headlines(f"{made}set arch x86-64. build /src.\n{text}")
    assert found == [
        f"p.g4:3:{text.index('opt') + 1}: error: `opt` is an image for arm64, "
        f"and this `{verb}` is for x86-64"
    ]


def test_weights_are_exact() -> None:
    assert weight("0.1") + weight("2") == Fraction(21, 10)


@pytest.mark.parametrize("text", ["0", "0.0", "-1", "1e3", "1/2", ".5", "nan", "٣", "9" * 5000])
def test_a_weight_is_a_positive_decimal(text: str) -> None:
    with pytest.raises(ValueError, match="positive number"):
        weight(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel/fork", r"`kernel/fork` is neither a file \(`kernel/fork.o`\), nor a directory"),
        ("kernel/fork.h", "is neither a file"),
        ("kernel/,", "separate files with commas"),
        ("/usr/src/linux/kernel/", "as a path within the kernel tree"),
        ("../kernel/fork.o", "as a path within the kernel tree"),
        ("kernel//fork.o", "as a path within the kernel tree"),
        ("/", "as a path within the kernel tree"),
        ("kernel/%", "has a character that names of kernel files do not have"),
        ("$(shell x)/", "has a character that names of kernel files do not have"),
        ("kernel/a b.o", "has a character that names of kernel files do not have"),
        ("kernel/f\u00f6rk.o", "has a character that names of kernel files do not have"),
        ("drivers/**core.o", "stands for directories"),
    ],
)
def test_an_exclusion_is_a_file_a_directory_or_a_pattern_in_the_tree(
    text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        SETTINGS["exclude"].read(text)
    (line,) = headlines(f'set exclude "{text}".')
    assert f"invalid exclude `{text}`" in line
