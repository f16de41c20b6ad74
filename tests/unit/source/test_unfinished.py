"""Trees that are not what they should become, made by the real tools where these are small."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.source.unfinished import unfinished

from .conftest import git


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "linux"
    root.mkdir()
    (root / "Makefile").write_text("VERSION = 6\n")
    return root


def write(tree: Path, name: str, text: str) -> None:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def messages(tree: Path) -> list[str]:
    return [message for message, _ in unfinished(tree)]


def test_a_finished_tree_has_nothing_to_say(tree: Path) -> None:
    write(tree, ".gitattributes", "*.c diff=cpp\n")
    assert unfinished(tree) == ()
    assert unfinished(tree / "none") == ()


@pytest.mark.parametrize("series", ["debian/patches/series", "patches/series"])
def test_a_series_of_quilt_is_applied_as_a_whole_or_noted(tree: Path, series: str) -> None:
    write(tree, series, "# bugs\n\nbugfix/a.patch -p1\nb.patch # of upstream\n")
    (both,) = unfinished(tree)
    assert f"2 of the 2 patches of {series} are not in .pc/applied-patches" in both[0]
    assert "such as bugfix/a.patch" in both[0]
    assert f"`QUILT_PATCHES={Path(series).parent} quilt push -a`" in both[1]
    write(tree, ".pc/applied-patches", "bugfix/a.patch\n")
    assert "1 of the 2 patches" in messages(tree)[0] and "b.patch" in messages(tree)[0]
    write(tree, ".pc/applied-patches", "bugfix/a.patch\nb.patch\n")
    assert unfinished(tree) == ()


def test_what_a_patch_left_is_noted(tree: Path) -> None:
    for name in "abcd":
        write(tree, f"kernel/{name}.c.rej", "@@ -1 +1 @@\n")
    (message,) = messages(tree)
    assert message.endswith("kernel/a.c.rej, kernel/b.c.rej, kernel/c.c.rej and 1 more")


def test_a_submodule_that_is_not_there_is_noted(tree: Path) -> None:
    driver = tree.parent / "driver"
    write(driver, "driver.c", "int driver;\n")
    for each in (driver, tree):
        git(each, "init", "--quiet")
    git(driver, "add", ".")
    git(driver, "commit", "--quiet", "-m", "one")
    git(tree, "-c", "protocol.file.allow=always", "submodule", "add", str(driver), "drivers/v x")
    assert unfinished(tree) == ()
    git(tree, "submodule", "deinit", "--force", "drivers/v x")
    (note,) = unfinished(tree)
    assert note[0] == "submodules of git are not there: drivers/v x"
    assert "git submodule update --init" in note[1]


def test_a_pointer_of_git_lfs_is_noted(tree: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    write(tree, "firmware/a.bin", pointer)
    assert unfinished(tree) == ()
    write(tree, "firmware/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (note,) = unfinished(tree)
    assert note[0] == "git LFS has the content of firmware/a.bin" and "git lfs pull" in note[1]
