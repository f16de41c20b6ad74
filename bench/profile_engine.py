"""The profile engine against llvm-profgen: time and memory for the same perf-script text and
the same kernel, side by side, and how far both are from the minimum that reading takes.

    bench/profile_engine.py [--vmlinux FILE] [--mepof PROGRAM] [--sizes MIB,…]
                            [--large MIB] [--rounds N]

Without ``--vmlinux`` (or ``MEPOF_BENCH_VMLINUX``) a kernel with full debug information is built,
or taken from the store. Writes docs/benchmarks/profile-engine.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measure.child import Usage, measured
from measure.demo import processor
from measure.page import page
from measure.profile import difference, totals

from mepof.process import find_tool

ROOT = Path(__file__).parents[1]
SCRATCH = ROOT / "build" / "bench"
RESULT = ROOT / "docs" / "benchmarks" / "profile-engine"
PROFGEN = "llvm-profgen-22"
MIB = 1 << 20


@dataclass(frozen=True)
class Contestant:
    """A converter, and the cores that it may use."""

    name: str
    program: Path
    cores: tuple[int, ...]

    def argv(self, vmlinux: Path, text: Path, out: Path) -> list[str | Path]:
        if self.name == PROFGEN:
            named = [f"--binary={vmlinux}", f"--perfscript={text}", f"--output={out}"]
            return [self.program, "--kernel", "--format=extbinary", *named]
        files: list[str | Path] = ["--binary", vmlinux, "--input", text, "-o", out]
        return [self.program, "profile", "convert", "--to", "autofdo", *files]

    @property
    def label(self) -> str:
        return f"{self.name}, {len(self.cores)} core{'s' if len(self.cores) > 1 else ''}"


def contestants(mepof: Path) -> tuple[Contestant, ...]:
    """llvm-profgen has one thread and runs on either core; mepof has both, or one."""
    free = tuple(sorted(os.sched_getaffinity(0)))[:2]
    both, one = (Contestant("mepof", mepof, cores) for cores in (free, free[:1]))
    return (Contestant(PROFGEN, Path(find_tool(PROFGEN)), free), both, one)


def inputs(vmlinux: Path, sizes: Sequence[int]) -> dict[int, Path]:
    """A file of perf-script text for each size in MiB; files of an earlier run are reused."""
    made = {}
    identity = f"{vmlinux.stat().st_size:x}-{vmlinux.stat().st_mtime_ns:x}"
    walk = ["cargo", "run", "--quiet", "--release", "-p", "mepof-trace", "--example"]
    for mib in sizes:
        made[mib] = SCRATCH / f"{identity}-{mib}.perfscript"
        if not made[mib].exists():
            partial = made[mib].with_suffix(".partial")
            arguments = ["walk_kernel", "--", os.fspath(vmlinux), str(mib), "1"]
            with partial.open("wb") as out:
                subprocess.run([*walk, *arguments], stdout=out, cwd=ROOT, check=True)
            partial.replace(made[mib])
    return made


def repeated(text: Path, mib: int) -> Path:
    """A file of at least that size: the given one, repeated."""
    target = SCRATCH / "large.perfscript"
    with target.open("wb") as out:
        while out.tell() < mib * MIB:
            with text.open("rb") as part:
                shutil.copyfileobj(part, out, MIB)
    return target


def read_once(path: Path) -> float:
    """Seconds to read a file from the page cache, one MiB at a time."""
    buffer = bytearray(MIB)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        times.append(time.perf_counter() - began)
    return min(times)


def read_debug_information(vmlinux: Path, cores: Sequence[int]) -> Usage:
    """llvm-gsymutil reads every function, inlined call and line of the DWARF, once, and
    little else."""
    out = SCRATCH / "vmlinux.gsym"
    argv = ["llvm-gsymutil-22", "--quiet", f"--num-threads={len(cores)}"]
    return measured([*argv, "--convert", vmlinux, "-o", out], cores, SCRATCH / "llvm-gsymutil.log")


def compete(
    all_of_them: Sequence[Contestant], vmlinux: Path, text: Path, rounds: int
) -> Mapping[str, list[Usage]]:
    """Each in turn, in every round; the order reverses from round to round. llvm-profgen's runs
    come first in the result."""
    runs: dict[str, list[Usage]] = {one.label: [] for one in all_of_them}
    for number in range(rounds):
        order = all_of_them if number % 2 == 0 else all_of_them[::-1]
        for one in order:
            read_once(text)  # into the page cache, for whoever is next
            out, log = SCRATCH / f"{one.name}.afdo", SCRATCH / f"{one.name}.log"
            usage = measured(one.argv(vmlinux, text, out), one.cores, log)
            runs[one.label].append(usage)
            print(f"  {one.label}: {usage.seconds:.2f} s", file=sys.stderr)
    return runs


def compared(runs: Mapping[str, list[Usage]]) -> dict[str, object]:
    """Medians of each, and ratios within the rounds: llvm-profgen's cost over each one's."""
    theirs = next(iter(runs.values()))
    rows: dict[str, object] = {}
    for label, ours in runs.items():
        times = [b.seconds / a.seconds for a, b in zip(ours, theirs, strict=True)]
        memory = [b.peak_bytes / a.peak_bytes for a, b in zip(ours, theirs, strict=True)]
        rows[label] = {
            "seconds": statistics.median(usage.seconds for usage in ours),
            "cpu_seconds": statistics.median(usage.cpu_seconds for usage in ours),
            "peak_mib": max(usage.peak_bytes for usage in ours) / MIB,
            "times_faster": {"median": statistics.median(times), "range": [min(times), max(times)]},
            "times_less_memory": min(memory),
            "runs": [asdict(usage) for usage in ours],
        }
    return rows


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--vmlinux", type=Path, default=os.environ.get("MEPOF_BENCH_VMLINUX"))
    beside = Path(sys.executable).with_name("mepof")
    parser.add_argument("--mepof", type=Path, default=beside, help="the program to measure")
    parser.add_argument("--sizes", default="64,256,1024", help="MiB of text, each a comparison")
    parser.add_argument("--large", type=int, default=8192, help="MiB of text, ours only; 0: none")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    given = options()
    SCRATCH.mkdir(parents=True, exist_ok=True)
    vmlinux = given.vmlinux and Path(given.vmlinux)
    if not vmlinux:
        # In a process of its own: the measured ones begin as copies of this one.
        build = Path(__file__).with_name("measure") / "kernel.py"
        built = subprocess.run(
            [sys.executable, os.fspath(build)], stdout=subprocess.PIPE, text=True, check=True
        )
        vmlinux = Path(built.stdout.strip())
    sizes = [int(size) for size in given.sizes.split(",")]
    texts = inputs(vmlinux, sizes)
    all_of_them = contestants(given.mepof)
    both = all_of_them[1]
    result: dict[str, object] = {
        "command": f"bench/profile_engine.py --sizes {given.sizes} --large {given.large}"
        f" --rounds {given.rounds}",
        "machine": {"processor": processor(), "cores": len(both.cores)},
        "vmlinux_mib": vmlinux.stat().st_size / MIB,
        "floor": {
            "read_seconds": {str(mib): read_once(path) for mib, path in texts.items()},
            "llvm-gsymutil": [
                asdict(read_debug_information(vmlinux, both.cores[:threads])) for threads in (1, 2)
            ],
        },
    }
    rows, differences = {}, {}
    for mib, text in texts.items():
        print(f"{mib} MiB", file=sys.stderr)
        rows[str(mib)] = compared(compete(all_of_them, vmlinux, text, given.rounds))
        profiles = [totals(SCRATCH / f"{name}.afdo") for name in (PROFGEN, "mepof")]
        differences[str(mib)] = asdict(difference(*profiles))
    result |= {"sizes": rows, "differences": differences}
    if given.large:
        large = repeated(texts[max(sizes)], given.large)
        out, log = SCRATCH / "large.afdo", SCRATCH / "large.log"
        usage = measured(both.argv(vmlinux, large, out), both.cores, log)
        result["large"] = {"mib": large.stat().st_size / MIB, **asdict(usage)}
        large.unlink()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    written = json.dumps(result, indent=1) + "\n"
    RESULT.with_suffix(".json").write_text(written, encoding="utf-8")
    markdown = page(json.loads(written))
    RESULT.with_suffix(".md").write_text(markdown, encoding="utf-8")
    print(markdown)


if __name__ == "__main__":
    main()
