"""What the writer of perf-script text writes is what llvm-profgen takes for perf's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from writers.perf_script import Entry, mapping, sample, sample_by_symbol

START = 0xFFFFFFFF81000000


def test_samples_are_written_as_perf_prints_them() -> None:
    stack = [Entry(START + 8, START + 4), Entry(START + 2, START, True, 7, "COND", "N/A")]
    assert sample(START + 4, stack) == (
        " ffffffff81000004 0xffffffff81000008/0xffffffff81000004/P/-/-/0//- "
        " 0xffffffff81000002/0xffffffff81000000/M/-/-/7/COND/N/A \n"
    )
    assert sample_by_symbol(START, stack[:1], lambda at: f"f+{at - START:#x}") == (
        " ffffffff81000000 f+0x8/f+0x4/P/-/-/0//- \n"
    )


def test_llvm_reads_it(tmp_path: Path) -> None:
    assembly = tmp_path / "loop.S"
    assembly.write_text(
        ".globl f\n.type f, @function\nf: .cfi_startproc\n nop\n1: nop\n jmp 1b\n"
        " .cfi_endproc\n.size f, .-f\n",
        encoding="utf-8",
    )
    binary, text, out = tmp_path / "vmlinux", tmp_path / "text", tmp_path / "out"
    link = ["-nostdlib", "-static", "-fuse-ld=lld", f"-Wl,-Ttext={START:#x}", "-Wl,-e,f"]
    subprocess.run(["clang-22", "-g", *link, assembly, "-o", binary], check=True, timeout=60)
    slide, loop = 0x200000, (START + 2, START + 1)
    there = [Entry(source + slide, target + slide) for source, target in [loop] * 3]
    text.write_text(mapping(START + slide, 0x1000) + sample(START + slide, there), encoding="utf-8")
    command = ["llvm-profgen-22", "--kernel", "--skip-symbolization", "--use-offset=0"]
    files = [f"--perfscript={text}", f"--binary={binary}", f"--output={out}"]
    subprocess.run([*command, *files], check=True, timeout=60)
    first, last = f"{START + 1:x}", f"{START + 2:x}"
    assert out.read_text(encoding="utf-8").split() == [
        *("1", f"{first}-{last}:2"),
        *("1", f"{last}->{first}:3"),
    ]
