"""A virtual phone whose system is played by this machine's shell, behind a program named ``adb``.

The boot loader, its partitions and slots are the virtual phone's, and the real ``fastboot`` talks
to them. What a kernel and adbd would do is played here, so that a boot takes no time.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from mepof.phone.faults import Faults, read_fault
from mepof.phone.loading import Loaded
from mepof.phone.machine import Ended, Qemu
from mepof.phone.phone import Phone
from mepof.phone.state import DEFAULT_MODEL, Storage
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
    "getprop": 'case "$1" in sys.boot_completed) echo 1;; *) echo;; esac',
    "bootctl": 'echo "successful $(cat {system}/slot)" > {system}/control.new\n'
    "mv {system}/control.new {system}/control\n"
    # The slot is marked when the program ends.
    "for _ in $(seq 3000); do [ -e {system}/control ] || exit 0; sleep 0.01; done; exit 1",
    "reboot": 'echo "reboot $1" > {system}/control.new; mv {system}/control.new {system}/control',
}
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
    return adb.parent


@dataclass(frozen=True)
class Played(Qemu):
    """The processor: whatever is started is up at once, and ends when it is asked to, or with
    ``kernel-panic`` as soon as a file is pushed to it."""

    root: Path = Path()
    faults: Faults = field(default_factory=Faults)

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
        faults = self.faults.of_start(loaded.start)
        panicked = threading.Event()
        began = time.monotonic()
        slow = 3.0 if "slow-boot" in faults else 0.0
        server: socket.socket | None = None
        try:
            while cancel is None or not cancel.is_set():
                up = time.monotonic() - began - slow
                if server is None and up >= 0:
                    server = socket.create_server(("127.0.0.1", self.adb_port))
                    served = (server, faults, panicked)
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
        self, server: socket.socket, faults: tuple[str, ...], panicked: threading.Event
    ) -> None:
        lost = 2 if "adbd-dies" in faults else 0
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client, client.makefile("rwb") as file:
                verb, first, second = (
                    file.readline().decode().rstrip("\n").replace("\1", "\n") for _ in range(3)
                )
                if verb == "push" and "kernel-panic" in faults:
                    panicked.set()
                    return
                if lost and verb == "shell":
                    lost -= 1
                    continue
                status, output = self._answer(verb, first, second, faults)
                with suppress(OSError):
                    file.write(f"{status}\n{output}".encode())
                    file.flush()

    def _answer(
        self, verb: str, first: str, second: str, faults: tuple[str, ...]
    ) -> tuple[int, str]:
        if verb == "push" and "full-data" in faults:
            return 1, "adb: error: remote couldn't create file: No space left on device\n"
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
    root: Path, storage_at: Path, adb_port: int, faults: Sequence[str], port: int = 0
) -> tuple[Phone, list[str]]:
    """A phone that is on, and what its screen shows.

    Args:
        root: where :func:`install` wrote the programs.
    """
    screen: list[str] = []
    storage = Storage(storage_at, DEFAULT_MODEL)
    if not (storage_at / "state.json").exists():
        storage_at.mkdir(parents=True, exist_ok=True)
        for slot in "ab":
            storage.write(f"boot_{slot}", boot_image())
        known = storage.load()
        storage.save(known.model_copy(update={"unlocked": True, "arch": "arm64", "b": known.a}))
    told = Faults(tuple(map(read_fault, faults)))
    machine = Played("arm64", storage_at, adb_port, 1 << 30, screen.append, root, told)
    phone = Phone(storage, DEFAULT_MODEL, machine, port, screen.append, faults=told)
    threading.Thread(target=phone.on, daemon=True).start()
    return phone, screen
