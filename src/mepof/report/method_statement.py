"""The method in words, so that a report can be judged without anything beside it."""

from __future__ import annotations

from mepof.measure.measurement import Evaluation, Measurement
from mepof.statistics import (
    BCA_UNITS,
    CONFIDENCE,
    LEVEL,
    PRACTICAL_PERCENT,
    RESAMPLES,
    RESAMPLING_SEED,
)


def method_of(evaluation: Evaluation) -> tuple[str, ...]:
    """How the numbers of an evaluation were made, one paragraph an entry."""
    measurements = evaluation.images
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
            "emulator drives a model of its caches, TLBs, branch predictors and pipeline with what "
            "the guest executes; latencies and execution units are those of LLVM's scheduling "
            "model. Schedulers, load and store queues and bandwidth are left out."
        )
    counted = [c.counted for m in measurements for b in m.boots for c in b.cases if c.counted]
    if counted:
        kinds = ", ".join(sorted({c.counters for c in counted}))
        text.append(
            f"Counted by `perf stat`: events of the processor ({kinds}). Every case ran with its "
            "work and with half of it, and what the longer run counted more is divided by the "
            "operations that it did more, so that the program's start is left out; where it warms "
            "up by a share of its work, that share is in the figures of all images alike."
            + (
                " Cases that have no shorter run are counted with their program's start and end."
                if any(c.whole_program for c in counted)
                else ""
            )
        )
    if any(m.device.accel in ("tcg", "kvm") for m in measurements):
        text.append(
            "The measurement was made in a virtual machine: a lower instruction count is not "
            "by itself a shorter time on hardware."
        )
    if len(measurements) > 1:
        text += _comparison(evaluation)
    return tuple(text)


def _comparison(evaluation: Evaluation) -> list[str]:
    baseline = evaluation.images[0].image
    why = f" There were no further boots because {evaluation.ended}." if evaluation.ended else ""
    text = [
        f"Improvement = (cost of the baseline {baseline} / cost of the image - 1) * 100 %, "
        "costs per operation, positive when better; costs are geometric means over boots, and "
        "the geometric mean over the cases is formed in each boot. Images are booted in turns, "
        f"and outliers are shown and not left out.{why}",
        f"The {CONFIDENCE:.0%} interval is Welch's t interval of the log costs; from {BCA_UNITS} "
        f"boots of each image on it is BCa with {RESAMPLES} resamples and the seed "
        f"{RESAMPLING_SEED}, unless a boot is an outlier. Intervals hold for each row alone.",
        "Verdict: faster or slower if the exact Mann-Whitney test of the boots finds a "
        f"difference of more than {PRACTICAL_PERCENT} %, at a false discovery rate of "
        f"{LEVEL:.0%} over all rows (Benjamini and Hochberg); no difference if the interval "
        f"lies within {evaluation.precision_percent:g} % of none; not enough data otherwise. An "
        "image that did not boot or failed a self-check is not compared.",
    ]
    if evaluation.same_build is not None:
        text.append(
            f"Control: {baseline} was booted as often again with other seeds. It is compared with "
            "itself, and then all of its boots are what the other images are compared with."
        )
    if evaluation.relinked:
        text.append(
            f"Control: {baseline} was linked {len(evaluation.relinked)} times more with its code "
            "in another order. The units are then builds: what other images differ by must exceed "
            "what these differ by as well (t test on the means of builds)."
        )
    return text


def _device(measurement: Measurement) -> str:
    device = measurement.device
    return " ".join(filter(None, (device.name, device.accel, device.cpu, device.mode)))
