"""What is published, read by the real dnf and zypper in roots of their own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from package.kernels import as_root, put_shell

from mepof.errors import WorkError

from .releases import damage, files, index, publish_package, release

META = "kernel-mepof-stable"
HEADERS = "kernel-devel-mepof-stable"
# What a distribution has.
SPEC = """Name: base
Version: 1
Release: 1
Summary: base
License: MIT
{}
%description
base
%files
"""
PROVIDED = ("/bin/sh", "coreutils", "kmod", "libc.so.6()(64bit)", "libelf.so.1()(64bit)")

pytestmark = pytest.mark.skipif(
    shutil.which("createrepo_c") is None, reason="createrepo_c is not installed"
)


class Machine:
    """A root with an RPM database, and a file ``.repo`` for what is published.

    Attributes:
        failed: what the program said that ended with an error.
    """

    def __init__(self, root: Path, server: str, key: str) -> None:
        self.root = root
        put_shell(root)  # zypper runs scripts, and says if they fail
        (root / "etc").mkdir()
        (root / "repos").mkdir()
        (root / "log").mkdir()
        exported = subprocess.run(
            ["gpg", "--armor", "--export", key], check=True, capture_output=True
        )
        (root / "kernels.asc").write_bytes(exported.stdout)
        settings = {
            "name": "kernels",
            "baseurl": f"{server}/rpm/stable",
            "gpgkey": f"file://{root}/kernels.asc",
            "gpgcheck": "0",
            "repo_gpgcheck": "1",
            "enabled": "1",
        }
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (root / "repos/kernels.repo").write_text(f"[kernels]\n{''.join(lines)}")
        (root / "dnf.conf").write_text("[main]\n")
        (root / "base.spec").write_text(SPEC.format("".join(f"Provides: {p}\n" for p in PROVIDED)))
        defined = ("--define", f"_rpmdir {root}", "--define", "_build_name_fmt base.rpm")
        subprocess.run(
            ["rpmbuild", "-bb", "--quiet", *defined, root / "base.spec"],
            check=True,
            capture_output=True,
        )
        self.rpm("--install", "--noscripts", root / "base.rpm")

    def rpm(self, *words: str | Path) -> str:
        return as_root("rpm", "--root", self.root, *words)

    def dnf(self, *words: str) -> str:
        settings = {
            "reposdir": self.root / "repos",
            "cachedir": self.root / "cache",
            "persistdir": self.root / "state",
            "logdir": self.root / "log",
            "varsdir": self.root / "vars",
            "plugins": 0,
            "tsflags": "noscripts",
            "install_weak_deps": 0,
            "keepcache": 1,
        }
        options = [f"--setopt={name}={value}" for name, value in settings.items()]
        return as_root(
            *("dnf", "--assumeyes", "--config", self.root / "dnf.conf", "--refresh"),
            *("--installroot", self.root, "--releasever", "1", "--forcearch", "x86_64"),
            *(*options, *words),
        )

    def zypper(self, *words: str) -> str:
        (self.root / "zypp.conf").write_text("[main]\narch = x86_64\n")
        variables = (f"ZYPP_CONF={self.root}/zypp.conf", f"ZYPP_LOCKFILE_ROOT={self.root}")
        return as_root(
            *("env", *variables, "zypper", "--non-interactive", "--root", str(self.root)),
            *("--reposd-dir", str(self.root / "repos"), *words),
        )

    def installed(self) -> set[str]:
        names = self.rpm("--query", "--all", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\n")
        return {line for line in names.splitlines() if line.startswith("kernel")}


@pytest.fixture
def machine(tmp_path: Path, server: str, gnupg: str) -> Iterator[Machine]:
    if shutil.which("dnf") is None:
        pytest.skip("dnf is not installed")
    made = Machine(tmp_path / "machine", server, gnupg)
    yield made
    for home in made.root.glob("cache/*/pubring"):  # where dnf started an agent
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


def image(version: str, number: int) -> set[str]:
    return {f"kernel-{version}-mepof-opt {version}-{number}", f"{META} {version}-{number}"}


def headers(version: str, number: int) -> set[str]:
    return {f"kernel-devel-{version}-mepof-opt {version}-{number}", f"{HEADERS} {version}-{number}"}


def test_dnf_installs_and_upgrades_by_the_metapackages(machine: Machine, tmp_path: Path) -> None:
    release(tmp_path, "rpm", "6.12.95", 1, headers=True)
    machine.dnf("install", META, HEADERS)
    first = image("6.12.95", 1) | headers("6.12.95", 1)
    assert machine.installed() == first
    machine.dnf("upgrade")
    assert machine.installed() == first
    release(tmp_path, "rpm", "6.12.100", 2, headers=True)
    machine.dnf("upgrade")
    # The kernel before stays, and so can be booted.
    kept = {each for each in first if not each.startswith((META, HEADERS))}
    assert machine.installed() == image("6.12.100", 2) | headers("6.12.100", 2) | kept
    # Packages of two releases, which have the same file name where they lie, were both kept.
    assert len(list((machine.root / "cache").rglob("*.rpm"))) == 8


def test_an_earlier_release_can_still_be_installed(machine: Machine, tmp_path: Path) -> None:
    release(tmp_path, "rpm", "6.12.95", 1)
    release(tmp_path, "rpm", "6.12.100", 2)
    machine.dnf("install", f"{META}-6.12.95")
    assert machine.installed() == image("6.12.95", 1)


@pytest.mark.parametrize("what", ["repodata/repomd.xml", "repodata/repomd.xml.asc", "primary"])
def test_dnf_refuses_metadata_that_was_changed(machine: Machine, tmp_path: Path, what: str) -> None:
    release(tmp_path, "rpm", "6.12.95", 1)
    lists = tmp_path / "published/rpm/stable"
    (found,) = [lists / what] if "/" in what else lists.glob("repodata/*-primary.xml.gz")
    damage(found)
    with pytest.raises(AssertionError, match="Failed to download metadata"):
        machine.dnf("install", META)
    assert machine.installed() == set()


def test_dnf_refuses_metadata_of_another_key_and_without_a_signature(
    machine: Machine, tmp_path: Path
) -> None:
    release(tmp_path, "rpm", "6.12.95", 1, key=None)
    assert not (tmp_path / "published/rpm/stable/repodata/repomd.xml.asc").exists()
    with pytest.raises(AssertionError, match=r"repomd\.xml\.asc"):
        machine.dnf("install", META)
    words = ("--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key")
    subprocess.run(
        ["gpg", "--batch", "--quiet", *words, "o <o@example.org>", "ed25519", "sign"],
        check=True,
        capture_output=True,
    )
    index(tmp_path, "o@example.org")
    with pytest.raises(AssertionError, match="GPG"):
        machine.dnf("install", META)
    assert machine.installed() == set()


def test_dnf_refuses_a_package_that_was_changed(machine: Machine, tmp_path: Path) -> None:
    target = release(tmp_path, "rpm", "6.12.95", 1)
    damage(target / "opt.rpm")
    with pytest.raises(AssertionError, match="checksum"):
        machine.dnf("install", META)
    assert machine.installed() == set()


@pytest.mark.skipif(shutil.which("zypper") is None, reason="zypper is not installed")
def test_zypper_installs_upgrades_and_refuses_what_was_changed(
    machine: Machine, tmp_path: Path
) -> None:
    release(tmp_path, "rpm", "6.12.95", 1)
    machine.zypper("--gpg-auto-import-keys", "refresh")
    machine.zypper("install", "--no-recommends", META)
    assert machine.installed() == image("6.12.95", 1)
    assert (machine.root / "boot/vmlinuz-6.12.95-mepof-opt").is_file()
    newer = release(tmp_path, "rpm", "6.12.100", 2)
    sound = (newer / "opt.rpm").read_bytes()
    damage(newer / "opt.rpm")
    machine.zypper("refresh")
    with pytest.raises(AssertionError, match=r"verification|checksum|digest"):
        machine.zypper("update", "--no-recommends")
    (newer / "opt.rpm").write_bytes(sound)
    machine.zypper("update", "--no-recommends")
    kernel_before = "kernel-6.12.95-mepof-opt 6.12.95-1"
    assert machine.installed() == image("6.12.100", 2) | {kernel_before}
    metadata = tmp_path / "published/rpm/stable/repodata"
    with (metadata / "repomd.xml").open("ab") as file:
        file.write(b"\n")  # it is still XML, which newer releases parse first
    with pytest.raises(AssertionError, match="Signature verification failed"):
        machine.zypper("refresh", "--force")
    (metadata / "repomd.xml.asc").unlink()
    with pytest.raises(AssertionError, match="is unsigned"):
        machine.zypper("refresh", "--force")


def test_the_same_releases_give_the_same_bytes(tmp_path: Path, gnupg: str) -> None:
    made = []
    for name in ("a", "b % space"):
        root = tmp_path / name
        for version, number in (("6.12.95", 1), ("6.12.100", 2)):
            release(root, "rpm", version, number, gnupg, headers=True)
        made.append(files(root / "published/rpm"))
        assert (root / "published/rpm/stable/repodata/repomd.xml.asc").is_file()
    assert made[0] == made[1]
    packages = {name for name in made[0] if name.endswith(".rpm")}
    assert f"stable/{META}-6.12.100-2.x86_64.rpm" in packages
    assert "stable/kernel-devel-6.12.95-mepof-opt-6.12.95-1.x86_64.rpm" in packages
    assert len(packages) == 8


def test_two_releases_with_the_same_package_are_an_error_that_names_both(tmp_path: Path) -> None:
    first = release(tmp_path, "rpm", "6.12.95", 1, None)
    # As where the history, which counts revisions, was lost.
    second = first.with_name("stable-again")
    shutil.copytree(first, second)
    with pytest.raises(
        WorkError, match=rf"{first}/(\S+)\.rpm and {second}/\1\.rpm are both"
    ) as caught:
        index(tmp_path, None)
    assert caught.value.remedy == "remove the directory of one of the two releases"
    shutil.rmtree(first)
    index(tmp_path, None)
    assert len(list((tmp_path / "published/rpm/stable").glob("*.rpm"))) == 2


def test_a_release_that_is_removed_is_in_no_repository(tmp_path: Path, gnupg: str) -> None:
    first = release(tmp_path, "rpm", "6.12.95", 1)
    second = release(tmp_path, "rpm", "6.12.100", 2)
    shutil.rmtree(first)
    index(tmp_path)
    lists = tmp_path / "published/rpm/stable"
    assert not [name for name in files(lists) if "6.12.95" in name]
    shutil.rmtree(second)
    index(tmp_path)
    assert not (tmp_path / "published/rpm").is_symlink()


@pytest.mark.parametrize("content", [b"", b"\xed\xab\xee\xdb", b"text"])
def test_a_damaged_package_keeps_the_metadata_as_it_is(
    tmp_path: Path, gnupg: str, content: bytes
) -> None:
    release(tmp_path, "rpm", "6.12.95", 1)
    before = files(tmp_path / "published/rpm")
    out = tmp_path / "other"
    out.mkdir()
    (out / "opt.rpm").write_bytes(content)
    publish_package(out / "opt.rpm", tmp_path)
    with pytest.raises(WorkError, match=r"opt\.rpm cannot be read as a package"):
        index(tmp_path)
    assert files(tmp_path / "published/rpm") == before
