"""What is published, read by the real pacman in a root of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from package.kernels import as_root, kernel, package

from mepof import arch
from mepof.errors import WorkError
from mepof.package.pkg import FORMAT

from .releases import damage, files, index, publish_package, release

LISTS = "published/pacman/stable/x86_64"
NAME = "linux-mepof-opt"
CONFIGURATION = """[options]
Architecture = x86_64
SigLevel = Required TrustedOnly
RootDir = {root}
DBPath = {root}/db
CacheDir = {root}/cache
HookDir = {root}/hooks
GPGDir = {root}/gnupg
LogFile = {root}/log

[mepof-stable]
Server = {server}/pacman/stable/$arch
"""
# What a distribution has.
PROVIDED = ("coreutils", "kmod", "initramfs", "glibc", "libelf")

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("pacman", "repo-add"))), reason="pacman is not installed"
)


class Pacman:
    """pacman with a configuration and a keyring of its own, which demands signatures."""

    def __init__(self, root: Path, server: str, key: str) -> None:
        self.root = root
        for name in ("db", "cache", "hooks", "gnupg"):
            (root / name).mkdir(parents=True)
        (root / "gnupg").chmod(0o700)
        (root / "gnupg/pubring.gpg").touch()
        (root / "pacman.conf").write_text(CONFIGURATION.format(root=root, server=server))
        self.gpg = ("gpg", "--homedir", str(root / "gnupg"), "--batch", "--quiet")
        self.knows(key)
        listed = subprocess.run(
            [*self.gpg, "--with-colons", "--list-keys"], check=True, capture_output=True, text=True
        ).stdout
        (fingerprint,) = [
            line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")
        ]
        # As `pacman-key --lsign-key` does, without a key of the machine's.
        subprocess.run(
            [*self.gpg, "--import-ownertrust"], input=f"{fingerprint}:6:\n".encode(), check=True
        )

    def knows(self, key: str) -> None:
        """Import a key, without trusting it."""
        exported = subprocess.run(["gpg", "--export", key], check=True, capture_output=True).stdout
        subprocess.run([*self.gpg, "--import"], input=exported, check=True)

    def __call__(self, *words: str) -> str:
        return as_root(
            *("pacman", "--noconfirm", "--config", self.root / "pacman.conf"),
            *(word for name in PROVIDED for word in ("--assume-installed", name)),
            *words,
        )

    def installed(self) -> list[str]:
        return sorted(path.name for path in (self.root / "db/local").glob("*-*"))


@pytest.fixture
def pacman(tmp_path: Path, server: str, gnupg: str) -> Iterator[Pacman]:
    made = Pacman(tmp_path / "machine", server, gnupg)
    yield made
    subprocess.run(["gpgconf", "--homedir", made.root / "gnupg", "--kill", "all"], check=False)


def test_pacman_installs_and_upgrades(pacman: Pacman, tmp_path: Path) -> None:
    release(tmp_path, "pkg", "6.12.95", 1, headers=True)
    pacman("-Sy", NAME, f"{NAME}-headers")
    assert pacman.installed() == [f"{NAME}-6.12.95-1", f"{NAME}-headers-6.12.95-1"]
    assert "there is nothing to do" in pacman("-Syu")
    release(tmp_path, "pkg", "6.12.100", 2, headers=True)
    # Twice y: within a second, the server calls the database that pacman has the newest.
    pacman("-Syyu")
    assert pacman.installed() == [f"{NAME}-6.12.100-2", f"{NAME}-headers-6.12.100-2"]
    # The cache has both, for a way back.
    kept = {path.name for path in (pacman.root / "cache").glob("*.zst")}
    assert {f"{NAME}-{v}-x86_64.pkg.tar.zst" for v in ("6.12.95-1", "6.12.100-2")} <= kept


def test_pacman_finds_which_package_has_a_file(pacman: Pacman, tmp_path: Path) -> None:
    release(tmp_path, "pkg", "6.12.95", 1)
    pacman("-Fy")
    assert pacman("-F", "/usr/lib/modules/6.12.95-mepof-opt/vmlinuz").count(NAME) == 1


def test_a_version_that_appears_late_does_not_replace_a_newer_one(
    pacman: Pacman, tmp_path: Path
) -> None:
    release(tmp_path, "pkg", "6.12.100", 1)
    release(tmp_path, "pkg", "6.12.95", 2)
    pacman("-Sy", NAME)
    assert pacman.installed() == [f"{NAME}-6.12.100-1"]


def test_a_machine_with_an_earlier_database_still_gets_what_is_in_it(
    pacman: Pacman, tmp_path: Path
) -> None:
    release(tmp_path, "pkg", "6.12.95", 1)
    pacman("-Sy")
    release(tmp_path, "pkg", "6.12.100", 2)
    pacman("-S", NAME)
    assert pacman.installed() == [f"{NAME}-6.12.95-1"]


@pytest.mark.parametrize("name", ["mepof-stable.db", "mepof-stable.db.sig"])
def test_a_database_that_was_changed_is_refused(pacman: Pacman, tmp_path: Path, name: str) -> None:
    release(tmp_path, "pkg", "6.12.95", 1)
    damage(tmp_path / LISTS / name)
    with pytest.raises(AssertionError, match=r"signature|PGP"):
        pacman("-Sy", NAME)
    assert pacman.installed() == []


def test_a_package_that_was_changed_is_refused(pacman: Pacman, tmp_path: Path) -> None:
    target = release(tmp_path, "pkg", "6.12.95", 1)
    damage(target / "opt.pkg.tar.zst")
    with pytest.raises(AssertionError, match="invalid or corrupted package"):
        pacman("-Sy", NAME)
    assert pacman.installed() == []


def test_a_database_without_a_signature_is_refused(pacman: Pacman, tmp_path: Path) -> None:
    release(tmp_path, "pkg", "6.12.95", 1, key=None)
    assert not list((tmp_path / LISTS).glob("*.sig"))
    with pytest.raises(AssertionError, match=r"mepof-stable\.db\.sig"):
        pacman("-Sy", NAME)


def test_a_signature_of_another_key_is_refused(pacman: Pacman, tmp_path: Path) -> None:
    words = ("--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key")
    subprocess.run(
        ["gpg", "--batch", "--quiet", *words, "o <o@example.org>", "ed25519", "sign"],
        check=True,
        capture_output=True,
    )
    pacman.knows("o@example.org")  # otherwise, pacman asks a server for it
    release(tmp_path, "pkg", "6.12.95", 1, "o@example.org")
    with pytest.raises(AssertionError, match="unknown trust"):
        pacman("-Sy", NAME)
    assert pacman.installed() == []


def test_the_same_releases_give_the_same_bytes(
    tmp_path: Path, gnupg: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for name, language in (("a", "C"), ("b % space", "C.UTF-8")):
        monkeypatch.setenv("LC_ALL", language)
        root = tmp_path / name
        for version, number in (("6.12.95", 1), ("6.12.100", 2)):
            release(root, "pkg", version, number, gnupg, headers=True)
        made.append(files(root / "published/pacman"))
        assert (root / LISTS / "mepof-stable.files.sig").is_file()
    assert made[0] == made[1]
    # Older packages stay; the database has the newest.
    assert len([name for name in made[0] if name.endswith(".zst")]) == 4
    with tarfile.open(root / LISTS / "mepof-stable.db") as database:
        members = database.getmembers()
    entry = f"{NAME}-6.12.100-2"
    other = f"{NAME}-headers-6.12.100-2"
    assert [each.name for each in members] == [entry, f"{entry}/desc", other, f"{other}/desc"]
    assert {each.mtime for each in members} == {315532800}


def test_each_architecture_has_a_database_of_its_own(tmp_path: Path, gnupg: str) -> None:
    release(tmp_path, "pkg", "6.12.95", 1)
    out = tmp_path / "other"
    package(out, replace(kernel(out, "6.12.96"), arch=arch.get("arm64")), FORMAT)
    publish_package(out / "opt.pkg.tar.zst", tmp_path)
    index(tmp_path)
    names = {path.name for path in (tmp_path / "published/pacman/stable/aarch64").iterdir()}
    databases = {f"mepof-stable.{kind}" for kind in ("db", "files")}
    named = f"{NAME}-6.12.96-1-aarch64.pkg.tar.zst"
    assert names == {n for each in (*databases, named) for n in (each, f"{each}.sig")}
    assert f"{NAME}-6.12.95-1-x86_64.pkg.tar.zst" in files(tmp_path / LISTS)


@pytest.mark.parametrize("content", [b"", b"\x28\xb5\x2f\xfd", b"text"])
def test_a_damaged_package_keeps_the_database_as_it_is(
    tmp_path: Path, gnupg: str, content: bytes
) -> None:
    release(tmp_path, "pkg", "6.12.95", 1)
    before = files(tmp_path / "published/pacman")
    out = tmp_path / "other"
    out.mkdir()
    (out / "opt.pkg.tar.zst").write_bytes(content)
    publish_package(out / "opt.pkg.tar.zst", tmp_path)
    with pytest.raises(WorkError, match=r"opt\.pkg\.tar\.zst cannot be read as a package"):
        index(tmp_path)
    assert files(tmp_path / "published/pacman") == before


# The archive of two packages is cut off: all of it, within a file, and between the packages.
@pytest.mark.parametrize("kept", [0, 1100, 1536])
def test_a_database_that_repo_add_did_not_write_in_full_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    # As on a full disk, it ends with status 0.
    script = tmp_path / "programs/repo-add"
    script.parent.mkdir()
    script.write_text(
        f"""#!/bin/sh
{shutil.which("repo-add")} "$@" || exit
for file in "$4" "${{4%.db.tar}}.files.tar"; do
    truncate --size={kept} "$file"
done
"""
    )
    script.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(script.parent), prepend=os.pathsep)
        with pytest.raises(WorkError, match=r"repo-add did not write all of mepof-stable\.db\.tar"):
            release(tmp_path, "pkg", "6.12.95", 1, None, headers=True)
    assert not (tmp_path / "published/pacman").exists()
    index(tmp_path, None)
    assert (tmp_path / LISTS / "mepof-stable.db").is_file()
