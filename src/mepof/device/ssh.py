"""A machine's shell over ``ssh``, as root."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mepof.device.scripted import ANSWER_SECONDS, ScriptedShell, marked, ran
from mepof.device.shell import LostConnection, Ran
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import find_tool, run

_INSTALL = "apt-get install openssh-client"
# Seconds for the machine to come back, and between two attempts.
_RETURN = 60.0
_LOOK = 1.0
# Nobody answers a question about a password or a key, and a machine that is gone says nothing.
_OPTIONS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3")
_PREFIXES: tuple[tuple[str, ...], ...] = ((), ("sudo", "-n", "sh", "-c"))


@dataclass(frozen=True)
class SshShell(ScriptedShell):
    """A machine over ssh; :meth:`connect` makes one.

    Attributes:
        host: as ``ssh`` takes it: ``[USER@]HOST``, or a name of ``~/.ssh/config``.
        prefix: the words that run a script as root, empty where the user is root.
    """

    host: str
    prefix: tuple[str, ...] = ()

    @classmethod
    def connect(cls, host: str) -> SshShell:
        """Reach a machine.

        Raises:
            EnvironmentLack: ssh is not installed here, or root is not available there.
            LostConnection: the machine cannot be reached.
            InputError: the host is not valid.
        """
        find_tool("ssh", _INSTALL)
        if not host or host.startswith("-"):
            raise InputError(f"`{host}` is not a host of ssh", "write [USER@]HOST")
        for prefix in _PREFIXES:
            shell = cls(host, prefix)
            if shell.run(("id", "-u"), ANSWER_SECONDS).output.strip() == "0":
                return shell
        raise EnvironmentLack(
            f"{host} does not give root access",
            f"write root@HOST, or allow sudo without a password to the user of {host}",
        )

    @property
    def name(self) -> str:
        return f"ssh-{self.host}"

    @property
    def option(self) -> str:
        return f"--ssh {self.host}"

    @property
    def by_network(self) -> bool:
        return True

    def reconnect(
        self,
        now: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Try for a minute to reach the machine again.

        Args:
            now: seconds of a monotonic clock.
            pause: waits for a number of seconds.

        Raises:
            LostConnection: it cannot be reached.
        """
        until = now() + _RETURN
        while True:
            try:
                self.script("true", ANSWER_SECONDS)
                return
            except LostConnection:
                if now() >= until:
                    raise
            pause(_LOOK)

    def script(self, text: str, timeout: float) -> Ran:
        """As root."""
        options = [word for option in _OPTIONS for word in ("-o", option)]
        words = (find_tool("ssh", _INSTALL), *options, "--", self.host, marked(text, self.prefix))
        try:
            done = run(words, timeout=timeout, check=False)
        except WorkError as error:
            raise LostConnection(f"{self.host} did not answer within {timeout:g} s") from error
        found = ran(done.output)
        if found is None:
            last = done.output.strip().rpartition("\n")[2] or "the connection broke"
            raise LostConnection(
                f"{self.host} cannot be reached by ssh: {last}",
                f"`ssh -o BatchMode=yes {self.host} true` must succeed",
            )
        return found
