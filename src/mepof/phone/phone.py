"""A virtual phone: its boot loader and its processor take turns."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from functools import partial

from mepof.bootimg.model import Model
from mepof.errors import InputError
from mepof.phone.bootloader import Bootloader, Started
from mepof.phone.faults import Faults
from mepof.phone.loading import Loaded
from mepof.phone.machine import Qemu
from mepof.phone.server import close, held, listening, serve_tcp, serve_udp
from mepof.phone.state import Storage

# What the running system reads; the others it has no use for.
_READABLE = ("boot", "init_boot", "vendor_boot")


class Phone:
    """A phone that is switched on.

    Args:
        machine: None for one that starts no kernel.
        port: at which fastboot finds the phone; 0 takes any that is free.
        make: called before the state is read, once the port is taken: what makes a new phone.
        tell: called with what a screen would show.

    Attributes:
        ended: set once :meth:`on` has returned; nothing is written from then on.
    """

    def __init__(
        self,
        storage: Storage,
        model: Model,
        machine: Qemu | None,
        port: int,
        tell: Callable[[str], None],
        *,
        udp: bool = False,
        faults: Faults | None = None,
        make: Callable[[], None] | None = None,
    ) -> None:
        self._storage = storage
        self._machine = machine
        self._kind = socket.SOCK_DGRAM if udp else socket.SOCK_STREAM
        self._tell = tell
        self._faults = faults or Faults()
        # Taken first, so that a port that is in use is reported before anything else.
        self._held = None if udp else self._take(held, port)
        taken = self._held.getsockname()[1] if self._held else port
        self._server: socket.socket | None = self._listen(taken)
        self.port = int(self._server.getsockname()[1])
        if make is not None:
            make()
        arch = machine.arch if machine else None
        self.bootloader = Bootloader(storage, model, tell, self._faults, arch)
        self._off = threading.Event()
        self.ended = threading.Event()

    def on(self) -> None:
        """Be in fastboot or run what was started, until switched off.

        Raises:
            WorkError: the machine failed.
        """
        started: Started | None = None
        try:
            while not self._off.is_set():
                if started is None or started.loaded is None:
                    started = self._fastboot()
                else:
                    started = self._run(started.loaded)
        finally:
            self.off()
            self.ended.set()

    def off(self) -> None:
        """Switch the phone off."""
        self._off.set()
        if self._server is not None:
            close(self._server)
        if self._held is not None:
            self._held.close()

    def _listen(self, port: int) -> socket.socket:
        return self._take(partial(listening, self._kind), port)

    @staticmethod
    def _take(socket_at: Callable[[int], socket.socket], port: int) -> socket.socket:
        try:
            return socket_at(port)
        except OSError as error:
            raise InputError(
                f"port {port} cannot be used: {error.strerror}", "name another with --port"
            ) from error

    def _fastboot(self) -> Started | None:
        """Answer hosts until one of them starts something; None if switched off."""
        if self._server is None:
            self._server = self._listen(self.port)
        serve = serve_udp if self._kind is socket.SOCK_DGRAM else serve_tcp
        try:
            serve(self._server, self.bootloader)
        finally:
            close(self._server)
        self._server = None
        return self.bootloader.started

    def _run(self, loaded: Loaded) -> Started | None:
        """Run a system; what is started after it, or None for fastboot."""
        assert self._machine is not None
        state = self.bootloader.state
        faults = self._faults.of_start(loaded.start)
        parameters = [
            f"androidboot.slot_suffix=_{loaded.slot}",
            f"androidboot.serialno={self._storage.serial}",
            f"androidboot.verifiedbootstate={'orange' if state.unlocked else 'green'}",
            *(f"mepof.fault={name}" for name in faults[:1]),
        ]
        readable = {
            name: self._storage.read(name)
            for name in self._storage.sizes
            if name.removesuffix("_a").removesuffix("_b") in _READABLE
        }
        partitions = {name: data for name, data in readable.items() if data}
        ended = self._machine.run(loaded, parameters, partitions, self._asked, self._off)
        self._tell(f"the system ended: {ended.how}")
        if ended.how == "off":
            self.off()
        if ended.how in ("off", "bootloader"):
            return None
        return self.bootloader.restart()

    def _asked(self, line: str) -> None:
        match line.split():
            case ["successful", "a" | "b" as slot] if slot == self.bootloader.state.slot:
                self.bootloader.mark_successful()
                self._tell(f"slot {slot} is successful")
            case ["active", "a" | "b" as slot]:
                self.bootloader.make_active("a" if slot == "a" else "b")
            case _:
                self._tell(f"not understood: {line}")
