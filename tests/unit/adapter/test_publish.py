"""What is published: whole or not at all, with an index that its signature fits at any time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mepof.adapter import publish as publishing
from mepof.adapter.publish import is_published, publish, write_index
from mepof.adapter.published import Published
from mepof.adapter.sign import Gnupg, Minisign
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.plan.digest import file_digest
from mepof.process import run

MADE = Published(
    follow="stable",
    release="v6.12.2",
    address="git+https://example.org/l#tag=v6.12.2",
    template="adap {source} pgo rand kbench.",
    program="",
    profile="full",
    reason="there is no earlier release",
    changed={},
    compilers={"clang": "22.1.8"},
    profiles={},
    compared_with=None,
    published_at="2026-01-01T00:00:00+00:00",
)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    (path / "report").mkdir(parents=True)
    (path / "adap.img").write_text("image")
    (path / "report/report.json").write_text("{}")
    (path / "journal.jsonl").write_text("")
    return path


def add(out: Path, directory: Path, release: str) -> Published:
    made = MADE.model_copy(update={"release": release})
    return publish(out, directory / f"stable-{release}", {}, made)


def test_a_release_is_published_with_the_digest_of_every_file(out: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("CONFIG_SMP=y\n")
    target = tmp_path / "published/stable-v6.12.2"
    publish(out, target, {"adap.config": config}, MADE)
    assert is_published(target)
    made = Published.read(target)
    assert made.sha256 == {
        name: file_digest(target / name)
        for name in ("adap.config", "adap.img", "report/report.json")
    }
    assert not (target / "journal.jsonl").exists()
    assert json.loads((target / "provenance.json").read_text())["schema"] == "mepof-provenance/1"


def test_nothing_is_there_before_all_of_it_is(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, os.strerror(28), str(path))

    target = tmp_path / "published/stable-v6.12.2"
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "sync", full)
        with pytest.raises(OSError, match="No space left"):
            publish(out, target, {}, MADE)
    assert list((tmp_path / "published").iterdir()) == []
    publish(out, target, {}, MADE)
    assert is_published(target)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"follow": 1}'])
def test_a_provenance_that_is_damaged_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "provenance.json").write_text(text)
    with pytest.raises(WorkError, match="is not valid"):
        Published.read(tmp_path)


def test_the_index_lists_what_is_published_and_counts_its_states(out: Path, tmp_path: Path) -> None:
    directory = tmp_path / "published"
    for number in range(6):
        add(out, directory, f"v6.12.{number}")
        write_index(directory, None, run)
        write_index(directory, None, run)  # nothing has changed
    index = json.loads((directory / "index.json").read_text())
    assert index["serial"] == 6
    assert [each["release"] for each in index["releases"]] == [f"v6.12.{n}" for n in range(6)]
    first = index["releases"][0]
    assert first["provenance"] == file_digest(directory / first["directory"] / "provenance.json")
    assert sorted(p.name for p in (directory / "indexes").iterdir()) == ["4", "5", "6", "current"]


def test_what_users_keep_under_the_name_of_a_repository_stays(out: Path, tmp_path: Path) -> None:
    directory = tmp_path / "published"
    (directory / "rpm").mkdir(parents=True)
    (directory / "pacman").write_text("mine")
    (directory / "dists").symlink_to(tmp_path)
    (directory / ".well-known").mkdir()
    (directory / "index.json.old").write_text("mine")
    add(out, directory, "v6.12.1")
    write_index(directory, None, run)
    assert (directory / "rpm").is_dir()
    assert (directory / "pacman").read_text() == "mine"
    assert (directory / "dists").readlink() == tmp_path
    assert (directory / ".well-known").is_dir()
    assert (directory / "index.json.old").read_text() == "mine"


def file(path: Path) -> None:
    path.write_text("mine")


def link(path: Path) -> None:
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("name", ["index.json", "index.json.sig", "lists"])
@pytest.mark.parametrize("mine", [file, link, Path.mkdir])
def test_what_users_keep_where_something_is_published_is_named(
    out: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    mine: Callable[[Path], None],
) -> None:
    class Signs:
        suffix = ".sig"

        def sign(self, path: Path, *_: object) -> None:
            path.with_name(f"{path.name}.sig").write_text("signed")

    def write_repositories(state: Path, *_: object) -> None:
        (state / "lists").mkdir()

    monkeypatch.setattr(publishing, "write_repositories", write_repositories)
    directory = tmp_path / "published"
    add(out, directory, "v6.12.1")
    mine(directory / name)
    with pytest.raises(InputError, match=rf"/{name} is not of mepof.*\(move it away"):
        write_index(directory, Signs(), run)  # type: ignore[arg-type]
    (directory / name).rename(tmp_path / "moved")
    write_index(directory, Signs(), run)  # type: ignore[arg-type]
    assert (directory / name).exists()


def test_a_file_in_place_of_the_states_of_the_index_is_named(out: Path, tmp_path: Path) -> None:
    add(out, tmp_path, "v6.12.1")
    (tmp_path / "indexes").write_text("mine")
    with pytest.raises(InputError, match="/indexes is not of mepof"):
        write_index(tmp_path, None, run)
    assert (tmp_path / "indexes").read_text() == "mine"


@pytest.mark.parametrize("links", range(3))
def test_a_watcher_that_is_killed_between_two_links_leaves_them_to_the_next(
    out: Path, tmp_path: Path, gnupg: str, monkeypatch: pytest.MonkeyPatch, links: int
) -> None:
    directory = tmp_path / "published"
    rest = iter(range(links))
    link = publishing._link

    def killed(path: Path, to: str) -> None:
        if next(rest, None) is None:
            raise KeyboardInterrupt
        link(path, to)

    add(out, directory, "v6.12.1")
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "_link", killed)
        with pytest.raises(KeyboardInterrupt):
            write_index(directory, Gnupg(gnupg), run)
    write_index(directory, Gnupg(gnupg), run)
    index = json.loads((directory / "index.json").read_text())
    assert [each["release"] for each in index["releases"]] == ["v6.12.1"]
    assert run(["gpg", "--verify", directory / "index.json.asc", directory / "index.json"])


@pytest.fixture
def gnupg(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    home = tmp_path_factory.mktemp("g")
    home.chmod(0o700)
    (home / "gpg-agent.conf").write_text("s2k-count 65536\n")  # otherwise, it measures for seconds
    monkeypatch.setenv("GNUPGHOME", str(home))
    words = ("--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key")
    subprocess.run(
        ["gpg", "--batch", "--quiet", *words, "mepof <m@example.org>", "ed25519", "sign"],
        check=True,
        capture_output=True,
    )
    yield "m@example.org"
    subprocess.run(["gpgconf", "--kill", "all"], check=False)


def test_gnupg_signs_the_index(out: Path, tmp_path: Path, gnupg: str) -> None:
    directory = tmp_path / "published"
    signer = Gnupg(gnupg)
    signer.check(run)
    for release in ("v6.12.1", "v6.12.2"):
        add(out, directory, release)
        write_index(directory, signer, run)
        assert run(["gpg", "--verify", directory / "index.json.asc", directory / "index.json"])
    with pytest.raises(InputError, match="GnuPG has no secret key"):
        Gnupg("nobody@example.org").check(run)


def test_a_gnupg_key_with_a_passphrase_is_refused_before_anything_is_built(gnupg: str) -> None:
    key = ("--passphrase", "secret", "--quick-generate-key", "l <l@example.org>", "ed25519", "sign")
    run(["gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", *key])
    run(["gpgconf", "--kill", "all"])  # which knows the passphrase
    with pytest.raises(InputError, match=r"cannot be signed by the GnuPG key l@\S+ \S") as caught:
        Gnupg("l@example.org").check(run)
    assert "gpg --change-passphrase l@example.org" in str(caught.value.remedy)


def test_a_minisign_key_with_a_password_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To derive a key from a password takes minisign itself seconds.
    script = tmp_path / "minisign"
    script.write_text("#!/bin/sh\necho 'Password: get_password()'\nexit 2\n")
    script.chmod(0o755)
    secret = tmp_path / "secret.key"
    secret.touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(InputError, match=r"cannot be signed by minisign with .*: Pass") as caught:
        Minisign(secret).check(run)
    assert f"minisign -C -W -s {secret}" in str(caught.value.remedy)


@pytest.mark.skipif(shutil.which("minisign") is None, reason="minisign is not installed")
def test_minisign_signs_the_index_and_its_key_is_not_shown(out: Path, tmp_path: Path) -> None:
    directory = tmp_path / "published"
    secret, public = (str(tmp_path / name) for name in ("secret.key", "public.key"))
    run(["minisign", "-G", "-W", "-s", secret, "-p", public])
    signer = Minisign(Path(secret))
    signer.check(run)
    add(out, directory, "v6.12.1")
    write_index(directory, signer, run)
    verify = ["minisign", "-V", "-p", public, "-m", str(directory / "index.json")]
    assert "Trusted comment: mepof index 1" in run(verify).output
    # A key with a password, or one that is damaged, ends with a line that does not contain it.
    text = Path(secret).read_text()
    Path(secret).write_text(text[:-20])
    add(out, directory, "v6.12.2")
    with pytest.raises(WorkError, match=r"index\.json cannot be signed by minisign") as error:
        write_index(directory, signer, run)
    assert text.splitlines()[1] not in str(error.value)
    # The index that is there is whole, and its signature fits.
    run(verify)
    Path(secret).write_text(text)
    write_index(directory, signer, run)
    assert json.loads((directory / "index.json").read_text())["serial"] == 2


def test_another_way_to_sign_replaces_the_signature(out: Path, tmp_path: Path, gnupg: str) -> None:
    directory = tmp_path / "published"
    add(out, directory, "v6.12.1")
    write_index(directory, None, run)
    assert not (directory / "index.json.asc").exists()
    write_index(directory, Gnupg(gnupg), run)
    assert (directory / "index.json.asc").exists()
    add(out, directory, "v6.12.2")
    write_index(directory, None, run)
    assert not (directory / "index.json.asc").is_symlink()


def test_what_signs_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for signer in (Gnupg("x"), Minisign(tmp_path / "none")):
        with pytest.raises(EnvironmentLack, match="is not installed"):
            signer.check(run)
    script = tmp_path / "minisign"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    with pytest.raises(InputError, match="there is no minisign key"):
        Minisign(tmp_path / "none").check(run)
