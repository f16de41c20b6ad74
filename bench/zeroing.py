"""Functions that clear memory on every path in one kernel, but not in another.

    bench/zeroing.py [PLAIN OPTIMISED]

PLAIN and OPTIMISED are vmlinux files for x86-64, by default those of `make demo` from the store.
Clearing is a call of ``memset`` or a string instruction that stores. A function clears
before its exits if no path from its entry to a return avoids that. Prints the functions of
OPTIMISED that do so, although their namesakes in PLAIN do not: why, docs/decisions/0023 says.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from measure import demo

from mepof.process import run
from mepof.toolchain import clang

_HEAD = re.compile(r"^([0-9a-f]{16}) <([^>]+)>:$")
_LINE = re.compile(r"^([0-9a-f]{16}):\s+(\S+)\s*(.*)$")
_TARGET = re.compile(r"0x([0-9a-f]+)")
_CLEARS = re.compile(r"^(rep\w*\s+stos|callq?\s.*<(__)?memset>)")
_RETURNS = re.compile(r"^(ret|lret|iret|sysret)")
_TRAPS = re.compile(r"^(ud2|int3|hlt)")
# Functions that never return: what follows a call of them is other code.
_NEVER = re.compile(r"<(__stack_chk_fail|panic|do_exit|make_task_dead|__fortify_panic)>")


@dataclass(frozen=True)
class Instruction:
    """One of a function, as it is disassembled."""

    address: int
    text: str


Functions = Mapping[str, tuple[Instruction, ...]]


def functions_in(listing: str) -> Functions:
    """The functions of a disassembly by llvm-objdump whose names are unique."""
    found: dict[str, list[Instruction]] = {}
    times: Counter[str] = Counter()
    current: list[Instruction] = []
    for line in listing.splitlines():
        if head := _HEAD.match(line):
            current = found[head[2]] = []
            times[head[2]] += 1
        elif match := _LINE.match(line):
            current.append(Instruction(int(match[1], 16), f"{match[2]} {match[3]}"))
    return {name: tuple(code) for name, code in found.items() if times[name] == 1 and code}


def _next(code: tuple[Instruction, ...], at: int, places: Mapping[int, int]) -> Iterator[int]:
    """Positions of what can be executed after an instruction; ``len(code)`` is an exit."""
    text = code[at].text
    if _RETURNS.match(text):
        yield len(code)
    elif text.startswith("j") and "*" not in text and (target := _TARGET.search(text)):
        yield places.get(int(target[1], 16), len(code))
        if not text.startswith("jmp"):
            yield at + 1
    elif text.startswith("jmp"):
        yield len(code)
    elif not _TRAPS.match(text) and not _NEVER.search(text) and at + 1 < len(code):
        yield at + 1


def clears(code: tuple[Instruction, ...]) -> bool:
    """Whether every path to an exit clears memory."""
    places = {instruction.address: at for at, instruction in enumerate(code)}
    reached, left = {0}, [0]
    while left:
        at = left.pop()
        if at == len(code):
            return False
        if _CLEARS.match(code[at].text):
            continue
        for following in _next(code, at, places):
            if following not in reached:
                reached.add(following)
                left.append(following)
    return any(at in reached and _CLEARS.match(code[at].text) for at in range(len(code)))


def disassembled(vmlinux: Path) -> Functions:
    """The functions of a kernel."""
    program = clang.TOOLCHAIN.select(None).program("llvm-objdump")
    listing = run([program, "-d", "--no-show-raw-insn", "--section=.text", vmlinux]).output
    return functions_in(listing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images", type=Path, nargs="*", metavar="VMLINUX")
    images = parser.parse_args().images
    if len(images) not in (0, 2):
        parser.error("give both images, or neither")
    with tempfile.TemporaryDirectory() as directory:
        builds = ("plain/build", "opt/build")
        images = images or [p / "vmlinux" for p in demo.artifacts(builds, Path(directory))]
        plain, optimised = map(disassembled, images)
    both = sorted(plain.keys() & optimised.keys())
    sides = [{name for name in both if clears(code[name])} for code in (plain, optimised)]
    print(f"{len(both)} functions are in both kernels")
    for title, some in (
        ("clear on every path in both", sides[0] & sides[1]),
        ("only in the plain kernel", sides[0] - sides[1]),
        ("only in the optimised kernel", sides[1] - sides[0]),
    ):
        print(f"{len(some)} {title}")
    for name in sorted(sides[1] - sides[0]):
        has = any(_CLEARS.match(instruction.text) for instruction in plain[name])
        print(f"  {name}: in the plain kernel {'on some paths' if has else 'nowhere'}")


if __name__ == "__main__":
    main()
