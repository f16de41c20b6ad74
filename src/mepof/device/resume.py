"""A command that goes on after this machine has rebooted: a unit of systemd.

The unit is enabled for one boot at a time, by the command just before it reboots, and disabled by
the command as the first thing that it does. So nothing reboots the machine again after the command
has failed or was killed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mepof.device.shell import LocalShell
from mepof.errors import EnvironmentLack, WorkError

NAME = "mepof-compare.service"
_UNIT = f"/etc/systemd/system/{NAME}"
_ANSWER = 30.0
_KEPT = ("HOME", "PATH", "PYTHONPATH", "XDG_STATE_HOME")


def unit_of(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], log: Path
) -> str:
    """The text of the unit.

    Args:
        directory: in which the command runs.
        log: to which its output is appended.
    """
    kept = [f"{name}={environment[name]}" for name in _KEPT if name in environment]
    lines = [
        "[Unit]",
        "Description=mepof: compare kernels, one boot each",
        "After=multi-user.target",
        "",
        "[Service]",
        # The boot has ended when it has started: it waits for that itself.
        "Type=exec",
        f"WorkingDirectory={_path(directory)}",
        f"StandardOutput=append:{_path(log)}",
        "StandardError=inherit",
        *(f"Environment={_quoted(each, dollars=False)}" for each in kept),
        f"ExecStart={' '.join(_quoted(word) for word in command)}",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return "\n".join(lines) + "\n"


def arm(
    shell: LocalShell,
    command: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    log: Path,
) -> None:
    """Have the command run once after the next boot.

    Raises:
        EnvironmentLack: this machine has no systemd, or we may not use it.
    """
    path = shell.root / _UNIT.lstrip("/")
    try:
        path.write_text(unit_of(command, directory, environment, log), encoding="utf-8")
    except OSError as error:
        raise EnvironmentLack(
            f"cannot write {_UNIT}: {error.strerror}", "run it as root, on a machine with systemd"
        ) from error
    done = shell.run(("systemctl", "enable", NAME), _ANSWER)
    if done.status != 0:
        path.unlink()
        raise EnvironmentLack(f"systemd does not enable {NAME}: {done.last}")
    os.sync()


def disarm(shell: LocalShell) -> None:
    """Have no command run after the next boot.

    Raises:
        WorkError: the unit cannot be disabled.
    """
    path = shell.root / _UNIT.lstrip("/")
    if not path.exists():
        return
    done = shell.run(("systemctl", "disable", NAME), _ANSWER)
    try:
        path.unlink()
    except OSError as error:
        raise WorkError(f"cannot remove {_UNIT}: {error.strerror}", "remove it by hand") from error
    if done.status != 0:
        raise WorkError(f"systemd does not disable {NAME}: {done.last}", f"rm {_UNIT}")


def _path(path: Path) -> str:
    return str(path).replace("%", "%%")


def _quoted(word: str, dollars: bool = True) -> str:
    """A word as systemd.syntax(7) quotes it; ``$`` is special in commands alone."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text.replace("$", "$$") if dollars else text}"'
