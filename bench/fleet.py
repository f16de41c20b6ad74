#!/usr/bin/env python3
"""Merges generated profiles of a fleet: one merge, the tree, the tree on workers, LLVM's tool.

    .venv/bin/python bench/fleet.py [PROFILE.afdo] [--profiles 1000] [--workers 2]

Each profile is a weighted sum of variants of a real one, in which counts and the functions that
ran differ. Prints seconds, MiB/s of input and whether the results are the same to the bit.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from mepof import _engine
from mepof.executor.cluster import started
from mepof.executor.dask import calling
from mepof.plan.store import default_store
from mepof.process import run
from mepof.profile.fleet import Aging, members, merge_fleet

VARIANTS = 24
DAYS = 30
DAY_SECONDS = 86400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("profile", type=Path, nargs="?", help="[default: one of the store]")
    parser.add_argument("--profiles", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        measure(given.profile or of_store(), given.profiles, given.workers, Path(work))


def of_store() -> Path:
    """A profile that a run has made."""
    found = sorted(default_store().glob("objects/*/kernel.afdo"))
    if not found:
        raise SystemExit("the store has no AutoFDO profile: run examples/autofdo-propeller.g4")
    return found[0]


def measure(profile: Path, count: int, workers: int, work: Path) -> None:
    fleet = generated(profile, count, work)
    size = sum(path.stat().st_size for path in fleet.iterdir()) / (1 << 20)
    found = members([str(fleet)], {})
    aging = Aging(Fraction(7), max(each.day for each in found))
    weighted = [(fleet / each.name, each.weight * aging.weight(each.day)) for each in found]
    print(f"{count} profiles, {size:.0f} MiB, of {DAYS} days")

    def timed(name: str, do: Callable[[Path], object]) -> bytes:
        output = work / name.replace(" ", "-")
        began = time.monotonic()
        do(output)
        seconds = time.monotonic() - began
        print(f"{name:24} {seconds:8.1f} s {size / seconds:8.1f} MiB/s", flush=True)
        return output.read_bytes()

    one = timed("one merge", lambda out: _engine.merge(weighted, out, "autofdo-text"))
    tree = timed(
        "tree",
        lambda out: merge_fleet(found, aging, out, "autofdo-text", work / "a", map),
    )
    with started(workers, workers, {}, {}, work / "dask") as client:
        on_workers = timed(
            f"tree on {workers} workers",
            lambda out: merge_fleet(found, aging, out, "autofdo-text", work / "b", calling(client)),
        )
    timed(
        "tree, merged before",
        lambda out: merge_fleet(found, aging, out, "autofdo-text", work / "a", map),
    )
    print(f"the same to the bit: {one == tree == on_workers}")
    tool = next((t for t in ("llvm-profdata-22", "llvm-profdata") if shutil.which(t)), None)
    if tool is not None:
        inputs = [f"--weighted-input={weight},{path}" for path, weight in weighted if weight]
        timed(
            tool,
            lambda out: run([tool, "merge", "--sample", "--text", *inputs, "-o", out]),
        )


def generated(profile: Path, count: int, work: Path) -> Path:
    """A directory of profiles of the same build."""
    chance = random.Random(7)
    text = work / "text"
    _engine.merge([(profile, 1)], text, "autofdo-text")
    functions = re.split(r"(?m)^(?=\S)", text.read_text())[1:]
    variants = []
    for number in range(VARIANTS):
        kept = [each for each in functions if chance.random() < 0.8]
        variant = work / f"variant{number}"
        variant.write_text("".join(kept))
        variants.append(variant)
    fleet = work / "fleet"
    fleet.mkdir()
    now = time.time()
    for number in range(count):
        path = fleet / f"{number:05}.afdo"
        some = [(variant, chance.randrange(1, 1000)) for variant in chance.sample(variants, 2)]
        _engine.merge(some, path, "autofdo")
        path.with_name(f"{path.name}.provenance.json").unlink()
        moment = now - DAY_SECONDS * (number % DAYS)
        os.utime(path, (moment, moment))
    return fleet


if __name__ == "__main__":
    main()
