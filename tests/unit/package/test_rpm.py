"""An RPM package: rpm reads, installs, upgrades and removes what is written."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mepof import arch
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.package.contents import headers_beside
from mepof.package.protocol import Kernel
from mepof.package.rpm import FORMAT, metapackage, package_version, read_label

from .kernels import (
    as_root,
    check_headers,
    kernel,
    package,
    put_shell,
    with_device_trees,
    with_headers,
)

RELEASE = "6.12.95-mepof-opt"


def rpm(*words: str | Path) -> str:
    return subprocess.run(["rpm", *words], check=True, capture_output=True, text=True).stdout


def asked(made: Path, what: str) -> str:
    return rpm("--query", "--package", "--queryformat", what, made)


def unpacked(made: Path, root: Path) -> Path:
    root.mkdir()
    archive = subprocess.run(["rpm2cpio", made], check=True, capture_output=True).stdout
    subprocess.run(["cpio", "-idm", "--quiet"], input=archive, check=True, cwd=root)
    return root


def test_rpm_reads_header_and_content(tmp_path: Path) -> None:
    made = package(tmp_path, kernel(tmp_path, modules=True, revision=3), FORMAT)
    named = asked(made, "%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{BUILDHOST}")
    assert named == f"kernel-{RELEASE} 6.12.95 3 x86_64 localhost"
    needed = rpm("--query", "--package", "--requires", made).splitlines()
    assert {"/bin/sh", "coreutils", "kmod"} <= set(needed)
    # It stays needed when the scripts have run.
    requires = asked(made, "[%{REQUIRENAME} %{REQUIREFLAGS:deptype}\n]").splitlines()
    assert "kmod manual" in requires
    assert rpm("--query", "--package", "--recommends", made) == "dracut\n"
    assert "digests OK" in rpm("--checksig", made)
    below = unpacked(made, tmp_path / "root") / "lib/modules" / RELEASE
    assert (below / "vmlinuz").read_bytes() == b"image of 6.12.95-mepof-opt"
    assert (below / "config").is_file()
    assert (below / "System.map").is_file()
    assert (below / "kernel/drivers/net/veth.ko").read_bytes() == b"module"
    assert (below / "modules.order").read_text() == "kernel/drivers/net/veth.ko\n"
    assert (below / "modules.builtin").read_text() == "kernel/fs/ext4/ext4.ko\n"
    assert (below / "modules.builtin.modinfo").read_bytes() == b"ext4.alias=fs-ext4\0"
    # What the script makes is removed with the package, and is not in it.
    ghosts = asked(made, "[%{FILEFLAGS:fflags} %{FILENAMES}\n]").splitlines()
    assert f"g /boot/vmlinuz-{RELEASE}" in ghosts
    assert f"g /lib/modules/{RELEASE}/modules.dep" in ghosts
    assert not (below / "modules.dep").exists()


def test_a_kernel_without_modules_and_initramfs_needs_neither(tmp_path: Path) -> None:
    made = kernel(tmp_path)
    (made.build / "config").write_text("")
    file = package(tmp_path, made, FORMAT)
    assert "kmod" not in rpm("--query", "--package", "--requires", file)
    assert "depmod" not in rpm("--query", "--package", "--scripts", file)
    assert "modules." not in rpm("--query", "--package", "--list", file)
    assert rpm("--query", "--package", "--recommends", file) == ""


def test_headers_are_a_package_of_their_own(tmp_path: Path) -> None:
    headers = headers_beside(package(tmp_path, with_headers(kernel(tmp_path)), FORMAT))
    assert headers == tmp_path / "opt.headers.rpm"
    assert asked(headers, "%{NAME} %{ARCH}") == f"kernel-devel-{RELEASE} x86_64"
    # Scripts among the headers do not make the package depend on what runs them.
    needed = rpm("--query", "--package", "--requires", headers).splitlines()
    assert {name for name in needed if not name.startswith("rpmlib(")} == {
        "libc.so.6()(64bit)",
        "libelf.so.1()(64bit)",
    }
    root = unpacked(headers, tmp_path / "root")
    build = root / "lib/modules" / RELEASE / "build"
    assert str(build.readlink()) == f"/usr/src/kernels/{RELEASE}"
    installed = root / "usr/src/kernels" / RELEASE
    check_headers(installed)


def test_the_same_kernel_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_device_trees(with_headers(kernel(tmp_path, modules=True)))
    first = package(tmp_path / "a", made, FORMAT)
    os.utime(made.image, (0, 0))
    made.image.chmod(0o600)
    # Another user, whose own settings of rpm say something else.
    (tmp_path / ".rpmmacros").write_text("%_buildhost other\n%dist .fc99\n%vendor Acme\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    mask = os.umask(0o077)
    try:
        again = package(tmp_path / "a % space", made, FORMAT)
    finally:
        os.umask(mask)
    assert again.read_bytes() == first.read_bytes()
    assert headers_beside(again).read_bytes() == headers_beside(first).read_bytes()
    assert asked(first, "%{BUILDTIME} [%{FILEMTIMES} ]").split().count("315532800") > 10
    assert set(asked(first, "%{BUILDTIME} [%{FILEMTIMES} ]").split()) == {"315532800"}


class Machine:
    """A root directory with a shell, and programs that note how they are called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        put_shell(root)
        noted = '#!/bin/sh\necho "${0##*/} $*" >> /said\n'
        tables = ': > "/lib/modules/$3/modules.dep"\n'
        self.program("sbin/depmod", f"{noted}{tables}")
        self.program("usr/bin/kernel-install", noted)

    def program(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        (self.root / path).chmod(0o755)

    def rpm(self, *words: str | Path) -> str:
        database = ("--root", self.root, "--dbpath", "/var/lib/rpm")
        return as_root("rpm", *database, *words)

    def installs(self, *packages: Path, how: str = "--upgrade") -> list[str]:
        """What the scripts call."""
        self.rpm(how, "--nodeps", *packages)
        return self.said()

    def said(self) -> list[str]:
        said = self.root / "said"
        lines = said.read_text().splitlines() if said.exists() else []
        said.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def called(release: str) -> list[str]:
    return [
        f"depmod -F /lib/modules/{release}/System.map {release}",
        f"kernel-install add {release} /lib/modules/{release}/vmlinuz",
    ]


def both(root: Path, made: Kernel) -> tuple[Path, Path]:
    """The packages of a kernel with modules, device trees and headers."""
    file = package(root, with_headers(with_device_trees(made)), FORMAT)
    return file, headers_beside(file)


def test_another_kernel_is_installed_beside_and_another_revision_replaces(
    machine: Machine, tmp_path: Path
) -> None:
    first = both(tmp_path / "1", kernel(tmp_path, modules=True))
    assert machine.installs(*first) == called(RELEASE)
    boot = machine.root / "boot"
    assert (boot / f"vmlinuz-{RELEASE}").read_bytes() == b"image of 6.12.95-mepof-opt"
    assert (boot / f"dtb-{RELEASE}/acme/board.dtb").read_bytes() == b"tree"
    # It stays bootable: the entry of the new revision is not removed with the old one.
    second = both(tmp_path / "2", kernel(tmp_path, modules=True, revision=2))
    assert machine.installs(*second) == called(RELEASE)
    beside = both(tmp_path / "3", kernel(tmp_path, "6.12.100", modules=True, revision=3))
    assert machine.installs(*beside) == called("6.12.100-mepof-opt")
    names = machine.rpm("--query", "--all", "--queryformat", "%{NAME}=%{RELEASE}\n").split()
    assert sorted(names) == [
        "kernel-6.12.100-mepof-opt=3",
        f"kernel-{RELEASE}=2",
        "kernel-devel-6.12.100-mepof-opt=3",
        f"kernel-devel-{RELEASE}=2",
    ]
    with pytest.raises(AssertionError, match="is newer than"):
        machine.installs(*first)
    machine.rpm("--upgrade", "--oldpackage", "--nodeps", *first)
    assert machine.said() == called(RELEASE)
    machine.rpm("--erase", "--nodeps", *machine.rpm("--query", "--all").split())
    assert sorted(machine.said()) == [
        "kernel-install remove 6.12.100-mepof-opt",
        f"kernel-install remove {RELEASE}",
    ]
    assert list(boot.iterdir()) == []
    assert list((machine.root / "lib/modules").iterdir()) == []
    assert list((machine.root / "usr/src/kernels").iterdir()) == []


def test_a_machine_without_kernel_install_gets_the_kernel_in_boot(
    machine: Machine, tmp_path: Path
) -> None:
    (machine.root / "usr/bin/kernel-install").unlink()
    made = package(tmp_path, kernel(tmp_path), FORMAT)
    assert machine.installs(made, how="--install") == []
    names = {path.name for path in (machine.root / "boot").iterdir()}
    assert names == {f"{name}-{RELEASE}" for name in ("vmlinuz", "System.map", "config")}
    machine.rpm("--erase", "--nodeps", f"kernel-{RELEASE}")
    assert list((machine.root / "boot").iterdir()) == []


def test_depmod_and_kernel_install_see_the_modules_of_the_new_revision_alone(
    machine: Machine, tmp_path: Path
) -> None:
    former = kernel(tmp_path, modules=True)
    (former.build / "gone.ko").write_bytes(b"module")
    more = {**former.modules, "drivers/net/gone.ko": former.build / "gone.ko"}
    machine.installs(package(tmp_path / "1", replace(former, modules=more), FORMAT))
    noted = '#!/bin/sh\n(cd /lib/modules/*/kernel/drivers/net && echo "${0##*/}" *) >> /said\n'
    machine.program("sbin/depmod", noted)
    machine.program("usr/bin/kernel-install", noted)
    again = package(tmp_path / "2", replace(former, revision=2), FORMAT)
    assert machine.installs(again) == ["depmod veth.ko", "kernel-install veth.ko"]


def test_a_copy_that_fails_ends_the_script(machine: Machine, tmp_path: Path) -> None:
    made = package(tmp_path, kernel(tmp_path, modules=True), FORMAT)
    left_out = f"--excludepath=/lib/modules/{RELEASE}/vmlinuz"
    machine.rpm("--install", "--nodeps", left_out, made)
    assert machine.said() == []
    assert list((machine.root / "boot").iterdir()) == []


def test_the_image_in_boot_is_replaced_when_the_new_one_is_complete(
    machine: Machine, tmp_path: Path
) -> None:
    machine.installs(package(tmp_path / "1", kernel(tmp_path), FORMAT))
    image, former = machine.root / f"boot/vmlinuz-{RELEASE}", tmp_path / "former"
    former.hardlink_to(image)
    again = kernel(tmp_path, revision=2)
    again.image.write_bytes(b"another image")
    machine.installs(package(tmp_path / "2", again, FORMAT))
    assert image.read_bytes() == b"another image"
    # It was not written into.
    assert former.read_bytes() == b"image of 6.12.95-mepof-opt"


def compared(one: str, other: str) -> int:
    return int(rpm("--eval", f'%{{lua: print(rpm.vercmp("{one}", "{other}"))}}'))


def test_versions_order_as_releases_do() -> None:
    versions = ["6.12.9", "6.12.95", "6.13.0-rc1", "6.13.0-rc2", "6.13.0", "6.13.0-custom"]
    assert all("-" not in package_version(each) for each in versions)
    for one, other in pairwise(map(package_version, versions)):
        assert compared(one, other) == -1, (one, other)


def test_a_release_candidate_is_packaged(tmp_path: Path) -> None:
    made = package(tmp_path, kernel(tmp_path, "6.13.0-rc1"), FORMAT)
    assert asked(made, "%{NAME} %{VERSION}") == "kernel-6.13.0-rc1-mepof-opt 6.13.0~rc1"


def test_another_architecture_is_packaged_here(tmp_path: Path) -> None:
    made = replace(kernel(tmp_path), arch=arch.get("arm64"))
    assert asked(package(tmp_path, made, FORMAT), "%{ARCH} %{OS}") == "aarch64 linux"


def test_a_compiler_that_is_named_by_a_path_is_no_macro(tmp_path: Path) -> None:
    made = replace(kernel(tmp_path), compiler="clang:/opt/%{nil}% 22")
    said = asked(package(tmp_path, made, FORMAT), "%{DESCRIPTION}")
    assert said == "Built by mepof with clang:/opt/%{nil}% 22."


def test_a_metapackage_requires_exactly_one_package(tmp_path: Path) -> None:
    made = package(tmp_path, replace(kernel(tmp_path, revision=3), arch=arch.get("arm64")), FORMAT)
    first, again = tmp_path / "meta.rpm", tmp_path / "again.rpm"
    for target in (first, again):
        metapackage(made, "kernel-mepof-stable", "the newest kernel", target)
    assert str(read_label(first)) == "kernel-mepof-stable-6.12.95-3.aarch64"
    needed = rpm("--query", "--package", "--requires", first).splitlines()
    assert [name for name in needed if not name.startswith("rpmlib(")] == [
        f"kernel-{RELEASE} = 6.12.95-3"
    ]
    assert rpm("--query", "--package", "--list", first) == "(contains no files)\n"
    assert again.read_bytes() == first.read_bytes()


def test_a_package_whose_path_looks_like_a_pattern_has_a_label(tmp_path: Path) -> None:
    made = package(tmp_path / "a[1] {b,c}*", kernel(tmp_path, revision=3), FORMAT)
    assert str(read_label(made)) == f"kernel-{RELEASE}-6.12.95-3.x86_64"


def test_what_is_no_package_has_no_label(tmp_path: Path) -> None:
    # A file of text is read by rpm as names of packages.
    for text in ("", "meta.rpm\n"):
        (tmp_path / "opt.rpm").write_text(text)
        with pytest.raises(WorkError, match=r"opt\.rpm cannot be read as a package"):
            read_label(tmp_path / "opt.rpm")


def test_an_architecture_without_packages_is_an_error() -> None:
    with pytest.raises(InputError, match="no packages of kernels for um"):
        FORMAT.check(arch.get("um"), None)


@pytest.mark.parametrize("release", ["6.12/../..", "6.12 1", "6.12~1", "%{nil}", "-1", ""])
def test_a_release_that_is_no_name_is_an_error(tmp_path: Path, release: str) -> None:
    with pytest.raises(InputError, match="cannot be part of a file's name"):
        package(tmp_path, replace(kernel(tmp_path), release=release), FORMAT)


def test_without_rpmbuild_its_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLack, match="rpmbuild is not installed") as caught:
        package(tmp_path, kernel(tmp_path), FORMAT)
    assert caught.value.remedy == "apt-get install rpm"


def test_what_rpmbuild_refuses_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin/rpmbuild"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho error: no space >&2\necho Building for target\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    with pytest.raises(WorkError, match=r"cannot write opt\.rpm: error: no space"):
        package(tmp_path, kernel(tmp_path), FORMAT)
    assert not (tmp_path / "opt.rpm").exists()
