"""Events that the emulated PMU counts (docs/pmu.md)."""

from __future__ import annotations

from collections.abc import Mapping

#: The events that are cycles, and what the pipeline waited for in them.
CYCLES: Mapping[str, str] = {
    "execution_cycles": "execution",
    "fetch_cycles": "fetching",
    "misprediction_cycles": "mispredictions",
    "data_cycles": "data",
}

#: Counted for kernel and user apart, beside instructions and taken branches.
EVENTS: tuple[str, ...] = (
    "conditional_branches",
    "loads",
    "stores",
    "l1i_accesses",
    "l1i_misses",
    "l1d_misses",
    "l2_code_misses",
    "l2_data_misses",
    "op_cache_misses",
    "itlb_misses",
    "dtlb_misses",
    "itlb_walks",
    "dtlb_walks",
    "unknown_pages",
    "return_mispredictions",
    "btb_misses",
    "indirect_mispredictions",
    "direction_mispredictions",
    *CYCLES,
)


def cycles_of(events: Mapping[str, int]) -> dict[str, float]:
    """The modelled cycles by what the pipeline waited for; their sum is all cycles.

    Args:
        events: counts, by the event's name.
    """
    return {cause: float(events[name]) for name, cause in CYCLES.items()}
