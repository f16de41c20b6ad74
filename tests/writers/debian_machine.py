"""A Debian 12 machine on a disk of its own, with Debian's kernel and GRUB, that QEMU emulates.

Its packages come from the archives that this machine's apt knows; the machine itself reaches this
one alone, at ``HOST``.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

#: This machine's loopback, as QEMU's user network shows it.
HOST = "10.0.2.2"
PACKAGES = (
    *("linux-image-cloud-amd64", "initramfs-tools", "zstd", "e2fsprogs"),
    *("systemd-sysv", "udev", "grub-pc"),
)
# Emulated, on a machine that is busy with other work.
BOOT_SECONDS = 1200.0
COMMAND_SECONDS = 900.0
_DISK, _START = 3 << 30, 1 << 20
_FORMAT = (
    "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "
    "$(REPO_URI) $(RELEASE) $(COMPONENT)"
)
# On a busy machine, the emulated timer is late where the kernel checks it.
_OPTIONS = "console=ttyS0 no_timer_check"
_FILES = {
    "etc/hostname": "machine\n",
    "etc/fstab": "/dev/vda1 / ext4 defaults 0 1\n",
    "etc/default/grub.d/machine.cfg": (
        "GRUB_TIMEOUT=1\nGRUB_TERMINAL=serial\nGRUB_CMDLINE_LINUX_DEFAULT=\n"
        f'GRUB_CMDLINE_LINUX="{_OPTIONS}"\n'
    ),
    "etc/systemd/network/machine.network": (
        "[Match]\nType=ether\n\n[Network]\nAddress=10.0.2.15/24\n"
    ),
    "etc/systemd/system/hand.service": """[Unit]
Description=A shell on the second serial port, which says which kernel runs
After=systemd-networkd-wait-online.service
Wants=systemd-networkd-wait-online.service

[Service]
Environment=HOME=/root LC_ALL=C TERM=dumb DEBIAN_FRONTEND=noninteractive
ExecStartPre=/bin/stty -F /dev/ttyS1 raw -echo
ExecStart=/bin/sh -c 'echo "runs $(uname -r)"; exec /bin/sh'
StandardInput=tty-force
StandardOutput=tty
StandardError=journal
TTYPath=/dev/ttyS1
# A shell that somebody could sit at ignores SIGTERM.
SendSIGHUP=yes

[Install]
WantedBy=multi-user.target
""",
}


class Machine:
    """A machine that runs.

    Attributes:
        console: what it and its boot loader printed.
    """

    def __init__(self, port: socket.socket, console: Path) -> None:
        self._port = port
        self._read = b""
        self.console = console

    def started(self) -> str:
        """Wait until it has started, and return the release of its kernel."""
        return self._expect(rb"runs (\S+)\r?\n", BOOT_SECONDS)[1].decode()

    def reboot(self) -> str:
        """Restart it, and return the release of the kernel that its boot loader chose."""
        self._port.sendall(b"systemctl reboot\n")
        return self.started()

    def off(self) -> None:
        """Switch it off: what is only in the journal of its disk is not there for GRUB."""
        self._port.sendall(b"systemctl poweroff\n")
        self._port.settimeout(COMMAND_SECONDS)
        while self._port.recv(1 << 16):
            pass

    def tries(self, command: str) -> tuple[int, str]:
        """The status of a command of the shell, and what it printed."""
        self._port.sendall(f'({command}) </dev/null 2>&1; echo "ended $?"\n'.encode())
        found = self._expect(rb"(?s)(.*)ended (\d+)\r?\n", COMMAND_SECONDS)
        return int(found[2]), found[1].decode(errors="replace").replace("\r\n", "\n")

    def does(self, command: str) -> str:
        """What a command printed, which must succeed."""
        status, text = self.tries(command)
        assert status == 0, f"{command}: {status}\n{text}"
        return text

    def _expect(self, pattern: bytes, seconds: float) -> re.Match[bytes]:
        until = time.monotonic() + seconds
        while (found := re.search(pattern, self._read)) is None:
            self._port.settimeout(max(0.001, until - time.monotonic()))
            try:
                data = self._port.recv(1 << 16)
            except TimeoutError:
                data = b""
            if not data:
                shown = self.console.read_text(errors="replace")[-4000:]
                raise AssertionError(f"the machine does not answer: {self._read!r}\n{shown}")
            self._read += data
        self._read = self._read[found.end() :]
        return found


def installed(root: Path) -> Path:
    """The disk of a machine with Debian 12, onto which it has installed its boot loader itself.

    It needs root, whose files are on the disk.
    """
    tree, disk, kernel = root / "tree", root / "disk", root / "kernel"
    for name, text in _FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    lists = subprocess.run(
        ["apt-get", "indextargets", "--format", _FORMAT, "Created-By: Packages"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    archives = sorted(
        {line for line in lists if re.search(r" bookworm(-updates|-security)? ", line)}
    )
    hooks = (
        f"sync-in {tree} /",
        'chroot "$1" systemctl --quiet enable systemd-networkd hand',
        # Another apt would hold the lock.
        'chroot "$1" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer',
        'rm "$1/etc/apt/sources.list"',
    )
    packed, made = root / "root.tar", root / "root"
    # What mmdebstrap mounts is below a directory of its own, and goes with it: nothing that removes
    # `root` meets this machine's /dev.
    _run(
        *("unshare", "--mount", "mmdebstrap", "--variant=apt"),
        *('--aptopt=Acquire::Retries "5"', f"--include={','.join(PACKAGES)}"),
        *(f"--customize-hook={hook}" for hook in hooks),
        "bookworm",
        packed,
        *archives,
    )
    made.mkdir()
    _run("tar", "--extract", "--numeric-owner", "--file", packed, "--directory", made)
    packed.unlink()
    with disk.open("wb") as file:
        file.truncate(_DISK)
    _run("sfdisk", "--quiet", disk, given=f"start={_START >> 9},type=83,bootable\n")
    size = f"{(_DISK - _START) >> 10}k"
    _run("mke2fs", "-q", "-t", "ext4", "-d", made, "-E", f"offset={_START}", disk, size)
    kernel.mkdir()
    for name in ("vmlinuz", "initrd.img"):
        shutil.copy(made / name, kernel)  # links, which Debian's scripts have made
    shutil.rmtree(made)
    by_hand = (
        *("-kernel", kernel / "vmlinuz", "-initrd", kernel / "initrd.img"),
        *("-append", f"root=/dev/vda1 {_OPTIONS}"),
    )
    with running(disk, root / "install.log", by_hand) as machine:
        machine.started()
        machine.does("grub-install /dev/vda && update-grub")
        machine.off()
    return disk


@contextmanager
def running(disk: Path, console: Path, words: Sequence[str | Path] = ()) -> Iterator[Machine]:
    """A machine that starts from a disk."""
    port = console.with_suffix(".port")
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(str(port))
        listens.listen()
        argv = [
            *("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1024"),
            *("-nodefaults", "-display", "none", "-device", "virtio-rng-pci"),
            *("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"),
            *("-nic", "user,model=virtio-net-pci"),
            *("-serial", f"file:{console}"),
            *("-chardev", f"socket,path={port},id=hand", "-serial", "chardev:hand"),
            *map(str, words),
        ]
        process = subprocess.Popen(argv)
        try:
            listens.settimeout(60)
            with listens.accept()[0] as accepted:
                yield Machine(accepted, console)
        finally:
            process.terminate()
            process.wait()


def _run(*argv: str | Path, given: str = "") -> None:
    done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv[0]}: {done.stderr[-4000:]}"
