"""Kernel source from directories and tarballs of this machine."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.kernel.source import version_of
from mepof.process import Completed, run
from mepof.source.directory import taken
from mepof.source.path import SOURCE
from mepof.source.protocol import Workshop
from mepof.toolchain.protocol import Run

from .conftest import git

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


def unpack(
    origin: Path, output: Path, runner: Run = run, note: Callable[[str], None] = print
) -> str:
    """Fetch a path; returns the release."""
    work = output.parent
    workshop = Workshop(work, work, runner, note, threading.Event(), lambda *shown: None)
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


def identity(tree: Path) -> Mapping[str, str]:
    return SOURCE.identity(str(tree), {})


@pytest.fixture
def vendor(tree: Path) -> Path:
    """A directory beside the tree, to which the tree's link ``techpack`` points."""
    root = tree.parent / "vendor"
    (root / "audio").mkdir(parents=True)
    (root / "Kconfig").write_text("config AUDIO\n")
    (root / "audio/one.c").write_text("int one;\n")
    (root / "audio/two.c").symlink_to("one.c")
    (root / "fork.c").symlink_to(tree / "kernel/fork.c")
    (tree / "techpack").symlink_to("../vendor")
    (tree / "kernel/vendor.c").symlink_to("../../vendor/audio/two.c")
    return root


def test_what_links_out_of_a_directory_point_to_is_copied(
    tree: Path, vendor: Path, output: Path
) -> None:
    unpack(tree, output)
    assert not any((output / name).is_symlink() for name in ("techpack", "kernel/vendor.c"))
    assert (output / "techpack/Kconfig").read_text() == "config AUDIO\n"
    assert (output / "kernel/vendor.c").read_text() == "int one;\n"
    assert (output / "techpack/audio/two.c").readlink() == Path("one.c")
    # And back into the tree.
    assert (output / "techpack/fork.c").readlink() == Path("../kernel/fork.c")


def test_a_link_behind_a_link_out_of_a_directory_is_followed_too(
    tree: Path, vendor: Path, output: Path
) -> None:
    further = tree.parent / "further"
    further.mkdir()
    (further / "x.c").touch()
    (vendor / "video").symlink_to(further)
    (further / "audio").symlink_to("../vendor/audio")
    unpack(tree, output)
    assert (output / "techpack/video/x.c").is_file()
    assert (output / "techpack/video/audio").readlink() == Path("../audio")


def change_content(vendor: Path) -> None:
    (vendor / "audio/one.c").write_text("int two;\n")


def change_executable(vendor: Path) -> None:
    (vendor / "Kconfig").chmod(0o755)


def add_file(vendor: Path) -> None:
    (vendor / "new").touch()


@pytest.mark.parametrize("change", [change_content, change_executable, add_file])
def test_what_links_out_of_a_directory_point_to_counts(
    tree: Path, vendor: Path, change: Callable[[Path], None]
) -> None:
    before = identity(tree)
    assert before == identity(tree) != {}
    change(vendor)
    assert identity(tree) != before


def test_links_to_the_tree_itself_stay_links_and_lead_into_the_copy(
    tree: Path, output: Path
) -> None:
    (tree / "out/x86").mkdir(parents=True)
    (tree / "out/x86/source").symlink_to(tree)  # as kbuild leaves it
    (tree / "kernel/back.c").symlink_to(f"../../{tree.name}/kernel/fork.c")
    assert identity(tree) == {}
    unpack(tree, output)
    assert (output / "out/x86/source").readlink() == Path("../..")
    assert (output / "kernel/back.c").readlink() == Path("fork.c")


@pytest.mark.parametrize("target", ["../none", "/dev/null"])
def test_a_link_to_nothing_or_to_a_device_stays_a_link(
    tree: Path, output: Path, target: str
) -> None:
    (tree / "kernel/x").symlink_to(target)
    assert identity(tree) == {}
    unpack(tree, output)
    assert (output / "kernel/x").readlink() == Path(target)


@pytest.mark.parametrize("target", ["/", "..", "../.."])
def test_a_link_to_a_directory_around_the_tree_is_refused(tree: Path, target: str) -> None:
    (tree / "up").symlink_to(target)
    with pytest.raises(InputError, match=rf"up points to /.*, which contains {tree} itself"):
        identity(tree)


def test_a_loop_of_directories_outside_of_the_tree_is_refused(tree: Path, vendor: Path) -> None:
    (vendor.parent / "loop").mkdir()
    (vendor.parent / "loop/inner").mkdir()
    (tree / "inner").symlink_to("../loop/inner")
    (vendor.parent / "loop/inner/up").symlink_to("..")
    with pytest.raises(InputError, match=r"loop/inner/up points to .*/loop, which contains"):
        identity(tree)


def test_a_loop_of_links_out_of_the_tree_is_refused(tree: Path) -> None:
    (tree / "loop").symlink_to(f"../{tree.name}/loop")
    with pytest.raises(InputError, match=r"loop cannot be read: Too many levels of symbolic"):
        identity(tree)


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
    notes: list[str] = []
    unpack(tree, output, note=notes.append)
    assert notes == ["left out 4 file(s) that look built, such as kernel/built-in.a"]
    assert identity(tree) == {}
    assert files(output) == [
        *("Kbuild", "Makefile", "kernel/configs/x.config", "kernel/fork.c", "kernel/link.c"),
        "kernel/vmlinux.lds.S",
    ]


def test_a_view_has_what_a_copy_has_but_what_is_not_read(
    tree: Path, vendor: Path, output: Path
) -> None:
    for name in ("fs/ext4/inode.c", "fs/Kconfig", "net/core/dev.o", "scripts/kconfig/conf.c"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    (tree / "fs/x.c").mkdir()
    view = output.with_name("view")
    view.mkdir()
    unpack(tree, output)
    taken(tree).link(view, re.compile(r"(?!scripts/).*\.c"))
    assert set(files(output)) - set(files(view)) == {
        *("fs/ext4/inode.c", "kernel/fork.c", "kernel/link.c", "kernel/vendor.c"),
        *("techpack/audio/one.c", "techpack/audio/two.c", "techpack/fork.c"),
    }
    assert set(files(view)) < set(files(output))
    for path in (each for each in view.rglob("*") if each.is_dir()):
        (path / "written").touch()
    assert not any(tree.rglob("written")) and not any(vendor.rglob("written"))


def test_objects_that_git_tracks_are_copied(tree: Path, output: Path) -> None:
    names = ("kernel/blob.o", "kernel/lib.a", "kernel/n\u00e4me.ko", "kernel/fork.o", ".config")
    for name in names:
        (tree / name).touch()
    git(tree, "init", "--quiet")
    git(tree, "add", "--force", *names[:3], ".config")
    notes: list[str] = []
    unpack(tree, output, note=notes.append)
    assert {*names} & {*files(output)} == {*names[:3]}
    assert notes == ["left out 1 file(s) that look built, such as kernel/fork.o"]
    before = identity(tree)
    git(tree, "add", "--force", "kernel/fork.o")
    assert before != identity(tree) != {}


def test_objects_of_a_checkout_of_another_user_are_copied(
    tree: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "kernel/blob.o").touch()
    git(tree, "init", "--quiet")
    git(tree, "add", "--force", "kernel/blob.o")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    unpack(tree, output)
    assert "kernel/blob.o" in files(output)


@pytest.mark.parametrize("gone", ["gitdir: /nowhere", ""])
def test_a_checkout_that_git_cannot_read_is_an_error(tree: Path, output: Path, gone: str) -> None:
    (tree / "kernel/blob.o").touch()
    (tree / ".git").write_text(gone)
    with pytest.raises(
        InputError, match=r"git cannot tell which objects of .* sources: "
    ) as caught:
        unpack(tree, output)
    assert "mount what its .git names" in (caught.value.remedy or "")
    (tree / ".git").unlink()
    unpack(tree, output)


def test_objects_behind_a_link_are_copied_if_the_checkout_there_tracks_them(
    tree: Path, vendor: Path, output: Path
) -> None:
    for name in ("blob.o", "left.o"):
        (vendor / name).touch()
    git(vendor, "init", "--quiet")
    git(vendor, "add", "blob.o")
    unpack(tree, output)
    assert (output / "techpack/blob.o").is_file()
    assert not (output / "techpack/left.o").exists()


GENERATED = (
    *("arch/x86/boot/voffset.h", "arch/x86/boot/zoffset.h"),
    *("certs/signing_key.pem", "certs/signing_key.x509", "certs/x509.genkey"),
    *(".version", ".tmp_vmlinux.kallsyms1", "vmlinux.unstripped", "vmlinux.symvers"),
    *("modules.builtin.modinfo", "arch/x86/boot/bzImage", "arch/arm64/boot/Image.gz"),
    *("arch/x86/boot/compressed/vmlinux.bin.zst", "arch/x86/boot/compressed/piggy.S"),
    *("arch/arm64/kernel/vdso/vdso.so.dbg", "arch/x86/entry/vdso/vdso64.so"),
)
KEPT = (
    *("arch/powerpc/boot/zImage.lds.S", "arch/arm/boot/compressed/piggy.S"),
    *("arch/x86/boot/compressed/vmlinux.lds.S", "arch/x86/realmode/rm/realmode.lds.S"),
    *("arch/arm64/kernel/vdso/vdso.lds.S", "arch/arm/boot/compressed/vmlinux.lds.S"),
    *("kernel/module/version.c", "scripts/module.lds.S"),
    "arch/x86/boot/cpuflags.h",
    "certs/default_x509.genkey",
    "certs/my_key.pem",
)


@pytest.fixture
def built(tree: Path) -> Path:
    """The tree with what kbuild writes beside the source, and names like it."""
    for name in (*GENERATED, *KEPT):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    return tree


@pytest.mark.parametrize("is_packed", [False, True])
def test_keys_and_headers_that_kbuild_wrote_are_left_out(
    built: Path, output: Path, is_packed: bool
) -> None:
    notes: list[str] = []
    unpack(packed(built, "l.tar") if is_packed else built, output, note=notes.append)
    assert {*GENERATED, *KEPT} & {*files(output)} == {*KEPT}
    count = len(GENERATED)
    assert notes == [f"left out {count} file(s) that look built, such as .tmp_vmlinux.kallsyms1"]


def test_generated_headers_that_git_tracks_are_copied(built: Path, output: Path) -> None:
    git(built, "init", "--quiet")
    git(built, "add", GENERATED[0])
    unpack(built, output)
    assert {*GENERATED} & {*files(output)} == {GENERATED[0]}


def test_what_is_left_out_between_the_sources_counts(tree: Path, built: Path) -> None:
    assert identity(built).keys() == {"generated files"}
    for name in GENERATED:
        (tree / name).unlink()
    assert identity(tree) == {}


def test_nothing_is_removed_behind_a_link_of_a_tarball(tree: Path, output: Path) -> None:
    key = tree.parent / "mine/signing_key.pem"
    key.parent.mkdir()
    key.touch()
    (tree / "certs").symlink_to(key.parent)
    unpack(packed(tree, "l.tar"), output)
    assert key.exists()


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


@pytest.mark.parametrize("ref", ["tag=v6.12", "v6.12"])
def test_a_repository_of_this_machine_is_named_by_a_url(tree: Path, ref: str) -> None:
    with pytest.raises(InputError, match=rf"#{ref} does not exist") as caught:
        SOURCE.check(f"{tree}#{ref}")
    assert caught.value.remedy == f"write git+file://{tree}#{ref}"


def test_a_bare_repository_is_named_by_a_url(tmp_path: Path) -> None:
    bare = tmp_path / "linux.git"
    subprocess.run(["git", "init", "--quiet", "--bare", bare], check=True)
    with pytest.raises(InputError, match="is a bare git repository") as caught:
        SOURCE.check(str(bare))
    assert caught.value.remedy == f"write git+file://{bare}#tag=NAME"


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


@pytest.mark.parametrize(
    ("name", "data", "what", "command"),
    [
        ("linux.zip", b"PK\x03\x04rest", "a zip archive", "unzip"),
        ("linux.bundle", b"# v2 git bundle\nrest", "a git bundle", "git clone"),
        ("linux.tar.lz4", b"\x04\x22\x4d\x18rest", "compressed by lz4", "tar -I lz4 -xf"),
        ("kernel.src.rpm", b"\xed\xab\xee\xdb\x03\x00\x00\x01", "a package of rpm", "rpm -i"),
        (
            "linux.dsc",
            b"Format: 3.0 (quilt)\n",
            "description of a source package",
            "dpkg-source -x",
        ),
        ("my.config", b"CONFIG_A=y\n", "neither a kernel source tree nor a tarball", ""),
    ],
)
def test_what_is_given_in_place_of_a_tarball_is_named_with_what_unpacks_it(
    tmp_path: Path, name: str, data: bytes, what: str, command: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=what) as caught:
        SOURCE.check(str(tmp_path / name))
    expected = f"unpack it by `{command} {tmp_path / name}`" if command else "None"
    assert str(caught.value.remedy).startswith(expected)


@pytest.mark.parametrize("below", ["common", "kernel/msm-5.10"])
def test_the_kernel_in_a_workspace_is_to_be_named(tree: Path, below: str) -> None:
    workspace = tree.parent / "android"
    (workspace / below).parent.mkdir(parents=True)
    tree.rename(workspace / below)
    (workspace / "aaa").mkdir()
    (workspace / "aaa/Kbuild").touch()  # an external module's
    with pytest.raises(InputError, match="android is not a kernel source tree") as caught:
        SOURCE.check(str(workspace))
    assert caught.value.remedy == f"name {workspace / below}"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("PKGBUILD", "unpack it by `makepkg --nobuild --nodeps` there, and name"),
        ("linux_6.12.dsc", "unpack it by `dpkg-source -x {file}`, and name"),
        ("kernel.spec", "unpack it by `rpmbuild -bp --nodeps {file}`, and name"),
        (".git", "check the kernel out; or name its commit: git+file://{parent}#branch=NAME"),
        ("README", None),
    ],
)
def test_what_makes_a_tree_of_a_directory_is_the_remedy(
    tmp_path: Path, name: str, command: str | None
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InputError, match="it has no Kbuild file") as caught:
        SOURCE.check(str(tmp_path))
    expected = command and command.format(file=tmp_path / name, parent=tmp_path)
    assert expected is None or str(caught.value.remedy).startswith(expected)
    assert (caught.value.remedy is None) == (command is None)


def test_a_file_that_is_not_a_tarball_is_an_error_with_its_reason(
    tmp_path: Path, output: Path
) -> None:
    garbage = tmp_path / "linux.tar.xz"
    garbage.write_bytes(b"not a tarball" * 99)
    with pytest.raises(InputError, match=r"linux\.tar\.xz cannot be unpacked: \S+"):
        unpack(garbage, output)


def test_a_tarball_without_what_decompresses_it_names_the_package(tree: Path, output: Path) -> None:
    def runner(argv: Sequence[str], **options: object) -> Completed:
        said = "tar (child): xz: Cannot exec: No such file or directory\ntar (child): Error is not"
        return Completed((), 2, said)

    with pytest.raises(EnvironmentLack, match="is unpacked by xz: not installed") as caught:
        unpack(packed(tree, "linux.tar"), output, runner)
    assert caught.value.remedy == "apt-get install xz-utils"


def test_a_tarball_that_is_cut_off_is_an_error(tree: Path, output: Path) -> None:
    whole = packed(tree, "whole.tar.gz", "-z")
    cut = tree.parent / "cut.tar.gz"
    cut.write_bytes(whole.read_bytes()[:100])
    with pytest.raises(InputError, match=r"cut\.tar\.gz cannot be unpacked: \S+"):
        unpack(cut, output)


def test_a_full_disk_is_not_attributed_to_the_tarball(tree: Path, output: Path) -> None:
    def full(argv: object, env: dict[str, str], check: bool) -> Completed:
        # In another language it would not be understood.
        assert env["LC_ALL"] == "C"
        text = f"tar: fork.c: Cannot write: {os.strerror(errno.ENOSPC)}\ntar: Exiting"
        return Completed((), 2, text)

    with pytest.raises(WorkError, match="No space left"):
        unpack(packed(tree, "l.tar"), output, full)


def test_a_tarball_whose_directories_cannot_be_written_is_unpacked(
    tree: Path, output: Path
) -> None:
    for directory in (tree / "kernel", tree):
        directory.chmod(0o555)
    unpack(packed(tree, "l.tar"), output)
    assert (output / "kernel").stat().st_mode & 0o700 == 0o700
    assert (output / "Makefile").is_file()


def test_a_full_disk_while_copying_says_so(
    tree: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(OSError, match="No space left") as caught:
        unpack(tree, output)
    assert caught.value.errno == errno.ENOSPC


def test_a_special_file_is_refused_before_a_run(tree: Path) -> None:
    os.mkfifo(tree / "kernel/pipe")
    with pytest.raises(InputError, match=r"kernel/pipe cannot be copied: it is a special file"):
        identity(tree)
