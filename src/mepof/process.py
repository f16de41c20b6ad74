"""The only gateway to other programs: argument lists, never a shell.

Every child runs in its own process group, so that a time limit or an interrupt ends
all of it. Output goes line by line to a log and to a listener.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from mepof.errors import EnvironmentLack, Interrupted, WorkError

_TERMINATE_GRACE_SECONDS = 5.0
_WATCH_SECONDS = 0.1
_PIECE_BYTES = 1 << 16
# linux/prctl.h
_PR_SET_PDEATHSIG = 1


class _Cached(Protocol):
    def cache_clear(self) -> None: ...


_Remembered = TypeVar("_Remembered", bound=_Cached)
_REMEMBERED: list[_Cached] = []


def of_machine(cached: _Remembered) -> _Remembered:
    """Mark a cached function whose answers are about this machine, such as its programs'
    versions."""
    _REMEMBERED.append(cached)
    return cached


def look_again() -> None:
    """Forget what is known of this machine. A process that lives for longer than one run calls this
    before each, as programs may have been installed since."""
    for cached in _REMEMBERED:
        cached.cache_clear()


@dataclass(frozen=True)
class Completed:
    """A finished child: its argument list, exit status and output."""

    argv: tuple[str, ...]
    status: int
    output: str


@dataclass(frozen=True)
class Started:
    """A child that nobody waits for; it outlives us."""

    process: subprocess.Popen[bytes]

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self.process.poll()


def find_tool(name: str, remedy: str | None = None) -> str:
    """Absolute path of an executable.

    Raises:
        EnvironmentLack: it is not on PATH.
    """
    path = shutil.which(name)
    if path is None:
        raise EnvironmentLack(f"{name} is not installed", remedy or "run `mepof doctor`")
    return path


def version_line(program: str) -> str:
    """The first line that a program prints about its version."""
    return run([program, "--version"]).output.splitlines()[0]


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a child and everything that it started: by SIGTERM, then by SIGKILL."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == process.pid:
                os.killpg(process.pid, sig)
            else:  # an interactive child is in our group
                process.send_signal(sig)
        try:
            process.wait(_TERMINATE_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        if sig is signal.SIGTERM:
            # The leader may have ended while a grandchild ignores SIGTERM.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        return


def end_with(parent: int) -> None:
    """Have this process ended by SIGTERM when the one that started it ends, even by SIGKILL.

    Linux means the *thread* that started it (prctl(2), ``PR_SET_PDEATHSIG``), so that must be one
    that waits for it. Said by the process itself: between fork and exec of a program with threads,
    no Python can run safely.

    Args:
        parent: the process that started it.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGTERM)


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str | None] | None = None,
    log: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    watch: Callable[[], str | None] | None = None,
    interactive: bool = False,
    check: bool = True,
) -> Completed:
    """Run a program to its end and return its merged output.

    Args:
        argv: program and arguments; the program must exist.
        env: variables added to the caller's environment; those without a value are removed.
        log: file that output is appended to.
        on_line: called with every output line, without its newline.
        timeout: in seconds; the whole process group is ended when it expires.
        cancel: set it from another thread to end the child.
        watch: called several times a second; a text that it returns, or an exception that it
            raises, ends the child and is the reason.
        interactive: the child uses our terminal, and its output is not read here.
        check: raise on a non-zero exit status.

    Raises:
        EnvironmentLack: the program is missing.
        WorkError: non-zero exit with ``check``, the time limit, or ``watch`` ended it.
        Interrupted: ``cancel`` was set.
    """
    args = [os.fspath(a) for a in argv]
    added = {**os.environ, **(env or {})}
    environment = {name: value for name, value in added.items() if value is not None}
    try:
        process = subprocess.Popen(
            args,
            cwd=cwd,
            env=environment,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=None if interactive else subprocess.PIPE,
            stderr=None if interactive else subprocess.STDOUT,
            # Only processes of our session can read from the terminal.
            start_new_session=not interactive,
        )
    except FileNotFoundError as error:
        if cwd is not None and not cwd.is_dir():
            raise WorkError(f"{cwd} does not exist, so {args[0]} cannot run there") from error
        raise EnvironmentLack(f"{args[0]} is not installed", "run `mepof doctor`") from error
    except OSError as error:
        raise _not_run(args[0], error) from error

    lines: list[str] = []

    def take(raw: bytes) -> None:
        lines.append(raw.decode("utf-8", "replace"))
        if on_line is not None:
            on_line(lines[-1])

    started = looked = time.monotonic()

    def reason_to_stop() -> Exception | None:
        if cancel is not None and cancel.is_set():
            return Interrupted(f"{Path(args[0]).name} was interrupted")
        if timeout is not None and time.monotonic() - started >= timeout:
            return WorkError(f"{Path(args[0]).name} did not finish within {timeout:g} s")
        said = watch() if watch is not None else None
        return WorkError(said) if said is not None else None

    # Here, not in a thread: Python 3.12 starts none while it ends, when phones are returned.
    is_guarded = timeout is not None or cancel is not None or watch is not None
    stopped: Exception | None = None
    try:
        with contextlib.ExitStack() as files:
            sink = None
            if log is not None:
                log.parent.mkdir(parents=True, exist_ok=True)
                sink = files.enter_context(log.open("ab"))
            begun: list[bytes] = []
            for piece in _printed(process, _WATCH_SECONDS if is_guarded else None):
                if sink is not None:
                    sink.write(piece)
                    sink.flush()
                begun.append(piece)
                if b"\n" in piece:
                    *whole, rest = b"".join(begun).split(b"\n")
                    begun = [rest]
                    for raw in whole:
                        take(raw)
                if is_guarded and not stopped and time.monotonic() - looked >= _WATCH_SECONDS:
                    stopped = reason_to_stop()
                    looked = time.monotonic()
                    if stopped is not None:
                        kill_group(process)
            if last := b"".join(begun):
                take(last)
    except BaseException:
        kill_group(process)
        raise
    if stopped is not None:
        raise stopped
    if check and process.returncode != 0:
        tail = next((line for line in reversed(lines) if line.strip()), "no output")
        raise WorkError(
            f"{Path(args[0]).name} {ending(process.returncode)}: {tail.strip()}",
            f"see {log}" if log else None,
        )
    return Completed(tuple(args), process.returncode, "\n".join(lines))


def _printed(process: subprocess.Popen[bytes], patience: float | None) -> Iterator[bytes]:
    """What a child prints until it has ended, in pieces; an empty one whenever it has printed
    nothing for `patience` seconds."""
    if process.stdout is not None:
        output = process.stdout.fileno()
        ready = select.poll()  # select() takes no numbers above 1023
        ready.register(output, select.POLLIN)
        milliseconds = None if patience is None else patience * 1000
        while True:
            if not ready.poll(milliseconds):
                yield b""
            elif piece := os.read(output, _PIECE_BYTES):
                yield piece
            else:
                break
    while True:
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            yield b""
        else:
            return


def ending(status: int) -> str:
    """How a child ended that did not succeed: words that follow its name."""
    if status >= 0:
        return f"failed with status {status}"
    with contextlib.suppress(ValueError):  # a real-time signal
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _not_run(program: str, error: OSError) -> EnvironmentLack:
    """The error for a program that is there and does not start."""
    remedy = None
    if error.errno == errno.ENOEXEC:
        remedy = f"it is for another kind of machine, or damaged: see `file {program}`"
    return EnvironmentLack(f"{program} cannot be run: {error.strerror}", remedy)


def start(
    argv: Sequence[str | os.PathLike[str]], *, given: bytes, log: Path, cwd: Path | None = None
) -> Started:
    """Start a program in a session of its own and return at once.

    Args:
        given: its standard input.
        log: file that its output is appended to.

    Raises:
        EnvironmentLack: the program cannot be run.
        OSError: the log cannot be written.
    """
    args = [os.fspath(a) for a in argv]
    with log.open("ab") as sink, tempfile.TemporaryFile() as source:
        source.write(given)
        source.seek(0)
        try:
            process = subprocess.Popen(
                args,
                cwd=cwd,
                stdin=source,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise _not_run(args[0], error) from error
    return Started(process)
