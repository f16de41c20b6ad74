"""What a profile is worth on another source, before a build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import md5
from pathlib import Path

import pytest

from mepof.adapter.judge import Affected, Sampled, judge, sampled_functions
from mepof.errors import InputError

from .conftest import Mepof

READ = "static int helper(void)\n{\n\treturn 1;\n}\nint vfs_read(void)\n{\n\treturn helper();\n}\n"
OTHER = "static int helper(void)\n{\n\treturn 2;\n}\nint tty_open(void)\n{\n\treturn 0;\n}\n"
HEADER = "static inline int get(void)\n{\n\treturn 3;\n}\n"
FILES = {"fs/read.c": READ, "drivers/tty/tty.c": OTHER, "include/linux/get.h": HEADER}

PROFILE = """vfs_read:1000:10
 1: 600
 2: helper:300
  1: 300
tty_open:100:1
 1: 100
"""


def tree(root: Path, changes: Mapping[str, str | None]) -> Path:
    for name, text in {**FILES, **changes}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text)
    return root


SAMPLED = (
    Sampled("vfs_read", None, 50.0),
    Sampled("helper", None, 30.0),
    Sampled("get", None, 15.0),
    Sampled("tty_open", None, 5.0),
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ()),
        ({"fs/read.c": "/* new */\n" + READ.replace("\n\t", "\n\n\t /* why */ ")}, ()),
        (
            {"fs/read.c": READ.replace("return helper()", "return 1 + helper()")},
            (Affected("vfs_read", "fs/read.c", "changed", 50.0),),
        ),
        (
            {"fs/read.c": None, "fs/moved.c": READ.replace("vfs_read", "vfs_get")},
            (
                Affected("vfs_read", "fs/read.c", "gone", 50.0),
                Affected("helper", "fs/read.c", "moved", 30.0),
            ),
        ),
        (
            {"include/linux/get.h": HEADER.replace("3", "4")},
            (Affected("get", "include/linux/get.h", "changed", 15.0),),
        ),
        # Of two static functions of one name, the worse counts where nothing says which ran.
        (
            {"drivers/tty/tty.c": OTHER.replace("2", "9")},
            (Affected("helper", "drivers/tty/tty.c", "changed", 30.0),),
        ),
    ],
)
def test_functions_that_changed_are_found_in_the_files_that_differ(
    tmp_path: Path, changes: dict[str, str | None], expected: tuple[Affected, ...]
) -> None:
    found = judge(SAMPLED, tree(tmp_path / "a", {}), tree_without(tmp_path, changes), "x86")
    assert found.affected == expected
    changed = sum(each.share for each in expected if each.state != "moved")
    assert found.changed_percent == pytest.approx(changed)


def tree_without(root: Path, changes: dict[str, str | None]) -> Path:
    return tree(root / "b", changes)


def test_objects_that_ran_say_which_of_two_functions_has_the_samples(tmp_path: Path) -> None:
    old = tree(tmp_path / "a", {})
    new = tree(tmp_path / "b", {"drivers/tty/tty.c": OTHER.replace("2", "9")})
    assert judge(SAMPLED, old, new, "x86", ("fs/read.o", "drivers/tty/x.o")).affected == ()
    assert len(judge(SAMPLED, old, new, "x86", ("drivers/tty/tty.o",)).affected) == 1
    # A directory in which nothing ran is not looked at.
    assert judge(SAMPLED, old, new, "x86", ("fs/read.o",)).differing == 0


def test_a_profile_that_names_the_source_of_a_static_function_is_taken_at_its_word(
    tmp_path: Path,
) -> None:
    old = tree(tmp_path / "a", {})
    new = tree(tmp_path / "b", {"drivers/tty/tty.c": OTHER.replace("2", "9")})
    for source, count in (("../fs/read.c", 0), ("../drivers/tty/tty.c", 1), ("tty.c", 0)):
        found = judge((Sampled("helper", source, 100.0),), old, new, "x86")
        assert len(found.affected) == count, source


def test_a_static_function_of_a_header_belongs_to_each_file_that_has_it(tmp_path: Path) -> None:
    changed = {"include/linux/get.h": HEADER.replace("3", "4")}
    old, new = tree(tmp_path / "a", {}), tree(tmp_path / "b", changed)
    ran = ("fs/read.o", "drivers/tty/tty.o")
    sampled = [Sampled("get", f"../{name[:-2]}.c", 10.0) for name in ran]
    found = judge(sampled, old, new, "x86", ran)
    assert [each.file for each in found.affected] == ["include/linux/get.h"] * 2
    assert found.units == ("drivers/tty/tty.c", "fs/read.c")
    # A file with a function of that name has it from nowhere else, and not from a header that is
    # not above it.
    tree(old, {"fs/read.c": READ + HEADER})
    tree(new, {"fs/read.c": READ + HEADER})
    for header in ("drivers/usb/get.h", "drivers/tty/get.h"):
        tree(old, {header: HEADER.replace("get", "other")})
        tree(new, {header: HEADER.replace("get", "other").replace("3", "4")})
    assert judge(sampled[:1], old, new, "x86", ran).affected == ()
    other = judge([Sampled("other", "drivers/tty/tty.c", 1.0)], old, new, "x86", ran)
    assert other.affected[0].units == ("drivers/tty/tty.c",)
    assert judge([Sampled("other", "fs/read.c", 1.0)], old, new, "x86", ran).affected == ()


HELPER = READ[: READ.index("int vfs_read")]


@pytest.mark.parametrize(
    ("changes", "state", "units"),
    [
        # The old counts are under the name of the file that it was in.
        ({"fs/write.c": HELPER}, "renamed", ("fs/read.c", "fs/write.c")),
        # It is not known whether the other file is compiled.
        ({"fs/new.c": HELPER}, "renamed", ()),
        # A static function of a header is one of each file that has it.
        ({"fs/read.h": HELPER}, "moved", ()),
        # The other file has a copy of what it was.
        ({"fs/read.c": READ.replace("1", "7"), "fs/write.c": HELPER}, "changed", ("fs/read.c",)),
    ],
)
def test_a_static_function_that_moved_to_another_file_has_another_name(
    tmp_path: Path, changes: dict[str, str | None], state: str, units: tuple[str, ...]
) -> None:
    old = tree(tmp_path / "a", {"fs/write.c": "\n"})
    new = tree(tmp_path / "b", {"fs/read.c": READ.removeprefix(HELPER), **changes})
    sampled = [Sampled("helper", "../fs/read.c", 30.0)]
    found = judge(sampled, old, new, "x86", ("fs/read.o", "fs/write.o"))
    assert [each.state for each in found.affected] == [state]
    assert (found.changed_percent, found.units) == (0.0 if state == "moved" else 30.0, units)
    assert found.unknown_percent == (30.0 if state == "renamed" and not units else 0.0)


def test_files_that_call_a_changed_function_of_a_header_are_known(tmp_path: Path) -> None:
    calls = READ.replace("return helper()", "return helper() + get ()")
    old = tree(tmp_path / "a", {"fs/read.c": calls})
    new = tree(
        tmp_path / "b", {"fs/read.c": calls, "include/linux/get.h": HEADER.replace("3", "4")}
    )
    sampled = [Sampled("vfs_read", None, 50.0), Sampled("tty_open", None, 5.0)]
    found = judge(sampled, old, new, "x86", ("fs/read.o", "drivers/tty/tty.o"))
    # Its own code is as it was, but what is counted in it is not.
    assert (found.affected, found.units) == ((), ("fs/read.c",))
    assert judge(sampled[1:], old, new, "x86", ("fs/read.o", "drivers/tty/tty.o")).units == ()


@pytest.mark.parametrize(
    ("name", "changes", "units"),
    [
        # What changed, in the file that is compiled.
        ("vfs_read", {"fs/read.c": READ.replace("helper()", "7")}, ("fs/read.c",)),
        # In a file that others include.
        ("tick", {"fs/tick.h": "int tick(void)\n{\n\treturn 2;\n}\n"}, ("fs/all.c",)),
        # Where it has gone to, and where it came from.
        (
            "vfs_read",
            {"fs/read.c": "", "fs/all.c": READ.replace("helper()", "7")},
            ("fs/all.c", "fs/read.c"),
        ),
        # With its file.
        ("vfs_read", {"fs/read.c": None}, ()),
        # To a file of which it is not known whether it is compiled.
        ("vfs_read", {"fs/read.c": None, "fs/new.c": READ.replace("helper()", "7")}, ()),
    ],
)
def test_the_files_that_are_compiled_with_a_changed_function_are_known(
    tmp_path: Path, name: str, changes: dict[str, str | None], units: tuple[str, ...]
) -> None:
    beside: dict[str, str | None] = {
        "fs/tick.h": "int tick(void)\n{\n\treturn 1;\n}\n",
        "fs/all.c": '#include <linux/fs.h>\n# include "tick.h"\n',
        "fs/idle.c": '#include "tick.h"\n',
    }
    old, new = tree(tmp_path / "a", beside), tree(tmp_path / "b", {**beside, **changes})
    ran = ("fs/read.o", "fs/all.o")
    found = judge([Sampled(name, None, 30.0)], old, new, "x86", ran)
    assert (found.changed_percent, found.units) == (30.0, units)
    assert found.unknown_percent == (0 if units else 30)
    # Without the objects that ran, nothing says what is compiled.
    assert judge([Sampled(name, None, 30.0)], old, new, "x86").units == ()


def test_other_architectures_and_tools_are_not_looked_at(tmp_path: Path) -> None:
    old = tree(tmp_path / "a", {})
    new = tree(tmp_path / "b", {"fs/read.c": READ})
    for name in ("arch/arm/read.c", "tools/read.c"):
        tree(old, {name: READ})
        tree(new, {name: READ.replace("helper()", "7")})
    assert judge(SAMPLED, old, new, "x86").affected == ()
    assert len(judge(SAMPLED, old, new, "arm").affected) == 1


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.afdo"
    path.write_text(PROFILE)
    return path


def test_what_was_inlined_has_its_own_samples(profile: Path) -> None:
    assert sampled_functions(profile) == (
        Sampled("vfs_read", None, 60.0),
        Sampled("helper", None, 30.0),
        Sampled("tty_open", None, 10.0),
    )


def md5_name(symbol: str) -> str:
    """As LLVM hashes names: the low half of the digest, little endian."""
    return str(int.from_bytes(md5(symbol.encode()).digest()[:8], "little"))


@pytest.mark.parametrize("ran", [None, ("fs/read.o", "drivers/tty/tty.o")])
def test_a_profile_with_md5_names_is_judged_like_one_with_names(
    tmp_path: Path, profile: Path, ran: tuple[str, ...] | None
) -> None:
    hashed = tmp_path / "hashed.afdo"
    text = PROFILE
    for name in ("vfs_read", "helper", "tty_open"):
        text = text.replace(f"{name}:", f"{md5_name(name)}:")
    hashed.write_text(text)
    old = tree(tmp_path / "a", {})
    new = tree(tmp_path / "b", {"fs/read.c": READ.replace("helper()", "7")})
    expected = judge(sampled_functions(profile), old, new, "x86", ran)
    assert expected.changed_percent == pytest.approx(60)
    assert judge(sampled_functions(hashed), old, new, "x86", ran) == expected


@pytest.mark.parametrize("symbol", ["__x64_sys_dup", "__do_sys_dup", "__arm64_sys_dup", "____tick"])
def test_a_hash_is_of_the_symbol_that_a_macro_declares(tmp_path: Path, symbol: str) -> None:
    code = "SYSCALL_DEFINE1(dup, int, fd)\n{\n\treturn 1;\n}\nint tick(void)\n{\n\treturn 1;\n}\n"
    old = tree(tmp_path / "a", {"fs/read.c": code})
    new = tree(tmp_path / "b", {"fs/read.c": code.replace("1;", "2;")})
    named = [Sampled(symbol, None, 30.0)]
    expected = judge(named, old, new, "x86")
    assert expected.changed_percent == 30.0
    hashed = [replace(named[0], name=md5_name(symbol))]
    assert judge(hashed, old, new, "x86") == expected


@pytest.mark.parametrize("text", ["", "vfs_read:0:0\n 1: 0\n", "no profile"])
def test_a_profile_without_samples_is_an_error(tmp_path: Path, text: str) -> None:
    profile = tmp_path / "kernel.afdo"
    profile.write_text(text)
    with pytest.raises(InputError):
        sampled_functions(profile)


def test_a_judgement_says_what_changed_most(tmp_path: Path) -> None:
    old = tree(tmp_path / "a", {})
    new = tree(tmp_path / "b", {"fs/read.c": READ.replace("helper()", "7")})
    text = str(judge(SAMPLED, old, new, "x86"))
    assert text == (
        "50.0 % of samples are in 1 functions that changed: vfs_read of fs/read.c 50.0 %"
    )


def test_the_command_prints_a_table_or_a_document(
    tmp_path: Path, mepof: Mepof, profile: Path
) -> None:
    old = kernel(tree(tmp_path / "a", {}))
    new = kernel(tree(tmp_path / "b", {"fs/read.c": READ.replace("helper()", "7")}))
    shown = mepof("adapt", "judge", profile, old, new)
    assert shown.out == (
        "60.0 % of samples are in functions that changed: 1 of 3\n"
        " 60.00 %  changed  vfs_read  fs/read.c\n"
    )
    document = json.loads(mepof("adapt", "judge", profile, old, new, "--json").out)
    assert document["schema"] == "mepof-adapt-judge/1"
    assert document["changed_percent"] == pytest.approx(60)
    assert document["files"] == {"fs/read.c": pytest.approx(60)}


def test_the_command_warns_of_a_profile_of_another_program(tmp_path: Path, mepof: Mepof) -> None:
    root = kernel(tree(tmp_path / "a", {"kernel/sys.c": "SYSCALL_DEFINE1(umask, int, mask)\n"}))
    profile = tmp_path / "my.afdo"
    profile.write_text("eval_frame:1000:10\n 1: 600\ncall_method:10:1\n 1: 10\nhelper:9:1\n 1: 9\n")
    done = mepof("adapt", "judge", profile, root, root)
    assert done.status == 0
    assert "does not name most of the hottest functions, such as eval_frame, call_m" in done.err
    profile.write_text("__x64_sys_umask:1000:10\n 1: 600\neval_frame:10:1\n 1: 10\n")
    assert mepof("adapt", "judge", profile, root, root).err == ""


def test_the_command_refuses_what_is_not_a_kernel(
    tmp_path: Path, mepof: Mepof, profile: Path
) -> None:
    old = kernel(tree(tmp_path / "a", {}))
    (tmp_path / "empty").mkdir()
    done = mepof("adapt", "judge", profile, old, tmp_path / "empty")
    assert done.status == 2
    assert "is not a kernel source tree" in done.err


def kernel(root: Path) -> Path:
    (root / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n")
    (root / "Kbuild").write_text("obj-y += fs/\n")
    return root
