"""Commits of real repositories, served by git's own servers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from writers.ports import free_port

from mepof.errors import InputError, WorkError
from mepof.source import mirror
from mepof.source.git import SOURCE
from mepof.source.protocol import Pin, parse, source_of

from .conftest import Recorder, Server, Signer, commit, files, git, status

SHA = "0123456789" * 4


def pinned(address: str, bench: Recorder) -> Pin:
    assert source_of(address) is SOURCE
    parse(address)
    return SOURCE.pin(address, bench.workshop)


def sublevel(output: Path) -> str:
    return (output / "kernel/fork.c").read_text()


@pytest.fixture
def daemon(repository: Path) -> Iterator[str]:
    """The URL of the repository at a git daemon."""
    port = free_port()
    argv = ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", "--export-all", "--reuseaddr"]
    process = subprocess.Popen(
        [*argv, "--verbose", f"--base-path={repository.parent}", repository.parent],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "Ready to rumble" in process.stderr.readline()
    yield f"git://127.0.0.1:{port}/linux"
    process.terminate()
    process.wait()
    process.stderr.close()


def test_a_tag_is_pinned_to_its_commit_and_laid_out(
    daemon: str, repository: Path, output: Path, bench: Recorder
) -> None:
    address = f"{daemon}#tag=v6.12.1"
    pin = pinned(address, bench)
    assert pin == {
        "commit": git(repository, "rev-parse", "v6.12.1^{commit}"),
        "ref": "refs/tags/v6.12.1",
    }
    # As an attempt leaves it that was killed.
    (bench.workshop.work / "index.lock").touch()
    SOURCE.fetch(address, pin, output, bench.workshop)
    assert files(output) == ["Kbuild", "Makefile", "kernel/fork.c"]
    assert sublevel(output) == "int fork = 1;\n"


def test_a_repository_of_another_user_is_read(
    repository: Path, output: Path, bench: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    address = f"git+file://{repository}#tag=v6.12.1"
    SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert sublevel(output)


def test_a_branch_is_pinned_to_where_it_is_now_and_said(
    daemon: str, repository: Path, output: Path, bench: Recorder
) -> None:
    address = f"{daemon}#branch=m"
    before = pinned(address, bench)
    assert bench.notes == [f"branch m of {daemon} is at {before['commit']} now"]
    assert pinned(address, bench) == before
    commit(repository, 3)
    assert pinned(address, bench)["commit"] == git(repository, "rev-parse", "m")
    # What was planned is built, whatever the branch has become since.
    SOURCE.fetch(address, before, output, bench.workshop)
    assert sublevel(output) == "int fork = 2;\n"


def test_no_name_is_the_default_branch(daemon: str, repository: Path, bench: Recorder) -> None:
    assert pinned(daemon, bench)["commit"] == git(repository, "rev-parse", "m")


def test_a_commit_that_is_here_needs_no_server(
    repository: Path, output: Path, bench: Recorder
) -> None:
    head = git(repository, "rev-parse", "HEAD")
    address = f"git+file://{repository}#commit={head}"
    assert pinned(address, bench) == {"commit": head}
    SOURCE.fetch(address, {"commit": head}, output, bench.workshop)
    gone = f"git://127.0.0.1:1/linux#{head}"
    again = output.with_name("again")
    again.mkdir()
    SOURCE.fetch(gone, pinned(gone, bench), again, bench.workshop)
    assert files(again) == files(output)


def test_a_second_release_is_fetched_without_what_is_here(
    repository: Path, output: Path, bench: Recorder
) -> None:
    (repository / "large").write_bytes(os.urandom(300_000))
    head = commit(repository, 3)
    url = f"git+file://{repository}"
    SOURCE.fetch(f"{url}#m", {"commit": head}, output, bench.workshop)
    before = size(bench)
    assert before > 300_000
    after = commit(repository, 4)
    other = output.with_name("other")
    other.mkdir()
    SOURCE.fetch(f"{url}#m", {"commit": after}, other, bench.workshop)
    assert (other / "large").stat().st_size == 300_000
    assert size(bench) - before < 30_000
    # Nothing of the history came along.
    assert git(bench.workshop.cache / "git", "rev-list", "--count", after) == "1"


def size(bench: Recorder) -> int:
    packs = (bench.workshop.cache / "git/objects").rglob("*")
    return sum(path.stat().st_size for path in packs if path.is_file())


def test_a_server_over_plain_files_gives_what_a_ref_names(
    server: Server, repository: Path, output: Path, bench: Recorder
) -> None:
    git(server.root, "clone", "--quiet", "--bare", str(repository), "linux.git")
    git(server.root / "linux.git", "update-server-info")
    address = f"{server.url}/linux.git#v6.12.2"
    SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert sublevel(output) == "int fork = 2;\n"


def test_a_branch_that_moved_on_a_server_of_refs_alone_says_so(
    server: Server, repository: Path, output: Path, bench: Recorder
) -> None:
    bare = server.root / "linux.git"
    git(server.root, "clone", "--quiet", "--bare", str(repository), "linux.git")
    git(bare, "update-server-info")
    address = f"{server.url}/linux.git#branch=m"
    pin = {**pinned(address, bench), "commit": SHA}
    with pytest.raises(WorkError, match=r"refs/heads/m of .* has moved from 0123456789") as caught:
        SOURCE.fetch(address, pin, output, bench.workshop)
    assert caught.value.remedy == "run it again, to plan it with what is there now"
    assert not mirror.Mirror(bench.workshop).has(SHA)


@pytest.mark.parametrize(
    ("fragment", "message", "remedy"),
    [
        ("tag=v6.12.3", "has no tag `v6.12.3`", "did you mean `v6.12.2`?"),
        ("branch=v6.12.1", "has no branch `v6.12.1`", "known: m"),
        ("v6.13", "has no tag or branch `v6.13`", "did you mean `v6.12.1`?"),
    ],
)
def test_a_ref_that_does_not_exist_is_named_with_the_nearest(
    repository: Path, bench: Recorder, fragment: str, message: str, remedy: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        pinned(f"git+file://{repository}#{fragment}", bench)
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith(remedy[:12])


def test_a_tag_with_a_message_is_known_by_its_name_alone(repository: Path, bench: Recorder) -> None:
    git(repository, "tag", "-a", "-m", "first", "v6.12-signed")
    with pytest.raises(InputError) as caught:
        pinned(f"git+file://{repository}#tag=other", bench)
    assert "v6.12-signed" in str(caught.value.remedy) and "^{}" not in str(caught.value.remedy)


def test_a_name_of_both_a_tag_and_a_branch_is_ambiguous(repository: Path, bench: Recorder) -> None:
    git(repository, "branch", "v6.12.1")
    with pytest.raises(InputError, match=r"both a tag and a branch `v6.12.1`"):
        pinned(f"git+file://{repository}#v6.12.1", bench)
    pinned(f"git+file://{repository}#tag=v6.12.1", bench)


def test_a_branch_that_a_clone_has_of_its_origin_alone_is_read(
    repository: Path, tmp_path: Path, output: Path, bench: Recorder
) -> None:
    git(repository, "branch", "linux-6.12.y", "v6.12.1")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repository), str(clone))
    address = f"git+file://{clone}#branch=origin/linux-6.12.y"
    pin = pinned(address, bench)
    assert bench.notes == [
        f"branch origin/linux-6.12.y of file://{clone} is at {pin['commit']} now"
    ]
    assert pinned(f"git+file://{clone}#origin/linux-6.12.y", bench) == pin
    SOURCE.fetch(address, pin, output, bench.workshop)
    assert sublevel(output) == "int fork = 1;\n"


def test_a_bundle_is_a_repository(repository: Path, output: Path, bench: Recorder) -> None:
    bundle = repository.parent / "linux 6.bundle"
    git(repository, "bundle", "create", str(bundle), "--all")
    address = f"git+file://{str(bundle).replace(' ', '%20')}#tag=v6.12.1"
    SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert sublevel(output) == "int fork = 1;\n"
    with pytest.raises(InputError, match="has no tag `v6"):
        pinned(f"{address}x", bench)


def test_a_partial_clone_is_named_as_such(
    repository: Path, tmp_path: Path, output: Path, bench: Recorder
) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    origin, clone = f"file://{repository}", tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", "--no-checkout", origin, str(clone))
    repository.rename(tmp_path / "gone")
    address = f"git+file://{clone}#branch=m"
    with pytest.raises(WorkError) as caught:
        SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert "it is a partial clone" in str(caught.value.remedy)


def test_a_repository_that_does_not_exist_is_an_error(tmp_path: Path, bench: Recorder) -> None:
    with pytest.raises(WorkError, match=r"cannot be read: .*does not appear to be a git") as caught:
        pinned(f"git+file://{tmp_path}/none#m", bench)
    assert "git ls-remote" in str(caught.value.remedy)
    assert bench.waits == []


def test_a_commit_that_a_server_does_not_have_is_an_error_of_the_program(
    daemon: str, output: Path, bench: Recorder
) -> None:
    with pytest.raises(InputError, match=f"has no commit {SHA}") as caught:
        SOURCE.fetch(f"{daemon}#commit={SHA}", {"commit": SHA}, output, bench.workshop)
    assert "#tag=NAME" in str(caught.value.remedy)


def test_a_server_that_is_gone_is_named_with_the_reason_and_asked_again(bench: Recorder) -> None:
    port = free_port()
    with pytest.raises(WorkError, match=r"unable to connect to .*Connection refused"):
        pinned(f"git://127.0.0.1:{port}/linux#m", bench)
    assert len(bench.waits) == mirror.MAX_ATTEMPTS - 1


def test_what_ssh_says_is_the_reason(
    tmp_path: Path, bench: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'Host key verification failed.' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))
    with pytest.raises(WorkError, match=r"cannot be read: Host key verification failed\."):
        pinned("git@example.org:linux.git#m", bench)


def test_an_empty_repository_is_an_error(tmp_path: Path, bench: Recorder) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "empty.git")
    with pytest.raises(InputError, match="has no tag or branch `m`") as caught:
        pinned(f"file://{tmp_path}/empty.git#m", bench)
    assert caught.value.remedy == "the repository is empty"


def test_a_repository_without_a_kernel_is_an_error(
    repository: Path, output: Path, bench: Recorder
) -> None:
    git(repository, "rm", "--quiet", "Kbuild")
    git(repository, "commit", "--quiet", "--message", "none")
    address = f"git+file://{repository}#branch=m"
    with pytest.raises(InputError, match="#branch=m is not a kernel source tree: it has no Kbuild"):
        SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)


def test_a_busy_server_is_asked_again_with_growing_waits(server: Server, bench: Recorder) -> None:
    server.script[:] = [status(503)] * 20
    with pytest.raises(WorkError, match="error: 503"):
        pinned(f"{server.url}/linux.git#m", bench)
    assert len(bench.waits) == mirror.MAX_ATTEMPTS - 1
    assert bench.waits[2] > bench.waits[0]


def test_what_a_killed_fetch_left_is_not_in_the_way(
    repository: Path, output: Path, bench: Recorder
) -> None:
    address = f"git+file://{repository}#tag=v6.12.1"
    SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    (bench.workshop.cache / "git/shallow.lock").touch()
    again = output.with_name("again")
    again.mkdir()
    address = f"git+file://{repository}#branch=m"
    SOURCE.fetch(address, pinned(address, bench), again, bench.workshop)
    assert sublevel(again) == "int fork = 2;\n"


def test_this_machines_configuration_does_not_change_files(
    repository: Path, output: Path, bench: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text("[core]\n\tautocrlf = true\n\tsymlinks = false\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    (repository / "link").symlink_to("Kbuild")
    (repository / "script.sh").write_text("#!/bin/sh\n")
    (repository / "script.sh").chmod(0o755)
    head = commit(repository, 5)
    SOURCE.fetch(f"git+file://{repository}#{head}", {"commit": head}, output, bench.workshop)
    assert b"\r" not in (output / "Makefile").read_bytes()
    assert (output / "link").readlink() == Path("Kbuild")
    assert (output / "script.sh").stat().st_mode & 0o111


def signed_tag(repository: Path, signer: Signer, name: str) -> None:
    wrapper = repository.parent / "gpg.sh"
    wrapper.write_text(f'#!/bin/sh\nexec gpg --homedir {signer.home} "$@"\n')
    wrapper.chmod(0o755)
    words = ("-c", f"gpg.program={wrapper}", "-c", f"user.signingKey={signer.fingerprint}")
    git(repository, *words, "tag", "--sign", "--message", f"Linux {name}", name)


@pytest.mark.parametrize("key", ["tag=", ""])
def test_a_signed_tag_is_checked_before_it_is_laid_out(
    repository: Path, output: Path, bench: Recorder, signer: Signer, stranger: Signer, key: str
) -> None:
    signed_tag(repository, signer, "v6.12.9")
    address = f"git+file://{repository}#{key}v6.12.9&signed-by={signer.keyring}"
    SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert any(f"is signed by {signer.fingerprint}" in note for note in bench.notes)
    other = output.with_name("other")
    other.mkdir()
    address = f"git+file://{repository}#tag=v6.12.9&signed-by={stranger.keyring}"
    with pytest.raises(InputError, match="the key is not in this keyring"):
        SOURCE.fetch(address, pinned(address, bench), other, bench.workshop)
    assert files(other) == []


def test_a_signed_tag_under_the_name_of_another_is_refused(
    repository: Path, output: Path, bench: Recorder, signer: Signer
) -> None:
    signed_tag(repository, signer, "v6.12.8")
    git(repository, "update-ref", "refs/tags/v6.12.9", "refs/tags/v6.12.8")
    address = f"git+file://{repository}#tag=v6.12.9&signed-by={signer.keyring}"
    with pytest.raises(InputError, match=r"by that name is the signed tag `v6\.12\.8`"):
        SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)
    assert files(output) == []


def test_a_tag_without_a_signature_is_refused(
    repository: Path, output: Path, bench: Recorder, signer: Signer
) -> None:
    with pytest.raises(InputError, match=r"tag v6.12.2 of .* has no signature"):
        pinned(f"git+file://{repository}#tag=v6.12.2&signed-by={signer.keyring}", bench)
    address = f"git+file://{repository}#tag=v6.12.1&signed-by={signer.keyring}"
    with pytest.raises(InputError, match="has no signature"):
        SOURCE.fetch(address, pinned(address, bench), output, bench.workshop)


@pytest.mark.parametrize(
    "address",
    [
        "git+https://example.org/linux#tag=v6.12",
        "https://example.org/linux.git",
        "https://example.org/linux#branch=linux-6.12.y",
        "git://example.org/linux",
        "ssh://git@example.org:29418/kernel/common#branch=android15-6.6",
        "git@example.org:kernel/linux.git#v6.12",
        "file:///srv/linux#m",
        f"git+file:///srv/linux#{SHA}",
    ],
)
def test_every_url_that_git_reads_is_read(address: str) -> None:
    assert source_of(address) is SOURCE
    parse(address)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("git+ext::sh -c id", "is not a URL that mepof lets git read"),
        ("git+rsync://example.org/linux", "is not a URL that mepof lets git read"),
        ("git+/srv/linux", "is not a URL that mepof lets git read"),
        ("git+https://example.org/l#tag=v6&branch=m", "names a tag and a branch"),
        ("git+https://example.org/l#commit=abc123", "is not the whole hash of a commit"),
        ("git+https://example.org/l#tag=", "`tag` has no value"),
        ("git+https://example.org/l#tga=v6", "unknown key `tga`"),
        ("git+https://example.org/l#--upload-pack=id", "unknown key|is not the name"),
        ("git+https://example.org/l#tag=-x", "is not the name of a tag or branch"),
        ("git+https://example.org/l#branch=a..b", "is not the name of a tag or branch"),
        ("git+https://example.org/l#branch=a&signed-by=kernel.org", "only tags are signed"),
        ("git+https://example.org/l#v6.12&branch=a", "names a branch and a tag or branch"),
        ("git+https://example.org/l#v6.12&depth=1", "unknown key `depth`"),
        (
            "git+https://ghp_0123456789abcdef0123@example.org/l#m",
            "a URL of example.org holds a token",
        ),
        ("git+https://u:secret@example.org/l#m", "a URL of example.org holds a password"),
        ("git+#m", "has no location"),
    ],
)
def test_malformed_addresses_are_refused_by_their_form(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(address)
    assert caught.value.remedy
    assert "secret" not in str(caught.value)
