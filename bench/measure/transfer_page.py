"""The page of the results of ``bench/transfer.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import Any

from measure.left import COUNTED, MODELLED, geometric
from measure.transfer_cells import FOREIGN, OWN, Cell

#: What came out of a cell, as JSON.
Outcome = Mapping[str, Any]
CASES = ("syscall", "overhead", "pipe128", "pipe512", "proc", "file512", "file1024", "file8k")


def fewer_percent(outcome: Outcome, image: str, metric: str) -> float:
    """By how many percent an image costs less than the plain kernel; geometric mean of cases."""
    return 100 - geometric(outcome["left_percent"][image][metric])


def page(known: Sequence[Cell], results: Mapping[str, Outcome]) -> str:
    """Markdown of the cells that have been measured."""
    tried = [cell for cell in known if cell.name in results]
    missing = ", ".join(f"`{cell.name}`" for cell in known if cell.name not in results)
    said = fill(f"Not measured yet: {missing}.", 100, break_on_hyphens=False)
    return _PAGE.format(
        rows="\n".join(_row(cell, results[cell.name]) for cell in tried),
        details="\n".join(_detail(cell, results[cell.name]) for cell in tried),
        modelled="".join(f"\n{line}\n" for line in _modelled(tried, results)),
        cases="\n".join(_cases(cell, results[cell.name]) for cell in tried),
        names=" | ".join(CASES),
        lines="|---" * (len(CASES) + 1) + "|",
        missing=f"\n{said}\n" if missing else "",
    )


def _row(cell: Cell, outcome: Outcome) -> str:
    cells = [cell.title, f"`{cell.algorithm}`", f"{outcome['changed_percent']:.1f}"]
    cells.append(f"{outcome['matched_percent']:.1f}")
    for metric in COUNTED:
        own, foreign = (fewer_percent(outcome, image, metric) for image in (OWN, FOREIGN))
        cells += [f"{own:.2f}", f"{foreign:.2f}", f"{100 * foreign / own:.0f}"]
    return f"| {' | '.join(cells)} |"


def _detail(cell: Cell, outcome: Outcome) -> str:
    ends = []
    for kernel, made in ((cell.origin, outcome["from"]), (cell.target, outcome["to"])):
        toolchain = kernel.toolchain.partition("-")[0]
        about = f"Linux {made['kernel']}, {toolchain} {made['compiler']}"
        ends.append(", ".join((about, made["arch"], made["config"], *made.get("cpu", "").split())))
    return f"| `{cell.name}` | {' | '.join(ends)} |"


def _modelled(tried: Sequence[Cell], results: Mapping[str, Outcome]) -> Iterator[str]:
    for cell in tried:
        if cell.target.cpu is not None:
            gains = (
                f"{title}: {fewer_percent(results[cell.name], OWN, metric):.1f} % and"
                f" {fewer_percent(results[cell.name], FOREIGN, metric):.1f} %"
                for metric, title in MODELLED.items()
                if metric in results[cell.name]["left_percent"][OWN]
            )
            text = f"`{cell.name}`, *modelled*, fewer with the own and the foreign profile: "
            yield fill(text + "; ".join(gains) + ".", 100, break_on_hyphens=False)


def _cases(cell: Cell, outcome: Outcome) -> str:
    own, foreign = (outcome["left_percent"][i]["kernel_instructions"] for i in (OWN, FOREIGN))
    values = (f"{100 - own[case]:.2f} / {100 - foreign[case]:.2f}" for case in CASES)
    return f"| `{cell.name}` | {' | '.join(values)} |"


_PAGE = """# Profiles between releases, compilers, machines and configurations

`make bench-transfer` writes this page from the rows of `bench/transfer.toml`.

A kernel is built with a profile of its own (*own*), and with one that was trained on another kernel
or machine (*foreign*), by the same 24 actions of `rand kbench`. *Fewer* is percent fewer than the
plain kernel executes, *counted* in the emulator, the geometric mean of the eight cases of the suite
`mepof`; *kept* is the foreign profile's gain in percent of the own one's.

- *changed*: the share of the profile's samples in functions whose source differs, in percent, as
  [`mepof adapt judge`](../adapt.md#does-the-old-profile-fit) says before a build;
- *matched*: after it, the share that the kernel has code for: of `autofdo`, samples by their lines
  ([`mepof profile drift`](../profile-engine.md#drift)), of `pgo`, counts of functions with the same
  control flow.

| the profile is of | algorithm | changed | matched | fewer instructions: own | foreign | kept | fewer taken branches: own | foreign | kept |
|---|---|---|---|---|---|---|---|---|---|
{rows}
{missing}
## What was measured

| cell | profile of | used on |
|---|---|---|
{details}

Another core is another processor of QEMU's, while branches are recorded and while images are
measured. The kernel patches its code for the processor, and chooses mitigations: Skylake's has
separate page tables for user space, Zen 4's has not. On either, every branch is recorded as it was
taken, so what the branch stacks of real processors miss is not in these figures.
{modelled}
## By case

Fewer kernel instructions, in percent: own / foreign.

| cell | {names} |
{lines}
{cases}
"""  # noqa: E501 - rows of tables
