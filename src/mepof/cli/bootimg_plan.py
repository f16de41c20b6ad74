"""What ``mepof bootimg plan`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mepof.bootimg.partition import Fit
from mepof.bootimg.plan import Plan


def works(plan: Plan, fits: Sequence[Fit]) -> bool:
    """Whether a boot loader can load the images, from partitions that are large enough."""
    return plan.fits and plan.compression is None and not any(each.excess for each in fits)


def plan_document(plan: Plan, base: int, fits: Sequence[Fit]) -> dict[str, Any]:
    """The plan as ``--json`` has it.

    Args:
        base: that offsets are from.
    """
    return {
        "fits": works(plan, fits),
        "problems": (*_compression(plan), *plan.problems),
        "regions": [
            {"name": each.name, "start": each.start, "size": each.size} for each in plan.regions
        ],
        "base": base,
        "addresses": plan.addresses,
        "offsets": plan.offsets(base),
        "moved": plan.moved,
        "kernel_size": plan.kernel_size,
        "largest_kernel": plan.largest_kernel,
        "partitions": [{**asdict(each), "excess": each.excess} for each in fits],
        "instrument": _size(limit) if (limit := _limit(plan, fits)) else None,
    }


def _limit(plan: Plan, fits: Sequence[Fit]) -> int | None:
    """Bytes that a kernel's image may have for everything to fit; None if everything does."""
    limits = [each.image_limit for each in fits if each.image_limit is not None]
    return min(limits if plan.fits else [*limits, plan.image_limit], default=None)


def _size(limit: int) -> str:
    """A size as `set instrument` takes it."""
    return f"{limit >> 10}K"


def plan_lines(plan: Plan, base: int, fits: Sequence[Fit]) -> Iterator[str]:
    """The plan as people read it.

    Args:
        base: that offsets are from.
    """
    for region in plan.regions:
        yield f"{region.name:8} {region.start:#012x} to {region.end:#012x} {region.size:>12} bytes"
    yield from _compression(plan)
    yield from plan.problems
    if not plan.problems:
        yield "nothing overlaps: the addresses can stay"
    elif plan.fits:
        yield f"nothing overlaps with other addresses of: {', '.join(plan.moved)}"
        yield from (f"  {name}_address = {at:#x}" for name, at in plan.addresses.items())
        # With `=`, since one below the base is negative.
        offsets = (f"--{name}_offset={at:#x}" for name, at in plan.offsets(base).items())
        yield f"  mkbootimg --base {base:#x} {' '.join(offsets)}"
    else:
        yield (
            f"no addresses fit: the kernel takes {plan.kernel_size} bytes of memory, "
            f"{plan.kernel_size - plan.largest_kernel} more than the {plan.largest_kernel} that "
            "the other parts leave"
        )
    for each in fits:
        yield from _partition_lines(each)
    if limit := _limit(plan, fits):
        yield (
            f"instrument less: `set instrument {_size(limit)}.` counts in as many of the hottest "
            "files as fit in a kernel image of that size"
        )


def _compression(plan: Plan) -> Iterator[str]:
    """That the boot loader does not decompress the kernel, if so."""
    if plan.compression is not None:
        yield (
            f"the kernel is compressed by {plan.compression}, which `compressions` of the model "
            "does not list"
        )


def _partition_lines(fit: Fit) -> Iterator[str]:
    if not fit.excess:
        yield f"partition {fit.partition}: {fit.needed} of {fit.size} bytes"
        return
    yield f"partition {fit.partition}: {fit.needed} bytes, {fit.excess} more than its {fit.size}"
    for name, needed in fit.compressions.items():
        verdict = "fits" if needed <= fit.size else f"{needed - fit.size} too many"
        yield f"  with --compression {name}: {needed} bytes, {verdict}"
    if fit.largest_kernel is not None:
        yield f"  the kernel may have {fit.largest_kernel} bytes in the image"
