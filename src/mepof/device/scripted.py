"""A machine that runs shell scripts: its files and programs by way of them."""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence

from mepof.device.shell import Ran, Refused

ANSWER_SECONDS = 30.0
"""Limit of an immediate answer."""

# Before Android 7 adb did not report the exit status, and ssh reports its own failures by one that
# programs have too; a broken connection has no last line.
_STATUS = re.compile(r"\r?\n?mepof-status=(\d+)\s*\Z")


class ScriptedShell(ABC):
    """A machine's files and programs, by scripts for its shell."""

    @abstractmethod
    def script(self, text: str, timeout: float) -> Ran:
        """Run a script to its end; the limit is in seconds.

        Raises:
            LostConnection: the machine cannot be reached.
        """

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        return self.script(shlex.join(argv), timeout)

    def read(self, path: str) -> str | None:
        got = self.script(f"cat {shlex.quote(path)}", ANSWER_SECONDS)
        return got.output if got.status == 0 else None

    def write(self, path: str, text: str) -> None:
        file = shlex.quote(path)
        # The shell would create a file that does not exist.
        done = self.script(
            f"[ -e {file} ] && printf '%s\\n' {shlex.quote(text)} > {file}", ANSWER_SECONDS
        )
        if done.status != 0:
            why = done.output.strip().rpartition(": ")[2] or "it does not exist"
            raise Refused(f"{path} does not accept `{text}`: {why}")

    def paths(self, pattern: str) -> tuple[str, ...]:
        # Everything is quoted except the pattern.
        words = re.sub(r"[^*?\[\]]+", lambda found: shlex.quote(found[0]), pattern)
        got = self.script(
            f'for file in {words}; do [ -e "$file" ] && printf \'%s\\n\' "$file"; done; true',
            ANSWER_SECONDS,
        )
        return tuple(sorted(line for line in got.output.split("\n") if line))


def marked(text: str, prefix: tuple[str, ...] = ()) -> str:
    """A script that says how it ended after all that it wrote.

    Args:
        prefix: the words that run a script as root, empty if everything runs as root.
    """
    asked = shlex.join((*prefix, text)) if prefix else f"( {text} )"
    # The two streams may be carried apart, and the status must be last. A file may end without a
    # newline.
    return f"exec 2>&1; {asked}; printf '\\nmepof-status=%s\\n' $?"


def ran(output: str) -> Ran | None:
    """What a marked script gave; None if it did not come to its end."""
    status = _STATUS.search(output)
    if status is None:
        return None
    return Ran(int(status[1]), output[: status.start()].replace("\r\n", "\n"))
