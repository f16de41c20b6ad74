"""The files that a program excludes, by their names in a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.kernel.exclusions import objects, unused

SOURCES = (
    "kernel/fork.c",
    "kernel/exit.c",
    "kernel/sched/core.c",
    "net/ipv4/tcp.c",
    "net/ipv4/tcp_input.c",
    "net/ipv4/udp.c",
    "drivers/tty/defkeymap.c_shipped",
    "arch/x86/entry/entry_64.S",
    "include/linux/fork.h",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in SOURCES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("kernel/fork.o", ["kernel/fork.o"]),
        ("kernel/fork.c", ["kernel/fork.o"]),
        ("kernel/", ["kernel/%"]),
        ("net/ipv4/tcp*.o", ["net/ipv4/tcp.o", "net/ipv4/tcp_input.o"]),
        ("net/ipv4/tcp*", ["net/ipv4/tcp.o", "net/ipv4/tcp_input.o"]),
        ("kernel/*", ["kernel/exit.o", "kernel/fork.o", "kernel/sched/%"]),
        ("kernel/*.c", ["kernel/exit.o", "kernel/fork.o"]),
        ("*/ipv4/", ["net/ipv4/%"]),
        ("**/core.o", ["kernel/sched/core.o"]),
        ("drivers/tty/defkeymap.o", ["drivers/tty/defkeymap.o"]),
    ],
)
def test_files_directories_and_patterns_select_objects(
    tree: Path, pattern: str, found: list[str]
) -> None:
    assert list(objects(tree, [pattern])) == found


def test_what_two_exclusions_select_is_excluded_once(tree: Path) -> None:
    assert objects(tree, ["net/*/tcp.o", "kernel/fork.o", "kernel/f*.o"]) == (
        "kernel/fork.o",
        "net/ipv4/tcp.o",
    )


@pytest.mark.parametrize(
    ("pattern", "remedy"),
    [
        ("kernel/frok.o", "did you mean `kernel/fork.o`?"),
        ("kernl/fork.o", "did you mean `kernel/fork.o`?"),
        ("kernel/schde/", "did you mean `kernel/sched/`?"),
        ("net/ipv5/tcp*", "did you mean `net/ipv4/tcp*`?"),
        ("fs/fork.o", "did you mean `kernel/fork.o`?"),
        ("arch/x86/entry/entry_64.o", "name a file"),
        ("include/", "name a file"),
        ("nothing/like/it*", "name a file"),
    ],
)
def test_an_exclusion_that_matches_nothing_is_refused_with_the_nearest(
    tree: Path, pattern: str, remedy: str
) -> None:
    with pytest.raises(InputError, match="matches no C file of the kernel") as caught:
        objects(tree, ["kernel/", pattern])
    assert f"`{pattern}`" in caught.value.message
    assert (caught.value.remedy or "").startswith(remedy)


def test_exclusions_that_a_configuration_does_not_compile_are_known() -> None:
    compiled = ["kernel/fork.o", "net/ipv4/tcp.o"]
    given = ["kernel/fork.o", "kernel/exit.o", "net/%", "net/ipv4/%", "net/ipv6/%", "fs/%"]
    assert unused(given, compiled) == ("kernel/exit.o", "net/ipv6/%", "fs/%")
