"""Tarballs with checksums and signatures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, InputError
from mepof.plan.digest import file_digest
from mepof.source import keyring
from mepof.source.protocol import parse, source_of
from mepof.source.tarball import SOURCE, signature_of

from .conftest import Handler, Recorder, Server, Signer, files, write_kernel

SHA = "a" * 64


@pytest.fixture
def tarball(tmp_path: Path, server: Server) -> Path:
    tree = write_kernel(tmp_path / "linux-6.12.117")
    plain = server.root / "linux-6.12.117.tar"
    subprocess.run(["tar", "-cf", plain, "-C", tree.parent, tree.name], check=True)
    subprocess.run(["xz", "--keep", "-0", plain], check=True)
    return plain.with_suffix(".tar.xz")


def fetch(address: str, output: Path, bench: Recorder) -> None:
    assert source_of(address) is SOURCE
    parse(address)
    SOURCE.fetch(address, SOURCE.pin(address, bench.workshop), output, bench.workshop)


def test_a_tarball_with_its_checksum_is_unpacked(
    tarball: Path, server: Server, output: Path, bench: Recorder
) -> None:
    fetch(f"{server.url}/{tarball.name}#sha256={file_digest(tarball)}", output, bench)
    assert files(output) == ["Kbuild", "Makefile", "kernel/fork.c"]


def test_a_tarball_with_another_checksum_is_refused(
    tarball: Path, server: Server, output: Path, bench: Recorder
) -> None:
    with pytest.raises(InputError, match="is not the file that the program names"):
        fetch(f"{server.url}/{tarball.name}#sha256={SHA}", output, bench)
    with pytest.raises(InputError, match=f"has the SHA-256 .*, not {SHA}"):
        fetch(f"{tarball}#sha256={SHA}", output, bench)
    assert files(output) == []


def test_a_signature_of_the_uncompressed_tar_beside_it_is_checked(
    tarball: Path, server: Server, output: Path, bench: Recorder, signer: Signer
) -> None:
    plain = tarball.with_suffix("")
    signer.sign(plain, plain.with_suffix(".tar.sign"))
    fetch(f"{server.url}/{tarball.name}#signed-by={signer.keyring}", output, bench)
    assert "kernel/fork.c" in files(output)
    assert any(f"is signed by {signer.fingerprint}" in note for note in bench.notes)
    assert any(f"add sha256={file_digest(tarball)}" in note for note in bench.notes)


@pytest.mark.parametrize(
    ("suffix", "program"),
    [("txz", "xz"), ("tgz", "gzip"), ("tar.bz2", "bzip2"), ("tar.zst", "zstd"), ("tar", "cat")],
)
def test_a_tar_is_decompressed_by_what_it_begins_with(
    tarball: Path,
    server: Server,
    output: Path,
    bench: Recorder,
    signer: Signer,
    suffix: str,
    program: str,
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: tools/setup")
    plain = tarball.with_suffix("")
    signer.sign(plain, plain.with_suffix(".tar.sign"))
    name, tar = f"linux-6.12.117.{suffix}", plain.read_bytes()
    packed = subprocess.run([program], input=tar, check=True, capture_output=True).stdout
    (server.root / name).write_bytes(packed)
    sign = f"&signature={server.url}/linux-6.12.117.tar.sign"
    fetch(f"{server.url}/{name}#signed-by={signer.keyring}{sign}", output, bench)
    assert "kernel/fork.c" in files(output)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"LZIP\1", "is compressed by lzip, and its signature is of the uncompressed tar"),
        (b"\x28\xb5\x2f\xfd" + bytes(9), "cannot be unpacked"),
        (b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 9, "cannot be unpacked"),
    ],
)
def test_what_cannot_be_decompressed_is_not_called_forged(
    tarball: Path, output: Path, bench: Recorder, signer: Signer, content: bytes, message: str
) -> None:
    plain = tarball.with_suffix("")
    signer.sign(plain, plain.with_suffix(".tar.sign"))
    tarball.write_bytes(content)
    with pytest.raises(InputError, match=message):
        fetch(f"{tarball}#signed-by={signer.keyring}", output, bench)


def test_a_signature_of_someone_else_is_refused_and_not_kept(
    tarball: Path, server: Server, output: Path, bench: Recorder, signer: Signer, stranger: Signer
) -> None:
    plain = tarball.with_suffix("")
    sign = stranger.sign(plain, plain.with_suffix(".tar.sign"))
    address = f"{server.url}/{tarball.name}#signed-by={signer.keyring}"
    with pytest.raises(InputError, match=r"is not signed by .*: the key is not in this keyring"):
        fetch(address, output, bench)
    assert files(output) == []
    signer.sign(plain, sign)
    fetch(address, output, bench)


def test_parts_of_two_tarballs_are_fetched_again_before_they_are_called_forged(
    tarball: Path, server: Server, output: Path, bench: Recorder, signer: Signer
) -> None:
    plain = tarball.with_suffix("")
    signer.sign(plain, plain.with_suffix(".tar.sign"))

    def half_of_another(handler: Handler) -> bool:
        data = bytearray(tarball.read_bytes())
        data[20] ^= 1
        handler.give(bytes(data), len(data) // 2)
        return True

    def whatever_was_here(handler: Handler) -> bool:
        del handler.headers["If-Range"]
        return False

    server.script[:] = [half_of_another, whatever_was_here]
    fetch(f"{server.url}/{tarball.name}#signed-by={signer.keyring}", output, bench)
    assert "Makefile" in files(output)
    assert f"to name exactly this file, add sha256={file_digest(tarball)}" in bench.notes
    whole = [wanted for _, path, wanted in server.asked if path == f"/{tarball.name}"]
    assert [wanted is None for wanted in whole] == [True, False, True]


def test_a_changed_tarball_is_refused_despite_its_checksum(
    tarball: Path, server: Server, output: Path, bench: Recorder, signer: Signer
) -> None:
    plain = tarball.with_suffix("")
    other = tarball.with_name("other")
    other.write_bytes(b"something else")
    signer.sign(other, plain.with_suffix(".tar.sign"))
    address = f"{server.url}/{tarball.name}#sha256={file_digest(tarball)}"
    with pytest.raises(InputError, match="the file is not what was signed"):
        fetch(f"{address}&signed-by={signer.keyring}", output, bench)


def test_a_tarball_without_its_signature_is_refused(
    tarball: Path, server: Server, output: Path, bench: Recorder, signer: Signer
) -> None:
    with pytest.raises(InputError, match=r"linux-6.12.117.tar.sign: there is no such file"):
        fetch(f"{server.url}/{tarball.name}#signed-by={signer.keyring}", output, bench)
    with pytest.raises(InputError, match=r"the signature .* does not exist"):
        fetch(f"{tarball}#signed-by={signer.keyring}", output, bench)
    tarball.with_name("linux-6.12.117.tar.sign").write_text("not a signature")
    with pytest.raises(InputError, match="it is not a signature"):
        fetch(f"{tarball}#signed-by={signer.keyring}", output, bench)


def test_a_signature_of_the_file_itself_can_be_named(
    tarball: Path, output: Path, bench: Recorder, signer: Signer
) -> None:
    sign = signer.sign(tarball, tarball.with_name("linux.sig"))
    fetch(f"{tarball}#signed-by={signer.keyring}&signature={sign}", output, bench)
    assert "kernel/fork.c" in files(output)


def test_an_armoured_keyring_is_read(
    tarball: Path, output: Path, bench: Recorder, signer: Signer, tmp_path: Path
) -> None:
    armoured = tmp_path / "key.asc"
    armoured.write_text(signer.gpg("--armor", "--export", signer.fingerprint))
    plain = tarball.with_suffix("")
    signer.sign(plain, plain.with_suffix(".tar.sign"))
    fetch(f"{tarball}#signed-by={armoured}", output, bench)


def test_only_the_named_keys_of_a_keyring_count(
    tarball: Path,
    output: Path,
    bench: Recorder,
    stranger: Signer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = tmp_path / "mepof/keyrings"
    own.mkdir(parents=True)
    (own / "kernel.org.gpg").write_bytes(stranger.keyring.read_bytes())
    plain = tarball.with_suffix("")
    stranger.sign(plain, plain.with_suffix(".tar.sign"))
    with pytest.raises(InputError, match=f"{stranger.fingerprint} is not one of its keys"):
        fetch(f"{tarball}#signed-by=kernel.org", output, bench)


def test_an_expired_key_is_refused(
    tarball: Path, output: Path, bench: Recorder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("e")
    plain = tarball.with_suffix("")
    # gpg's own clock, so that nothing waits.
    words = ("--faked-system-time", "20200101T000000!", "--pinentry-mode", "loopback")
    past = Signer(home / "past", "", home / "past.gpg")
    past.home.mkdir(mode=0o700)
    key = ("o <o@x.org>", "ed25519", "sign", "1d")
    past.gpg(*words, "--passphrase", "", "--quick-generate-key", *key)
    past.gpg("--output", past.keyring, "--export")
    sign = plain.with_suffix(".tar.sign")
    past.gpg(*words, "--detach-sign", "--output", sign, plain)
    with pytest.raises(InputError, match="the key has expired in this keyring"):
        fetch(f"{tarball}#signed-by={past.keyring}", output, bench)


def test_a_keyring_that_is_missing_is_named_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(keyring, "_SYSTEM", tmp_path)
    for name, remedy in {
        "kernel.org": "gpg --locate-keys torvalds@kernel.org",
        "debian": "apt-get install debian-archive-keyring",
        "mine": f"> {tmp_path}/mepof/keyrings/mine.gpg",
    }.items():
        with pytest.raises(EnvironmentLack, match=f"no keyring `{name}`") as caught:
            keyring.keyring_of(name)
        assert remedy in str(caught.value.remedy)
    with pytest.raises(InputError, match=r"the keyring ./none does not exist"):
        keyring.keyring_of("./none")


def test_a_truncated_tarball_is_refused(
    tarball: Path, output: Path, bench: Recorder, signer: Signer
) -> None:
    plain = tarball.with_suffix("")
    signer.sign(plain, plain.with_suffix(".tar.sign"))
    tarball.write_bytes(tarball.read_bytes()[:200])
    with pytest.raises(InputError, match="cannot be unpacked"):
        fetch(f"{tarball}#signed-by={signer.keyring}", output, bench)
    with pytest.raises(InputError, match="cannot be unpacked"):
        fetch(f"{tarball}#sha256={file_digest(tarball)}", output, bench)


def test_releases_of_kernel_org_are_signed_by_its_people() -> None:
    parse("https://cdn.kernel.org/pub/linux/kernel/v6.x/linux-6.12.tar.xz")
    with pytest.raises(InputError, match="does not say how the download is verified"):
        parse("https://cdn.kernel.org.example.com/linux-6.12.tar.xz")


def test_the_signature_is_beside_the_tarball() -> None:
    assert signature_of("https://x/linux-6.12.tar.xz") == "https://x/linux-6.12.tar.sign"
    assert signature_of("/x/linux.tar") == "/x/linux.tar.sign"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://example.org/linux.tar.xz", "does not say how the download is verified"),
        (f"https://example.org/#sha256={SHA}", "names no file"),
        (f"https:///linux.tar#sha256={SHA}", "names no host"),
        (f"https://me:secret@example.org/l.tar#sha256={SHA}", "example.org holds a password"),
        ("https://example.org/l.tar#sha256=abc", "is not 64 hexadecimal digits"),
        ("https://example.org/l.tar#sha255=abc", "unknown key `sha255`"),
        ("https://example.org/l.tar#sha256=", "`sha256` has no value"),
        (f"https://example.org/l.tar#sha256={SHA}&sha256={SHA}", "`sha256` occurs twice"),
        (f"https://example.org/l.tar#sha256={SHA}&signature=x", "needs `signed-by`"),
        (f"https://example.org:port/l.tar#sha256={SHA}", "is not a URL"),
        ("s3://bucket/linux.tar", "is not a kernel source that mepof can fetch"),
        ("https://example.org/l.tar#", "unknown key"),
    ],
)
def test_malformed_addresses_are_refused_by_their_form(address: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse(address)
    assert caught.value.remedy or "is not a URL" in message
    assert "secret" not in str(caught.value)
