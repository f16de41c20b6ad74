"""Kills mepof in each stage of a program that trains, rebuilds and flashes a phone.

    PYTHONPATH=tests bench/phone_kills.py [--kills N] [--part whole|flash] [--jobs N] [--store DIR]

The program is examples/phone.g4, as `mepof run --flash` runs it, with three actions of one app in
each training, or with `--part flash` its last statement alone; after `kill -9` a copy of the phone
must start, and the program must succeed when it is run again. The phone is played
(tests/writers/played_phone.py), with the real fastboot and an adb of its own; what its kernel has
counted is what examples/phone.g4 has collected on a virtual phone, so run that first, with the same
list of phones (MEPOF_PHONES): kernels and measurements then come from the store. Each kill has a
number, from which follow the stage of the run, in turn, and the moment in it; the stages, and how
long each lasts, are those of a first run that is not killed. Writes docs/benchmarks/phone-kills.md,
and continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measure.newest import newest
from writers.android_app import generated
from writers.android_phone import AndroidPhone
from writers.played_host import START, Host, host, killed

from mepof.device.attached import attached, model_path
from mepof.plan.store import Store, default_store

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "phone-kills.md"
DONE = ROOT / "out" / "phone-kills.jsonl"
SCENARIOS = ("rand", "trav", "learned")
#: Tells the played phone which training it is in.
APPS = {
    name: replace(generated(8, number), package=f"org.example.{name}")
    for number, name in enumerate(SCENARIOS)
}


@dataclass(frozen=True)
class Kernel:
    """What a virtual phone has run and collected.

    Attributes:
        plain: the phone's own kernel.
        optimised: the one that is flashed.
        raw: the raw profile of each scenario.
    """

    plain: Path
    optimised: Path
    raw: dict[str, Path]


def known(store: Store) -> Kernel:
    """What is in a store of an earlier run of examples/phone.g4.

    Raises:
        SystemExit: it has none.
    """
    found = newest(store, "x86-64")
    try:
        raw = {name: found[f"{name}/collect"] / "raw0" for name in SCENARIOS}
        plain, optimised = (found[f"{name}/build"] / "kernel" for name in ("plain", "opt"))
        return Kernel(plain, optimised, raw)
    except KeyError as error:
        raise SystemExit(f"no {error} in {store.root}: run examples/phone.g4 first") from error


def program(directory: Path, seed: int) -> Path:
    """examples/phone.g4 with apps of the played phone.

    Args:
        seed: of the trainings, so that none of them is in the store.
    """
    text = (ROOT / "examples" / "phone.g4").read_text()
    text = text.replace("set seed 1.", f"set seed {seed}.")
    text = text.replace("set name together.", "set seed 1.\nset name together.")
    for name, app in APPS.items():
        listed = directory / f"{name}.toml"
        listed.write_text(
            f'title = "{name}"\nseconds = 600\n[[android]]\npackage = "{app.package}"\n'
            'activity = ".Main"\nactions = 3\nthrottle = 0\n'
        )
        text = text.replace(f" {name} ./examples/phone-apps/apps.toml", f" {name} {listed}")
    path = directory / "program.g4"
    path.write_text(text)
    return path


@contextmanager
def with_program(store: Path, part: str, seed: int) -> Iterator[Host]:
    """A host with the program, or with its last statement."""
    kernel, listed = known(Store(store)), attached()[0]
    started: list[Callable[[str], None]] = []
    model = (listed.model, model_path(listed).read_text())
    android = AndroidPhone.of(*APPS.values())
    with host(
        store, kernel.plain, model, android=android, started=lambda package: started[0](package)
    ) as made:
        system = made.root / "programs" / "system"

        def serve(package: str) -> None:
            link = system / "next"
            link.symlink_to(kernel.raw[package.rpartition(".")[2]])
            link.replace(system / "vmlinux.profraw")

        started.append(serve)
        if part == "flash":
            text = f"set device phone. set seed 1. flash {kernel.optimised}."
            (made.root / "program.g4").write_text(text)
        else:
            program(made.root, seed)
        yield made


def numbered(task: tuple[Path, str, int, dict[str, float]]) -> dict[str, Any]:
    """A line of the record.

    Args:
        task: the store, which part, the number of the kill, and the seconds of each stage.
    """
    store, part, number, lasted = task
    with with_program(store, part, number) as made:
        stage = list(lasted)[number % len(lasted)]
        moment = random.Random(number).uniform(0, lasted[stage])
        found = killed(made, moment, stage)
        return {"number": number, "part": part, "chosen": stage, **found}


def page(lines: list[dict[str, Any]]) -> str:
    """The summary."""
    kills = [line for line in lines if line["kill"]]
    parts = Counter(line["part"] for line in kills)
    stages = Counter((line["part"], line["stage"], line["slot"]) for line in kills)
    rows = "\n".join(
        f"| {part} | {stage} | {slot} | {count} |"
        for (part, stage, slot), count in sorted(stages.items())
    )
    staged = sum("chosen" in line for line in kills)
    last = f"and at {parts['flash']} of its last statement alone, which flashes"
    others = (
        "The others are uniform in the time of a whole run, much of which is the start of mepof."
    )
    return _TEXT.format(
        whole=parts["whole"],
        last=f", {last}" if parts["flash"] else "",
        staged=staged,
        others=f"\n{others}" if staged < len(kills) else "",
        all=len(kills),
        rows=rows,
    )


_TEXT = """\
# Runs that are killed while they use a phone

`kill -9` of `mepof run --flash` at {whole} moments of `examples/phone.g4` (three trainings
from memory, a merge, a rebuild and a measurement that come from the store, the self-check from
memory, flashing the inactive slot){last}.
*Counted*, by `make bench-phone-kills`, with a virtual phone whose system is simulated, and the real
`fastboot` ([the virtual phone](../virtual-phone.md)). After each, a copy of the phone was switched
on and started, and the same command finished when it was run again: the new image was started from
slot `b` and marked good.

Of {all} moments, {staged} were chosen by stage: those that a run passes through after its start, in
turn, and in each a moment that is uniform in the time that it took in a run that was not
killed.{others}

The last entry is that of the phone's journal, or else that of the run's:

| program | last entry | starts slot | kills |
| --- | --- | --- | ---: |
{rows}
"""


def main() -> int:
    """Kill as many runs as are still missing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=1000, metavar="N", help="number of the first")
    parser.add_argument("--part", choices=("whole", "flash"), default="whole")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--store", type=Path, default=default_store(), metavar="DIR")
    options = parser.parse_args()
    lines = []
    with suppress(FileNotFoundError):
        lines = [json.loads(line) for line in DONE.read_text().splitlines()]
    number = max((line["number"] for line in lines), default=options.seed)
    with with_program(options.store, options.part, options.seed) as made:
        lasted = made.stages()
    lasted.pop(START, None)
    DONE.parent.mkdir(exist_ok=True)
    with multiprocessing.Pool(options.jobs) as pool:
        while sum(line["kill"] for line in lines) < options.kills:
            numbers = range(number + 1, number + options.jobs + 1)
            number += options.jobs
            tasks = [(options.store, options.part, each, lasted) for each in numbers]
            for line in pool.map(numbered, tasks, chunksize=1):
                print(json.dumps(line), file=sys.stderr)
                lines.append(line)
                with DONE.open("a") as file:
                    file.write(json.dumps(line) + "\n")
            PAGE.write_text(page(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
