"""The method in words, so that a report can be judged without anything beside it."""

from __future__ import annotations

from collections.abc import Sequence

from mepof.evaluate.measurement import Measurement
from mepof.evaluate.statistics import CONFIDENCE, PRACTICAL_PERCENT


def method_of(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """How the numbers of these measurements were made, one paragraph an entry."""
    devices = sorted({_device(m) for m in measurements})
    boots = sorted({len(m.boots) for m in measurements})
    text = [
        f"Device: {'; '.join(devices)}. Boots of each image: {', '.join(map(str, boots))}, "
        "each with another seed. Every boot runs every case once, with a fixed amount of work "
        "between a start and a stop mark; only what happens between the marks is measured, and "
        "every case checks its own result.",
        "Counted: kernel and user instructions and taken branches, each divided by the number "
        "of operations. User instructions are a control: the benchmark is the same binary on "
        "every image, so they must not move.",
    ]
    if any(m.device.mode.startswith("icount") for m in measurements):
        text.append(
            "Modelled: guest time. The emulator's clock advances by one nanosecond with every "
            "instruction, so it says nothing about caches, pipelines or real time."
        )
    cores = sorted(
        {c.modelled.core for m in measurements for b in m.boots for c in b.cases if c.modelled}
    )
    if cores:
        text.append(
            f"Modelled: cycles, misses and mispredictions of the core {', '.join(cores)}. The "
            "emulator drives a model of its caches, TLBs and branch predictors with what the "
            "guest executes; cycles are instructions and events times fixed prices. "
            "Dependences between instructions and the units that execute them are left out."
        )
    if any(m.device.accel in ("tcg", "kvm") for m in measurements):
        text.append(
            "The measurement was made in a virtual machine: a lower instruction count is not "
            "by itself a shorter time on hardware."
        )
    if len(measurements) > 1:
        text.append(
            f"Improvement = (cost of the baseline {measurements[0].image} / cost of the image "
            "- 1) * 100 %, costs per operation, positive when better. Boots are paired by seed; "
            f"the {CONFIDENCE:.0%} interval is Student's t interval of the mean of the pairs' "
            "log ratios. The geometric mean over the cases is formed in each pair of boots, and "
            "its interval is over the pairs. Intervals hold for each row alone and are not "
            "corrected for the number of rows."
        )
        text.append(
            "Verdict: faster or slower if the whole interval lies beyond the practical "
            f"threshold of {PRACTICAL_PERCENT} %; no difference if it does not; not enough data "
            "with fewer than two pairs of boots. An image that did not boot or failed a "
            "self-check is not compared."
        )
    return tuple(text)


def _device(measurement: Measurement) -> str:
    device = measurement.device
    return " ".join(filter(None, (device.name, device.accel, device.cpu, device.mode)))
