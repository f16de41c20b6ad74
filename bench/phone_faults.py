"""Every fault of a phone at every step of a program that trains and flashes it.

    PYTHONPATH=tests bench/phone_faults.py

The real fastboot, and mepof's own code, at a played phone (tests/writers/played_phone.py). The
fault comes when the step begins. Whatever the program says, the phone must start then, and the
program must succeed when it is run again without the fault. Writes docs/benchmarks/phone-faults.md,
and continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

from writers.android_app import parse
from writers.android_phone import AndroidPhone
from writers.played_bench import MODEL, Bench
from writers.played_phone import install

from mepof.app.android import AndroidApps
from mepof.device import agent, flashing, phone
from mepof.device.handset import Handset
from mepof.device.phone_session import run_session
from mepof.device.protocol import Interlude, Outcome, Session
from mepof.device.shell import Shell
from mepof.errors import MepofError
from mepof.phone.faults import Fault, Faults, read_fault
from mepof.process import run
from mepof.scenario.driver import Driver
from mepof.scenario.protocol import SCENARIOS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "phone-faults.md"
DONE = ROOT / "out" / "phone-faults.jsonl"

STEPS = {
    "checks": "unlock state, before the training",
    "boot": "boot from memory, to train",
    "copy": "copy the programs",
    "drive": "drive an app (`trav`)",
    "read": "read the profile",
    "checks 2": "unlock state, battery and sizes, before flashing",
    "boot 2": "boot from memory, to check",
    "save": "copy the partition, and compare",
    "flash": "flash the inactive slot",
    "start": "make it active and start it",
    "check": "self-check in the slot",
    "mark": "mark it good",
}
#: Each with what of it happens: an image that does not start is the new one.
FAULTS = {
    "locked": ("locked",),
    "low-battery": ("low-battery",),
    "image-too-large": ("image-too-large",),
    "lost-in-download": ("lost-in-download",),
    "lost-in-flash": ("lost-in-flash",),
    "wrong-slot": ("wrong-slot",),
    "boot-loop": ("boot-loop@ram", "boot-loop@b"),
    "kernel-panic": ("kernel-panic@ram", "kernel-panic@b"),
    "full-data": ("full-data",),
    "slow-boot": ("slow-boot",),
    "adbd-dies": ("adbd-dies",),
}
PROFILE = b"what the kernel has counted"
# Ports and temporary directories.
_CHANGING = re.compile(rf"(?<=127\.0\.0\.1[:/])\d+|{re.escape(tempfile.gettempdir())}/mepof-\w+")
APP = parse((ROOT / "native/phone/root/system/apps/org.mepof.mail").read_text())


@dataclass
class Program:
    """A program that trains a phone and flashes it, and a fault that begins with one of its steps.

    Attributes:
        step: None for a program without a fault.
        reached: the steps that have begun.
    """

    bench: Bench
    fault: str
    step: str | None
    known: list[Fault] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)

    def begin(self, step: str) -> None:
        """A step begins, and the fault with it."""
        if step in self.reached:
            return
        self.reached.append(step)
        if step == self.step:
            self.known += map(read_fault, FAULTS[self.fault])
            if self.bench.phone is not None:
                self.bench.phone.bootloader.suffer()

    def note(self, text: str) -> None:
        """What mepof says when it does something to the phone."""
        second = "checks 2" in self.reached
        words = {
            "booting ": "boot 2" if second else "boot",
            "copying the programs": "copy",
            "saving ": "save",
            "flashing ": "flash",
            "starting ": "start",
            "marking ": "mark",
        }
        for start, step in words.items():
            if text.startswith(start) and not (step == "copy" and second):
                self.begin(step)

    @property
    def handset(self) -> Handset:
        return replace(self.bench.handset, note=self.note)

    def run(self) -> None:
        """Run it to its end.

        Raises:
            MepofError: it fails.
        """
        work = self.bench.root / "work"
        with mock.patch.object(phone, "claimed", lambda directory: self.handset):
            try:
                self._trained(work)
                self._flashed(work)
            finally:
                # The end of the process: a phone in its boot loader starts its own system.
                phone._leave()

    def _session(self, *requests: agent.Request, interlude: Interlude | None = None) -> Session:
        archive = self.bench.root / "initramfs"
        archive.write_bytes(b"a guest")
        kernel = self.bench.kernel
        return Session("arm64", kernel, archive, requests, 1, interlude=interlude)

    def _trained(self, work: Path) -> None:
        app = {"package": APP.package, "activity": ".Main", "actions": 3, "throttle": 0}
        apps = AndroidApps.model_validate({"name": "mail", "title": "mail", "android": [app]})
        trav = SCENARIOS.get("trav")
        driver = Driver(trav, [apps], 1, None, [1.0], lambda text: None, lambda count, what: None)

        def drive(shell: Shell) -> None:
            self.begin("drive")
            driver.drive(shell)
            self.begin("read")

        put, get = agent.Put("/reset", 0o200, b"1"), agent.Get("/vmlinux.profraw")
        self.begin("checks")
        session = self._session(put, get, interlude=Interlude(1, drive))
        outcome = phone.DEVICE.boot(session, work, run, lambda count: None)
        assert outcome.replies == (agent.PutResult(0), agent.GetResult(0, PROFILE))

    def _flashed(self, work: Path) -> None:
        request = agent.Exec(("selfcheck",), 60)

        def sound(outcome: Outcome) -> None:
            agent.expect_success(request, outcome.replies[0])

        real = run_session

        def served(handset: Handset, *given: object) -> Outcome:
            if "start" in self.reached:
                self.begin("check")
            return real(handset, *given)  # type: ignore[arg-type]

        self.begin("checks 2")
        with mock.patch.object(phone, "run_session", served):
            phone.DEVICE.flash(self._session(request), work, sound, self.note)


def on_a_bench(act: Callable[[Bench], dict[str, str]]) -> dict[str, str]:
    """Do something with a new phone, which is unlocked and was used before."""
    with tempfile.TemporaryDirectory(prefix="mepof-") as directory:
        root = Path(directory)
        android = AndroidPhone.of(APP)
        model = MODEL.model_copy(update={"boot_seconds": 150})
        bench = Bench(root, model, haste=10, more={"android": android})
        host = install(root / "programs", bench.adb_port)
        (root / "programs/system/vmlinux.profraw").write_bytes(PROFILE)
        path = f"{host}:{os.environ['PATH']}"
        with mock.patch.dict(os.environ, PATH=path):
            try:
                bench.on()
                bench.handset.own_image()
                return act(bench)
            finally:
                bench.off()


def tried(cell: tuple[str, str]) -> dict[str, str]:
    """A line of the table.

    Args:
        cell: fault and step.

    Raises:
        AssertionError: the phone does not start, or the next run does not succeed.
    """

    fault, step = cell

    def act(bench: Bench) -> dict[str, str]:
        program = Program(bench, fault, step)
        former = (bench.root / "phone/boot_b.img").read_bytes()
        bench.with_faults(Faults(program.known))
        said = ""
        try:
            program.run()
        except MepofError as error:
            assert "\n" not in error.message, error.message
            said = error.message + (f" (help: {error.remedy})" if error.remedy else "")
        assert step in program.reached, f"{fault} at {step} was not reached: {said}"
        journal = flashing.journal_of(bench.handset)
        entry = journal.last()
        unsettled = journal.unsettled() is not None
        restored = (bench.root / "phone/boot_b.img").read_bytes() == former
        slot = bench.boots()
        if not said:
            outcome = "succeeds"
            assert entry is not None and entry.stage == "good" and slot == "b", entry
        elif unsettled:
            outcome = "next run restores"
        elif entry is not None and entry.stage == "restored":
            outcome = "restored"
            assert restored and slot == "a", slot
        else:
            outcome = "refused"
            assert restored and slot == "a", slot
        Program(bench, fault, None).run()
        entry = journal.last()
        assert entry is not None and entry.stage == "good", entry
        assert bench.boots() == "b"
        return {"fault": fault, "step": step, "outcome": outcome, "slot": slot, "said": said}

    return on_a_bench(act)


def page(lines: list[dict[str, str]]) -> str:
    """The table, and what was said."""
    found = {(line["fault"], line["step"]): line for line in lines}
    numbers = {step: str(number) for number, step in enumerate(STEPS, 1)}
    rows = [
        f"| {fault} | " + " | ".join(found[fault, step]["outcome"] for step in STEPS) + " |"
        for fault in FAULTS
    ]
    messages: dict[tuple[str, str], list[str]] = {}
    for line in (found[fault, step] for fault in FAULTS for step in STEPS):
        said = _CHANGING.sub("…", line["said"])
        if said:
            messages.setdefault((line["fault"], said), []).append(numbers[line["step"]])
    return _TEXT.format(
        count=len(lines),
        steps="\n".join(f"{numbers[step]}. {what}" for step, what in STEPS.items()),
        head=" | ".join(numbers.values()),
        rule=" --- |" * len(STEPS),
        rows="\n".join(rows),
        messages="\n".join(
            f"| {fault} | {', '.join(steps)} | {said.replace('|', chr(92) + '|')} |"
            for (fault, said), steps in messages.items()
        ),
    )


_TEXT = """\
# Faults of a phone at every step

A program that trains a phone and flashes it, {count} times: the fault comes when the step begins,
and stays. *Counted*, by `make bench-phone-faults`: the real `fastboot` and mepof's own code with a
virtual phone whose system is simulated ([faults](../virtual-phone.md#faults)). Each time the phone
started afterwards, and the program succeeded when it was run again without the fault.

{steps}

| fault | {head} |
| --- |{rule}
{rows}

*succeeds*: the new image is started. *refused*: the program ends before anything is
written. *restored*: it ends, the partition has its former content, and the former slot is started.
*next run restores*: it ends, the former slot is started, and the next run first gives the partition
its former content.

| fault | steps | message |
| --- | --- | --- |
{messages}
"""


def main() -> int:
    """Try what has not been tried."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="FAULT:STEP", help="try one, and write nothing")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    options = parser.parse_args()
    flashing.permit()
    if options.only:
        fault, _, step = options.only.partition(":")
        print(tried((fault, step)))
        return 0
    DONE.parent.mkdir(exist_ok=True)
    lines = []
    with suppress(FileNotFoundError):
        lines = [json.loads(line) for line in DONE.read_text().splitlines()]
    known = {(line["fault"], line["step"]) for line in lines}
    wanted = [(fault, step) for fault in FAULTS for step in STEPS if (fault, step) not in known]
    with multiprocessing.Pool(options.jobs) as pool, DONE.open("a") as file:
        for line in pool.imap_unordered(tried, wanted):
            print(f"{line['fault']} at {line['step']}: {line['outcome']}", file=sys.stderr)
            lines.append(line)
            file.write(json.dumps(line) + "\n")
            file.flush()
    PAGE.write_text(page(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
