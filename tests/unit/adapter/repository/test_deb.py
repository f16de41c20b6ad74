"""What is published, read by the real apt in a root of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from package.kernels import kernel, package

from mepof.adapter import publish as publishing
from mepof.errors import WorkError

from .releases import index, publish_package, release

META = "linux-image-mepof-stable"
HEADERS = "linux-headers-mepof-stable"


class Apt:
    """apt with directories of its own, on what is published in ``published``."""

    def __init__(self, root: Path, key: str) -> None:
        self.root = root
        for name in ("lists/partial", "cache/archives/partial", "etc"):
            (root / name).mkdir(parents=True)
        exported = subprocess.run(["gpg", "--export", key], check=True, capture_output=True).stdout
        (root / "key.gpg").write_bytes(exported)
        source = f"deb [arch=amd64 signed-by={root}/key.gpg] file:{root}/published stable main\n"
        (root / "sources.list").write_text(source)
        (root / "status").touch()

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        settings = {
            "Dir": self.root,
            "Dir::Etc": self.root / "etc",
            "Dir::Etc::sourcelist": self.root / "sources.list",
            "Dir::State": self.root,
            "Dir::State::lists": self.root / "lists",
            "Dir::State::status": self.root / "status",
            "Dir::Cache": self.root / "cache",
            "Dir::Bin::Methods": "/usr/lib/apt/methods",
            "Acquire::Languages": "none",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        return subprocess.run(
            ["apt-get", *options, *words],
            capture_output=True,
            text=True,
            check=False,
            env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )

    def installs(self, *words: str) -> list[tuple[str, str]]:
        """What a simulation would install: names and versions."""
        done = self("--simulate", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+)", done.stdout, re.M)

    def has(self, *packages: Path) -> None:
        """Note packages as installed."""
        shown = [
            subprocess.run(
                ["dpkg-deb", "--field", path], check=True, capture_output=True, text=True
            ).stdout.replace("\nVersion:", "\nStatus: install ok installed\nVersion:")
            for path in packages
        ]
        (self.root / "status").write_text("\n".join(shown))


@pytest.fixture
def apt(tmp_path: Path, gnupg: str) -> Apt:
    return Apt(tmp_path, gnupg)


def test_apt_installs_and_upgrades_by_the_metapackage(apt: Apt, tmp_path: Path) -> None:
    first = release(tmp_path, "deb", "6.12.95", 1)
    done = apt("update")
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^[EW]:", done.stderr, re.M), done.stderr
    image = "linux-image-6.12.95-mepof-opt"
    assert set(apt.installs("install", META)) == {(image, "6.12.95-1"), (META, "6.12.95-1")}
    apt.has(*first.glob("*.deb"))
    assert apt.installs("dist-upgrade") == []
    release(tmp_path, "deb", "6.12.100", 2)
    assert apt("update").returncode == 0
    upgraded = set(apt.installs("upgrade", "--with-new-pkgs"))
    assert upgraded == {("linux-image-6.12.100-mepof-opt", "6.12.100-2"), (META, "6.12.100-2")}


def test_headers_are_installed_and_upgraded_by_a_metapackage_of_their_own(
    apt: Apt, tmp_path: Path
) -> None:
    first = release(tmp_path, "deb", "6.12.95", 1, headers=True)
    # What they depend on comes from the distribution.
    library = "Package: {}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n"
    there = [library.format(name) for name in ("libc6", "libelf1")]
    (tmp_path / "status").write_text("\n".join(there))
    assert apt("update").returncode == 0
    image, headers = (f"linux-{kind}-6.12.95-mepof-opt" for kind in ("image", "headers"))
    assert set(apt.installs("install", HEADERS)) == {(headers, "6.12.95-1"), (HEADERS, "6.12.95-1")}
    assert {name for name, _ in apt.installs("install", META)} == {image, META}
    apt.has(*first.glob("*.deb"))
    with (tmp_path / "status").open("a") as status:
        status.write("\n" + "\n".join(there))
    release(tmp_path, "deb", "6.12.100", 2, headers=True)
    assert apt("update").returncode == 0
    upgraded = {name for name, _ in apt.installs("upgrade", "--with-new-pkgs")}
    new = {f"linux-{kind}-6.12.100-mepof-opt" for kind in ("image", "headers")}
    assert upgraded == {*new, META, HEADERS}


def test_a_release_is_listed_once_and_its_packages_are_whole(apt: Apt, tmp_path: Path) -> None:
    release(tmp_path, "deb", "6.12.95", 1)
    index(tmp_path)
    lists = tmp_path / "published/dists/stable/main/binary-amd64/Packages"
    assert lists.read_text().count("Package: linux-image-6.12.95-mepof-opt\n") == 1
    assert apt("update").returncode == 0
    done = apt("install", "--yes", "--download-only", "--no-install-recommends", META)
    assert done.returncode == 0, done.stderr


def test_a_release_that_is_not_published_is_not_in_the_lists(apt: Apt, tmp_path: Path) -> None:
    release(tmp_path, "deb", "6.12.95", 1)
    held = tmp_path / "published/stable-6.12.96"
    held.mkdir()
    package(held, kernel(tmp_path, "6.12.96"))
    index(tmp_path)
    text = (tmp_path / "published/dists/stable/main/binary-amd64/Packages").read_text()
    assert "6.12.96" not in text


@pytest.mark.parametrize("name", ["main/binary-amd64/Packages", "InRelease"])
def test_a_list_that_was_changed_is_refused(apt: Apt, tmp_path: Path, name: str) -> None:
    release(tmp_path, "deb", "6.12.95", 1)
    suite = tmp_path / "published/dists/stable"
    for path in (suite / name, suite / f"{name}.gz"):
        if path.exists():
            path.write_bytes(path.read_bytes().replace(b"mepof", b"mepog") + b"\n")
    (suite / "Release.gpg").unlink()
    done = apt("update")
    assert done.returncode != 0
    assert apt("--simulate", "install", META).returncode != 0


def test_lists_without_a_signature_are_refused(apt: Apt, tmp_path: Path) -> None:
    release(tmp_path, "deb", "6.12.95", 1, key=None)
    done = apt("update")
    assert done.returncode != 0
    assert "is not signed" in done.stderr


def test_a_package_that_was_changed_is_refused(apt: Apt, tmp_path: Path) -> None:
    target = release(tmp_path, "deb", "6.12.95", 1)
    assert apt("update").returncode == 0
    data = bytearray((target / "opt.deb").read_bytes())
    data[-20] ^= 1
    (target / "opt.deb").write_bytes(data)
    done = apt("install", "--yes", "--download-only", META)
    assert done.returncode != 0


def test_lists_change_in_one_step_with_the_index(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(tmp_path, "deb", "6.12.95", 1)

    def killed(path: Path, to: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "_link", killed)
        with pytest.raises(KeyboardInterrupt):
            release(tmp_path, "deb", "6.12.96", 2)
    assert apt("update").returncode == 0
    assert (META, "6.12.95-1") in apt.installs("install", META)
    index(tmp_path)
    assert apt("update").returncode == 0
    assert (META, "6.12.96-2") in apt.installs("install", META)


def test_a_damaged_package_keeps_the_lists_as_they_are(apt: Apt, tmp_path: Path) -> None:
    release(tmp_path, "deb", "6.12.95", 1)
    before = (tmp_path / "published/dists/stable/InRelease").read_bytes()
    out = tmp_path / "other"
    out.mkdir()
    (out / "opt.deb").write_bytes(b"!<arch>\n")
    publish_package(out / "opt.deb", tmp_path)
    with pytest.raises(WorkError, match="cannot be read as a package"):
        index(tmp_path)
    assert (tmp_path / "published/dists/stable/InRelease").read_bytes() == before
