"""The kernel that a distribution ships: Debian's configuration for the cloud, with its modules.

    bench/debian.py [--store DIR]

Fetches Debian's package of kernel configurations, builds its kernel for x86-64 in the cloud plainly
and with a profile, and measures both. Two hours on two cores when the store is empty, most of them
for the plain kernel's 5,300 files. An interrupted run continues from the store. Writes
docs/benchmarks/debian.json and .md.
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path
from typing import Any

from measure.left import COUNTED, WORK, geometric, left_percent, saved
from measure.program import compiler, ran

from mepof.process import find_tool, run

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out" / "debian"
RESULT = ROOT / "docs" / "benchmarks" / "debian"
PACKAGE, CONFIG = "linux-config-6.12", "config.amd64_none_cloud-amd64.xz"
#: What a machine in the cloud has loaded, and what GCC alone can build turned off.
ADDED = """# load: ext4 nf_tables overlay veth virtio_blk virtio_net
# CONFIG_X86_X32_ABI is not set
# CONFIG_X86_X32_DISABLED is not set
"""
JUDGED = "kernel_instructions"
PROGRAM = """set config ./out/debian/cloud.config.
set seed 1.

set name autofdo.
opt debian:linux-source-6.12 autofdo rand kbench O2.

eval plain.img;autofdo.img syscall;overhead;proc;pipe;file.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path)
    arguments = parser.parse_args()
    report = ran(written(OUT), OUT / "run", arguments.store)
    result = {
        "kernel": report["provenance"]["kernel"],
        "tools": report["provenance"]["tools"],
        "program": report["provenance"]["program"],
        "text_bytes": {each["name"]: each["size_bytes"]["text"] for each in report["images"]},
        "left_percent": left_percent(report, COUNTED | WORK),
        "verdicts": {
            row["case"]: row["verdict"]
            for row in report["cases"]
            if row["image"] == "autofdo" and row["metric"] == JUDGED
        },
    }
    RESULT.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(result))


def written(directory: Path) -> Path:
    """Write the program and, beside it, Debian's configuration as Clang can build it."""
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "cloud.config"
    if not config.exists():
        apt = find_tool("apt-get", "Debian's packages need a machine with apt")
        run([apt, "download", PACKAGE], cwd=directory)
        archive = max(directory.glob(f"{PACKAGE}_*.deb"))
        run(["dpkg-deb", "--extract", archive, directory / PACKAGE])
        packed = directory / PACKAGE / "usr" / "src" / PACKAGE / CONFIG
        config.write_text(lzma.decompress(packed.read_bytes()).decode() + ADDED)
    program = directory / "debian.g4"
    program.write_text(PROGRAM)
    return program


def page(result: dict[str, Any]) -> str:
    """Markdown of the comparison."""
    left = result["left_percent"]["autofdo"]
    metrics = {name: title for name, title in (COUNTED | WORK).items() if name in left}
    rows = [
        f"| {case} | "
        + " | ".join(saved(left[metric][case]) for metric in metrics)
        + f" | {result['verdicts'][case]} |"
        for case in left[JUDGED]
    ]
    means = " | ".join(saved(geometric(left[metric])) for metric in metrics)
    text = result["text_bytes"]
    return _PAGE.format(
        kernel=result["kernel"],
        compiler=compiler(result),
        program=result["program"].strip(),
        config=CONFIG,
        package=PACKAGE,
        added=ADDED.strip(),
        titles=" | ".join(metrics.values()),
        lines="|---" * (len(metrics) + 2) + "|",
        rows="\n".join([*rows, f"| geometric mean | {means} | |"]),
        grown=f"{100 * (text['autofdo'] / text['plain'] - 1):+.1f}",
    )


_PAGE = """# A distribution's kernel

`make bench-debian` writes this page. It builds Debian's own kernel for the cloud, x86-64, with all
its modules. The configuration is `{config}`
of the package `{package}` and these lines:

```
{added}
```

{kernel}; {compiler}. The program:

```
{program}
```

Percent less than on the plain kernel; the [verdict](../statistics.md) is on kernel instructions.
These and taken branches are *counted*; work and guest time are [modelled without the emulated
PMU](../statistics.md#what-is-measured). Boots of this kernel differ more than those of `slim`.

| case | {titles} | verdict |
{lines}
{rows}

The text of vmlinux changes by {grown} %.
"""


if __name__ == "__main__":
    main()
