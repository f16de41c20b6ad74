"""The shared store on real servers: S3's protocol, and OpenSSH's SFTP."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from writers.ports import free_port

from mepof.errors import WorkError
from mepof.plan.clean import clean
from mepof.plan.remote import Remote, RemoteDenied, RemoteSilent, _way

from .test_shared import Machine, digests

START_SECONDS = 20
KEY = "mepofmepofmepof1"


@contextmanager
def running(argv: list[str], port: int, env: dict[str, str] | None = None) -> Iterator[None]:
    """A server on loopback, from when it accepts connections."""
    with tempfile.TemporaryFile("w+") as said:
        # What the server starts would keep a pipe open after its end.
        server = subprocess.Popen(
            argv, env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL, stderr=said
        )
        try:
            deadline = time.monotonic() + START_SECONDS
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if server.poll() is not None or time.monotonic() > deadline:
                        said.seek(0)
                        pytest.fail(f"{argv[0]} does not start: {said.read()}")
                    time.sleep(0.05)
            yield
        finally:
            server.kill()
            server.wait()


@pytest.fixture(params=["moto", "versitygw"])
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of a bucket."""
    s3fs = pytest.importorskip("s3fs")
    port = free_port()
    env = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": KEY}
    if request.param == "moto":
        pytest.importorskip("moto")
        pytest.importorskip("flask_cors")
        argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    else:
        gateway = shutil.which("versitygw") or pytest.skip("versitygw is not on PATH")
        (tmp_path / "s3").mkdir()
        argv = [gateway, "--port", f"127.0.0.1:{port}", "posix", str(tmp_path / "s3")]
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("mepof.plan.remote._FIRST_PAUSE_SECONDS", 0.0)
    s3fs.S3FileSystem.clear_instance_cache()
    with running(argv, port, env):
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("team")
        yield "s3://team/mepof"


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an SFTP server that knows our key, and whose key we know."""
    pytest.importorskip("paramiko")
    server = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    if server is None or shutil.which("ssh-keygen") is None:
        pytest.skip("no OpenSSH server is installed")
    port = free_port()
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True, mode=0o700)
    for key in (home / "id_ed25519", tmp_path / "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    shutil.copy(home / "id_ed25519.pub", tmp_path / "authorized")
    kind, host_key, *_ = (tmp_path / "host.pub").read_text().split()
    (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {host_key}\n")
    (home / "config").write_text(
        f"Host farm\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n"
        f" IdentityFile {home}/id_ed25519\n"
    )
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {tmp_path}/host\n"
        f"AuthorizedKeysFile {tmp_path}/authorized\nStrictModes no\nUsePAM no\n"
        f"PasswordAuthentication no\nPidFile none\nSubsystem sftp internal-sftp\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr("mepof.plan.remote._FIRST_PAUSE_SECONDS", 0.0)
    Path("/run/sshd").mkdir(exist_ok=True) if os.geteuid() == 0 else None
    with running([server, "-D", "-e", "-f", str(tmp_path / "sshd_config")], port):
        yield f"sftp://farm{tmp_path}/shared"


def shared_by_two(url: str, tmp_path: Path) -> None:
    made = Machine(tmp_path / "first", url).run()
    second = Machine(tmp_path / "second", url)
    taken = second.run()
    assert second.ran == [] and digests(taken) == digests(made)
    assert second.notes and all("fetching" in note for note in second.notes)
    remote = Remote(url)
    last = made.steps["last"].digest
    (tmp_path / "wrong").write_text("wrong")
    remote.put(f"objects/{last}.tar.zst", tmp_path / "wrong")
    third = Machine(tmp_path / "third", url)
    assert digests(third.run()) == digests(made) and third.ran == ["last"]
    assert remote.size(f"objects/{last}.tar.zst") != len("wrong")
    done = clean(remote, timedelta(days=7), datetime.now(UTC) + timedelta(days=9))
    assert (done.actions, done.artifacts, done.kept) == (4, 4, 0)
    assert remote.sizes("objects") == {} and remote.read("store.json") is not None


def test_a_bucket_is_shared(bucket: str, tmp_path: Path) -> None:
    shared_by_two(bucket, tmp_path)


def test_a_bucket_that_does_not_exist_is_named(bucket: str, tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="s3://nonesuch/mepof"):
        (tmp_path / "x").write_text("x")
        Remote("s3://nonesuch/mepof").put("x", tmp_path / "x")


def test_a_directory_behind_ssh_is_shared(ssh: str, tmp_path: Path) -> None:
    shared_by_two(ssh, tmp_path)


@pytest.mark.parametrize("way", ["ProxyJump farm", "ProxyCommand {ssh} -W 127.0.0.1:{port} farm"])
def test_a_host_behind_another_is_reached(
    ssh: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    config = tmp_path / "home/.ssh/config"
    port = config.read_text().partition("Port ")[2].split()[0]
    # OpenSSH takes its files from the password database's home.
    client = tmp_path / "bin/ssh"
    client.parent.mkdir()
    options = f"-F {config} -o UserKnownHostsFile={config.with_name('known_hosts')}"
    client.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/jumps\nexec {shutil.which("ssh")} {options} "$@"\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(client.parent), prepend=":")
    behind = config.read_text().replace("Host farm", "Host behind")
    with config.open("a") as file:
        file.write(f"{behind} {way.format(ssh=client, port=port)}\n")
    (tmp_path / "x").write_text("x")
    remote = Remote(ssh.replace("farm", "behind"))
    remote.put("x", tmp_path / "x")
    assert remote.size("x") == 1
    assert (tmp_path / "jumps").read_text().startswith(f"-W 127.0.0.1:{port} ")


@pytest.mark.parametrize(
    ("known", "host", "command"),
    [
        ({}, "h", None),
        ({"proxyjump": "none", "proxycommand": "nc h 22"}, "h", "nc h 22"),
        ({"proxycommand": "none"}, "h", None),
        ({"proxyjump": "me@gate:2222"}, "h", "ssh -W h:22 ssh://me@gate:2222"),
        ({"proxyjump": "a,b@c,ssh://d:7"}, "h", "ssh -J a,b@c -W h:22 ssh://d:7"),
        ({"proxyjump": "gate"}, "fd00::1", "ssh -W '[fd00::1]:22' ssh://gate"),
    ],
)
def test_the_way_to_a_host_is_what_ssh_is_told(
    known: dict[str, str], host: str, command: str | None
) -> None:
    assert _way(known, host, 22) == command


def test_a_host_whose_key_is_unknown_is_refused(ssh: str, tmp_path: Path) -> None:
    (tmp_path / "home/.ssh/known_hosts").write_text("")
    with pytest.raises(RemoteDenied, match=r"not in known_hosts.*ED25519|not in known_hosts.*ed25"):
        Remote(ssh).read("x")


def test_a_host_whose_key_has_changed_is_refused(ssh: str, tmp_path: Path) -> None:
    known = tmp_path / "home/.ssh/known_hosts"
    other = (tmp_path / "home/.ssh/id_ed25519.pub").read_text().split()[1]
    name, kind, _ = known.read_text().split()
    known.write_text(f"{name} {kind} {other}\n")
    with pytest.raises(RemoteDenied):
        Remote(ssh).read("x")


def test_a_user_whose_key_is_unknown_is_refused(ssh: str, tmp_path: Path) -> None:
    (tmp_path / "authorized").write_text("")
    with pytest.raises(RemoteDenied):
        Remote(ssh).read("x")


def test_a_host_where_nothing_listens_is_named(ssh: str, tmp_path: Path) -> None:
    config = tmp_path / "home/.ssh/config"
    config.write_text(config.read_text().replace("Port ", f"Port {free_port()} #"))
    with pytest.raises(RemoteSilent, match="does not answer as it should"):
        Remote(ssh).read("x")
