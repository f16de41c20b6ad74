"""The page of the results of ``bench/native_cycles.py``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from statistics import median
from textwrap import fill
from typing import Any

from measure.left import geometric, saved
from mepof.measure.native import CONTROL, MAX_SELF_DIFFERENCE_PERCENT

PLAIN = "build"
OWN, OTHER, SAMPLED = "own", "other", "sampled"
#: Of the images with a profile.
TITLES = {
    OWN: "a profile of the load itself",
    OTHER: "a profile of something else, kbench",
    SAMPLED: "samples of the load itself on x86-64",
}
#: Of their columns.
COLUMNS = {OWN: "profile of the load", OTHER: "profile of kbench", SAMPLED: "samples of the load"}
#: Images with an option, beside those with the option and a profile.
OPTIONS = {
    "O2": (PLAIN, OWN),
    "O3": ("o3", "own-o3"),
    "Os": ("os", "own-os"),
    "ThinLTO": ("thinlto", "own-thinlto"),
    "NoPGSO": (None, "own-nopgso"),
}
#: What the emulator says of the same cases.
EMULATED = {"kernel_cycles": "cycles, *modelled*", "kernel_instructions": "instructions, *counted*"}

Found = Mapping[str, Any]


def page(found: Found) -> str:
    """Markdown of the parts that have been measured."""
    parts = {
        "profiles": _profiles,
        "sampled": _profiles,
        "options": _options,
        "emulated": _emulated,
    }
    return _HEAD + "".join(
        part(found[name], found) for name, part in parts.items() if name in found
    )


def _profiles(timed: Found, found: Found) -> str:
    columns = [
        "case",
        "cycles without a profile",
        *(COLUMNS[image] for image in timed["images"]),
        "same, %",
        "layouts, %",
    ]
    sampled = SAMPLED in timed["images"]
    return (_SAMPLED if sampled else _PROFILES).format(
        how=_how(timed),
        columns=" | ".join(columns),
        lines="| --- " * len(columns) + "|",
        verdicts="\n".join(_verdicts(timed)),
        rows="\n".join(_rows(timed)),
        control=fill(_CONTROL.format(control=CONTROL, moved=f"{_moved(timed):.1f}"), 100),
    )


def _moved(timed: Found) -> float:
    """How far the control moves at most, in percent, though nothing of it differs."""
    compared = (timed["same_binary"], *timed["images"].values())
    return max(abs(float(of["cases"][CONTROL]["percent"])) for of in compared)


def _how(timed: Found) -> str:
    loads = timed["loads"]
    sound = "" if timed["repeats"] else " **That is too much: there are no verdicts.**"
    text = _HOW.format(
        kernel=timed["kernel"],
        compiler=timed["compiler"],
        processor=timed["processor"],
        runs=timed["runs"],
        rounds=timed["rounds"],
        builds=len(timed["cycles"][PLAIN]),
        load=f"{min(e['load'] for e in loads):.1f} to {max(e['load'] for e in loads):.1f}",
        stolen=f"{median(e['stolen_percent'] for e in loads):.1f}",
        cores=os.cpu_count(),
        limit=MAX_SELF_DIFFERENCE_PERCENT,
        itself=f"{timed['same_binary']['mean']['percent']:+.2f}",
        sound=sound,
    )
    return fill(text, 100, break_on_hyphens=False)


def _verdicts(timed: Found) -> Iterator[str]:
    for image, compared in timed["images"].items():
        cases = {c: row for c, row in compared["cases"].items() if c != CONTROL}
        mean = compared["mean"]
        text = f"- With {TITLES[image]}: {_interval(mean)} on the geometric mean."
        if timed["repeats"]:
            fewer, more = (
                [
                    case
                    for case, row in cases.items()
                    if row["verdict"] == wanted and abs(row["percent"]) > _moved(timed)
                ]
                for wanted in ("fewer", "more")
            )
            named = f" ({', '.join(more)})" if more else ""
            text += (
                f" {len(fewer)} of {len(cases)} cases take fewer cycles beyond the spread of"
                f" layouts and what the control moves by, {len(more)} more{named}."
            )
        worst = min(cases, key=lambda case: cases[case]["percent"])
        text += f" The worst case is `{worst}`: {cases[worst]['percent']:+.1f} %."
        yield fill(text, 100, subsequent_indent="  ", break_on_hyphens=False)


def _rows(timed: Found) -> Iterator[str]:
    for case, itself in timed["same_binary"]["cases"].items():
        name = f"`{case}`" + (", the control" if case == CONTROL else "")
        cycles = timed["cycles"][PLAIN][0][case]
        fewer = " | ".join(_interval(of["cases"][case]) for of in timed["images"].values())
        yield (
            f"| {name} | {cycles:,.0f} | {fewer} "
            f"| {itself['percent']:+.1f} | {timed['layouts'][case]:.1f} |"
        )


def _options(timed: Found, found: Found) -> str:
    rows = []
    for option, (alone, profiled) in OPTIONS.items():
        cells = [
            _interval(timed["images"][alone]["mean"]) if alone in timed["images"] else "",
            _interval(timed["images"][profiled]["mean"]),
            _interval(timed["beside"][profiled]) if profiled in timed["beside"] else "",
        ]
        rows.append(f"| `{option}` | {' | '.join(cells)} |")
    return _OPTIONS.format(how=_how(timed), rows="\n".join(rows))


def _emulated(emulated: Found, found: Found) -> str:
    timed = found.get("profiles")
    tables = [_by_case(image, emulated, timed) for image in (OWN, OTHER)]
    core = emulated["core"]
    return _EMULATED.format(core=core, kernel=emulated["kernel"], tables="\n".join(tables))


def _by_case(image: str, emulated: Found, timed: Found | None) -> str:
    """One image: percent fewer by each of the three, in the cases that all of them have."""
    left: Mapping[str, Mapping[str, float]] = emulated["left_percent"][image]
    fewer = {
        title: {case: 100 - value for case, value in left[metric].items() if case != CONTROL}
        for metric, title in EMULATED.items()
    }
    if timed is not None:
        cases = timed["images"][image]["cases"]
        native = {case: row["percent"] for case, row in cases.items() if case != CONTROL}
        fewer = {"cycles, *native*": native, **fewer}
    names = [
        case for case in next(iter(fewer.values())) if all(case in by for by in fewer.values())
    ]
    rows = [
        f"| `{case}` | " + " | ".join(f"{by[case]:+.1f}" for by in fewer.values()) + " |"
        for case in names
    ]
    means = (
        f"{float(saved(geometric({case: 100 - by[case] for case in names}))):+.1f}"
        for by in fewer.values()
    )
    return _BY_CASE.format(
        title=TITLES[image].capitalize(),
        titles=" | ".join(fewer),
        lines="| --- " * (len(fewer) + 1) + "|",
        rows="\n".join(rows),
        means=" | ".join(means),
        ranks=_ranks(names, fewer),
    )


def _ranks(names: list[str], fewer: Mapping[str, Mapping[str, float]]) -> str:
    """How alike the cases are ordered by time and by what the emulator says."""
    from scipy.stats import spearmanr

    (first, native), *others = fewer.items()
    if "native" not in first:
        return ""
    found = []
    for title, by in others:
        rank = spearmanr([native[case] for case in names], [by[case] for case in names]).statistic
        found.append(f"{rank:.2f} with {title}")
    text = f"Rank correlation of the cases with native cycles: {', '.join(found)}."
    return f"\n{fill(text, 100)}\n"


def _interval(row: Mapping[str, float]) -> str:
    return f"{row['percent']:+.1f} % [{row['low']:+.1f}, {row['high']:+.1f}]"


_HEAD = """# Native cycles of kernel code

`make bench-native` (`bench/native_cycles.py`) writes this page, and with `PARTS="sampled options
emulated"` its other parts: kernels as [User-Mode Linux](../devices/uml.md) run [the load of kernel
code](../suites/kload.md) on a real processor. Figures are *native*, cycles of the time-stamp
counter, except where others are named. Each is the shortest of many rounds in many runs; the
kernels take turns, pinned to one core.

Each kernel is built in several layouts: the linker shuffles the order of the objects' code.
Percentages are of fewer cycles, geometric means over layouts, with 95 % intervals of the spread
between them.
"""

_HOW = (
    "Linux {kernel}, Clang {compiler}, {processor}; {rounds} rounds in each of {runs} runs, "
    "{builds} layouts. The machine has {cores} cores; its load was {load}, and its hypervisor "
    "took {stolen} % of its time (median of the runs). A copy of the same binary differs by "
    "{itself} % on the geometric mean; up to {limit} % is accepted.{sound}"
)

_PROFILES = """
## With and without a profile

{how}

{verdicts}

*Same* is what the same binary takes fewer than itself, *layouts* how much more the slowest layout
without a profile takes than the fastest.

| {columns} |
{lines}
{rows}

{control}
"""

_SAMPLED = """
## AutoFDO

Nothing records the branches of a process of the host, so they were recorded in an emulated kernel
for x86-64 of the same source and configuration, which ran the same load. Code that User-Mode Linux
has of its own has no samples.

{how}

{verdicts}

| {columns} |
{lines}
{rows}

{control}
"""

_CONTROL = (
    "`kload` times itself and is compiled alike in every kernel; `{control}`, the control, calls "
    "nothing of the kernel, so it should not move. Between kernels, or between a binary and its "
    "copy, it moves by up to {moved} %, which the intervals, being of layouts alone, need not "
    "cover. The error is at least as large: nothing below it is called a difference."
)

_OPTIONS = """
## Options, with and without a profile

{how}

Fewer cycles than with `O2` and no profile, on the geometric mean: of the option alone, and of the
option with a profile of the load. The last column is what the profile gains beside the same option.
With `ThinLTO` a kernel is linked from one object, so it has one layout.

| option | alone | with the profile | the profile beside the option |
| --- | --- | --- | --- |
{rows}
"""

_EMULATED = """
## Beside what is counted and modelled

The same load on x86-64 in the emulator, Linux {kernel}: kernel instructions *counted*, cycles
*modelled* on the core `{core}` ([the emulated PMU](../pmu.md)). Percent fewer than without a
profile. Entry code and page tables are the architecture's there, and User-Mode Linux's here.
{tables}"""

_BY_CASE = """
{title}:

| case | {titles} |
{lines}
{rows}
| geometric mean | {means} |
{ranks}"""
