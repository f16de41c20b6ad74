"""A Debian package: dpkg-deb reads what is written, and its scripts run the hooks."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mepof import arch
from mepof.errors import InputError, WorkError
from mepof.package.contents import headers_beside
from mepof.package.deb import FORMAT, metapackage, package_name, package_version
from mepof.package.debian_archive import fields, read_control

from .kernels import check_headers, kernel, package, with_device_trees, with_headers


def dpkg_deb(*words: str | Path) -> str:
    return subprocess.run(["dpkg-deb", *words], check=True, capture_output=True, text=True).stdout


def test_dpkg_reads_control_and_content(tmp_path: Path) -> None:
    made = package(tmp_path, kernel(tmp_path, modules=True, revision=3))
    assert dpkg_deb("--field", made, "Package").strip() == "linux-image-6.12.95-mepof-opt"
    assert dpkg_deb("--field", made, "Version").strip() == "6.12.95-3"
    assert dpkg_deb("--field", made, "Depends").strip() == "kmod"
    assert dpkg_deb("--field", made, "Architecture").strip() == "amd64"
    dpkg_deb("--extract", made, tmp_path / "root")
    boot, modules = tmp_path / "root/boot", tmp_path / "root/lib/modules/6.12.95-mepof-opt"
    assert (boot / "vmlinuz-6.12.95-mepof-opt").read_bytes() == b"image of 6.12.95-mepof-opt"
    assert (boot / "config-6.12.95-mepof-opt").is_file()
    assert (boot / "System.map-6.12.95-mepof-opt").is_file()
    assert (modules / "kernel/drivers/net/veth.ko").read_bytes() == b"module"
    assert (modules / "modules.order").read_text() == "kernel/drivers/net/veth.ko\n"
    assert (modules / "modules.builtin").read_text() == "kernel/fs/ext4/ext4.ko\n"
    assert (modules / "modules.builtin.modinfo").read_bytes() == b"ext4.alias=fs-ext4\0"
    listed = dpkg_deb("--contents", made).splitlines()
    assert all(" root/root " in line for line in listed)
    dpkg_deb("--control", made, tmp_path / "control")
    sums = ["md5sum", "--check", "--strict", "../control/md5sums"]
    subprocess.run(sums, check=True, cwd=tmp_path / "root", stdout=subprocess.DEVNULL)


def test_a_kernel_without_modules_needs_nothing(tmp_path: Path) -> None:
    made = package(tmp_path, kernel(tmp_path))
    assert dpkg_deb("--field", made, "Depends").strip() == ""
    assert "lib/modules" not in dpkg_deb("--contents", made)


def test_a_build_without_lists_of_what_is_built_in_is_packaged(tmp_path: Path) -> None:
    made = kernel(tmp_path, modules=True)
    for name in ("modules.builtin", "modules.builtin.modinfo"):
        (made.build / name).unlink()
    listed = dpkg_deb("--contents", package(tmp_path, made))
    assert "/modules.order" in listed and "modules.builtin" not in listed


def test_headers_are_a_package_of_their_own(tmp_path: Path) -> None:
    made = replace(kernel(tmp_path, revision=3), compilers=("clang-22", "lld-22"))
    headers = headers_beside(package(tmp_path, with_headers(made)))
    assert headers == tmp_path / "opt.headers.deb"
    assert dpkg_deb("--field", headers, "Package").strip() == "linux-headers-6.12.95-mepof-opt"
    assert dpkg_deb("--field", headers, "Version").strip() == "6.12.95-3"
    assert dpkg_deb("--field", headers, "Architecture").strip() == "amd64"
    depends = dpkg_deb("--field", headers, "Depends").strip()
    assert depends == "libc6, libelf1, clang-22, lld-22"
    dpkg_deb("--extract", headers, tmp_path / "root")
    below = "usr/src/linux-headers-6.12.95-mepof-opt"
    build = tmp_path / "root/lib/modules/6.12.95-mepof-opt/build"
    assert str(build.readlink()) == f"/{below}"
    installed = tmp_path / "root" / below
    check_headers(installed)
    dpkg_deb("--control", headers, tmp_path / "control")
    sums = ["md5sum", "--check", "--strict", "../control/md5sums"]
    subprocess.run(sums, check=True, cwd=tmp_path / "root", stdout=subprocess.DEVNULL)


def test_device_trees_are_where_flash_kernel_looks(tmp_path: Path) -> None:
    made = replace(kernel(tmp_path), arch=arch.get("arm64"))
    dpkg_deb("--extract", package(tmp_path, with_device_trees(made)), tmp_path / "root")
    tree = "usr/lib/linux-image-6.12.95-mepof-opt/acme/board.dtb"
    assert (tmp_path / "root" / tree).read_bytes() == b"tree"


def test_the_same_kernel_gives_the_same_bytes(tmp_path: Path) -> None:
    made = with_headers(kernel(tmp_path, modules=True))
    first = package(tmp_path / "a", made)
    os.utime(made.image, (0, 0))
    made.image.chmod(0o600)
    again = package(tmp_path / "b", made)
    assert again.read_bytes() == first.read_bytes()
    assert headers_beside(again).read_bytes() == headers_beside(first).read_bytes()


@pytest.mark.parametrize(
    ("script", "words", "hooks"),
    [
        ("headers", ("configure", ""), "header_postinst"),
        ("headers", ("abort-upgrade", "1"), ""),
        ("preinst", ("install",), "preinst"),
        ("postinst", ("configure", ""), "postinst"),
        ("postinst", ("abort-upgrade", "1"), ""),
        ("prerm", ("upgrade", "2"), ""),
        ("prerm", ("remove",), "prerm"),
        ("postrm", ("remove",), "postrm"),
        ("postrm", ("purge",), "postrm"),
        ("postrm", ("upgrade", "2"), ""),
    ],
)
def test_scripts_run_the_hooks(
    tmp_path: Path, script: str, words: tuple[str, ...], hooks: str
) -> None:
    made = package(tmp_path, with_headers(kernel(tmp_path)))
    if script == "headers":
        made, script = headers_beside(made), "postinst"
    dpkg_deb("--control", made, tmp_path / "control")
    file = tmp_path / "control" / script
    etc = tmp_path / "etc/kernel"
    for name in ("preinst", "postinst", "prerm", "postrm", "header_postinst"):
        hook = etc / f"{name}.d/record"
        hook.parent.mkdir(parents=True)
        said = f'echo "{name} $1 $2 $INITRD $DEB_MAINT_PARAMS" >> {tmp_path}/said'
        hook.write_text(f"#!/bin/sh\n{said}\n")
        hook.chmod(0o755)
    (tmp_path / "said").touch()
    text = file.read_text().replace("/etc/kernel", str(etc))
    # This machine's own links and modules are left alone.
    file.write_text(text.replace("command -v", "false && command -v"))
    subprocess.run(["sh", file, *words], check=True, capture_output=True)
    release = "6.12.95-mepof-opt"
    expected = f"{hooks} {release} /boot/vmlinuz-{release} Yes {' '.join(words)}".rstrip()
    assert (tmp_path / "said").read_text().rstrip() == (expected if hooks else "")


def test_a_hook_that_fails_fails_the_installation(tmp_path: Path) -> None:
    dpkg_deb("--control", package(tmp_path, kernel(tmp_path)), tmp_path / "control")
    hook = tmp_path / "etc/kernel/preinst.d/wrong"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\nexit 7\n")
    hook.chmod(0o755)
    text = (tmp_path / "control/preinst").read_text()
    text = text.replace("/etc/kernel", f"{tmp_path}/etc/kernel")
    done = subprocess.run(["sh", "-c", text, "preinst", "install"], capture_output=True)
    assert done.returncode != 0


def newer(one: str, other: str) -> bool:
    return subprocess.run(["dpkg", "--compare-versions", one, "gt", other]).returncode == 0


def test_versions_order_as_releases_do() -> None:
    versions = [
        *(package_version("6.12.9", 4), package_version("6.12.95", 5)),
        *(package_version("6.12.95", 10), package_version("6.13.0-rc1", 11)),
        package_version("6.13.0", 12),
    ]
    for one, other in pairwise(versions):
        assert newer(other, one), (one, other)


def test_names_are_those_that_debian_allows() -> None:
    assert package_name("6.12.0-mepof-My_Opt") == "linux-image-6.12.0-mepof-my-opt"


def test_an_architecture_without_packages_is_an_error() -> None:
    with pytest.raises(InputError, match="no packages of kernels for um"):
        FORMAT.check(arch.get("um"), None)


def test_a_release_that_is_no_name_is_an_error(tmp_path: Path) -> None:
    made = replace(kernel(tmp_path), release="6.12/../..")
    with pytest.raises(InputError, match="cannot be part of a file's name"):
        package(tmp_path, made)


def test_a_metapackage_depends_on_exactly_one(tmp_path: Path) -> None:
    made = package(tmp_path, kernel(tmp_path, revision=2))
    name, what = "linux-image-mepof-stable", "the newest kernel"
    metapackage(made, name, what, tmp_path / "meta.deb")
    found = fields(read_control(tmp_path / "meta.deb"))
    assert found["Depends"] == "linux-image-6.12.95-mepof-opt (= 6.12.95-2)"
    assert found["Description"] == "the newest kernel that mepof published"
    assert dpkg_deb("--field", tmp_path / "meta.deb", "Version").strip() == "6.12.95-2"


@pytest.mark.parametrize("length", [0, 8, 100, 140, 200, 400])
def test_a_damaged_package_is_an_error(tmp_path: Path, length: int) -> None:
    made = package(tmp_path, kernel(tmp_path))
    made.write_bytes(made.read_bytes()[:length])
    with pytest.raises(WorkError, match="cannot be read as a package"):
        read_control(made)
