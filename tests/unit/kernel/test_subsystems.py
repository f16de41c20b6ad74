"""Subsystems by their names, and paths, as sets of objects."""

from __future__ import annotations

import pytest

from mepof.errors import InputError
from mepof.g4.instrumentation import tree_path
from mepof.kernel.subsystems import check_place, matching, subsystems

OBJECTS = (
    "arch/x86/mm/fault.o",
    "drivers/a/b/core.o",
    "fs/ext4/inode.o",
    "fs/pipe.o",
    "kernel/fork.o",
    "kernel/futex/core.o",
    "kernel/sched/core.o",
    "mm/slab_common.o",
    "mm/slub.o",
)


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("sched", {"kernel/sched/core.o"}),
        ("mm", {"arch/x86/mm/fault.o", "mm/slab_common.o", "mm/slub.o"}),
        ("fs", {"fs/ext4/inode.o", "fs/pipe.o"}),
        ("vfs", {"fs/pipe.o"}),
        ("ipc", {"fs/pipe.o"}),
        ("futex", {"kernel/futex/core.o"}),
        ("binder", set()),
        ("kernel/", {"kernel/fork.o", "kernel/futex/core.o", "kernel/sched/core.o"}),
        ("kernel/f*", {"kernel/fork.o"}),
        ("kernel/fork.c", {"kernel/fork.o"}),
        ("kernel/fork.o", {"kernel/fork.o"}),
        ("kernel/for.c", set()),
        ("mm/sl?b.o", {"mm/slub.o"}),
        ("mm/[!x]lub.c", {"mm/slub.o"}),
        ("**/core.o", {"drivers/a/b/core.o", "kernel/futex/core.o", "kernel/sched/core.o"}),
        ("drivers/**/core.c", {"drivers/a/b/core.o"}),
        ("slub.o", set()),
    ],
)
def test_a_place_is_a_set_of_objects(place: str, names: set[str]) -> None:
    assert matching(place, OBJECTS) == names


@pytest.mark.parametrize("name", subsystems())
def test_a_subsystem_has_paths_that_programs_can_write(name: str) -> None:
    assert name.replace("_", "").isalnum()
    for path in subsystems()[name].paths:
        tree_path(path)


def test_the_names_that_people_use_are_there() -> None:
    assert {"sched", "mm", "fs", "net", "ipc", "binder", "block"} <= set(subsystems())


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("kernel/frok.c", "did you mean `kernel/fork.o`?"),
        ("kernal/sched/", "did you mean `kernel/sched/`?"),
        ("zzz/", "name what its configuration compiles"),
    ],
)
def test_a_path_that_matches_nothing_names_the_nearest(place: str, remedy: str) -> None:
    with pytest.raises(InputError, match="compiles no file that matches") as raised:
        check_place(place, OBJECTS)
    assert raised.value.remedy == remedy


def test_a_subsystem_that_is_not_compiled_is_no_mistake() -> None:
    check_place("binder", OBJECTS)
    check_place("mm/", OBJECTS)
