"""Whether another build system makes the kernel that mepof made, from its source package.

    bench/source_packages.py [--again] [--store DIR] TOOLCHAIN ALGORITHM[,OPTION…]…

A very small kernel is optimised and packaged with ``set package source``. The package is applied to
a fresh tree, in which make then builds the kernel: in the tree, with ``O=`` beside it or with
``O=build``, as the package's README.md says. What came out is written to
docs/benchmarks/source-packages.json and source-packages.md after each, and what is there is not run
again without ``--again``.

The exit status is 1 if a kernel is not built, or has other code. It takes about fifteen minutes on
two cores for an algorithm.
"""

from __future__ import annotations

import itertools
import os
import re
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
# How the objects are made, by what a package's README.md says of them.
WAYS = {
    "objects may be anywhere": ("in the tree", "`O=` elsewhere"),
    "objects belong in the tree": ("in the tree",),
    "`make O=build`": ("`O=build`",),
}
SAME, SAME_CODE, OTHER = "the same code and data", "the same code", "other code"
# In disassembled code: addresses of data, what is said of them, and what ThinLTO adds to names.
ADDRESS = re.compile(r"0x[0-9a-f]{7,}|0x[0-9a-f]+(?=\(%rip\))|\s*#.*|\.llvm\.\d+")


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
    own = artifact(out, "opt/build") / "vmlinux"
    package = unpacked(out)
    same: dict[str, str] = {}
    for how, vmlinux in rebuilt(toolchain, package, artifact(out, "source"), out):
        same[how] = what_is_same(own, vmlinux)
    return {
        "outcome": "built",
        "kernel": package.name.removeprefix("linux-").removesuffix("-mepof"),
        "same": same,
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
    readme = (package / "README.md").read_text()
    (ways,) = (ways for said, ways in WAYS.items() if said in readme)
    for how in ways:
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


def what_is_same(one: Path, other: Path) -> str:
    """What two kernels have in common."""
    if contents(one) == contents(other):
        return SAME
    lines = itertools.zip_longest(code(one), code(other))
    return SAME_CODE if all(first == second for first, second in lines) else OTHER


def contents(vmlinux: Path) -> dict[str, bytes]:
    """A kernel's code and data, by section."""
    with vmlinux.open("rb") as file:
        return {
            section.name: section.data()
            for section in ELFFile(file).iter_sections("SHT_PROGBITS")
            if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != BUILD_ID
        }


def code(vmlinux: Path) -> Iterator[str]:
    """A kernel's instructions, without the addresses in them."""
    words = ["objdump", "-d", "--no-addresses", "--no-show-raw-insn", vmlinux.name]
    with subprocess.Popen(words, cwd=vmlinux.parent, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "file format" not in line:
                yield ADDRESS.sub("", line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)


def failed(outcome: Outcome) -> bool:
    """Whether a kernel was not built, or another came out."""
    return outcome["outcome"] == "failed" or OTHER in outcome["same"].values()


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
            "; ".join(f"{how}: {same}" for how, same in outcome["same"].items()),
        ]
    return f"| {' | '.join(words)} |"


_PAGE = """# Kernels rebuilt from their source packages

`bench/source_packages.py TOOLCHAIN ALGORITHM…` writes this page. For each line it optimises a
kernel in a very small configuration (`bench/compilers/tiny.config`, x86-64), trained by 8 actions
of `rand kbench`, and makes [a package of its
source](../packages.md#for-your-own-build-system). This is applied to a fresh tree, in which plain
`make` builds `vmlinux`, as the package's `README.md` says: in the tree, with `O=` elsewhere, or
with `O=build`. *The same code and data* are those of the kernel that mepof built, in all sections,
byte for byte, but for the build ID. *The same code* are all of its instructions, but for addresses:
ThinLTO gives functions new names, in which the path of their file is, and the kernel's own table of
names moves the data behind it.

| compiler | algorithm | kernel | what make builds |
|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    main()
