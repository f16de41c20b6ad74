"""A package for pacman, which reads, installs, upgrades, checks and removes what is written."""

from __future__ import annotations

import gzip
import os
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mepof import arch
from mepof.errors import EnvironmentLack, InputError
from mepof.package.contents import headers_beside
from mepof.package.pkg import FORMAT, package_name, package_version
from mepof.package.protocol import Kernel

from .kernels import (
    archive,
    as_root,
    check_headers,
    kernel,
    package,
    with_device_trees,
    with_headers,
)

BELOW = "usr/lib/modules/6.12.95-mepof-opt"


def bsdtar(*words: str | Path) -> bytes:
    return subprocess.run(["bsdtar", *words], check=True, capture_output=True).stdout


def fields(made: Path, name: str = ".PKGINFO") -> list[str]:
    return bsdtar("-xOf", made, name).decode().splitlines()


class Pacman:
    """pacman with a root, a database and a configuration of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("db", "cache", "hooks"):
            (root / name).mkdir(parents=True)
        settings = "[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\n"
        (root / "pacman.conf").write_text(settings)

    def __call__(self, *words: str | Path) -> str:
        directories = {"db": "--dbpath", "cache": "--cachedir", "hooks": "--hookdir"}
        return as_root(
            *("pacman", "--noconfirm", "--root", self.root, "--logfile", self.root / "log"),
            *("--config", self.root / "pacman.conf"),
            *(word for name, option in directories.items() for word in (option, self.root / name)),
            *words,
        )

    def installs(self, *packages: Path) -> list[str]:
        """What is installed after these are."""
        self("-U", "--nodeps", "--nodeps", *packages)
        return self("-Q").splitlines()


@pytest.fixture
def pacman(tmp_path: Path) -> Pacman:
    return Pacman(tmp_path / "machine")


def both(root: Path, made: Kernel) -> tuple[Path, Path]:
    """The packages of a kernel with modules, device trees and headers."""
    file = package(root, with_headers(with_device_trees(made)), FORMAT)
    return file, headers_beside(file)


def test_the_package_has_what_makepkg_writes(tmp_path: Path) -> None:
    made = package(tmp_path, kernel(tmp_path, modules=True, revision=3), FORMAT)
    assert made.name == "opt.pkg.tar.zst"
    assert {
        "pkgname = linux-mepof-opt",
        "pkgbase = linux-mepof-opt",
        "pkgver = 6.12.95-3",
        "arch = x86_64",
        "depend = kmod",
        "depend = initramfs",
        "builddate = 315532800",
    } <= set(fields(made))
    assert {"format = 1", "pkgver = 6.12.95-3", "pkgarch = x86_64"} <= set(
        fields(made, ".BUILDINFO")
    )
    names = bsdtar("-tf", made).decode().splitlines()
    assert names[:4] == [".BUILDINFO", ".MTREE", ".PKGINFO", "usr/"]
    assert names == sorted(names)
    # It has every file and directory but itself.
    (tmp_path / "mtree").write_bytes(gzip.decompress(bsdtar("-xOf", made, ".MTREE")))
    described = bsdtar("-tf", tmp_path / "mtree").decode().splitlines()
    assert described == [f"./{name.rstrip('/')}" for name in names if name != ".MTREE"]


@pytest.mark.parametrize("modules", [1, 1000])
def test_the_description_of_files_does_not_depend_on_a_build_of_zlib(
    pacman: Pacman, tmp_path: Path, modules: int
) -> None:
    made = kernel(tmp_path, modules=True)
    file = made.build / "veth.ko"
    made = replace(made, modules={f"drivers/net/veth{n}.ko": file for n in range(modules)})
    packed = package(tmp_path, made, FORMAT)
    described = bsdtar("-xOf", packed, ".MTREE")
    assert described[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    plain = gzip.decompress(described)
    # Nothing is compressed: 18 bytes around it, and 5 before each block; all but the last are full.
    assert len(described) == 18 + 5 * -(-len(plain) // 0xFFFF) + len(plain)
    assert (len(plain) > 0xFFFF) == (modules > 1)
    pacman.installs(packed)
    assert " 0 altered files" in pacman("-Qkk")


def test_files_are_where_hooks_look_for_them(tmp_path: Path) -> None:
    made = package(tmp_path, with_device_trees(kernel(tmp_path, modules=True)), FORMAT)
    bsdtar("-xf", made, "-C", tmp_path)
    root = tmp_path / BELOW
    assert (root / "vmlinuz").read_bytes() == b"image of 6.12.95-mepof-opt"
    # mkinitcpio names the kernel and its initramfs in /boot after it.
    assert (root / "pkgbase").read_text() == "linux-mepof-opt\n"
    assert (root / "config").is_file()
    assert (root / "System.map").is_file()
    assert (root / "kernel/drivers/net/veth.ko").read_bytes() == b"module"
    assert (root / "modules.order").read_text() == "kernel/drivers/net/veth.ko\n"
    assert (root / "modules.builtin").read_text() == "kernel/fs/ext4/ext4.ko\n"
    assert (root / "modules.builtin.modinfo").read_bytes() == b"ext4.alias=fs-ext4\0"
    assert (root / "dtb/acme/board.dtb").read_bytes() == b"tree"


def test_a_kernel_without_modules_and_initramfs_needs_neither(tmp_path: Path) -> None:
    made = kernel(tmp_path)
    (made.build / "config").write_text("")
    needed = [line for line in fields(package(tmp_path, made, FORMAT)) if "depend" in line]
    assert needed == ["depend = coreutils"]


def test_headers_are_a_package_of_their_own(tmp_path: Path) -> None:
    headers = both(tmp_path, kernel(tmp_path))[1]
    assert headers.name == "opt.headers.pkg.tar.zst"
    said = fields(headers)
    assert "pkgname = linux-mepof-opt-headers" in said
    assert [line for line in said if "depend" in line] == ["depend = glibc", "depend = libelf"]
    bsdtar("-xf", headers, "-C", tmp_path)
    build = tmp_path / BELOW / "build"
    assert (tmp_path / "usr/src/linux-mepof-opt").resolve() == build
    check_headers(build)


def test_the_same_kernel_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_device_trees(with_headers(kernel(tmp_path, modules=True)))
    first = package(tmp_path / "a", made, FORMAT)
    os.utime(made.image, (0, 0))
    made.image.chmod(0o600)
    monkeypatch.setenv("ZSTD_CLEVEL", "1")
    monkeypatch.setenv("ZSTD_NBTHREADS", "3")
    again = package(tmp_path / "a % space", made, FORMAT)
    assert again.read_bytes() == first.read_bytes()
    assert headers_beside(again).read_bytes() == headers_beside(first).read_bytes()


def test_pacman_installs_upgrades_downgrades_and_removes(pacman: Pacman, tmp_path: Path) -> None:
    def state(version: str) -> list[str]:
        return [f"linux-mepof-opt {version}", f"linux-mepof-opt-headers {version}"]

    first = both(tmp_path / "1", kernel(tmp_path, modules=True))
    assert pacman.installs(*first) == state("6.12.95-1")
    # Content, times, owners and permissions are those of .MTREE.
    checked = pacman("-Qkk")
    assert checked.count(" 0 altered files") == 2, checked
    newer = both(tmp_path / "2", kernel(tmp_path, "6.12.100", modules=True, revision=2))
    assert pacman.installs(*newer) == state("6.12.100-2")
    installed = pacman.root / "usr/lib/modules"
    assert [path.name for path in installed.iterdir()] == ["6.12.100-mepof-opt"]
    assert pacman.installs(*first) == state("6.12.95-1")
    assert [path.name for path in installed.iterdir()] == ["6.12.95-mepof-opt"]
    pacman("-R", "linux-mepof-opt", "linux-mepof-opt-headers")
    assert not (pacman.root / "usr").exists()


def test_a_file_that_was_changed_is_found(pacman: Pacman, tmp_path: Path) -> None:
    pacman.installs(package(tmp_path, kernel(tmp_path), FORMAT))
    image = pacman.root / BELOW / "vmlinuz"
    before = image.stat()
    image.write_bytes(b"IMAGE" + image.read_bytes()[5:])
    os.utime(image, (before.st_atime, before.st_mtime))
    with pytest.raises(AssertionError, match=r"1 altered file"):
        pacman("-Qkk")


def test_names_of_every_kind_are_described(pacman: Pacman, tmp_path: Path) -> None:
    made = kernel(tmp_path, modules=True)
    names = ("a b.h", "a=b#c.h", "back\\slash.h", "größe.h", "{x}*[y]?.h")
    files = {f"include/{name}": b"\n" for name in names}
    archive(made.build / "headers.tar", files, {"include/to": "a b.h"})
    pacman.installs(headers_beside(package(tmp_path, made, FORMAT)))
    assert " 0 altered files" in pacman("-Qkk")


def newer(one: str, other: str) -> bool:
    done = subprocess.run(["vercmp", one, other], check=True, capture_output=True, text=True)
    return int(done.stdout) > 0


def test_versions_order_as_releases_do() -> None:
    versions = [
        *(package_version("6.12.9", 4), package_version("6.12.95", 5)),
        *(package_version("6.12.95", 10), package_version("6.13.0-rc1", 11)),
        *(package_version("6.13.0-rc2", 12), package_version("6.13.0", 13)),
        package_version("6.13.0-custom", 14),
    ]
    assert all(version.count("-") == 1 for version in versions)
    for one, other in pairwise(versions):
        assert newer(other, one), (one, other)


def test_a_kernel_never_has_the_name_of_the_distribution_s(tmp_path: Path) -> None:
    made = kernel(tmp_path)
    assert package_name(made) == "linux-mepof-opt"
    assert package_name(replace(made, release="6.12.95")) == "linux-mepof"
    assert package_name(replace(made, release="6.12.95+")) == "linux-mepof"


def test_another_architecture_is_packaged_here(tmp_path: Path) -> None:
    made = replace(kernel(tmp_path), arch=arch.get("arm64"))
    assert "arch = aarch64" in fields(package(tmp_path, made, FORMAT))


def test_an_architecture_without_packages_is_an_error() -> None:
    with pytest.raises(InputError, match="no packages of kernels for um"):
        FORMAT.check(arch.get("um"), None)


@pytest.mark.parametrize("release", ["6.12/../..", "6.12 1", "6.12~1", "-1", ""])
def test_a_release_that_is_no_name_is_an_error(tmp_path: Path, release: str) -> None:
    with pytest.raises(InputError, match="cannot be part of a file's name"):
        package(tmp_path, replace(kernel(tmp_path), release=release), FORMAT)


def test_without_zstd_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLack, match="zstd is not installed") as caught:
        package(tmp_path, kernel(tmp_path), FORMAT)
    assert caught.value.remedy == "apt-get install zstd"
