"""Starts, cancels and resumes runs: as `mepof run` in processes of their own, which outlive us.

Nothing that a form says becomes part of a command: the program goes to standard input, and the
output directory is below the served one, under a name of letters, digits and few signs.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from mepof.errors import InputError, WorkError
from mepof.executor.programs import plan_of
from mepof.g4.source import MAX_BYTES, Source
from mepof.plan.journal import FILE_NAME
from mepof.plan.model import Plan
from mepof.process import Started, start
from mepof.web.catalogue import Entry

#: What a run that was started here said, beside its journal.
LOG_NAME = "run.log"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
RUN = (sys.executable, "-m", "mepof.cli.main", "run", "-")
# Each may use all cores; more of them only wait for each other.
_MAX_STARTED = 4
_SOURCE = "the program"


class Launcher:
    """Runs that were started here; safe to use from several threads.

    Args:
        root: the directory of the output directories.
        store: root of the store that runs use.
        command: what runs the program on standard input, :data:`RUN` if not given; output
            directory and store follow.
    """

    def __init__(self, root: Path, store: Path, command: Sequence[str] | None = None) -> None:
        self._root = root
        self._store = store
        self._command = command or RUN
        self._lock = threading.Lock()
        self._started: dict[str, Started] = {}

    def start(self, name: str, text: str) -> None:
        """Check a program and start it.

        Args:
            name: of its output directory, which must not exist.

        Raises:
            InputError: the name, or the program; or too many runs are under way.
            WorkError: the output directory cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise InputError(
                f"`{name[:64]}` cannot be the name of a run",
                "use up to 64 letters, digits, dots, underscores and hyphens",
            )
        checked(text)
        with self._lock:
            self._check_count()
            out = self._root / name
            if out.exists():
                raise InputError(
                    f"{out} exists already", "choose another name, or resume the run there"
                )
            try:
                out.mkdir(parents=True)
            except OSError as error:
                raise WorkError(f"{out} cannot be written: {error.strerror}") from error
            self._launch(name, out, text)

    def resume(self, entry: Entry) -> None:
        """Run the program of a run again in its directory; what is done comes from the store.

        Raises:
            InputError: it has not ended, was followed by another one, used another store, was
                started in another directory, or with options that its journal does not have.
        """
        run = entry.run
        if entry.alive or not entry.latest:
            raise InputError("only the last run of a directory can be resumed, once it has ended")
        if Path(run.store) != self._store:
            raise InputError(
                f"the run used the store {run.store}",
                "serve that one with --store, or start a new run",
            )
        if run.directory not in (None, str(Path.cwd())):
            raise InputError(
                f"the run was started in {run.directory}, from where its program names files",
                "repeat its command there, or serve from there",
            )
        planned = {step.step for step in run.planned}
        steps = {step.id for step in checked(run.program).steps}
        if planned and not steps <= planned | set(run.steps):
            raise InputError(
                "the run had further options, such as --perf-data",
                "repeat its command where it was started",
            )
        with self._lock:
            begun = self._started.get(entry.name)
            if begun is not None and begun.status is None:
                raise InputError("it has been started again already", "reload the page")
            self._check_count()
            self._launch(entry.name, entry.out, run.program)

    def cancel(self, entry: Entry) -> None:
        """Interrupt a run as Ctrl-C does; finished steps are kept.

        Raises:
            InputError: it has ended, or its process is not one of ours here.
        """
        pid, journal = entry.run.pid, entry.out / FILE_NAME
        if pid is None or not holds(pid, journal):
            raise InputError(
                "no process of this machine runs it any more",
                "reload the page: its state has changed",
            )
        try:
            process = os.pidfd_open(pid)
            try:
                # The number now stands for the process that held the journal a moment ago.
                if holds(pid, journal):
                    signal.pidfd_send_signal(process, signal.SIGINT)
            finally:
                os.close(process)
        except ProcessLookupError:
            return
        except PermissionError as error:
            raise InputError("the run is of another user", "they can interrupt it") from error

    def started(self, name: str) -> Started | None:
        """The last process that was started for a directory."""
        with self._lock:
            return self._started.get(name)

    def said(self, name: str) -> Path:
        """What a run that was started here said."""
        return self._root / name / LOG_NAME

    def _check_count(self) -> None:
        if sum(each.status is None for each in self._started.values()) >= _MAX_STARTED:
            raise InputError(
                f"{_MAX_STARTED} runs that were started here are under way",
                "cancel one, or wait for its end",
            )

    def _launch(self, name: str, out: Path, text: str) -> None:
        command = (*self._command, "--out", str(out), "--store", str(self._store))
        try:
            self._started[name] = start(command, given=text.encode(), log=out / LOG_NAME)
        except OSError as error:
            raise WorkError(f"{out / LOG_NAME} cannot be written: {error.strerror}") from error


def checked(text: str) -> Plan:
    """The plan of a program, as `mepof g4 check` makes it.

    Raises:
        WrongProgram: it has errors.
        InputError: it is too large, or names a file that is missing or wrong.
    """
    data = text.encode(errors="surrogatepass")
    if len(data) > MAX_BYTES:
        raise InputError("the program is larger than 1 MiB")
    return plan_of(Source.from_bytes(_SOURCE, data))


def holds(pid: int, path: Path, table: Path = Path("/proc/locks")) -> bool:
    """Whether a process holds a ``flock`` on a file, as the kernel lists them (proc(5)).

    Device numbers are not compared: on some file systems those of the list are others.
    """
    try:
        inode = path.stat().st_ino
        lines = table.read_text().splitlines()
    except OSError:
        return False
    for line in lines:
        fields = line.split()
        of_file = len(fields) > 5 and fields[5].rpartition(":")[2] == str(inode)
        if of_file and (fields[1], fields[4]) == ("FLOCK", str(pid)):
            return True
    return False
