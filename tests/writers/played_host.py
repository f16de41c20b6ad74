"""A host with mepof, whose phone is played: programs run as a user runs them, and may be killed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mepof.device.phone_journal import Journal
from mepof.phone.factory import images
from mepof.phone.state import limits_of, model_of
from writers.played_bench import MODEL, Bench
from writers.played_phone import install

_MODEL = 'title = "played"\nsource = "tests"\nboot_seconds = 60\nlimits = "limits.toml"\n'


#: The stage of a run before there is any.
START = "before its first step"
# Seconds between two looks at the journals of a run.
_LOOK = 0.02


def _wait(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Whether a process has ended after so many seconds."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.poll() is not None


@dataclass
class Host:
    """A host, the list of its phones and the one of them.

    Attributes:
        store: of its own, with the artifacts of another one.
        root: has the program, ``program.g4``.
    """

    root: Path
    store: Path
    bench: Bench

    def run(self, seconds: float | None = None, stage: str | None = None) -> tuple[float, bool]:
        """Run the program.

        Args:
            seconds: after which mepof is killed.
            stage: from whose begin these count; it may pass unseen.

        Returns:
            How long it ran, and whether it had ended by itself.

        Raises:
            AssertionError: it failed.
        """
        began = time.monotonic()
        process = self._start()
        while stage is not None and process.poll() is None and self.stage() != stage:
            _wait(process, _LOOK)
        if not _wait(process, seconds):
            # What it had started goes on, as a fastboot on a real host would.
            process.kill()
            process.wait()
            return time.monotonic() - began, False
        assert process.returncode == 0, (self.root / "log").read_text()[-4000:]
        return time.monotonic() - began, True

    def stages(self) -> dict[str, float]:
        """Run the program, and tell for how many seconds it was in each stage, in their order.

        Raises:
            AssertionError: it failed.
        """
        lasted: dict[str, float] = {}
        process = self._start()
        before = time.monotonic()
        while not _wait(process, _LOOK):
            stage, now = self.stage(), time.monotonic()
            lasted[stage] = lasted.get(stage, 0) + now - before
            before = now
        assert process.returncode == 0, (self.root / "log").read_text()[-4000:]
        return lasted

    def _start(self) -> subprocess.Popen[bytes]:
        words = ("run", "--flash", self.root / "program.g4", "--out", self.root / "out")
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen(
                [Path(sys.executable).parent / "mepof", *words],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.root}/programs/host:{os.environ['PATH']}",
            "MEPOF_PHONES": str(self.root / "phones.toml"),
            "MEPOF_STORE": str(self.store),
            "XDG_STATE_HOME": str(self.root / "state"),
        }

    def stage(self) -> str:
        """Where the last run was, after the journals of the phone and of the run."""
        with suppress(FileNotFoundError):
            for line in reversed(self._journal().read_text().splitlines()):
                with suppress(ValueError):
                    return f"phone: {json.loads(line)['stage']}"
        with suppress(FileNotFoundError):
            for line in reversed((self.root / "log").read_text().splitlines()):
                words = line.split()
                if len(words) > 2 and words[1] in ("start", "note", "made", "cached"):
                    return f"run: {words[2].rstrip(':')}"
        return START

    def _journal(self) -> Path:
        return self.root / "state" / "mepof" / "phones" / "played" / "journal.jsonl"

    def settled(self) -> bool:
        return Journal(self._journal()).unsettled() is None

    def copy_starts(self) -> str:
        """The slot that a copy of the phone starts, as it is now.

        Raises:
            MepofError: it does not start.
        """
        with tempfile.TemporaryDirectory(prefix="mepof-") as directory:
            root = Path(directory)
            twin = Bench(root, MODEL, more=self.bench.more)
            host = install(root / "programs", twin.adb_port)
            # A fastboot that is still there may go on flashing: what it has not yet written whole
            # is not on the phone.
            unfinished = shutil.ignore_patterns(".*.partial")
            shutil.copytree(self.root / "phone", root / "phone", ignore=unfinished)
            former = os.environ["PATH"]
            os.environ["PATH"] = f"{host}:{former}"
            try:
                return twin.boots()
            finally:
                os.environ["PATH"] = former
                twin.off()


@contextmanager
def host(
    store: Path, plain: Path, model: tuple[str, str] = ("model.toml", _MODEL), **more: Any
) -> Iterator[Host]:
    """A host with a new phone, which is unlocked and runs its own system.

    Args:
        store: whose artifacts the host has; what it makes goes there, too.
        plain: the phone's own kernel, for x86-64.
        model: name and text of the file that describes the phone.
        more: arguments of ``switched_on``.
    """
    described = model_of("x86-64")
    own = images(plain.read_bytes(), b"a ramdisk", 2, described)["boot"]
    with tempfile.TemporaryDirectory(prefix="mepof-", dir=store.parent) as directory:
        root = Path(directory)
        # Runs with one store wait for each other's results.
        (root / "store").mkdir()
        for name in ("objects", "actions"):
            (root / "store" / name).symlink_to(store.absolute() / name)
        given = {"image": own, "arch": "x86-64", "model": described, **more}
        bench = Bench(root, MODEL, more=given)
        install(root / "programs", bench.adb_port)
        (root / "phones.toml").write_text(
            f'[[phone]]\nname = "played"\nfastboot = "tcp:127.0.0.1:{bench.port}"\n'
            f'adb = "127.0.0.1:{bench.adb_port}"\nmodel = "{model[0]}"\n'
        )
        (root / model[0]).write_text(model[1])
        (root / "limits.toml").write_text(limits_of(described))
        try:
            bench.on()
            yield Host(root, root / "store", bench)
        finally:
            bench.off()


def killed(made: Host, seconds: float, stage: str | None = None) -> dict[str, Any]:
    """Run the program, kill it after some seconds (of a stage), and run it again.

    Returns:
        ``kill``, whether it had not ended by itself; ``stage``, where it was; ``slot``, which a
        copy of the phone started then; and the seconds of both runs.

    Raises:
        AssertionError, MepofError: the phone did not start, or the second run did not succeed.
    """
    ran, ended = made.run(seconds, stage)
    where = made.stage()
    slot = made.copy_starts()
    assert slot in ("a", "b")
    again, _ = made.run()
    assert made.settled()
    assert made.copy_starts() == "b"
    return {
        "seconds": round(ran, 1),
        "kill": not ended,
        "stage": where,
        "slot": slot,
        "again": round(again, 1),
    }
