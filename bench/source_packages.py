"""Whether another build system makes the kernel that mepof made, from its source package.

    bench/source_packages.py [--again] [--store DIR] TOOLCHAIN ALGORITHM[,OPTION…]…

A very small kernel is optimised and packaged with ``set package source``. The package is applied to
a fresh tree, in which make then builds the kernel: in the tree and with ``O=`` beside it, or with
``O=build`` alone, as the package's README.md asks for. What came out is written to
docs/benchmarks/source-packages.json and source-packages.md after each, and what is there is not run
again without ``--again``.

The exit status is 1 if a kernel is not built, or has other code or data. It takes about fifteen
minutes on two cores for an algorithm.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from measure import outcomes
from measure.outcomes import Outcome
from measure.program import MEPOF

from mepof.arch import ARCHITECTURES
from mepof.kernel.make_command import FIXED
from mepof.toolchain.named import select

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "source-packages"
OUT = ROOT / "out" / "source-packages"

PROGRAM = """\
set toolchain {toolchain}.
set config {config}.
set package source.
set seed 1.
set actions 8.
opt debian:linux-source-6.12 {algorithm} rand kbench {options}.
"""
# A digest of the whole file: of debug information too, which names directories.
BUILD_ID = ".notes"


def main() -> None:
    title = __doc__.partition("\n")[0]
    outcomes.of_toolchain(title, "ALGORITHM[,OPTION…]", RESULT, tried, page, failed)


def tried(toolchain: str, wanted: str, where: Sequence[str]) -> Outcome:
    """Optimise a kernel, and build it again from its package."""
    algorithm, *options = wanted.split(",")
    out = OUT / f"{toolchain.replace('/', '-')}-{wanted.replace(',', '-')}"
    program = PROGRAM.format(
        toolchain=toolchain,
        config=outcomes.TINY_CONFIG,
        algorithm=algorithm,
        options=";".join(options or ["O2"]),
    )
    if failure := outcomes.ran(program, out, where):
        return failure
    own = contents(artifact(out, "opt/build") / "vmlinux")
    package = unpacked(out)
    builds = rebuilt(toolchain, package, artifact(out, "source"), out)
    return {
        "outcome": "built",
        "kernel": package.name.removeprefix("linux-").removesuffix("-mepof"),
        "differ": {how: differing(own, contents(vmlinux)) for how, vmlinux in builds},
    }


def artifact(out: Path, step: str) -> Path:
    """The directory of what a step of a run made."""
    path = subprocess.run(
        [MEPOF, "store", "path", out, step], check=True, text=True, capture_output=True
    ).stdout
    return Path(path.strip())


def unpacked(out: Path) -> Path:
    """The directory that is in a package."""
    shutil.rmtree(where := out / "unpacked", ignore_errors=True)
    with tarfile.open(out / "opt.source.tar") as tar:
        tar.extractall(where, filter="data")
    (package,) = where.iterdir()
    return package


def rebuilt(toolchain: str, package: Path, source: Path, out: Path) -> Iterator[tuple[str, Path]]:
    """Build the kernel of a package as its README.md says: how, and ``vmlinux``."""
    anywhere = "`make`, `make O=…`" in (package / "README.md").read_text()
    for how in ("in the tree", "`O=` elsewhere") if anywhere else ("`O=build`",):
        shutil.rmtree(tree := out / "tree", ignore_errors=True)
        shutil.copytree(source, tree, symlinks=True)
        with (package / "mepof.patch").open("rb") as patch:
            subprocess.run(["patch", "-p1", "--batch", "-s"], cwd=tree, stdin=patch, check=True)
        shutil.copytree(package / "mepof", tree / "mepof")
        objects = {"in the tree": tree, "`O=build`": tree / "build"}.get(how, out / "objects")
        if objects != tree:
            shutil.rmtree(objects, ignore_errors=True)
            objects.mkdir()
        shutil.copy(package / "config", objects / ".config")
        make(toolchain, tree, objects)
        yield how, objects / "vmlinux"


def make(toolchain: str, tree: Path, objects: Path) -> None:
    """Build a kernel as its owner does."""
    tools = select(toolchain).make_variables(ARCHITECTURES.get("x86-64"))
    words = ["make", "-s", f"-j{os.cpu_count()}", *(f"{key}={tools[key]}" for key in tools)]
    if objects != tree:
        words.append(f"O={objects}")
    for target in ("olddefconfig", "vmlinux"):
        subprocess.run([*words, target], cwd=tree, env=os.environ | FIXED, check=True)


def contents(vmlinux: Path) -> dict[str, bytes]:
    """A kernel's code and data, by section."""
    with vmlinux.open("rb") as file:
        return {
            section.name: section.data()
            for section in ELFFile(file).iter_sections("SHT_PROGBITS")
            if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != BUILD_ID
        }


def differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    """The sections that are not the same in two kernels."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def failed(outcome: Outcome) -> bool:
    """Whether a kernel was not built, or another came out."""
    return outcome["outcome"] == "failed" or any(outcome["differ"].values())


def page(results: Mapping[str, Outcome]) -> str:
    """Markdown of the results."""
    return _PAGE.format(rows="\n".join(_row(name, results[name]) for name in sorted(results)))


def _row(name: str, outcome: Outcome) -> str:
    compiler, _, algorithm = name.partition("/")
    words = [f"`{compiler}`", f"`{algorithm.replace(',', ' ')}`"]
    if outcome["outcome"] == "failed":
        words += ["", f"failed: {outcome['reason']}"]
    else:
        words += [
            f"Linux {outcome['kernel']}",
            "; ".join(_found(*one) for one in outcome["differ"].items()),
        ]
    return f"| {' | '.join(words)} |"


def _found(how: str, sections: list[str]) -> str:
    if not sections:
        return f"{how}: the same"
    return f"{how}: {', '.join(f'`{section}`' for section in sections)} differ"


_PAGE = """# Kernels rebuilt from their source packages

`bench/source_packages.py TOOLCHAIN ALGORITHM…` writes this page. For each line it optimises a
kernel in a very small configuration (`bench/compilers/tiny.config`, x86-64), trained by 8 actions
of `rand kbench`, and makes [a package of its
source](../packages.md#for-your-own-build-system). This is applied to a fresh tree, in which plain
`make` builds `vmlinux`, as the package's `README.md` says: in the tree and with `O=` elsewhere, or
with `O=build`. *The same* says that all sections with code and data are those of the kernel that
mepof built, byte for byte, but for the build ID.

| compiler | algorithm | kernel | code and data |
|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    main()
