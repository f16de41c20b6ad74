"""Kernel source from directories, tarballs and Debian's packages."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.kernel import source
from mepof.process import Completed

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


def files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir())


def packed(tree: Path, name: str, *options: str) -> Path:
    path = tree.parent / name
    subprocess.run(["tar", *options, "-cf", path, "-C", tree.parent, tree.name], check=True)
    return path


def test_a_directory_is_copied_with_its_links(tree: Path, output: Path) -> None:
    assert str(source.unpack(tree, output)) == "6.12.117"
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
    source.unpack(tree, output)
    assert files(output) == [
        *("Kbuild", "Makefile", "kernel/configs/x.config", "kernel/fork.c", "kernel/link.c"),
        "kernel/vmlinux.lds.S",
    ]


@pytest.mark.parametrize(("name", "option"), [("l.tar", "-h"), ("l.tar.gz", "-z")])
def test_a_tarball_is_unpacked_without_its_top_directory(
    tree: Path, output: Path, name: str, option: str
) -> None:
    assert str(source.unpack(packed(tree, name, option), output)) == "6.12.117"
    assert "kernel/fork.c" in files(output)


def test_what_is_not_there_is_an_error(tmp_path: Path, output: Path) -> None:
    with pytest.raises(InputError, match="none does not exist"):
        source.unpack(tmp_path / "none", output)


@pytest.mark.parametrize("missing", ["Kbuild", "Makefile"])
@pytest.mark.parametrize("as_tarball", [False, True])
def test_a_tree_that_is_not_a_kernel_is_an_error_that_names_what_was_given(
    tree: Path, output: Path, missing: str, as_tarball: bool
) -> None:
    (tree / missing).unlink()
    given = packed(tree, "given.tar") if as_tarball else tree
    with pytest.raises(InputError, match=f"has no {missing}") as caught:
        source.unpack(given, output)
    assert caught.value.message.startswith(str(given))


@pytest.mark.parametrize("text", ["", "VERSION = six\n", "VERSION = 6\nPATCHLEVEL = 12\n"])
def test_a_makefile_without_a_version_is_not_a_kernels(tree: Path, text: str) -> None:
    (tree / "Makefile").write_text(text)
    with pytest.raises(InputError, match="its Makefile does not state a version"):
        source.version_of(tree)


def test_a_file_that_is_not_a_tarball_is_an_error_with_its_reason(
    tmp_path: Path, output: Path
) -> None:
    garbage = tmp_path / "linux.tar.xz"
    garbage.write_bytes(b"not a tarball" * 99)
    with pytest.raises(InputError, match=r"linux\.tar\.xz cannot be unpacked: \S+"):
        source.unpack(garbage, output)


def test_a_tarball_that_is_cut_off_is_an_error(tree: Path, output: Path) -> None:
    whole = packed(tree, "whole.tar.gz", "-z")
    cut = tree.parent / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be unpacked"):
        source.unpack(cut, output)


def test_a_full_disk_is_not_attributed_to_the_tarball(tree: Path, output: Path) -> None:
    def full(argv: object, check: bool) -> Completed:
        text = f"tar: fork.c: Cannot write: {os.strerror(errno.ENOSPC)}\ntar: Exiting"
        return Completed((), 2, text)

    with pytest.raises(WorkError, match="No space left"):
        source.unpack(packed(tree, "l.tar"), output, full)


def test_a_full_disk_while_copying_says_so(
    tree: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> None:
        why = f"[Errno 28] {os.strerror(errno.ENOSPC)}"
        raise shutil.Error([(str(tree / "Kbuild"), str(output / "Kbuild"), why)])

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(OSError, match="No space left") as caught:
        source.unpack(tree, output)
    assert caught.value.errno == errno.ENOSPC


def test_a_tree_that_cannot_be_copied_is_an_error_that_names_the_file(
    tree: Path, output: Path
) -> None:
    os.mkfifo(tree / "kernel/pipe")
    with pytest.raises(InputError, match=r"kernel/pipe. cannot be copied|kernel/pipe cannot be"):
        source.unpack(tree, output)


@pytest.mark.parametrize(
    "spec", ["debian:linux-image-6.12", "debian:", "debian:linux-source-6.12; rm", "debian:linux"]
)
def test_only_packages_of_kernel_source_are_taken(spec: str) -> None:
    with pytest.raises(InputError, match="is not a Debian kernel source package"):
        source.debian_package(spec)


def test_a_path_is_not_a_package() -> None:
    assert source.debian_package("/usr/src/linux") is None
    assert source.debian_package("debian:linux-source-6.12") == "linux-source-6.12"


def test_the_tarball_of_a_package_is_found_or_the_package_is_to_be_installed(
    tmp_path: Path,
) -> None:
    with pytest.raises(EnvironmentLack) as caught:
        source.debian_tarball("linux-source-6.12", tmp_path)
    assert caught.value.remedy == "apt-get install linux-source-6.12"
    (tmp_path / "linux-source-6.12.tar.xz").touch()
    assert source.debian_tarball("linux-source-6.12", tmp_path).name == "linux-source-6.12.tar.xz"


def test_releases_are_ordered_by_number_not_by_text() -> None:
    version = source.KernelVersion(6, 12, 3)
    assert version.at_least(6, 9) and version.at_least(6, 12) and version.at_least(5, 99)
    assert not version.at_least(6, 13) and not version.at_least(7, 0)
