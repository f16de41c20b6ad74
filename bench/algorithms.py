"""Every algorithm on the same kernel: what each gains, side by side.

    bench/algorithms.py [--store DIR] [PROGRAM…]

Runs the programs of bench/algorithms/ (hours on two cores when the store is empty, seconds
afterwards), and writes docs/benchmarks/algorithms.json and .md from their reports. Programs that
are not named keep the results they have there. They need Debian's linux-source-6.12 and -7.2, and
arm64 what `MEPOF_SETUP_ARM64=1 make setup` adds, gcc-values what `MEPOF_SETUP_GCC=1` does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure.left import COUNTED, METRICS, WORK, fewer, geometric, left_percent, saved
from measure.program import compiler, ran

from mepof.kernel.options import options

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "bench" / "algorithms"
RESULT = ROOT / "docs" / "benchmarks" / "algorithms"
MODEL = ("native/pmu/*.[ch]*", "src/mepof/pmu/cores/*.toml")
_CORE = re.compile(r"^set core (\S+)\.", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path)
    parser.add_argument("program", type=Path, nargs="*", default=sorted(PROGRAMS.glob("*.g4")))
    arguments = parser.parse_args()
    record = RESULT.with_suffix(".json")
    results = json.loads(record.read_text()) if record.is_file() else {}
    for program in arguments.program:
        results[program.stem] = measured(program, arguments.store)
        record.write_text(json.dumps(results, indent=1) + "\n")
        RESULT.with_suffix(".md").write_text(page(results))


def measured(program: Path, store: Path | None) -> dict[str, Any]:
    """Run a program and sum up its report."""
    return summary(ran(program, ROOT / "out" / "algorithms" / program.stem, store))


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """Each image's costs in percent of the plain kernel's, by metric and case."""
    return {
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        "program": report["provenance"]["program"],
        "core": next(iter(_CORE.findall(report["provenance"]["program"])), None),
        "model": model(),
        "text_bytes": {i["name"]: i["size_bytes"]["text"] for i in report["images"]},
        "left_percent": left_percent(report, METRICS | WORK),
    }


def model() -> str:
    """The digest of the core model's sources and of the cores' parameters."""
    files = sorted(file for pattern in MODEL for file in ROOT.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def page(results: dict[str, Any]) -> str:
    """Markdown of the comparisons."""
    return _PAGE + "\n".join(_section(name, results[name]) for name in sorted(results))


def _section(name: str, result: dict[str, Any]) -> str:
    left = result["left_percent"]
    text = result["text_bytes"]
    plain = text["plain"]
    # Earlier results lack some metrics.
    known = (METRICS if result.get("core") else COUNTED) | WORK
    metrics = {m: title for m, title in known.items() if any(m in by for by in left.values())}
    rows = [
        f"| {image} | "
        + " | ".join(fewer(by.get(metric)) for metric in metrics)
        + f" | {100 * (text[image] / plain - 1):+.1f} |"
        for image, by in left.items()
    ]
    return _SECTION.format(
        name=name,
        kernel=result["kernel"],
        compiler=compiler(result),
        modelled=_MODELLED.format(
            core=result["core"], when="" if result.get("model") == model() else _EARLIER
        )
        if result.get("core")
        else "",
        titles=" | ".join(metrics.values()),
        lines="|---" * (len(metrics) + 2) + "|",
        rows="\n".join(rows),
        claims="\n".join(_claims(left)),
        cases="\n\n".join(_by_case(metric, left) for metric in COUNTED),
    )


def _claims(left: dict[str, Any]) -> Iterator[str]:
    gains = {image: 100 - geometric(by["kernel_instructions"]) for image, by in left.items()}
    if "pgo" in gains:
        kept = 100 * gains["autofdo"] / gains["pgo"]
        yield (
            f"- `autofdo` keeps {kept:.0f} % of what `pgo` saves in kernel instructions "
            "(*counted*)."
        )
    for image, alone in _with_options(left):
        gained = (
            f"{saved(100 * geometric(left[image][m]) / geometric(left[alone][m]))} % fewer {title}"
            for m, title in COUNTED.items()
        )
        yield f"- Beside `{alone}`, `{image}` takes {' and '.join(gained)} (*counted*)."
    for below in ("autofdo", "pgo"):
        if f"{below}-propeller" not in left:
            continue
        before, after = (
            geometric(left[image]["kernel_taken_branches"])
            for image in (below, f"{below}-propeller")
        )
        yield (
            f"- Propeller leaves {100 * after / before:.1f} % of the taken kernel branches of "
            f"`{below}`: {100 - 100 * after / before:.1f} % fewer (*counted*)."
        )


def _with_options(left: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Images with a profile, and those with the same options or flags and no profile."""
    for alone in left:
        if alone.endswith("-flags"):
            yield alone.removesuffix("-flags"), alone
        elif alone in options():
            yield from ((image, alone) for image in left if image.endswith(f"-{alone}"))


def _by_case(metric: str, left: dict[str, Any]) -> str:
    names = list(left)
    cases = list(left[names[0]][metric])
    rows = [
        f"| {case} | " + " | ".join(saved(left[name][metric][case]) for name in names) + " |"
        for case in cases
    ]
    return "\n".join(
        [
            f"Fewer {METRICS[metric]}, *counted*, in percent:\n",
            f"| case | {' | '.join(names)} |",
            "|---" * (len(names) + 1) + "|",
            *rows,
        ]
    )


_PAGE = """# The algorithms side by side

`make bench-algorithms` writes this page from the programs of `bench/algorithms/`.

Each algorithm is trained with the same 24 actions of `rand kbench` on the configuration `slim`, or,
where the program is named after it, on `server` or on `slim` with `mitigations`
([configurations](../configs.md)). The cases are those of the suite `mepof`. The emulator counts the
kernel's instructions and taken branches, so these numbers repeat; cycles and misses are *modelled*
([the emulated PMU](../pmu.md)) on the core that the program names, and work and guest time are
[modelled without it](../statistics.md#what-is-measured). The tables give percent fewer than in the
plain kernel (first the geometric mean over the cases in which there are any), and the growth of the
text in percent.

An image that is named after an option or ends in `-flags` has no profile: the option alone, or all
that an algorithm adds to a build except its profile
([`FlagsOnly`](../configs.md#recompilation-options)).

"""

_MODELLED = "cycles and misses are modelled on the core `{core}`{when}; "
_EARLIER = ", before the model's last change"

_SECTION = """## {name}: {kernel}

{compiler}

Percent fewer than in the plain kernel; {modelled}growth of the text in percent.

| image | {titles} | text |
{lines}
{rows}

{claims}

{cases}
"""


if __name__ == "__main__":
    main()
