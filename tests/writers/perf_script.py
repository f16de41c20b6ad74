"""Text as ``perf script`` prints it, from tuples: mappings and samples with branch stacks.

Formats as in Linux 6.12, tools/perf/builtin-script.c and tools/perf/util/event.c. For as much of
it as a benchmark wants there is ``crates/trace/examples/walk_kernel.rs``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

KERNEL = "[kernel.kallsyms]_text"


@dataclass(frozen=True)
class Entry:
    """A taken branch of a stack.

    Attributes:
        mispredicted: None where the processor does not say.
        cycles: since the branch before it; 0 where the processor does not say.
        kind: as ``--branch-filter save_type`` gives it (``COND``, ``CALL``, …), else empty.
        speculation: ``SPEC_WRONG_PATH`` and the like, ``-`` where the processor does not say.
    """

    source: int
    target: int
    mispredicted: bool | None = False
    cycles: int = 0
    kind: str = ""
    speculation: str = "-"


def mapping(
    start: int,
    size: int,
    name: str = KERNEL,
    pid: int = -1,
    tid: int = 0,
    offset: int | None = None,
) -> str:
    """A line of ``--show-mmap-events``; the kernel's mapping has its start as its offset."""
    at = start if offset is None else offset
    return f"PERF_RECORD_MMAP {pid}/{tid}: [{start:#x}({size:#x}) @ {at:#x}]: x {name}\n"


def sample(address: int, stack: Sequence[Entry], head: str = "") -> str:
    """A sample of ``-F ip,brstack``, entries the newest first; `head` is what further fields
    print before it (``swapper     0 [001]   12.345678:``)."""
    return f"{head} {address:16x}{_stack(stack, hex)}\n"


def sample_by_symbol(
    address: int, stack: Sequence[Entry], name: Callable[[int], str], head: str = ""
) -> str:
    """A sample of ``-F ip,brstacksym``; `name` gives ``symbol+0xoffset`` of an address."""
    return f"{head} {address:16x}{_stack(stack, name)}\n"


def _stack(stack: Sequence[Entry], name: Callable[[int], str]) -> str:
    return "".join(
        f" {name(one.source)}/{name(one.target)}/{_prediction(one)}/-/-/{one.cycles}"
        f"/{one.kind}/{one.speculation} "
        for one in stack
    )


def _prediction(entry: Entry) -> str:
    return "-" if entry.mispredicted is None else "M" if entry.mispredicted else "P"
