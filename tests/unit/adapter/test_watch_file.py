"""What a watch file says and names, checked before there is a release."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mepof.adapter.repository.protocol import REPOSITORIES
from mepof.adapter.watched import read_task
from mepof.errors import EnvironmentLack, InputError
from mepof.package.protocol import FORMATS
from mepof.source import keyring

from .conftest import Mepof
from .world import FILE, PROGRAM, World


@pytest.mark.parametrize("lost", ["my.config", "keys.gpg"])
def test_a_file_that_is_missing_is_an_error_before_there_is_a_release(
    world: World, elsewhere: Mepof, lost: str
) -> None:
    (world.root / "watch.toml").write_text(f'{FILE}signed-by = "./keys.gpg"\n')
    (world.root / "keys.gpg").touch()
    (world.root / lost).unlink()
    (world.root / "elsewhere" / lost).touch()
    answer = elsewhere("watch", "../watch.toml", "--once", "--store", "store")
    assert answer.status == 2
    assert f"./{lost} does not exist" in answer.err.replace("`", "")
    assert f"paths are relative to {world.root}" in answer.err
    assert not (world.root / "out").exists()


@pytest.mark.parametrize("how", ["--once", "--history"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('minisign = "nokey"', "there is no minisign key "),
        ('sign = "0xDEAD"', "GnuPG has no secret key `0xDEAD`"),
        ('notify = ["/nope"]', "watch.toml: `notify`: there is no program `/nope`"),
        ('notify = ["./told", "x"]', "watch.toml: `notify`: there is no program `./told`"),
    ],
)
def test_a_key_and_the_command_of_notify_must_be_there(
    world: World,
    elsewhere: Mepof,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    line: str,
    message: str,
) -> None:
    (world.root / "watch.toml").write_text(f"{line}\n{FILE}")
    for name in ("minisign", "elsewhere/told"):
        (world.root / name).touch(0o755)
    monkeypatch.setenv("PATH", str(world.root), prepend=os.pathsep)
    monkeypatch.setenv("GNUPGHOME", str(world.root))
    answer = elsewhere("watch", "../watch.toml", how, "--store", "store")
    assert answer.status == 2
    assert message in answer.err
    assert not (world.root / "out").exists()


def test_the_command_of_notify_is_found_beside_the_file(world: World, elsewhere: Mepof) -> None:
    (world.root / "watch.toml").write_text(f'notify = ["./told"]\n{FILE}')
    (world.root / "told").touch(0o755)
    assert elsewhere("watch", "../watch.toml", "--history").status == 0


def test_the_keyring_that_a_feed_implies_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "watch.toml").write_text(
        f'{FILE[: FILE.index("[[")]}[[follow]]\nname = "k"\nfeed = "kernel-org"\n'
    )
    (tmp_path / "update.g4").write_text(PROGRAM)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(keyring, "_SYSTEM", tmp_path)
    task = read_task(tmp_path / "watch.toml")
    with pytest.raises(EnvironmentLack, match=r"no keyring `kernel\.org` on this machine"):
        task.check()
    (tmp_path / "kernel.org.gpg").touch()
    task.check()


@pytest.mark.parametrize(
    ("form", "program", "package"),
    [
        ("rpm", "createrepo_c", "createrepo-c"),
        ("rpm", "rpmbuild", "rpm"),
        ("pkg", "repo-add", "pacman-package-manager"),
        ("pkg", "zstd", "zstd"),
    ],
)
def test_what_writes_packages_and_the_repository_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, program: str, package: str
) -> None:
    (tmp_path / "watch.toml").write_text(FILE)
    (tmp_path / "update.g4").write_text(f"set package {form}.\n{PROGRAM}")
    task = read_task(tmp_path / "watch.toml")
    for name, _ in (*FORMATS.get(form).programs, *REPOSITORIES.get(form).programs):
        (tmp_path / name).touch(0o755)
    (tmp_path / program).unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLack, match=f"{program} is not installed") as caught:
        task.check()
    assert caught.value.remedy == f"apt-get install {package}"
    # What only other formats need is not asked for.
    (tmp_path / "update.g4").write_text(f"set package deb.\n{PROGRAM}")
    read_task(tmp_path / "watch.toml").check()


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("index.json", ""),
        ("indexes", ""),
        ("rpm", ""),
        ("index.json.asc", 'sign = "key"\n'),
        ("index.json.minisig", 'minisign = "key"\n'),
    ],
)
def test_a_file_where_something_will_be_published_is_refused_before_anything_is_built(
    tmp_path: Path, name: str, sign: str
) -> None:
    (tmp_path / "watch.toml").write_text(sign + FILE)
    (tmp_path / "update.g4").write_text(f"set package rpm.\n{PROGRAM}")
    (tmp_path / "out/published").mkdir(parents=True)
    (tmp_path / "out/published/dists").mkdir()  # of no format of the program
    (tmp_path / "out/published/index.json.sig").touch()  # of no way to sign
    (tmp_path / "out/published" / name).touch()
    with pytest.raises(InputError, match=f"/{name} is not of mepof.*as `publish`"):
        read_task(tmp_path / "watch.toml").check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[[follow]]", "[judge]\nreuse = 101\n[[follow]]"), "less than or equal to 100"),
        (("[[follow]]", "[judge]\nreuse = 50\n[[follow]]"), "must not be below"),
        (("[[follow]]", "worse = -1\n[[follow]]"), "greater than or equal to 0"),
        (("[[follow]]", 'sign = "a"\nminisign = "b"\n[[follow]]'), "not by both"),
        (
            ("[[follow]]", '[[webhook]]\nurl = "ftp://x"\nsecret = "k"\n[[follow]]'),
            "write an http",
        ),
        (
            ("[[follow]]", '[[webhook]]\nurl = "http://x"\nsecret = "k"\n[[follow]]'),
            "cannot be read",
        ),
        (('feed = "git"', 'feed = "gti"'), "unknown feed `gti`"),
        (('url = "https://example.org/linux.git"', ""), "follows git and has no `url`"),
        (("https://example.org", "ext::sh"), "is not a URL that mepof lets git read"),
        (
            ("https://example.org", "/tmp"),
            r"/watch\.toml: `stable`: `url`: `/tmp/linux\.git` is not a URL .*file:///PATH",
        ),
        (
            ("linux.git", "linux.git#v6.12"),
            r"`stable`: `url`: `\S+#v6\.12` names a tag or a branch",
        ),
        (("https://example.org", "https://"), "^(?!.*v1).*`https:///linux.git` names no host"),
        (('publish = "out"', ""), "`publish` is missing"),
        (('publish = "out"', 'publish = "out"\ninterval = 1'), "`interval` must be"),
        (('match = "v6', 'matches = "v6'), "unknown key `matches`"),
        (('name = "stable"', 'name = "../x"'), "name"),
        ((FILE[FILE.index("[[") :], ""), "follows nothing"),
    ],
)
def test_a_file_that_is_wrong_is_an_error(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "update.g4").write_text("opt {source} pgo rand kbench.\n")
    (tmp_path / "watch.toml").write_text(FILE.replace(*change))
    with pytest.raises(InputError, match=message):
        read_task(tmp_path / "watch.toml")


def test_a_program_with_errors_is_refused_before_there_is_a_release(tmp_path: Path) -> None:
    (tmp_path / "update.g4").write_text("adap {source} pgo rand kbench.\neval plain;opt.\n")
    (tmp_path / "watch.toml").write_text(FILE)
    with pytest.raises(InputError, match=r"update\.g4:2:12: error: unknown image `opt`"):
        read_task(tmp_path / "watch.toml")


def test_a_program_that_flashes_is_refused_before_there_is_a_release(tmp_path: Path) -> None:
    text = "set device phone.\nbuild {source}.\nflash build.img.\n"
    (tmp_path / "update.g4").write_text(text)
    (tmp_path / "watch.toml").write_text(FILE)
    with pytest.raises(InputError, match=r"update\.g4 flashes a phone"):
        read_task(tmp_path / "watch.toml")


def test_a_program_without_a_place_for_the_release_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "update.g4").write_text("opt /src pgo rand kbench.\n")
    (tmp_path / "watch.toml").write_text(FILE)
    with pytest.raises(InputError, match="does not say where the release goes"):
        read_task(tmp_path / "watch.toml")


def test_a_mark_within_a_longer_text_is_an_error_before_there_is_a_release(world: World) -> None:
    (world.root / "update.g4").write_text(PROGRAM.replace("{source}", '"./{source}"'))
    with pytest.raises(InputError, match="missing blank after the string"):
        read_task(world.root / "watch.toml")
