"""A played phone on a bench, and the host that flashes it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mepof.device.adb import AdbShell
from mepof.device.attached import Attached, PhoneModel
from mepof.device.flashing import Flashed, flash
from mepof.device.handset import Handset
from mepof.errors import MepofError
from mepof.phone.faults import Faults
from mepof.phone.phone import Phone
from writers.boot_image import arm64_kernel
from writers.played_phone import switched_on
from writers.ports import free_port

MODEL = PhoneModel(title="played", source="tests", boot_seconds=6)
# Much more than it takes, however busy the machine is.
_OFF_SECONDS = 60.0


@dataclass
class Bench:
    """A played phone, and the host that flashes it.

    Attributes:
        root: where ``install`` wrote the phone's programs; the phone keeps its partitions there.
        check: of a system, from memory and from the slot.
        haste: how many times as fast as a clock the host's time passes.
        more: arguments of ``switched_on``.
    """

    root: Path
    model: PhoneModel = MODEL
    port: int = field(default_factory=free_port)
    adb_port: int = field(default_factory=free_port)
    phone: Phone | None = None
    screen: list[str] = field(default_factory=list)
    check: Callable[[AdbShell], None] = lambda shell: None
    haste: float = 1
    more: dict[str, Any] = field(default_factory=dict)

    def on(self, *faults: str) -> None:
        self.with_faults(faults)

    def with_faults(self, faults: Sequence[str] | Faults) -> None:
        """Switch the phone on, or off and on again."""
        self.off()
        at = (self.root / "programs", self.root / "phone")
        self.phone, self.screen = switched_on(*at, self.adb_port, faults, self.port, **self.more)

    def off(self) -> None:
        """Switch the phone off, and wait until it writes nothing and neither its boot loader nor
        its system listens."""
        if self.phone is None:
            return
        self.phone.off()
        until = time.monotonic() + _OFF_SECONDS
        assert self.phone.ended.wait(_OFF_SECONDS)
        for port in (self.port, self.adb_port):
            while time.monotonic() < until:
                try:
                    socket.create_server(("127.0.0.1", port)).close()
                    break
                except OSError:
                    time.sleep(0.02)
        self.phone = None

    @property
    def handset(self) -> Handset:
        attached = Attached(
            name="played",
            fastboot=f"tcp:127.0.0.1:{self.port}",
            adb=f"127.0.0.1:{self.adb_port}",
            model="played.toml",
        )
        notes = self.root / "notes"

        def note(text: str) -> None:
            with notes.open("a") as file:
                file.write(f"{text}\n")

        return Handset(
            attached,
            self.model,
            self.root / "state",
            note,
            now=lambda: time.monotonic() * self.haste,
            pause=lambda seconds: time.sleep(seconds / 20),
        )

    def flash(self) -> Flashed:
        handset = self.handset
        packed = handset.pack(self.kernel, (), self.root / "new.img")
        return flash(handset, packed, self.check)

    @property
    def kernel(self) -> Path:
        path = self.root / "Image"
        path.write_bytes(arm64_kernel(size=310_000))
        return path

    def boots(self) -> str:
        """The slot that the phone starts when it is switched on now.

        A phone is started whose battery, cable and kernels are sound.
        """
        self.on()
        handset = self.handset
        handset.to_fastboot().reboot()
        handset.wait_for_system(None)
        assert self.phone is not None
        return self.phone.bootloader.state.slot


def check(shell: AdbShell) -> None:
    """What a self-check does to a phone: it copies a file and runs a program."""
    source = Path(os.environ["MEPOF_TEST_FILE"])
    for _ in range(3):
        try:
            shell.push(source, "/data/local/tmp/program", 10)
            assert shell.run(("true",), 10).status == 0
            return
        except MepofError as error:
            if "No space" in str(error):
                raise
            last = error
    raise last
