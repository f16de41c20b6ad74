"""The page of the results of ``bench/profile_engine.py``."""

from __future__ import annotations

from typing import Any


def page(result: dict[str, Any]) -> str:
    """Markdown of what the benchmark wrote as JSON."""
    return _HEAD.format(
        command=result["command"],
        rounds=max(len(row["runs"]) for rows in result["sizes"].values() for row in rows.values()),
        **result["machine"],
        vmlinux=result["vmlinux_mib"],
        comparisons="\n".join(_comparisons(result)),
        differences="\n".join(_differences(result)),
        floor="\n".join(_floor(result)),
        large=_large(result),
    )


def _comparisons(result: dict[str, Any]) -> list[str]:
    return [
        f"| {mib} MiB | {label} | {row['seconds']:.2f} | {row['cpu_seconds']:.2f} "
        f"| {row['peak_mib']:.0f} | {row['times_faster']['median']:.1f} "
        f"({row['times_faster']['range'][0]:.1f} to {row['times_faster']['range'][1]:.1f}) "
        f"| {row['times_less_memory']:.1f} |"
        for mib, rows in result["sizes"].items()
        for label, row in rows.items()
    ]


def _differences(result: dict[str, Any]) -> list[str]:
    return [
        f"| {mib} MiB | {one['functions'][0]} | {one['functions'][1]} | {one['samples'][0]} "
        f"| {one['samples'][1]} | {one['share'] * 100:.2f} % |"
        for mib, one in result["differences"].items()
    ]


def _floor(result: dict[str, Any]) -> list[str]:
    one, two = (usage["seconds"] for usage in result["floor"]["llvm-gsymutil"])
    rows = []
    for mib, read in result["floor"]["read_seconds"].items():
        labels = [label for label in result["sizes"][mib] if label.startswith("mepof")]
        for label, debug in zip(labels, (two, one), strict=True):
            took = result["sizes"][mib][label]["seconds"]
            rows.append(
                f"| {mib} MiB | {label} | {read:.2f} | {debug:.2f} | {took:.2f} "
                f"| {took / (read + debug):.1f} |"
            )
    return rows


def _large(result: dict[str, Any]) -> str:
    if "large" not in result:
        return "Not measured in this run."
    large = result["large"]
    return (
        f"{large['mib']:.0f} MiB: {large['seconds']:.1f} s, "
        f"{large['peak_bytes'] / (1 << 20):.0f} MiB at the peak."
    )


_HEAD = """# The profile engine and llvm-profgen

`{command}` writes this page. `make bench` runs it with its defaults.

{processor}, {cores} cores. The same perf-script text (`crates/trace/examples/walk_kernel.rs`: 32
entries a sample, `.text` of the same kernel) and the same `vmlinux` ({vmlinux:.0f} MiB, DWARF 5);
whole processes, from start to end, write the extensible binary; the text is in the page cache.
The programs alternate for {rounds} rounds, and ratios are within a round. The peak is that of
the resident set, with pages of mapped files.

| text | | s | CPU s | peak MiB | times faster | times less memory |
|---|---|---|---|---|---|---|
{comparisons}

## The profiles

Functions at the top level, their samples, and the share of llvm-profgen's samples in functions
whose totals differ by more than 0.1 %.

| text | functions, llvm-profgen | mepof | samples, llvm-profgen | mepof | that differ |
|---|---|---|---|---|---|
{differences}

## A yardstick

*Read* reads the text once from the page cache, a MiB at a time, on one core. *Debug information* is
`llvm-gsymutil-22 --convert` of the same kernel with as many threads: it reads every function,
inlined call and line once, and writes them. A profile does not need all of it, so this is a
yardstick, not a lower bound.

| text | | read, s | debug information, s | mepof, s | times the sum |
|---|---|---|---|---|---|
{floor}

## Memory at 8 GiB

The largest text eight times over, mepof alone. {large}
"""
