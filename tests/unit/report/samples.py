"""Measurements and reports to test with; run it to regenerate the golden files.

python tests/unit/report/samples.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from mepof.measure.case_pairs import CasePair
from mepof.measure.goal import Goal
from mepof.measure.measurement import (
    Boot,
    CaseMeasurement,
    Device,
    Evaluation,
    Measurement,
    MemoryBytes,
    Modelled,
    ModelledSide,
    SizeBytes,
    Unsupported,
)
from mepof.pmu.events import EVENTS, cycles_of
from mepof.pmu.locations import CaseLocations, FunctionEvents, Heatmap, Locations
from mepof.report import (
    Instrumented,
    Phase,
    ProfileQuality,
    ProfileSummary,
    Provenance,
    Report,
    Training,
    build_report,
    write_report,
)
from mepof.report.likeness import Likeness

GOLDEN = Path(__file__).parent / "golden"

COSTS = {"syscall": 300.0, "pipe-128": 2400.0, "proc": 180_000.0, "file-8k": 7000.0}
OPERATIONS = 100_000

ICOUNT = Device(name="qemu", accel="tcg", cpu="max", mode="icount")
KVM = Device(name="qemu", accel="kvm", cpu="host", mode="")


def measurement(
    image: str = "opt",
    *,
    factors: Sequence[float] = (1.0, 1.0, 1.0, 1.0, 1.0),
    seed: int = 1,
    costs: Mapping[str, float] = COSTS,
    user: int | None = 40 * OPERATIONS,
    device: Device = ICOUNT,
    booted: bool = True,
    self_check: str = "passed",
    text: int = 9_000_000,
    core: str | None = None,
    stalls: Mapping[str, float] | None = None,
    figures: bool = False,
    unsupported: tuple[Unsupported, ...] = (),
    reserved: int | None = None,
) -> Measurement:
    """One boot for each factor, which all kernel costs of that boot are multiplied with.

    Args:
        core: to model.
        stalls: by what factor some cases take more modelled cycles than instructions.
        figures: whether the cases print latencies, and those of files the bytes they moved.
        reserved: bytes of memory that the kernel keeps from its allocator; None if its memory
            was not read.
    """
    return Measurement(
        image=image,
        digest="0" * 63 + str(len(image) % 10),
        device=device,
        booted=booted,
        self_check=self_check,
        size_bytes=SizeBytes(text=text, image=7_000_000),
        sections={".text": text - 100_000, ".text.hot": 100_000},
        boots=tuple(
            Boot(
                seed=seed,
                cases=tuple(
                    CaseMeasurement(
                        suite="kbench",
                        case=case,
                        metric_group=case.split("-")[0],
                        operations=OPERATIONS,
                        check="2a",
                        kernel_instructions=round(cost * factor * OPERATIONS),
                        user_instructions=user,
                        kernel_taken_branches=round(cost * factor * factor * OPERATIONS / 8),
                        user_taken_branches=4 * OPERATIONS,
                        guest_nanoseconds=round((cost * factor + 40) * OPERATIONS),
                        figures=printed(case, cost * factor) if figures else {},
                        modelled=modelled(core, cost * factor, (stalls or {}).get(case, 1.0))
                        if core
                        else None,
                    )
                    for case, cost in costs.items()
                ),
                unsupported=unsupported,
                memory=memory(reserved, 23_000_000 + 4096 * seed),
            )
            for seed, factor in enumerate(factors, start=seed)
        ),
        memory=memory(reserved, 22_600_000),
    )


def memory(reserved: int | None, allocated: int) -> MemoryBytes | None:
    """The memory of a kernel that keeps so much from its allocator."""
    if reserved is None:
        return None
    return MemoryBytes(
        reserved=reserved,
        allocated=allocated,
        slab=12_900_000,
        page_tables=300_000,
        kernel_stacks=450_000,
    )


def printed(case: str, cost: float) -> dict[str, int]:
    """The figures that a case prints."""
    figures = {f"p{p}_ns": round(cost * (1 + p / 100)) for p in (1, 50, 90, 99)}
    figures["mean_ns"] = round(cost * 1.6)
    return {**figures, "bytes": 8192 * OPERATIONS} if case.startswith("file") else figures


def modelled(core: str, cost: float, stall: float = 1.0) -> Modelled:
    """What a model makes of work at this cost: ``stall`` cycles per instruction, and one miss of
    each kind per thousand."""
    instructions = round(cost * OPERATIONS)
    events = {name: round(instructions / 1000) for name in EVENTS}
    events |= {
        "taken_branches": round(instructions / 8),
        "execution_cycles": round(stall * instructions),
    }
    side = ModelledSide(events=events, cycles=cycles_of(events))
    return Modelled(core=core, kernel=side, user=side)


def locations(
    shares: Mapping[str, float], pages: Sequence[int], *, core: str = "skylake", slices: int = 3
) -> Locations:
    """Functions with these thousands of cycles in each case, on these pages of text.

    Args:
        slices: rows of each case's heatmap.
    """
    return Locations(
        core=core,
        cases=tuple(
            CaseLocations(
                suite="kbench",
                case=case,
                functions=tuple(
                    FunctionEvents(
                        name=name,
                        address=0xFFFFFFFF81000000 + 64 * number,
                        instructions=round(800 * thousands),
                        cycles=1000 * thousands,
                        events={},
                    )
                    for number, (name, thousands) in enumerate(shares.items())
                ),
                heatmap=Heatmap(
                    page_bytes=4096,
                    pages=tuple(pages),
                    rows=tuple(
                        tuple((n, 4 ** (n + 1) * 1000) for n in range(len(pages)) if n != row % 3)
                        for row in range(slices)
                    ),
                ),
            )
            for case in COSTS
        ),
    )


_TEXT = 0xFFFFFFFF81000
LOCATIONS = {
    "plain": locations(
        {"vfs_read": 30.0, "fdget": 20.0, "memcpy": 40.0, "schedule.cold": 10.0},
        [_TEXT, _TEXT + 7, _TEXT + 40, _TEXT + 90],
    ),
    "opt": locations(
        {"vfs_read": 42.0, "memcpy": 36.0, "schedule": 4.0}, [_TEXT, _TEXT + 1], slices=2
    ),
    "size": locations(
        {"vfs_read": 34.0, "fdget": 24.0, "memcpy": 41.0, "schedule": 11.0},
        [_TEXT, _TEXT + 6, _TEXT + 36],
    ),
}
TRAININGS = (
    Training(
        image="opt",
        scenario="rand",
        apps=("kbench",),
        actions={"syscall": 5, "mix-proc": 3},
        never=("pipe-128", "file-8k"),
        cases=("kbench/proc", "kbench/syscall"),
        seed=7,
        kernel="6.12.48",
    ),
)
PROFILES = (
    ProfileQuality(
        name="opt",
        algorithm="pgo",
        functions=25_870,
        executed=8123,
        coverage_percent=31.4,
        verdict="good",
        exact=True,
        instrumented=Instrumented(
            files=39,
            of_files=922,
            text_percent=6.5,
            time_percent=50.3,
            image_bytes=5_200_000,
            growth_percent=3.1,
            limit_bytes=None,
        ),
    ),
    ProfileQuality(
        name="sampled",
        algorithm="autofdo",
        functions=25_870,
        executed=310,
        coverage_percent=1.2,
        verdict="poor",
        reasons=("310 functions ran, fewer than 1,000",),
    ),
)
GOALS = (
    Goal(quantity="geomean", bound=8, metric="kernel_instructions"),
    Goal(quantity="worst", bound=-1, metric="kernel_instructions"),
    Goal(quantity="worst", bound=-1, metric="kernel_cycles"),
    Goal(quantity="text", bound=2),
    Goal(quantity="geomean", bound=5, metric="latency", group="file"),
    Goal(quantity="memory", bound=1),
)
PAIRS = (
    CasePair(
        title="pipe-128 against syscall",
        first=("kbench", "pipe-128"),
        second=("kbench", "syscall"),
        by="ratio",
        metrics=("instructions", "cycles"),
    ),
    CasePair(
        title="file-8k against pipe-128",
        first=("kbench", "file-8k"),
        second=("kbench", "pipe-128"),
        by="difference",
        metrics=("cycles", "latency"),
    ),
    CasePair(
        title="the cost of a data TLB miss",
        first=("kbench", "proc"),
        second=("kbench", "file-8k"),
        by="per-event",
        event="dtlb_misses",
        suite="kbench",
    ),
    CasePair(
        title="binder against pipe-128",
        first=("kbench", "binder"),
        second=("kbench", "pipe-128"),
        by="ratio",
    ),
)
# The critical path: the plain kernel had the cores first.
_PATH: tuple[tuple[str, Literal["run", "convert", "build"], float, float, float], ...] = (
    ("opt/collect", "run", 95.0, 303.0, 302.8),
    ("opt/convert", "convert", 4.2, 398.1, 0.1),
    ("opt/build", "build", 298.0, 402.5, 0.2),
)
PHASES = (
    Phase(step="source", kind="other", seconds=12.0, cached=True),
    Phase(step="plain/build", kind="build", seconds=302.4, cached=False, started_seconds=0.4),
    *(
        Phase(
            step=step,
            kind=kind,
            seconds=seconds,
            cached=False,
            started_seconds=started,
            waited_seconds=waited,
        )
        for step, kind, seconds, started, waited in _PATH
    ),
)
PROFILE = ProfileSummary(
    algorithm="pgo",
    functions=8123,
    coverage_percent=31.4,
    verdict="good",
    details={"hash mismatches": 0},
)
PROVENANCE = Provenance(
    tools={"clang": "Debian clang version 22.1.0", "qemu-system-x86_64": "10.0.2"},
    kernel="Debian Linux 6.12.48",
    program="set seed 7.\nopt debian:linux-source-6.12 pgo rand kbench O2.\n",
    seed=7,
    digests={"source": "cd" * 32},
    flags={"opt/build": "-fprofile-use -O2"},
    command="mepof run quickstart.g4 --out out/demo",
)


def report(
    *measurements: Measurement,
    provenance: Provenance = PROVENANCE,
    same_build: Measurement | None = None,
    relinked: tuple[Measurement, ...] = (),
    likeness: Mapping[str, Likeness] | None = None,
    trainings: Sequence[Training] = (),
    profiles: Sequence[ProfileQuality] = (),
    locations: Mapping[str, Locations] | None = None,
    goals: Sequence[Goal] = (),
    pairs: Sequence[CasePair] = (),
) -> Report:
    """A report of these measurements, with everything else made up."""
    return build_report(
        Evaluation(images=measurements, same_build=same_build, relinked=relinked),
        PHASES,
        PROFILE,
        provenance,
        engine_share_percent=1.3,
        likeness=likeness,
        trainings=trainings,
        profiles=profiles,
        locations=locations,
        goals=goals,
        pairs=pairs,
    )


def golden_report() -> Report:
    """One better image, one worse, and one that is fast because it is broken.

    The better one takes more modelled cycles in one case.
    """
    unsupported = (Unsupported(suite="kbench", case="binder", needs="CONFIG_ANDROID_BINDERFS"),)

    def made(
        name: str,
        *factors: float,
        seed: int = 1,
        text: int = 9_000_000,
        stalls: Mapping[str, float] | None = None,
    ) -> Measurement:
        return measurement(
            name,
            factors=factors,
            seed=seed,
            text=text,
            core="skylake",
            stalls=stalls,
            figures=True,
            unsupported=unsupported,
            reserved=11_000_000 + text,
        )

    return report(
        made("plain", 1.0, 1.004, 0.997, 1.001, 1.03),
        made("opt", 0.9, 0.904, 0.897, 0.901, 0.9, text=9_300_000, stalls={"file-8k": 1.25}),
        made("size", 1.1, 1.096, 1.103, 1.101, 1.099, text=7_500_000),
        measurement("broken", factors=(0.1,), self_check="pipe-128: sum 3 is not 4"),
        same_build=made("plain", 1.002, 0.998, 1.0, 0.999, 1.001, seed=1001),
        relinked=(made("relinked", 1.001, 0.999, 1.002, 1.0, 1.0),),
        likeness={
            "opt": Likeness(
                frozenset({("kbench", "syscall"), ("kbench", "proc")}),
                {("kbench", "syscall"): 99.5, ("kbench", "proc"): 97.0, ("kbench", "pipe-128"): 60},
            )
        },
        trainings=TRAININGS,
        profiles=PROFILES,
        locations=LOCATIONS,
        goals=GOALS,
        pairs=PAIRS,
    )


if __name__ == "__main__":
    write_report(golden_report(), GOLDEN)
