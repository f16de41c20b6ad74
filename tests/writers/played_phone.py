"""A virtual phone whose system is played by this machine's shell, behind a program named ``adb``.

The boot loader, its partitions and slots are the virtual phone's, and the real ``fastboot`` talks
to them. What a kernel and adbd would do is played here, so that a boot takes no time.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from mepof.bootimg.model import Model
from mepof.phone.faults import Faults, read_fault
from mepof.phone.loading import Loaded
from mepof.phone.machine import Ended, Qemu
from mepof.phone.phone import Phone
from mepof.phone.state import DEFAULT_MODEL, Storage
from writers.android_phone import AndroidPhone
from writers.boot_image import boot_image

# What Debian's and Google's adb do, as far as mepof uses it.
_ADB = """\
#!/bin/bash
[ "$1" = -s ] && shift 2
newline=$'\\n' mark=$'\\001'
exec 3<>/dev/tcp/127.0.0.1/{port} || exit 1
printf '%s\\n' "$1" "${{2//$newline/$mark}}" "${{3//$newline/$mark}}" >&3
IFS= read -r status <&3 || {{ echo "error: closed" >&2; exit 1; }}
cat <&3
exit "$status"
"""
_PROGRAMS = {
    # A slot's system has the fingerprint that a test wrote for it.
    "getprop": 'case "$1" in sys.boot_completed) echo 1;;\n'
    "ro.build.fingerprint) cat {system}/fingerprint_$(cat {system}/slot) 2>/dev/null || echo;;\n"
    "*) echo;; esac",
    "bootctl": 'echo "successful $(cat {system}/slot)" > {system}/control.new\n'
    "mv {system}/control.new {system}/control\n"
    # The slot is marked when the program ends.
    "for _ in $(seq 3000); do [ -e {system}/control ] || exit 0; sleep 0.01; done; exit 1",
    "reboot": 'echo "reboot $1" > {system}/control.new; mv {system}/control.new {system}/control',
}
# A session's programs are not run: what is mounted for them stays away, and what answers for their
# agent says of everything that it went well.
_PROGRAMS |= dict.fromkeys(("mount", "umount"), "exit 0")
_PROGRAMS["cpio"] = "cat > /dev/null"
_AGENT = """\
#!{python} -SE
import struct, sys
def answer(kind, payload=b""):
    replies.write(b"MPF1" + struct.pack("<IQ", kind, len(payload)) + payload)
    replies.flush()
with open(sys.argv[3], "rb") as requests, open(sys.argv[4], "wb") as replies:
    answer(0x80, b"6.12-played")
    while head := requests.read(16):
        kind, size = struct.unpack("<4xIQ", head)
        asked = requests.read(size)
        if kind == 1:
            answer(0x81, bytes(16))
        elif kind == 3:
            with open("{system}/" + asked.rstrip(b"\\0").decode().rpartition("/")[2], "rb") as file:
                answer(0x83, bytes(4) + file.read())
        else:
            answer(0x80 + kind, b"" if kind in (4, 7) else bytes(4))
"""
_ANDROID = frozenset(("am", "input", "monkey", "pidof", "pm", "uiautomator", "wm"))
_MARKED = re.compile(r"exec 2>&1; \( (.*) \); printf '.*' \$\?", re.S)
_SECONDS = 30.0


def install(directory: Path, port: int) -> Path:
    """Write the programs; the directory of ``adb``, for PATH."""
    (directory / "host").mkdir(parents=True)
    (directory / "phone").mkdir()
    (directory / "system").mkdir()
    adb = directory / "host/adb"
    adb.write_text(_ADB.format(port=port))
    adb.chmod(0o755)
    for name, script in _PROGRAMS.items():
        program = directory / "phone" / name
        program.write_text("#!/bin/sh\n" + script.replace("{system}", str(directory / "system")))
        program.chmod(0o755)
    agent = directory / "phone/chroot"
    system = str(directory / "system")
    agent.write_text(_AGENT.replace("{python}", sys.executable).replace("{system}", system))
    agent.chmod(0o755)
    return adb.parent


@dataclass(frozen=True)
class Played(Qemu):
    """The processor: whatever is started is up at once, and ends when it is asked to, or with
    ``kernel-panic`` as soon as a file is pushed to it, or anything is asked of it if the fault came
    while it was up.

    Attributes:
        android: what answers for Android's programs; without it, they are not there.
        started: called with the package of an app that is started.
    """

    root: Path = Path()
    faults: Faults = field(default_factory=Faults)
    android: AndroidPhone | None = None
    started: Callable[[str], None] = lambda package: None

    def run(
        self,
        loaded: Loaded,
        parameters: Sequence[str],
        partitions: Mapping[str, bytes],
        asked: Callable[[str], None],
        cancel: threading.Event | None = None,
    ) -> Ended:
        system = self.root / "system"
        (system / "cmdline").write_text(" ".join([loaded.cmdline, *parameters]) + "\n")
        (system / "boot_id").write_text(f"{uuid4()}\n")
        (system / "slot").write_text(loaded.slot + "\n")
        control = system / "control"
        control.unlink(missing_ok=True)
        for name, data in partitions.items():
            (system / name).write_bytes(data)
        first = self.faults.of_start(loaded.start)
        panicked = threading.Event()
        began = time.monotonic()
        slow = 3.0 if "slow-boot" in first else 0.0
        server: socket.socket | None = None
        try:
            while cancel is None or not cancel.is_set():
                up = time.monotonic() - began - slow
                if server is None and up >= 0:
                    server = socket.create_server(("127.0.0.1", self.adb_port))
                    served = (server, loaded.start, first, panicked)
                    threading.Thread(target=self._serve, args=served, daemon=True).start()
                if panicked.is_set():
                    return Ended("crash")
                if control.exists():
                    line = control.read_text().split()
                    if line[0] != "reboot":
                        asked(" ".join(line))
                    control.unlink()
                    if line[0] == "reboot":
                        return Ended(line[1] if len(line) > 1 else "reboot")
                time.sleep(0.01)
            return Ended("off")
        finally:
            if server is not None:
                server.shutdown(socket.SHUT_RDWR)
                server.close()

    def _serve(
        self, server: socket.socket, start: str, first: tuple[str, ...], panicked: threading.Event
    ) -> None:
        lost = None
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, client.makefile("rwb") as file:
                verb, told, more = (
                    file.readline().decode().rstrip("\n").replace("\1", "\n") for _ in range(3)
                )
                faults = self.faults.of_start(start)
                if "kernel-panic" in faults and (verb == "push" or "kernel-panic" not in first):
                    panicked.set()
                    return
                if "adbd-dies" in faults and lost is None:
                    lost = 2
                if lost and verb == "shell":
                    lost -= 1
                    continue
                status, output = self._answer(verb, told, more, faults)
                with suppress(OSError):
                    file.write(f"{status}\n{output}".encode())
                    file.flush()

    def _answer(
        self, verb: str, first: str, second: str, faults: tuple[str, ...]
    ) -> tuple[int, str]:
        if verb == "push" and "full-data" in faults:
            return 1, "adb: error: remote couldn't create file: No space left on device\n"
        if verb == "shell" and (said := self._android(first)) is not None:
            return 0, said
        if verb == "shell":
            script = self._here(first)
        elif verb in ("push", "pull"):
            source, target = self._here(first), self._here(second)
            script = f"mkdir -p $(dirname {target}) && cp {source} {target}"
        else:
            return 0, {"get-state": "device\n"}.get(verb, "")
        done = subprocess.run(
            ["sh", "-c", script],
            env={"PATH": f"{self.root}/phone:/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=_SECONDS,
        )
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def _android(self, script: str) -> str | None:
        """What Android's programs say; None for everything else."""
        marked = _MARKED.fullmatch(script)
        if self.android is None or marked is None:
            return None
        argv = shlex.split(marked[1])
        words = shlex.split(argv[2]) if argv[:2] == ["sh", "-c"] else argv
        if _ANDROID.isdisjoint(words):
            return None
        ran = self.android.run(argv, _SECONDS)
        if self.android.app is not None:
            self.started(self.android.app)
        return f"{ran.output}\nmepof-status={int(ran.status)}\n"

    def _here(self, text: str) -> str:
        for there, here in {
            "/dev/block/by-name": f"{self.root}/system",
            "/proc/sys/kernel/random": f"{self.root}/system",
            "/proc/cmdline": f"{self.root}/system/cmdline",
            "/system/bin": f"{self.root}/phone",
            "/data/": f"{self.root}/data/",
        }.items():
            text = text.replace(there, here)
        return text


def switched_on(
    root: Path,
    storage_at: Path,
    adb_port: int,
    faults: Sequence[str] | Faults,
    port: int = 0,
    image: bytes | None = None,
    arch: str = "arm64",
    model: Model = DEFAULT_MODEL,
    **more: Any,
) -> tuple[Phone, list[str]]:
    """A phone that is on, and what its screen shows.

    Args:
        root: where :func:`install` wrote the programs.
        image: in the boot partitions of a new phone, of which ``arch`` is the architecture.
        more: attributes of :class:`Played`.
    """
    screen: list[str] = []
    storage = Storage(storage_at, model)
    if not (storage_at / "state.json").exists():
        storage_at.mkdir(parents=True, exist_ok=True)
        image = boot_image() if image is None else image
        for slot in "ab":
            storage.write(f"boot_{slot}", image)
        known = storage.load()
        trusted = (hashlib.sha256(image).hexdigest(),)
        made = {"unlocked": True, "arch": arch, "b": known.a, "trusted": trusted}
        storage.save(known.model_copy(update=made))
    told = faults if isinstance(faults, Faults) else Faults(tuple(map(read_fault, faults)))
    machine = Played(arch, storage_at, adb_port, 1 << 30, screen.append, root, told, **more)
    phone = Phone(storage, model, machine, port, screen.append, faults=told)
    threading.Thread(target=phone.on, daemon=True).start()
    return phone, screen
