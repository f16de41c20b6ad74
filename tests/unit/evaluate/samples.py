"""Measurements and reports to test with; run it to regenerate the golden files.

python tests/unit/evaluate/samples.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mepof.evaluate.measurement import (
    Boot,
    CaseMeasurement,
    Device,
    Evaluation,
    Measurement,
    SizeBytes,
)
from mepof.evaluate.report import (
    Phase,
    ProfileSummary,
    Provenance,
    Report,
    build_report,
    write_report,
)

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
) -> Measurement:
    """One boot for each factor, which all kernel costs of that boot are multiplied with."""
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
                    )
                    for case, cost in costs.items()
                ),
            )
            for seed, factor in enumerate(factors, start=seed)
        ),
    )


PHASES = (
    Phase(step="source", kind="other", seconds=12.0, cached=True),
    Phase(step="plain/build", kind="build", seconds=302.4, cached=False),
    Phase(step="opt/collect", kind="run", seconds=95.0, cached=False),
    Phase(step="opt/convert", kind="convert", seconds=4.2, cached=False),
    Phase(step="opt/build", kind="build", seconds=298.0, cached=False),
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
    trained: Mapping[str, frozenset[tuple[str, str]]] | None = None,
) -> Report:
    """A report of these measurements, with everything else made up."""
    return build_report(
        Evaluation(images=measurements, same_build=same_build, relinked=relinked),
        PHASES,
        PROFILE,
        provenance,
        engine_share_percent=1.3,
        trained=trained,
    )


def golden_report() -> Report:
    """One better image, one worse, and one that is fast because it is broken."""
    return report(
        measurement("plain", factors=(1.0, 1.004, 0.997, 1.001, 1.03)),
        measurement("opt", factors=(0.9, 0.904, 0.897, 0.901, 0.9), text=9_300_000),
        measurement("size", factors=(1.1, 1.096, 1.103, 1.101, 1.099), text=7_500_000),
        measurement("broken", factors=(0.1,), self_check="pipe-128: sum 3 is not 4"),
        same_build=measurement("plain", factors=(1.002, 0.998, 1.0, 0.999, 1.001), seed=1001),
        relinked=(measurement("relinked", factors=(1.001, 0.999, 1.002, 1.0, 1.0)),),
        trained={"opt": frozenset({("kbench", "syscall"), ("kbench", "proc")})},
    )


if __name__ == "__main__":
    write_report(golden_report(), GOLDEN)
