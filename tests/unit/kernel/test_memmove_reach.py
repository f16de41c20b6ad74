"""arm64's memmove() reaches memcpy() wherever the linker puts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from writers.mini_kernel import SUFFIX

from mepof.kernel import overlay
from mepof.kernel.overlay import compose

MEMMOVE = """\
\t.globl memmove
memmove:
\tcmp\tx0, x1
\tb.lo\t__memcpy
\tadd\tx3, x1, x2
\tcmp\tx0, x3
\tb.hs\t__memcpy\t\t/* No overlap.  */
\tret
"""
MEMCPY = "\t.globl __memcpy\n__memcpy:\n\tret\n"
# A conditional branch reaches 1 MiB.
FAR = "SECTIONS { .text : { *memmove.o(.text) . = 0x200000; *memcpy.o(.text) } }\n"


def test_memmove_reaches_a_memcpy_that_is_far_away(tmp_path: Path) -> None:
    laid_over, directory = overlay.load("memmove-reach"), tmp_path / "tree/arch/arm64/lib"
    directory.mkdir(parents=True)
    assert not laid_over.is_for(tmp_path / "tree")
    (directory / "memmove.S").write_text(MEMMOVE)
    (directory / "memcpy.S").write_text(MEMCPY)
    assert laid_over.is_for(tmp_path / "tree")
    compose(tmp_path / "tree", (laid_over,), tmp_path / "view", None)

    assert "out of range" in linked(directory, tmp_path).stderr
    assert not (made := linked(tmp_path / "view/arch/arm64/lib", tmp_path)).stderr, made.stderr
    shown = [f"llvm-objdump{SUFFIX}", "-d", "--no-show-raw-insn", str(tmp_path / "far")]
    lines = subprocess.run(shown, check=True, capture_output=True, text=True).stdout.splitlines()
    branches = [line.split("\t")[1:] for line in lines if "\tb" in line]
    assert [(branch[0], branch[-1].split()[0]) for branch in branches] == [
        ("b.lo", "0x18"),
        ("b.hs", "0x18"),
        ("b", "0x200000"),
    ]


def linked(directory: Path, where: Path) -> subprocess.CompletedProcess[str]:
    """The link of both files of a directory, with more than 1 MiB between them."""
    for name in ("memmove", "memcpy"):
        compiler = [f"clang{SUFFIX}", "--target=aarch64-linux-gnu", "-Werror", "-c"]
        source = directory / f"{name}.S"
        subprocess.run([*compiler, str(source), "-o", f"{name}.o"], check=True, cwd=where)
    (where / "far.lds").write_text(FAR)
    linker = [
        f"ld.lld{SUFFIX}",
        "-e",
        "memmove",
        "-T",
        "far.lds",
        "memmove.o",
        "memcpy.o",
        "-o",
        "far",
    ]
    return subprocess.run(linker, check=False, cwd=where, capture_output=True, text=True)
