"""Debian's packages, from a real archive on the loopback that apt reads and verifies."""

from __future__ import annotations

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.plan.digest import file_digest
from mepof.source import debian
from mepof.source.debian import SOURCE
from mepof.source.protocol import Pin, parse, source_of

from .conftest import Recorder, Server, Signer, files, status, write_kernel

PACKAGE = "linux-source-6.12"


def add_package(root: Path, version: str, sublevel: int, pool: str = "pool") -> Path:
    """Build a package of kernel source as Debian does."""
    tree = write_kernel(root.parent / f"{PACKAGE}-{version}", sublevel)
    package = root.parent / f"deb-{version}"
    (package / "usr/src").mkdir(parents=True)
    (package / "DEBIAN").mkdir()
    (package / "DEBIAN/control").write_text(
        f"Package: {PACKAGE}\nVersion: {version}\nArchitecture: all\nMaintainer: d <d@x.org>\n"
        "Description: source\n"
    )
    target = package / f"usr/src/{PACKAGE}.tar.xz"
    subprocess.run(["tar", "-cJf", target, "-C", tree.parent, tree.name], check=True)
    (root / pool).mkdir(exist_ok=True, parents=True)
    file = root / pool / f"{PACKAGE}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "--build", package, file], check=True, capture_output=True)
    return file


def publish(root: Path, suite: str, signer: Signer, pool: str = "pool") -> None:
    """Write the index of a suite, and sign it."""
    directory = root / "dists" / suite
    scan = ["dpkg-scanpackages", "--multiversion", pool]
    listed = subprocess.run(scan, cwd=root, check=True, capture_output=True).stdout
    entries = []
    for machine in ("all", "amd64", "arm64"):
        path = directory / f"main/binary-{machine}/Packages"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(listed)
        name = path.relative_to(directory)
        entries.append(f" {sha256(listed).hexdigest()} {len(listed)} {name}")
    release = directory / "Release"
    release.write_text(
        f"Origin: Debian\nLabel: Debian\nSuite: {suite}\nCodename: {suite}\n"
        "Date: Mon, 01 Jan 2024 00:00:00 UTC\nArchitectures: all amd64 arm64\nComponents: main\n"
        "SHA256:\n" + "\n".join(entries) + "\n"
    )
    signer.gpg("--clearsign", "--yes", "--output", directory / "InRelease", release)


@pytest.fixture
def apt(server: Server, signer: Signer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """apt with one archive, whose suite ``stable`` has 6.12.94-1 and 6.12.95-1."""
    add_package(server.root, "6.12.94-1", 94)
    add_package(server.root, "6.12.95-1", 95)
    publish(server.root, "stable", signer)
    root = tmp_path / "apt"
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        (root / name).mkdir(parents=True)
    (root / "status").touch()
    line = f"deb [signed-by={signer.keyring}] {server.url} stable main\n"
    (root / "sources.list").write_text(line)
    settings = {
        "Dir::Etc::sourcelist": root / "sources.list",
        "Dir::Etc::sourceparts": root / "etc",
        "Dir::State::lists": root / "lists",
        "Dir::State::status": root / "status",
        "Dir::Cache": root / "cache",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::http::Proxy": "DIRECT",
    }
    config = root / "apt.conf"
    config.write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))
    monkeypatch.setenv("APT_CONFIG", str(config))
    monkeypatch.setattr(debian, "INSTALLED", tmp_path / "usr-src")
    monkeypatch.setattr(debian, "KEYRING", signer.keyring)
    subprocess.run(["apt-get", "update"], check=True, capture_output=True)
    return server


def pinned(address: str, bench: Recorder) -> Pin:
    assert source_of(address) is SOURCE
    return SOURCE.pin(address, bench.workshop)


def test_the_newest_version_is_pinned_with_its_checksum_and_said(
    apt: Server, output: Path, bench: Recorder
) -> None:
    address = f"debian:{PACKAGE}"
    pin = pinned(address, bench)
    deb = apt.root / f"pool/{PACKAGE}_6.12.95-1_all.deb"
    assert pin == {"version": "6.12.95-1", "sha256": file_digest(deb)}
    assert bench.notes == [f"{PACKAGE} is version 6.12.95-1 now"]
    assert SOURCE.identity(address, pin) == {}
    SOURCE.fetch(address, pin, output, bench.workshop)
    assert (output / "kernel/fork.c").read_text() == "int fork = 95;\n"


def test_an_older_version_is_downloaded_once(apt: Server, output: Path, bench: Recorder) -> None:
    address = f"debian:{PACKAGE}=6.12.94-1"
    pin = pinned(address, bench)
    SOURCE.fetch(address, pin, output, bench.workshop)
    assert (output / "kernel/fork.c").read_text() == "int fork = 94;\n"
    assert bench.notes == [f"downloading {PACKAGE}=6.12.94-1"]
    (apt.root / f"pool/{PACKAGE}_6.12.94-1_all.deb").unlink()
    again = output.with_name("again")
    again.mkdir()
    (bench.workshop.work / "package").rename(bench.workshop.work / "old")
    SOURCE.fetch(address, pin, again, bench.workshop)
    assert files(again) == files(output)


def test_what_a_killed_download_of_another_version_left_is_not_taken(
    apt: Server, output: Path, bench: Recorder
) -> None:
    left = bench.workshop.cache / "apt/archives"
    left.mkdir(parents=True)
    shutil.copy(apt.root / f"pool/{PACKAGE}_6.12.94-1_all.deb", left)
    address = f"debian:{PACKAGE}=6.12.95-1"
    SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert (output / "kernel/fork.c").read_text() == "int fork = 95;\n"


def test_a_suite_that_the_machine_does_not_have_is_read_for_the_run(
    apt: Server, signer: Signer, output: Path, bench: Recorder
) -> None:
    add_package(apt.root, "7.3.1-1~bpo1", 1, "backports")
    publish(apt.root, "stable-backports", signer, "backports")
    address = f"debian:{PACKAGE}/stable-backports"
    pin = pinned(address, bench)
    assert pin["version"] == "7.3.1-1~bpo1"
    SOURCE.fetch(address, pin, output, bench.workshop)
    assert (output / "kernel/fork.c").read_text() == "int fork = 1;\n"
    # The machine's own lists are as they were.
    assert pinned(f"debian:{PACKAGE}", bench)["version"] == "6.12.95-1"


def test_each_suite_is_in_some_of_debians_archives_only(
    apt: Server, signer: Signer, bench: Recorder
) -> None:
    add_package(apt.root, "7.3.1-1~bpo1", 1, "backports")
    publish(apt.root, "stable-backports", signer, "backports")
    old = apt.root / "old"
    old.mkdir()
    add_package(old, "5.10.1-1", 1)
    publish(old, "oldstable", signer)
    sources = apt.root.parent / "apt/sources.list"
    with sources.open("a") as file:
        file.write(f"deb [signed-by={signer.keyring}] {apt.url}/old oldstable main\n")
    subprocess.run(["apt-get", "update"], check=True, capture_output=True)
    assert pinned(f"debian:{PACKAGE}/oldstable", bench)["version"] == "5.10.1-1"
    assert pinned(f"debian:{PACKAGE}/stable-backports", bench)["version"] == "7.3.1-1~bpo1"
    with pytest.raises(WorkError, match=r"the suite nonesuch cannot be read: .*404"):
        pinned(f"debian:{PACKAGE}/nonesuch", bench)


def test_a_suite_that_someone_else_signed_is_refused(
    apt: Server, stranger: Signer, bench: Recorder
) -> None:
    publish(apt.root, "unstable", stranger)
    with pytest.raises(WorkError, match="the suite unstable cannot be read"):
        pinned(f"debian:{PACKAGE}/unstable", bench)


def test_a_suite_that_does_not_exist_is_an_error(apt: Server, bench: Recorder) -> None:
    with pytest.raises(WorkError, match=r"the suite nonesuch cannot be read: .*404") as caught:
        pinned(f"debian:{PACKAGE}/nonesuch", bench)
    assert "check its name" in str(caught.value.remedy)


def test_a_version_that_does_not_exist_is_an_error_that_lists_those_that_do(
    apt: Server, bench: Recorder
) -> None:
    with pytest.raises(InputError, match=r"has no version 6.12.1-1 in apt's lists") as caught:
        pinned(f"debian:{PACKAGE}=6.12.1-1", bench)
    assert caught.value.remedy == "there are 6.12.95-1, 6.12.94-1"
    with pytest.raises(InputError, match=r"apt's lists have no package linux-source-9\.9"):
        pinned("debian:linux-source-9.9", bench)


def test_a_version_that_is_newer_than_the_machines_lists_is_read_from_its_archives(
    apt: Server, signer: Signer, output: Path, bench: Recorder
) -> None:
    add_package(apt.root, "6.12.96-1", 96)
    publish(apt.root, "stable", signer)
    address = f"debian:{PACKAGE}=6.12.96-1"
    SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert (output / "kernel/fork.c").read_text() == "int fork = 96;\n"
    # The machine's own lists are as they were.
    assert pinned(f"debian:{PACKAGE}", bench)["version"] == "6.12.95-1"


def test_archives_that_do_not_answer_are_an_error(apt: Server, bench: Recorder) -> None:
    apt.script[:] = [status(404)] * 10
    with pytest.raises(WorkError, match=r"apt's archives cannot be read: .*404"):
        pinned(f"debian:{PACKAGE}=6.12.96-1", bench)


def test_a_package_that_was_changed_is_refused(apt: Server, output: Path, bench: Recorder) -> None:
    address = f"debian:{PACKAGE}=6.12.94-1"
    pin = pinned(address, bench)
    deb = apt.root / f"pool/{PACKAGE}_6.12.94-1_all.deb"
    deb.write_bytes(deb.read_bytes().replace(b"debian-binary", b"debian-Binary"))
    with pytest.raises(WorkError, match=r"cannot be downloaded: .*[Hh]ash"):
        SOURCE.fetch(address, pin, output, bench.workshop)
    assert files(output) == []


def test_a_package_that_the_archive_has_lost_is_an_error(
    apt: Server, output: Path, bench: Recorder
) -> None:
    address = f"debian:{PACKAGE}=6.12.94-1"
    pin = pinned(address, bench)
    apt.script[:] = [status(404)] * 10
    with pytest.raises(WorkError, match=r"cannot be downloaded: .*404"):
        SOURCE.fetch(address, pin, output, bench.workshop)


def test_an_installed_package_is_taken_as_it_is(
    tmp_path: Path, output: Path, bench: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write_kernel(tmp_path / PACKAGE)
    monkeypatch.setattr(debian, "INSTALLED", tmp_path)
    tarball = tmp_path / f"{PACKAGE}.tar.xz"
    subprocess.run(["tar", "-cJf", tarball, "-C", tmp_path, tree.name], check=True)
    query = tmp_path / "bin/dpkg-query"
    query.parent.mkdir()
    query.write_text("#!/bin/sh\necho 6.12.117-1\n")
    query.chmod(0o755)
    monkeypatch.setenv("PATH", f"{query.parent}:/usr/bin:/bin")
    assert pinned(f"debian:{PACKAGE}=6.12.117-1", bench) == {} and bench.notes == []
    address = f"debian:{PACKAGE}"
    assert pinned(address, bench) == {}
    assert bench.notes == [f"{PACKAGE} is version 6.12.117-1, which is installed"]
    assert SOURCE.identity(address, {}) == {"source": file_digest(tarball)}
    SOURCE.fetch(address, {}, output, bench.workshop)
    assert "kernel/fork.c" in files(output)


def test_a_package_that_is_not_installed_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "INSTALLED", tmp_path)
    with pytest.raises(EnvironmentLack) as caught:
        SOURCE.identity(f"debian:{PACKAGE}", {})
    assert caught.value.remedy == f"apt-get install {PACKAGE}"


@pytest.mark.parametrize(
    "address",
    [
        "debian:linux-image-6.12",
        "debian:linux-source-6",
        "debian:",
        "debian:linux-source-6.12=",
        "debian:linux-source-6.12=x",
        "debian:linux-source-6.12/",
        "debian:linux-source-6.12/../..",
        "debian:linux-source-6.12 -o x",
        "debian:linux-source-6.12=1;rm",
    ],
)
def test_only_packages_of_kernel_source_are_taken(address: str) -> None:
    with pytest.raises(InputError, match="is not a Debian kernel source package"):
        parse(address)


@pytest.mark.parametrize(
    "address",
    [
        "debian:linux-source-6.12",
        "debian:linux-source-6.12=6.12.94-1",
        "debian:linux-source-6.12=6.12.95-1~bpo12+1/bookworm-backports",
        "debian:linux-source-7.3/trixie-backports",
    ],
)
def test_versions_and_suites_can_be_named(address: str) -> None:
    parse(address)
