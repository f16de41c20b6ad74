"""A miniature kernel, and the addresses of its branches."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from mepof.kernel.modules import DIRECTORY, Module, Modules
from writers.perf_script import Entry, mapping, sample

CLANG = shutil.which("clang-22") or "clang"
TEXT = 0xFFFF_FFFF_8100_0000
MODULES = 0xFFFF_FFFF_C000_0000

SOURCE = """
__attribute__((noinline)) int hot(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        if (i & 1) sum += i; else sum ^= i;
    return sum;
}
__attribute__((noinline)) int warm(int n) {
    int product = 1;
    for (int i = 0; i < n; i++)
        if (i & 2) product *= i; else product ^= i;
    return product;
}
int start_kernel(void) {
    int total = 0;
    for (int i = 0; i < 1000; i++) total += hot(i) + warm(i);
    return total;
}
"""


@dataclass(frozen=True)
class Loop:
    """The backward jump of a function's loop.

    Attributes:
        address: of the jump, as linked; in a module, from the section's start.
        target: where it goes.
    """

    address: int
    target: int

    def stack(self, slide: int = 0, depth: int = 16) -> list[Entry]:
        return [Entry(self.address + slide, self.target + slide)] * depth


def link_kernel(
    directory: Path,
    *flags: str,
    name: str = "vmlinux",
    source: str = SOURCE,
    start: int = TEXT,
    symbols: tuple[str, ...] = ("_text", "_stext"),
    compiler: str = CLANG,
) -> tuple[Path, Loop]:
    """Compile and link a kernel at its usual address. `flags` are the compiler's."""
    text = directory / f"{name}.c"
    text.write_text(source)
    link = ["-nostdlib", "-static", "-Wl,-e,start_kernel", f"-Wl,-Ttext={start:#x}"]
    link += [f"-Wl,--defsym={symbol}={start:#x}" for symbol in symbols]
    common = ("-O1", "-fno-pie", "-mcmodel=kernel", "-fno-asynchronous-unwind-tables")
    command = [compiler, *common, *flags, *link, text.name, "-o", name]
    subprocess.run(command, cwd=directory, check=True)
    return directory / name, loop_of(directory / name)


def link_modules(build: Path, functions: Mapping[str, str], *flags: str) -> Loop:
    """Compile the modules of a build, where they can be loaded at :data:`MODULES`.

    Args:
        functions: of each module by its name, the function that has the loop.

    Returns:
        The loop of the first.
    """
    directory = build / DIRECTORY
    directory.mkdir()
    common = ("-O1", "-mcmodel=kernel", "-fno-pie", *flags)
    for name, function in functions.items():
        source = build / f"{name}.c"
        source.write_text(SOURCE.replace("hot", function).replace("start_kernel", "init_module"))
        subprocess.run([CLANG, *common, "-c", source, "-o", directory / f"{name}.ko"], check=True)
    built = (Module(name=name, path=f"{name}.ko", needs=(), text=1) for name in functions)
    Modules(modules=tuple(built)).write(build)
    name, function = next(iter(functions.items()))
    return loop_of(directory / f"{name}.ko", function)


def recorded_in_module(loop: Loop, name: str, samples: int) -> str:
    """Samples of the loop of a module, the only one, at :data:`MODULES`."""
    branches = sample(loop.target + MODULES, loop.stack(MODULES), "a 7 [000] 1.0:")
    return mapping(MODULES, 0x4000, f"[{name}]", offset=0) + branches * samples


def loop_of(binary: Path, function: str = "hot") -> Loop:
    """Find the loop in `function`."""
    shown = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", binary], capture_output=True, text=True, check=True
    ).stdout
    body = shown[shown.index(f"<{function}>:") :]
    found = re.search(r"^ *([0-9a-f]+):\s+jne? +([0-9a-f]+)", body, re.M)
    assert found is not None, body
    return Loop(int(found[1], 16), int(found[2], 16))


def recorded(loop: Loop, samples: int = 2000, slide: int = 0, mapped: bool = True) -> str:
    """Samples of the loop, a millisecond apart; `slide` is KASLR's."""
    lines = [mapping(TEXT + slide, 0x10_0000)] if mapped else []
    stack = loop.stack(slide)
    lines += [
        sample(loop.target + slide, stack, f"swapper 0 [000] {number / 1000:12.6f}:")
        for number in range(samples)
    ]
    return "".join(lines)


def section_offset(binary: Path, name: str = ".text") -> int:
    """The offset of a section in its file."""
    return _of_section(binary, name, "sh_offset")


def section_size(binary: Path, name: str = ".text") -> int:
    """The bytes of a section."""
    return _of_section(binary, name, "sh_size")


def _of_section(binary: Path, name: str, field: str) -> int:
    with binary.open("rb") as file:
        section = ELFFile(file).get_section_by_name(name)
        assert section is not None
        return int(section[field])
