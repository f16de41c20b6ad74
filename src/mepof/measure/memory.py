"""Memory that a kernel takes at run time, from its ``/proc/meminfo``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median_low

from mepof.errors import WorkError
from mepof.measure.measurement import MemoryBytes

MEMINFO = "/proc/meminfo"

_LINE = re.compile(r"^([\w()]+):\s+([0-9]{1,18}) kB$", re.MULTILINE)
_KIB = 1024


def memory_of(meminfo: str, machine_bytes: int | None) -> MemoryBytes:
    """Parse ``/proc/meminfo`` (Documentation/filesystems/proc.rst).

    Args:
        machine_bytes: the machine's memory; None if unknown.

    Raises:
        WorkError: a line is missing, or the machine has less memory than the kernel says.
    """
    found = {name: int(number) * _KIB for name, number in _LINE.findall(meminfo)}
    try:
        total = found["MemTotal"]
        droppable = found["Buffers"] + found["Cached"] + found["SReclaimable"]
        allocated = total - found["MemFree"] - droppable
        reserved = None if machine_bytes is None else machine_bytes - total
        if allocated < 0 or (reserved is not None and reserved < 0):
            raise WorkError(f"{MEMINFO} of the guest contradicts itself or the machine's memory")
        return MemoryBytes(
            reserved=reserved,
            allocated=allocated,
            slab=found["Slab"],
            page_tables=found["PageTables"],
            kernel_stacks=found["KernelStack"],
        )
    except KeyError as error:
        raise WorkError(f"{MEMINFO} of the guest has no line {error.args[0]}") from error


def median_memory(readings: Sequence[MemoryBytes]) -> MemoryBytes | None:
    """The median of each figure over boots: of two middle ones the lower. None without a boot."""
    if not readings:
        return None
    reserved = [each.reserved for each in readings if each.reserved is not None]
    return MemoryBytes(
        reserved=median_low(reserved) if reserved else None,
        allocated=median_low(each.allocated for each in readings),
        slab=median_low(each.slab for each in readings),
        page_tables=median_low(each.page_tables for each in readings),
        kernel_stacks=median_low(each.kernel_stacks for each in readings),
    )
