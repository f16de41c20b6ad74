"""How often verdicts are false, and how often they detect a slowdown: simulated evaluations.

    bench/verdicts.py [--evaluations N] [--take NAME=MEASUREMENT …]

The noise is that of real boots, kept in bench/measure/boots.json (``--take`` rereads them from
the JSON of measurements with many boots), and modelled: normal, with two modes, and wall time with
outliers. Writes docs/benchmarks/verdicts.json and .md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from measure.evaluations import (
    METRICS,
    Design,
    Noise,
    case_rates,
    evaluation,
    false_rate,
    found_rate,
    normal,
    read_boots,
    two_modes,
    wall_time,
)

from mepof.measure.measurement import Measurement
from mepof.statistics.interval import bca_interval, t_interval

ROOT = Path(__file__).parents[1]
BOOTS = ROOT / "bench" / "measure" / "boots.json"
RESULT = ROOT / "docs" / "benchmarks" / "verdicts"
SEED, SLOWDOWN_PERCENT = 1, 1.0
DESIGNS = [*(Design(n, n, 1.0) for n in (3, 4, 5, 8, 12)), Design(5, 12, 1.0)]
DEFAULT = DESIGNS[-1]
UNITS = (5, 10, 20, 30, 60)
# More, where each of them is one row only.
COVERAGE_TRIALS = 500


@dataclass(frozen=True)
class World:
    """What evaluations are simulated with: a noise, and its numbers of cases and metrics."""

    title: str
    noise: str
    cases: int
    metrics: int

    def drawn(self) -> Noise:
        """Its noise; by name, because a function cannot be handed to another process."""
        kind, _, what = self.noise.partition(" ")
        if kind == "boots":
            kernel = read_boots(BOOTS)[what]
            return kernel.noise() if self.cases == len(kernel.cases) else kernel.many(self.cases)
        made = {"normal": normal, "modes": two_modes, "wall": wall_time}[kind]
        return made(self.cases, float(what))


def worlds() -> list[World]:
    """The kernels whose boots are kept, and the models."""
    kept = list(read_boots(BOOTS))
    return [
        *(World(f"real: {name}", f"boots {name}", 8, len(METRICS)) for name in kept),
        World("modelled: normal, 0.5 %", "normal 0.5", 8, 1),
        World("modelled: two modes, 2 % apart", "modes 2", 8, 1),
        World("modelled: wall time, 1 %", "wall 1", 8, 1),
        World("modelled: wall time, 0.2 %", "wall 0.2", 8, 1),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--take", nargs="*", metavar="NAME=MEASUREMENT")
    arguments = parser.parse_args()
    if arguments.take:
        take(arguments.take)
        return
    count = arguments.evaluations
    tasks = [(world, design, count) for world in worlds() for design in DESIGNS]
    many = World(f"{tasks[0][0].title}, 40 cases", tasks[0][0].noise, 40, len(METRICS))
    tasks += [(many, DEFAULT, max(count // 2, 1))]
    with ProcessPoolExecutor() as pool:
        rows = []
        for row in pool.map(simulated, *zip(*tasks, strict=True)):
            rows.append(row)
            print(json.dumps(row), flush=True)
        coverage = list(pool.map(covered, worlds()))
    result = {
        "command": f"bench/verdicts.py --evaluations {count}",
        "seed": SEED,
        "slowdown_percent": SLOWDOWN_PERCENT,
        "rows": rows,
        "coverage": coverage,
    }
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(result))


def take(given: Sequence[str]) -> None:
    """Keep the counts of measurements with many boots."""
    kernels: dict[str, Any] = {}
    for name, _, path in (each.partition("=") for each in given):
        text = json.loads(Path(path).read_text(encoding="utf-8"))
        measurement = Measurement.model_validate(text["images"][0] if "images" in text else text)
        kernels[name] = {
            "device": measurement.device.mode,
            "metrics": METRICS,
            "cases": [case.case for case in measurement.boots[0].cases],
            "counts": [
                [getattr(case, metric) for metric in METRICS for case in boot.cases]
                for boot in measurement.boots
            ],
        }
    BOOTS.write_text(json.dumps({"kernels": kernels}) + "\n", encoding="utf-8")


def simulated(world: World, design: Design, count: int) -> dict[str, Any]:
    """The rates of one world and design."""
    generator = np.random.default_rng(SEED)
    noise, slower = world.drawn(), log(1 + SLOWDOWN_PERCENT / 100)
    same = [evaluation(noise, world.metrics, design, 0.0, generator) for _ in range(count)]
    everywhere = [evaluation(noise, world.metrics, design, slower, generator) for _ in range(count)]
    alone = []
    for number in range(count):
        slowdown = np.zeros((world.metrics, world.cases))
        slowdown[:, number % world.cases] = slower
        made = evaluation(noise, world.metrics, design, slowdown.ravel(), generator)
        alone.append(made.cases[number % world.cases] == "slower")
    cases = case_rates(everywhere, world.cases)
    return {
        "noise": world.title,
        "boots": f"{design.min_boots}-{design.max_boots}"
        if design == DEFAULT
        else str(design.min_boots),
        "boots_mean": round(fmean(made.boots for made in same), 2),
        "evaluations": count,
        "false_percent": round(false_rate(same), 2),
        "undecided_percent": round(
            100 * fmean(v == "not enough data" for made in same for v in made.cases), 2
        ),
        "found_mean_percent": round(found_rate(everywhere), 2),
        "found_cases_percent": round(fmean(cases), 2),
        "found_worst_case_percent": round(min(cases), 2),
        "found_alone_percent": round(100 * fmean(alone), 2),
    }


def covered(world: World) -> dict[str, Any]:
    """How often 95 % intervals of the noisiest case contain the truth, by method and boots."""
    generator, noise = np.random.default_rng(SEED), world.drawn()
    worst = int(np.argmax(noise(generator, 200).std(axis=0)))
    found: dict[str, Any] = {"noise": world.title}
    for units in UNITS:
        hits = {"t": 0, "BCa": 0}
        for _ in range(COVERAGE_TRIALS):
            pair = [tuple(map(float, noise(generator, n)[:, worst])) for n in (2 * units, units)]
            for method, interval in (("t", t_interval), ("BCa", bca_interval)):
                low, high = interval(*pair)
                hits[method] += low <= 0 <= high
        found[str(units)] = {m: round(100 * hit / COVERAGE_TRIALS, 1) for m, hit in hits.items()}
    return found


def page(result: dict[str, Any]) -> str:
    """Markdown of the rates."""
    titles = list(dict.fromkeys(row["noise"] for row in result["rows"]))
    tables = []
    for title in titles:
        lines = [
            f"| {r['boots']} | {r['boots_mean']:.1f} | {r['false_percent']:.1f} "
            f"| {r['undecided_percent']:.1f} | {r['found_mean_percent']:.1f} "
            f"| {r['found_cases_percent']:.1f} | {r['found_worst_case_percent']:.1f} "
            f"| {r['found_alone_percent']:.1f} |"
            for r in result["rows"]
            if r["noise"] == title
        ]
        tables.append(f"### {title[0].upper()}{title[1:]}\n\n{_HEAD}\n" + "\n".join(lines))
    coverage = "\n".join(
        f"| {c['noise']} | "
        + " | ".join(f"{c[str(n)]['t']:.1f} / {c[str(n)]['BCa']:.1f}" for n in UNITS)
        + " |"
        for c in result["coverage"]
    )
    return _PAGE.format(
        command=result["command"],
        tables="\n\n".join(tables),
        units=" | ".join(map(str, UNITS)),
        rule="| --- |" + " --- |" * len(UNITS),
        coverage=coverage,
        slowdown=result["slowdown_percent"],
        seed=result["seed"],
        trials=COVERAGE_TRIALS,
    )


_HEAD = (
    "| boots | made | false | undecided | mean found | cases found | worst case | alone |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)
_PAGE = """# How far verdicts can be trusted

`make bench-verdicts` (`{command}`, seed {seed}) simulates evaluations and judges them with the
code that judges real ones. *Real* noise is that of 20 boots of each kernel
(`bench/measure/boots.json`), drawn whole and with replacement; *modelled* noise is drawn from a
distribution. Every evaluation boots an image, its baseline, and the baseline again as the A/A
control.
[statistics.md](../statistics.md) has the method.

- *boots* of each image, and how many were *made* on average (in a range, until intervals were
  narrow);
- *false*: percent of evaluations in which an image that does not differ at all has a verdict
  `faster` or `slower`, in a case or the mean of any metric;
- *undecided*: percent of that image's cases with the verdict `not enough data`;
- *found*: the image is {slowdown} % slower everywhere, and the verdict on the geometric mean
  (*mean*), on a case on average (*cases*), or on the noisiest case (*worst*) is `slower`;
- *alone*: one case is {slowdown} % slower and no other, and its verdict is `slower`.

{tables}

## Intervals

How often 95 % intervals of the noisiest case contain the truth, percent of {trials}: Welch's t /
BCa, by the boots of an image against twice as many of the baseline.

| noise | {units} |
{rule}
{coverage}

BCa intervals are too narrow with few boots, and with outliers even with many; so t intervals are
used up to 19 boots, and whenever a boot is an outlier.
"""

if __name__ == "__main__":
    main()
