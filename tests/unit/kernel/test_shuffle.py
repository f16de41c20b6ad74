"""The linker's part of a relinked control, on objects as the kernel has them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mepof.kernel import link_order
from mepof.process import run
from mepof.toolchain.named import select

SCRIPT = """SECTIONS {
  . = 0x1000;
  .text : { *(.text.hot .text.hot.*) *(.text) *(.text.unlikely .text.unlikely.*) }
  .init.text : { *(.init.text) }
}"""
SOURCE = """
void plain{n}(void) {{}}
__attribute__((section(".text.hot."))) void hot{n}(void) {{}}
__attribute__((section(".init.text"))) void init{n}(void) {{}}
"""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("objects")
    (place / "script.lds").write_text(SCRIPT)
    for number in range(8):
        (place / f"{number}.c").write_text(SOURCE.format(n=number))
    sources = [f"{number}.c" for number in range(8)]
    compiler = select("clang").tool("compiler")
    run([compiler, "--target=x86_64-linux-gnu", "-O1", "-c", *sources], cwd=place)
    return place


def linked(objects: Path, *flags: str) -> list[str]:
    """The functions by address."""
    tools = select("clang")
    given = [f"{number}.o" for number in range(8)]
    command = [tools.tool("linker"), *flags, "-T", "script.lds", "-e", "plain0", *given]
    run([*command, "-o", "linked"], cwd=objects)
    lines = run([tools.tool("nm"), "--numeric-sort", "linked"], cwd=objects).output
    return [line.split()[-1] for line in lines.splitlines()]


def test_a_seed_reorders_code_within_each_part_of_the_script(objects: Path) -> None:
    plain = linked(objects)
    one, two = (linked(objects, f"--shuffle-sections=.text*={seed}") for seed in (1, 2))
    assert len({tuple(order) for order in (plain, one, two)}) == 3
    for order in (one, two):
        assert sorted(order) == sorted(plain)
        # Hot code stays before the rest, and what is freed after boot stays as it was.
        assert {name[:3] for name in order[:8]} == {"hot"}
        assert {name[:5] for name in order[8:16]} == {"plain"}
        assert order[16:] == plain[16:]
    assert linked(objects, "--shuffle-sections=.text*=1") == one


def test_a_script_reorders_code_where_the_compiler_links(objects: Path) -> None:
    """GNU ld, as for User-Mode Linux: no names of objects are known."""

    def linked_by_gnu_ld(*scripts: str) -> list[str]:
        given = [f"{number}{number}.o" for number in range(8)]
        for number, name in enumerate(given):
            shutil.copyfile(objects / f"{number}.o", objects / name)
        flags = [f"-Wl,--script={script}" for script in (*scripts, "script.lds")]
        command = ["gcc", "-nostdlib", "-static", "-Wl,-e,plain0", *flags, *given]
        run([*command, "-o", "linked-by-gnu-ld"], cwd=objects)
        nm = select("clang").tool("nm")
        lines = run([nm, "--numeric-sort", "linked-by-gnu-ld"], cwd=objects).output
        return [line.split()[-1] for line in lines.splitlines()]

    plain = linked_by_gnu_ld()
    shuffled = []
    for seed in (1, 2):
        (objects / f"order{seed}.ld").write_text(link_order.script(seed))
        shuffled.append(linked_by_gnu_ld(f"order{seed}.ld"))
    assert len({tuple(order) for order in (plain, *shuffled)}) == 3
    for order in shuffled:
        assert sorted(order) == sorted(plain)
        assert {name[:3] for name in order[:8]} == {"hot"}
        assert {name[:5] for name in order[8:16]} == {"plain"}
        assert order[16:] == plain[16:]
    assert link_order.script(1) == link_order.script(1)
