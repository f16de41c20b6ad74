"""Flashes a virtual phone whose whole system runs in the emulator, with each of its faults.

    PYTHONPATH=tests bench/phone_emulated.py [--only FAULT]

Where bench/phone_faults.py simulates the phone's system to try each fault at every step, this one
has the real one: `mepof phone` boots kernels in QEMU, and the real adb talks to the real adbd in
it. A fault is there from the start of the phone to the end of the program, which boots an image
from memory, checks it, flashes it to the inactive slot, starts it there, checks it again and marks
it good. Then the phone must start without the fault, and the program must succeed. The kernels are
those of an earlier run of examples/quickstart.g4. Writes docs/benchmarks/phone-emulated.md, and
continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from measure.newest import newest
from writers.virtual_phone import MAIN, VirtualPhone, listed, virtual_phone

from mepof.phone.faults import IN_FASTBOOT, IN_KERNEL
from mepof.plan.store import Store, default_store

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "phone-emulated.md"
DONE = ROOT / "out" / "phone-emulated.jsonl"
# A phone that cannot be unlocked is one that is locked.
FAULTS = (
    *(fault for fault in IN_FASTBOOT if fault != "not-unlockable"),
    *(f"{fault}@{start}" for fault in IN_KERNEL for start in ("ram", "b")),
)
# Seconds: a phone that does not come up is waited for, and seven times tried.
_RUN_SECONDS = 3600
_CHANGING = re.compile(
    rf"(?<=127\.0\.0\.1[:/])\d+|{re.escape(tempfile.gettempdir())}/mepof-\w+|/[^ ']*/objects/\w+"
)
_FILE = re.compile(r"see |run it alone with ")


def kernels(store: Store) -> tuple[Path, Path]:
    """The plain kernel and the optimised one of the newest quickstart in a store.

    Raises:
        SystemExit: it has none.
    """
    found = newest(store, "x86-64")
    try:
        return found["plain/build"] / "kernel", found["opt/build"] / "kernel"
    except KeyError as error:
        raise SystemExit(f"no {error} in {store.root}: run make demo first") from error


def run(root: Path, phone: VirtualPhone, image: Path) -> str:
    """Flash an image as a user does.

    Returns:
        What mepof said when it failed, else nothing.

    Raises:
        AssertionError: it failed otherwise than with an error of one line.
    """
    (root / "program.g4").write_text(f"set device phone. set seed 1. flash {image}.")
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "run", root / "program.g4", "--flash", "--out", root / "out"],
        env=listed(root, phone),
        capture_output=True,
        text=True,
        timeout=_RUN_SECONDS,
        check=False,
    )
    if done.returncode == 0:
        return ""
    lines = done.stderr.splitlines()
    errors = [line.removeprefix("mepof: ") for line in lines if line.startswith("mepof: ")]
    assert errors and "Traceback" not in done.stderr, done.stderr
    helps = [line.strip() for line in lines[-3:] if line.strip().startswith("help: ")]
    return errors[-1] + "".join(f" ({text})" for text in helps)


def starts(phone: VirtualPhone) -> str:
    """Start the system of a phone that has just been switched on.

    Returns:
        The slot that is up.
    """
    phone.fastboot("reboot")
    phone.wait_for_adb()
    return phone.shell("getprop ro.boot.slot_suffix").strip().removeprefix("_")


def tried(fault: str, plain: Path, image: Path) -> dict[str, str]:
    """A line of the table.

    Raises:
        AssertionError: the phone does not start, or the next run does not succeed.
    """
    with tempfile.TemporaryDirectory(prefix="mepof-") as directory:
        root = Path(directory)
        with virtual_phone(root / "phone") as phone:
            phone.on("--kernel", plain)
            phone.fastboot("flashing", "unlock")
            former = (root / "phone/boot_b.img").read_bytes()
            phone.off()
            phone.on("--fault", fault)
            phone.fastboot("reboot")
            said = run(root, phone, image)
            phone.off()
            restored = (root / "phone/boot_b.img").read_bytes() == former
            phone.on()
            if fault == "locked":
                phone.fastboot("flashing", "unlock")
            slot = starts(phone)
            assert slot == ("a" if said else "b"), f"{fault}: {slot} is up; {said}"
            again = run(root, phone, image)
            assert not again, f"{fault}: {again}\n{phone.screen()}"
            assert phone.shell("getprop ro.boot.slot_suffix").strip() == "_b"
        outcome = "succeeds"
        if said:
            outcome = "former image" if restored else "next run restores"
        return {"fault": fault, "outcome": outcome, "slot": slot, "said": said}


def page(lines: list[dict[str, str]]) -> str:
    """The table."""
    found = {line["fault"]: line for line in lines}
    rows = []
    for fault in (fault for fault in FAULTS if fault in found):
        line = found[fault]
        said = _CHANGING.sub("…", _without_files(line["said"])).replace("|", r"\|")
        rows.append(f"| {fault} | {line['outcome']} | {line['slot']} | {said} |")
    return _TEXT.format(rows="\n".join(rows), count=len(rows))


def _without_files(said: str) -> str:
    """A message without the files of this machine that it names for more."""
    message, found, text = said.partition(" (help: ")
    shown = [each for each in text.removesuffix(")").split("; ") if not _FILE.match(each)]
    return message + (f"{found}{'; '.join(shown)})" if shown and found else "")


_TEXT = """\
# Faults of a phone whose system runs in the emulator

A program that flashes a phone, with each of {count} faults from its beginning to its end.
*Counted*, by `make bench-phone-emulated`: [a virtual phone](../virtual-phone.md) with its kernel
and system in QEMU, the real `fastboot`, `adb` and `adbd`, and `mepof run --flash` as a user runs
it. `@ram` and `@b` limit a fault to the image that is booted from memory and to the slot that is
flashed. [Every fault at every step](phone-faults.md) is tried with a phone whose system is
simulated.

*succeeds*: the new image is started. *former image*: the program ends with the message, and the
partition has the content that it had. *next run restores*: it ends, and the next run first gives
the partition its former content. A kernel that panics does so a few seconds after its start, when
the check has ended on this phone, whose system has little to start. The phone was then started
without the fault, from the slot that is shown, and the same program succeeded when it was run
again.

| fault | outcome | starts slot | message |
| --- | --- | --- | --- |
{rows}
"""


def main() -> int:
    """Try what has not been tried."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", metavar="FAULT", help="try one, and write nothing")
    options = parser.parse_args()
    plain, image = kernels(Store(default_store()))
    if options.only:
        print(tried(options.only, plain, image))
        return 0
    DONE.parent.mkdir(exist_ok=True)
    lines = []
    with suppress(FileNotFoundError):
        lines = [json.loads(line) for line in DONE.read_text().splitlines()]
    known = {line["fault"] for line in lines}
    for fault in FAULTS:
        if fault in known:
            continue
        lines.append(tried(fault, plain, image))
        print(f"{fault}: {lines[-1]['outcome']}", file=sys.stderr)
        with DONE.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
    PAGE.write_text(page(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
