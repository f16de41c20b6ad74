"""The method in words, so that a reader can judge the report from the report alone."""

from __future__ import annotations

from mepof.measure.comparison import baseline_builds
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
    """How the numbers of an evaluation were obtained, one paragraph per entry."""
    measurements = evaluation.images
    devices = sorted({_device(m) for m in measurements})
    boots = sorted({len(m.boots) for m in measurements})
    text = [
        f"Device: {'; '.join(devices)}. Boots per image: {', '.join(map(str, boots))}, "
        "each with its own seed. Every boot runs every case once. A case does a fixed amount of "
        "work between a start mark and a stop mark, and checks its own result. Only what happens "
        "between the marks is measured.",
        "Counted: kernel and user instructions and taken branches, divided by the number of "
        "operations. User instructions are a control: the benchmark is the same binary on every "
        "image, so they must not change.",
    ]
    if any(m.device.mode.startswith("icount") for m in measurements):
        text.append(
            "Modelled: guest time. The emulator's clock advances by one nanosecond per "
            "instruction, so it says nothing about caches, pipelines or real time."
        )
    cases = [case for m in measurements for boot in m.boots for case in boot.cases]
    if priced := sorted({c.kernel_repeats.core for c in cases if c.kernel_repeats}):
        text.append(
            "Modelled: kernel work, which is kernel instructions plus the cycles of string "
            "instructions with a repeat prefix, so that an instruction counts as a cycle. Each of "
            "these is counted as one instruction, however many bytes it moves. Its cycles are "
            f"those of the core {', '.join(priced)}: some to start, and some for each cache line."
        )
    if cores := sorted({c.modelled.core for c in cases if c.modelled}):
        text.append(
            f"Modelled: cycles, misses and mispredictions of the core {', '.join(cores)}. The "
            "emulator feeds what the guest executes to a model of the core's caches, TLBs, branch "
            "predictors and pipeline. Latencies and execution units are those of LLVM's "
            "scheduling model. Schedulers, load and store queues and bandwidth are not modelled."
        )
    if counted := [c.counted for c in cases if c.counted]:
        kinds = ", ".join(sorted({c.counters for c in counted}))
        text.append(
            f"Counted by `perf stat`: events of the processor ({kinds}). Every case ran twice, "
            "with its full work and with half of it. The difference in events is divided by the "
            "difference in operations, so that the start of the program does not count. A "
            "warm-up in proportion to the work counts for all images alike."
            + (
                " Cases that have no shorter run are counted with their program's start and end."
                if any(c.whole_program for c in counted)
                else ""
            )
        )
    if all(m.device.accel not in ("tcg", "native") for m in measurements):
        text.append(
            "Native: the kernels ran on the processor named above, not on an emulated one, so its "
            "counts and times are theirs."
        )
    # On a machine, it is what systemd calls its hypervisor.
    if any(m.device.accel not in ("hardware", "native", "unknown") for m in measurements):
        text.append(
            "All images ran in a virtual machine: fewer instructions do not by themselves mean "
            "less time on hardware."
        )
    if len(measurements) > 1:
        text += _comparison(evaluation)
    return tuple(text)


def _comparison(evaluation: Evaluation) -> list[str]:
    baseline = evaluation.images[0].image
    why = f" Booting ended because {evaluation.ended}." if evaluation.ended else ""
    if evaluation.why_incomparable is not None:
        why = ""  # whatever was awaited, it is not compared
    text = [
        f"Percent fewer (reduction_percent in report.json) = (1 - cost of the image / cost of "
        f"{baseline}) * 100, with costs per operation. improvement_percent there is (cost of "
        f"{baseline} / cost of the image - 1) * 100, with the same interval converted. Costs are "
        "geometric means over boots, and the geometric mean over the cases is computed in each "
        "boot. Images are booted in turns. Outliers are marked and not dropped."
        f"{why}",
        f"The {100 * CONFIDENCE:g} % interval is Welch's t interval of the log costs. With "
        f"{BCA_UNITS} or more boots of each image and no outlier, it is the BCa bootstrap "
        f"interval with {RESAMPLES:,} resamples and the seed {RESAMPLING_SEED}. Each interval "
        "covers its own row alone.",
        "Verdict: fewer (less) or more if the exact Mann-Whitney test of the boots finds a "
        f"difference of more than {PRACTICAL_PERCENT} %, at a false discovery rate of "
        f"{100 * LEVEL:g} % over the rows of a family (Benjamini and Hochberg): all cases and "
        "means of what is compared, of what only explains it (events, latency, time per byte), "
        "means by training, or means by group; no difference if the interval "
        f"lies within {evaluation.precision_percent:g} % of zero; not enough data otherwise. An "
        "image that did not boot or failed a self-check is not compared. report.json and "
        "cases.csv write faster for fewer or less, and slower for more.",
    ]
    if evaluation.same_build is not None:
        text.append(
            f"A/A control: {baseline} was booted as many times again, with other seeds, and "
            "compared with itself. These boots then count as boots of "
            f"{baseline}: they are of the same build, and the other images are compared with all "
            "of them."
        )
    if evaluation.relinked:
        count, layouts = len(evaluation.relinked), len(baseline_builds(evaluation)) - 1
        left = "" if layouts == count else f" {count - layouts} of them say nothing about layout."
        text.append(
            f"Relinked control: {baseline} was linked {count} more time{'s' if count > 1 else ''} "
            f"with its code in another order.{left}"
            + (
                " The unit of observation is then the build: a difference between images must "
                "also exceed the difference between these builds (t test on the means of builds)."
                if layouts
                else ""
            )
        )
    return text


def _device(measurement: Measurement) -> str:
    device = measurement.device
    return " ".join(filter(None, (device.name, device.accel, device.cpu, device.mode)))
