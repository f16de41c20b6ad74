"""A Debian machine follows what ``mepof watch`` publishes: apt installs, upgrades and removes its
kernels, and its own boot loader starts them."""

from __future__ import annotations

import base64
import functools
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from writers.debian_machine import HOST, Machine, installed, running

pytestmark = [
    pytest.mark.boot,
    pytest.mark.rounds,
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="mmdebstrap is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the files of a machine belong to root"),
]

CONFIG = Path(__file__).with_name("machine.config")
# What is followed is the program itself. A name is not in the configuration: the objects of the
# first kernel are in the compiler's cache for the second.
PROGRAM = """\
# {source}
set config slim+./machine.config.
set package deb.
set name machineNUMBER.
build debian:linux-source-6.12 O2.
"""
KEY = "m@example.org"
META = "linux-image-mepof-machine"


class Publisher:
    """A watcher that follows the tags of a repository with its program."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self.served = root / "out" / "published"
        self.environment = {**os.environ, "GNUPGHOME": str(home)}
        self.repository = root / "programs"
        self.repository.mkdir()
        self._git("init", "--quiet")
        shutil.copy(CONFIG, root)
        (root / "watch.toml").write_text(
            f'program = "update.g4"\npublish = "out"\nsign = "{KEY}"\n'
            f'[[follow]]\nname = "machine"\nfeed = "git"\nurl = "file://{self.repository}"\n'
        )

    def release(self, number: int) -> None:
        """A release appears, and is published: ``6.12.N-1-mepof-machineNUMBER``."""
        for directory in (self.repository, self.root):
            (directory / "update.g4").write_text(PROGRAM.replace("NUMBER", str(number)))
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", f"release {number}")
        self._git("tag", f"v{number}")
        self._run(
            *(sys.executable, "-c", "from mepof.cli.main import main; main()"),
            *("watch", self.root / "watch.toml", "--once"),
        )

    def key(self) -> bytes:
        """The public key, as ``gpg --export`` has it."""
        return self._run("gpg", "--export", KEY)

    def make_key(self) -> None:
        words = ("--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key")
        self._run("gpg", "--batch", "--quiet", *words, f"mepof <{KEY}>", "ed25519", "sign")

    def _git(self, *words: str) -> None:
        who = ("-c", "user.name=D", "-c", "user.email=d@example.org")
        self._run("git", "-C", self.repository, *who, *words)

    def _run(self, *argv: str | Path) -> bytes:
        done = subprocess.run(argv, env=self.environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout


@pytest.fixture
def publisher(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Publisher]:
    home = tmp_path_factory.mktemp("g")  # of which the agent's socket has a short path
    home.chmod(0o700)
    root = tmp_path / "publisher"
    root.mkdir()
    made = Publisher(root, home)
    made.make_key()
    yield made
    subprocess.run(["gpgconf", "--kill", "all"], env=made.environment, check=False)


@pytest.fixture
def url(publisher: Publisher) -> Iterator[str]:
    """What is published, at a web server that the machine reaches."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(publisher.served))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://{HOST}:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_machine_is_upgraded_by_apt_and_falls_back(
    publisher: Publisher, url: str, tmp_path: Path
) -> None:
    """It costs two small kernels, of which the second is in the compiler's cache; a Debian system
    of 370 MB; and six starts of an emulated machine. Without most of the time for the kernels, it
    took 14 minutes of two busy cores: 3 until the disk could start, and about 2 for each start
    after that, with what is then done on the machine."""
    disk = installed(tmp_path)
    publisher.release(1)
    with running(disk, tmp_path / "console.log") as machine:
        debians = machine.started()
        assert debians.endswith("-cloud-amd64")
        key = base64.b64encode(publisher.key()).decode()
        machine.does(f"echo {key} | base64 -d > /usr/share/keyrings/kernels.gpg")
        source = f"deb [signed-by=/usr/share/keyrings/kernels.gpg] {url} machine main"
        machine.does(f"echo '{source}' > /etc/apt/sources.list.d/kernels.list")
        _updated(machine)
        machine.does(f"apt-get install --yes {META}")
        first = machine.reboot()
        assert re.fullmatch(r"6\.12\.\d+-1-mepof-machine1", first)
        assert f"BOOT_IMAGE=/boot/vmlinuz-{first} " in machine.does("cat /proc/cmdline")
        assert "ext4" in machine.does("lsmod")

        publisher.release(2)
        _updated(machine)
        machine.does("apt-get upgrade --yes --with-new-pkgs")
        second = machine.reboot()
        assert second == first.removesuffix("1") + "2"
        assert _kernels(machine) == {debians, first, second}
        # The one before stays, also where apt cleans up.
        assert "Remv" not in machine.does("apt-get --simulate autoremove")

        # Debian asks before the kernel that runs is taken away, unless nothing may be asked.
        remove = f"apt-get remove --yes linux-image-{second}"
        status, text = machine.tries(f"echo yes | DEBIAN_FRONTEND=teletype {remove}")
        assert (status, "Aborting removal of the running kernel" in text) == (100, True), text
        assert _kernels(machine) == {debians, first, second}
        version = machine.does(f"dpkg-query --show --showformat='${{Version}}' linux-image-{first}")
        machine.does(f"apt-get install --yes --allow-downgrades {META}={version}")
        machine.does(remove)
        assert _kernels(machine) == {debians, first}
        assert machine.reboot() == first
        machine.does(f"apt-mark hold {META}")
        assert "Inst" not in machine.does("apt-get --simulate upgrade --with-new-pkgs")
        machine.does(f"apt-mark unhold {META}")
        assert f"Inst {META}" in machine.does("apt-get --simulate upgrade --with-new-pkgs")

        machine.does(f"apt-get purge --yes {META} linux-image-{first}")
        assert _kernels(machine) == {debians}
        assert machine.does(f"find /lib/modules /boot -name '*{first}*'") == ""
        assert machine.reboot() == debians


def _updated(machine: Machine) -> None:
    """Read the lists, without an error or a warning."""
    text = machine.does("apt-get update")
    assert not re.search(r"^[EW]:", text, re.M), text


def _kernels(machine: Machine) -> set[str]:
    """The releases of the kernels that are in /boot, each with its initramfs and its entry of the
    boot loader."""
    names = machine.does("ls /boot").split()
    found = {name: set[str]() for name in ("vmlinuz", "initrd.img")}
    for name in names:
        kind, _, release = name.partition("-")
        if kind in found:
            found[kind].add(release)
    entries = set(re.findall(r"/boot/vmlinuz-(\S+)", machine.does("cat /boot/grub/grub.cfg")))
    assert found["vmlinuz"] == found["initrd.img"] == entries
    return entries
