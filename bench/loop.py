"""Profiling a kernel that was built with its own profile, repeatedly: does it drift?

    bench/loop.py [--rounds N] [--algorithm NAME] [--store DIR]

Each round is a release in the sense of docs/loop.md: the kernel is built with the profile of the
round before, recorded while it does the same work, and the new profile is merged with the old one.
An image is built after each round and measured beside the plain kernel. Two kernels a round: hours
on two cores when the store is empty. An interrupted run continues where it ended. Writes
docs/benchmarks/loop.json and .md after every round.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory
from typing import Any

from measure import flat
from measure.left import COUNTED, left_percent
from measure.program import ran

from mepof import _engine
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription
from mepof.plan.store import default_store

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "loop"
KERNEL = "debian:linux-source-6.12"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--algorithm", default="autofdo", choices=("autofdo", "autofdo-probe"))
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    record = RESULT.with_suffix(".json")
    results = json.loads(record.read_text()) if record.is_file() else {}
    for number in range(1, arguments.rounds + 1):
        rounds = results.get(arguments.algorithm, [])[: number - 1]
        rounds.append(measured(number, arguments.algorithm, arguments.store or default_store()))
        results[arguments.algorithm] = rounds
        record.write_text(json.dumps(results, indent=1) + "\n")
        RESULT.with_suffix(".md").write_text(page(results))


def program(rounds: int, algorithm: str) -> str:
    """A program whose last image is that of a round."""
    lines = ["set config slim.", "set seed 1.", ""]
    for number in range(1, rounds + 1):
        if number > 1:
            lines.append(f"set base round-{number - 1}.")
        lines.append(f"set name round-{number}.")
        lines += [f"opt {KERNEL} {algorithm} rand kbench O2.", ""]
    return "\n".join([*lines, f"eval plain;round-{rounds} syscall;overhead;proc;pipe;file.", ""])


def measured(number: int, algorithm: str, store: Path) -> dict[str, Any]:
    """Run the loop as far as a round, and sum up what came out of that round."""
    out = ROOT / "out" / "loop" / f"{algorithm}-{number}"
    out.mkdir(parents=True, exist_ok=True)
    file = out / "loop.g4"
    file.write_text(program(number, algorithm))
    report = ran(file, out, store)
    executor = LocalExecutor(store, os.cpu_count() or 1)
    steps = executor.run(plan_of(Source.read(file)), out, lambda event: None).run.steps

    def of(round_: int, step: str) -> Path:
        return steps[f"round-{round_}/{step}"].path

    (name,) = (p.name for p in of(1, "profile").iterdir() if p.suffix != ".json")

    def used(round_: int) -> Path:
        return of(round_, "renew" if round_ > 1 else "profile") / name

    first, new = (flat.read(of(n, "profile") / name) for n in (1, number))
    merged = flat.read(used(number))
    before = used(number - 1) if number > 1 else None
    (left,) = left_percent(report, COUNTED).values()
    verdict = converted(of(number, "instrument"), of(number, "collect"))
    statistics = json.loads(_engine.show(used(number), 1, 0))["statistics"]
    return {
        "kernel": report["provenance"]["kernel"],
        "clang": report["provenance"]["tools"]["clang"],
        "left_percent": left["kernel_instructions"],
        "text_bytes": {
            "plain": BuildDescription.read(steps["plain/build"].path).size_bytes.text,
            "image": BuildDescription.read(of(number, "build")).size_bytes.text,
        },
        "branches": verdict["branches"]["used"],
        "with_lines_percent": verdict["mapped_percent"],
        "functions": statistics["functions"],
        "new_overlap_percent": flat.overlap(first, new),
        "overlap_percent": flat.overlap(first, merged),
        "kept_percent": None if before is None else flat.overlap(flat.read(before), merged),
    }


def converted(build: Path, raw: Path) -> Any:
    """What the conversion says of the recorded kernel."""
    recording = _engine.Recording(build / "vmlinux", sorted(raw.glob("raw*")))
    with TemporaryDirectory() as scratch:
        done = _engine.convert(recording, "autofdo", Path(scratch) / "p", allow_poor=True)
    return json.loads(done)["verdict"]["binaries"][0]


def page(results: dict[str, Any]) -> str:
    """Markdown of all loops."""
    return _PAGE + "\n".join(_section(name, results[name]) for name in sorted(results))


def _section(algorithm: str, rounds: list[dict[str, Any]]) -> str:
    rows = [
        f"| {number} | {100 - geometric_mean(r['left_percent'].values()):.2f} "
        f"| {100 * (r['text_bytes']['image'] / r['text_bytes']['plain'] - 1):+.1f} "
        f"| {r['branches'] / 1e6:.1f} | {r['with_lines_percent']:.1f} | {r['functions']:,} "
        f"| {r['new_overlap_percent']:.1f} | {r['overlap_percent']:.1f} "
        f"| {'' if r['kept_percent'] is None else format(r['kept_percent'], '.1f')} |"
        for number, r in enumerate(rounds, 1)
    ]
    cases = [
        f"| {case} | " + " | ".join(f"{100 - r['left_percent'][case]:.2f}" for r in rounds) + " |"
        for case in rounds[0]["left_percent"]
    ]
    return _SECTION.format(
        algorithm=algorithm,
        kernel=rounds[-1]["kernel"],
        clang=rounds[-1]["clang"],
        rows="\n".join(rows),
        numbers=" | ".join(str(number) for number in range(1, len(rounds) + 1)),
        lines="|---" * (len(rounds) + 1) + "|",
        cases="\n".join(cases),
    )


_PAGE = """# The loop, round by round

`make bench-loop` writes this page.

Round 1 records a kernel without a profile. Each further round records the kernel that is built with
the profile of the round before ([the loop](../loop.md)), with `decay 0.5`. The work is the same in
all rounds, 24 actions of `rand kbench` on the configuration `slim`, and every branch is counted: a
loop without losses would find the same counts each time.

- *fewer instructions*: of the kernel, *counted*, in percent of the plain one's, the geometric mean
  over the eight cases of the suite `mepof`, in the image with the profile of that round; *text* is
  how much larger its code is.
- *branches*: the kernel's taken branches in training, in millions.
- *with lines*: the share of the executed code that has debug lines; assembly has none.
- *as recorded*: the overlap of what the round recorded with what round 1 recorded, inlining aside;
  *as used*: the same for the merged profile, which the image is built with. Overlap is the sum over
  all lines of the lesser share of all counts.
- *as before*: the overlap of the merged profile with that of the round before.

"""

_SECTION = """## {algorithm}: {kernel}

{clang}

| round | fewer instructions, % | text, % | branches, M | with lines, % | functions | as recorded, % | as used, % | as before, % |
|---|---|---|---|---|---|---|---|---|
{rows}

Fewer kernel instructions in each round's image, in percent:

| case | {numbers} |
{lines}
{cases}
"""  # noqa: E501 - rows of tables


if __name__ == "__main__":
    main()
