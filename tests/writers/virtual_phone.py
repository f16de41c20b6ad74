"""``mepof phone`` as a process, with the real fastboot and adb."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from writers.ports import free_port

UP_SECONDS = 180.0
MAIN = "from mepof.cli.main import main; main()"


@dataclass
class VirtualPhone:
    """``mepof phone`` as a process, and the clients of the Android SDK."""

    directory: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    port: int = 0
    adb_port: int = 0

    def on(self, *options: str | Path) -> None:
        """Switch it on, and wait until it answers."""
        self.port, self.adb_port = free_port(), free_port()
        ports = ("--port", str(self.port), "--adb-port", str(self.adb_port))
        command = [sys.executable, "-c", MAIN, "phone", self.directory, *ports, *options]
        with (self.directory.parent / "screen").open("ab") as screen:
            self.process = subprocess.Popen(
                list(map(str, command)), stdout=screen, stderr=subprocess.STDOUT
            )
        until = time.monotonic() + UP_SECONDS
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.process.poll() is None, self.screen()
            time.sleep(0.2)
        raise AssertionError(self.screen())

    def off(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)

    def screen(self) -> str:
        return (self.directory.parent / "screen").read_text()

    def fastboot(self, *words: str | Path) -> str:
        address = f"tcp:127.0.0.1:{self.port}"
        return self._run("fastboot", "-s", address, *map(str, words))

    def shell(self, script: str) -> str:
        return self._run("adb", "-s", f"127.0.0.1:{self.adb_port}", "shell", script)

    def wait_for_adb(self) -> None:
        """Until the system is up."""
        until = time.monotonic() + UP_SECONDS
        serial = f"127.0.0.1:{self.adb_port}"
        while time.monotonic() < until:
            self._run("adb", "connect", serial)
            if "device" in self._run("adb", "-s", serial, "get-state").splitlines():
                return
            time.sleep(0.5)
        raise AssertionError(self.screen())

    def _run(self, *argv: str) -> str:
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done.stdout + done.stderr


@contextmanager
def virtual_phone(directory: Path) -> Iterator[VirtualPhone]:
    """A phone, and a server of adb of its own, which ends with it."""
    environment = {**os.environ, "ANDROID_ADB_SERVER_PORT": str(free_port())}
    phone = VirtualPhone(directory, environment)
    try:
        yield phone
    finally:
        phone.off()
        subprocess.run(["adb", "kill-server"], env=environment, check=False, timeout=30)


def listed(directory: Path, phone: VirtualPhone) -> dict[str, str]:
    """The environment of a workplace with this phone."""
    (directory / "phones.toml").write_text(
        f'[[phone]]\nname = "virtual"\nfastboot = "tcp:127.0.0.1:{phone.port}"\n'
        f'adb = "127.0.0.1:{phone.adb_port}"\nmodel = "model.toml"\n'
    )
    (directory / "model.toml").write_text(
        'title = "virtual"\nsource = "docs/virtual-phone.md"\nboot_seconds = 300\n'
        f'limits = "{phone.directory}/limits.toml"\n'
    )
    return {
        **phone.environment,
        "MEPOF_PHONES": str(directory / "phones.toml"),
        "XDG_STATE_HOME": str(directory / "state"),
    }
