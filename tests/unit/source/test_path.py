"""Kernel source from directories and tarballs of this machine."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from mepof.errors import InputError, WorkError
from mepof.kernel.source import version_of
from mepof.process import Completed, run
from mepof.source.path import SOURCE
from mepof.source.protocol import Workshop
from mepof.toolchain.protocol import Run

MAKEFILE = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "linux-6.12.117"
    (root / "kernel").mkdir(parents=True)
    (root / "Makefile").write_text(MAKEFILE)
    (root / "Kbuild").write_text("obj-y += kernel/\n")
    (root / "kernel/fork.c").write_text("int fork;\n")
    (root / "kernel/link.c").symlink_to("fork.c")
    return root


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "output"
    path.mkdir()
    return path


def unpack(origin: Path, output: Path, runner: Run = run) -> str:
    """Fetch a path; returns the release."""
    work = output.parent
    workshop = Workshop(work, work, runner, print, threading.Event(), lambda *shown: None)
    SOURCE.fetch(str(origin), {}, output, workshop)
    return str(version_of(output))


def files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir())


def packed(tree: Path, name: str, *options: str) -> Path:
    path = tree.parent / name
    subprocess.run(["tar", *options, "-cf", path, "-C", tree.parent, tree.name], check=True)
    return path


def test_a_directory_is_copied_with_its_links(tree: Path, output: Path) -> None:
    assert unpack(tree, output) == "6.12.117"
    assert files(output) == ["Kbuild", "Makefile", "kernel/fork.c", "kernel/link.c"]
    assert (output / "kernel/link.c").readlink() == Path("fork.c")


def test_what_a_build_left_in_a_directory_is_not_copied(tree: Path, output: Path) -> None:
    for name in (
        *("vmlinux", ".config", ".config.old", "System.map", "Module.symvers", "kernel/fork.o"),
        *("kernel/.fork.o.cmd", "kernel/built-in.a", "kernel/x.ko", ".git/HEAD"),
        *("include/config/auto.conf", "include/generated/autoconf.h"),
        "arch/x86/include/generated/asm/x.h",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "kernel/vmlinux.lds.S").touch()
    (tree / "kernel/configs").mkdir()
    (tree / "kernel/configs/x.config").touch()
    unpack(tree, output)
    assert files(output) == [
        *("Kbuild", "Makefile", "kernel/configs/x.config", "kernel/fork.c", "kernel/link.c"),
        "kernel/vmlinux.lds.S",
    ]


@pytest.mark.parametrize(("name", "option"), [("l.tar", "-h"), ("l.tar.gz", "-z")])
def test_a_tarball_is_unpacked_without_its_top_directory(
    tree: Path, output: Path, name: str, option: str
) -> None:
    assert unpack(packed(tree, name, option), output) == "6.12.117"
    assert "kernel/fork.c" in files(output)


@pytest.mark.parametrize("given", [".", "./linux-6.12.117", "linux-6.12.117 notes"])
def test_a_tarball_may_have_no_top_directory_or_files_beside_it(
    tree: Path, output: Path, given: str
) -> None:
    (tree / "linux-6.12.117").mkdir()
    (tree.parent / "notes").write_text("of its maker")
    base = tree if given == "." else tree.parent
    made = tree.parent / "made.tar"
    subprocess.run(["tar", "-cf", made, "-C", base, *given.split()], check=True)
    assert unpack(made, output) == "6.12.117"
    assert sorted(path.name for path in output.iterdir()) == [
        *("Kbuild", "Makefile", "kernel", "linux-6.12.117")
    ]


def test_a_repository_of_this_machine_is_named_by_a_url(tree: Path) -> None:
    with pytest.raises(InputError, match=r"#tag=v6\.12 does not exist") as caught:
        SOURCE.check(f"{tree}#tag=v6.12")
    assert caught.value.remedy == f"write git+file://{tree}#tag=v6.12"


def test_what_is_not_there_is_an_error(tmp_path: Path, output: Path) -> None:
    with pytest.raises(InputError, match="none does not exist"):
        unpack(tmp_path / "none", output)


@pytest.mark.parametrize("missing", ["Kbuild", "Makefile"])
@pytest.mark.parametrize("as_tarball", [False, True])
def test_a_tree_that_is_not_a_kernel_is_an_error_that_names_what_was_given(
    tree: Path, output: Path, missing: str, as_tarball: bool
) -> None:
    (tree / missing).unlink()
    given = packed(tree, "given.tar") if as_tarball else tree
    with pytest.raises(InputError, match=f"has no {missing}") as caught:
        unpack(given, output)
    assert caught.value.message.startswith(str(given))


def test_a_file_that_is_not_a_tarball_is_an_error_with_its_reason(
    tmp_path: Path, output: Path
) -> None:
    garbage = tmp_path / "linux.tar.xz"
    garbage.write_bytes(b"not a tarball" * 99)
    with pytest.raises(InputError, match=r"linux\.tar\.xz cannot be unpacked: \S+"):
        unpack(garbage, output)


def test_a_tarball_that_is_cut_off_is_an_error(tree: Path, output: Path) -> None:
    whole = packed(tree, "whole.tar.gz", "-z")
    cut = tree.parent / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be unpacked"):
        unpack(cut, output)


def test_a_full_disk_is_not_attributed_to_the_tarball(tree: Path, output: Path) -> None:
    def full(argv: object, check: bool) -> Completed:
        text = f"tar: fork.c: Cannot write: {os.strerror(errno.ENOSPC)}\ntar: Exiting"
        return Completed((), 2, text)

    with pytest.raises(WorkError, match="No space left"):
        unpack(packed(tree, "l.tar"), output, full)


def test_a_full_disk_while_copying_says_so(
    tree: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> None:
        why = f"[Errno 28] {os.strerror(errno.ENOSPC)}"
        raise shutil.Error([(str(tree / "Kbuild"), str(output / "Kbuild"), why)])

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(OSError, match="No space left") as caught:
        unpack(tree, output)
    assert caught.value.errno == errno.ENOSPC


def test_a_tree_that_cannot_be_copied_is_an_error_that_names_the_file(
    tree: Path, output: Path
) -> None:
    os.mkfifo(tree / "kernel/pipe")
    with pytest.raises(InputError, match=r"kernel/pipe. cannot be copied|kernel/pipe cannot be"):
        unpack(tree, output)
