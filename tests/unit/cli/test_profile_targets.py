"""What ``mepof profile convert`` writes, read by the tools that it is for."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner
from writers.perf_script import mapping, sample
from writers.recorder_trace import exact_trace, sampled_trace
from writers.traced_kernel import CLANG, SOURCE, link_kernel, loop_of, recorded, section_size

from mepof.cli.main import app

from .profiles import perf_script

TWINS = ("one", "two")
TWIN = """
static __attribute__((noinline)) int twin(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        if (i & 1) sum += i; else sum ^= i;
    return sum;
}
"""


# Its second call and its jump were patched before it ran: to a call of 3 bytes, and to none.
PATCHED = """
    .p2align 4
    .globl patched
    .type patched, @function
patched:
    callq called
1:  cmpl $0, %edi
    jne 1b
3:  callq called
    testl %edi, %edi
    je 2f
    nop
4:  .byte 0xe9
    .long 2f - . - 4
    retq
2:  retq
    .size patched, . - patched
    .globl called
    .type called, @function
called: retq
    .size called, . - called
    .section .retpoline_sites, "a", @progbits
    .long 3b - .
    .section .rodata, "a", @progbits
    .globl __start___jump_table, __stop___jump_table
__start___jump_table:
    .long 4b - ., 2b - .
    .quad 0
__stop___jump_table:
    .text
"""


def converted(binary: Path, record: Path, to: str, output: Path, *more: object) -> None:
    arguments = ("--binary", binary, "--input", record, "--to", to, "-o", output, *more)
    words = ["profile", "convert", *map(str, arguments), "--allow-poor"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (result.output, result.exception)


@pytest.mark.parametrize("more", [(), ("--path-cloning",)])
def test_clang_takes_the_layout_without_a_warning(tmp_path: Path, more: tuple[str, ...]) -> None:
    flags = ("-g1", "-fbasic-block-address-map")
    kernel, loop = link_kernel(tmp_path, *flags)
    record = tmp_path / "perf.txt"
    record.write_text(recorded(loop))
    converted(kernel, record, "propeller", tmp_path / "layout", *more)
    profile = tmp_path / "layout.cc_profile"
    assert "\nf hot\n" in profile.read_text()
    assert (tmp_path / "layout.ld_profile").read_text().startswith("hot\n")
    compile_ = [CLANG, "-O1", "-g1", "-c", "vmlinux.c", "-o", "again.o", "-ffunction-sections"]
    done = subprocess.run(
        [*compile_, "-Werror", f"-fbasic-block-sections=list={profile}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    symbols = subprocess.run(["nm", tmp_path / "again.o"], capture_output=True, text=True).stdout
    assert " hot.cold\n" in symbols
    assert " warm.cold\n" not in symbols


def test_layout_needs_no_debug_information(tmp_path: Path) -> None:
    kernel, loop = link_kernel(tmp_path, "-g0", "-fbasic-block-address-map")
    record = tmp_path / "perf.txt"
    record.write_text(recorded(loop))
    for to in ("propeller", "bolt", "bolt-preaggregated", "unsymbolized"):
        converted(kernel, record, to, tmp_path / to)
    kept = json.loads((tmp_path / "propeller.verdict.json").read_text())
    assert kept["binaries"][0]["functions_executed"] == 1
    assert kept["binaries"][0]["mapped_percent"] is None


@pytest.mark.parametrize("to", ["bolt-preaggregated", "unsymbolized"])
def test_text_of_branches_gives_the_profile_of_what_it_was_made_of(tmp_path: Path, to: str) -> None:
    kernel, loop = link_kernel(tmp_path, "-g", "-fdebug-info-for-profiling")
    record, text, packed = (tmp_path / name for name in ("perf.txt", "text", "text.gz"))
    record.write_text(recorded(loop))
    converted(kernel, record, "autofdo", tmp_path / "direct")
    converted(kernel, record, to, text)
    packed.write_bytes(gzip.compress(text.read_bytes()))
    for given in (text, packed):
        converted(kernel, given, "autofdo", tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "direct").read_bytes()
        kept = json.loads((tmp_path / "again.verdict.json").read_text())
        assert kept["inputs"][0]["path"] == str(given)


def test_bolt_reads_where_patched_code_and_calls_went_on(tmp_path: Path) -> None:
    kernel, _ = link_kernel(tmp_path, source=f"{SOURCE}__asm__({json.dumps(PATCHED)});\n")
    shown = subprocess.run(["nm", kernel], capture_output=True, text=True, check=True).stdout
    at = {name: int(address, 16) for address, _, name in map(str.split, shown.splitlines())}
    start, called, caller = (at[name] for name in ("patched", "called", "start_kernel"))
    branches = [
        *((start, called), (called, start + 0x5)),
        *((start + 0xA, called), (called, start + 0xD)),
        *((start + 0x19, caller), (caller, start)),
    ]
    ranges = [(start, start), (start + 0x5, start + 0xA), (start + 0xD, start + 0x19)]
    trace, counts = tmp_path / "trace", tmp_path / "counts"
    trace.write_bytes(exact_trace(branches, ranges, 1000))
    converted(kernel, trace, "bolt", counts)
    onwards = [line for line in counts.read_text().splitlines() if line.count(" patched ") == 2]
    places = [tuple(line.split()[at] for at in (2, 5)) for line in onwards]
    # Behind a call, a branch not taken, another one behind what was patched, and the jump that is
    # none.
    assert sorted(places) == [("0", "5"), ("11", "13"), ("14", "19"), ("8", "a")]


def test_files_distinguish_static_functions_with_one_name(tmp_path: Path) -> None:
    for name in TWINS:
        (tmp_path / f"{name}.c").write_text(TWIN + f"int {name}(int n) {{ return twin(n); }}\n")
    flags = ("-g1", "-fbasic-block-address-map", *(f"{name}.c" for name in TWINS))
    kernel, _ = link_kernel(tmp_path, *flags)
    record = tmp_path / "perf.txt"
    record.write_text(recorded(loop_of(kernel, "twin")))
    converted(kernel, record, "propeller", tmp_path / "layout")
    profile = (tmp_path / "layout.cc_profile").read_text()
    assert "m one.c\nf twin\n" in profile
    assert "two.c" not in profile


def test_perf_reads_the_samples(tmp_path: Path) -> None:
    kernel, loop = link_kernel(tmp_path, "-g", "-Wl,--build-id=sha1")
    record, recording = tmp_path / "perf.txt", tmp_path / "perf.data"
    record.write_text(recorded(loop, samples=50, slide=0x200_0000))
    converted(kernel, record, "perf-data", recording)
    # There and back again, KASLR and all.
    for one in (record, recording):
        converted(kernel, one, "autofdo-text", one.with_suffix(".afdo"))
    assert record.with_suffix(".afdo").read_bytes() == recording.with_suffix(".afdo").read_bytes()
    lines = perf_script(recording, "ip,brstack")
    assert len(lines) == 50
    assert f"{loop.address + 0x200_0000:#x}/{loop.target + 0x200_0000:#x}/P/" in lines[0]


def test_perf_reads_the_recorders_samples(tmp_path: Path) -> None:
    kernel, loop = link_kernel(tmp_path, "-g", "-Wl,--build-id=sha1")
    branch = (loop.address, loop.target)
    trace, recording = tmp_path / "trace", tmp_path / "perf.data"
    # An interruption in the middle: what is on its two sides is not consecutive.
    trace.write_bytes(sampled_trace([[branch] * 5 + [(0, 0)] + [branch] * 2] * 40, 10007, 16))
    converted(kernel, trace, "perf-data", recording)
    for one in (trace, recording):
        converted(kernel, one, "unsymbolized", one.with_suffix(".unsymbolized"))
    texts = [one.with_suffix(".unsymbolized").read_text() for one in (trace, recording)]
    assert texts[0] == texts[1]
    lines = [line.split() for line in perf_script(recording, "event,period,brstack")]
    assert {(line[0], line[1]) for line in lines} == {("10007", "branches:k:")}
    assert [len(line) - 2 for line in lines] == [5, 2] * 40
    words = {word.partition("/-/")[0] for line in lines for word in line[2:]}
    assert words == {f"{branch[0]:#x}/{branch[1]:#x}"}


def test_a_module_of_several_sections_comes_back_from_perf_data(tmp_path: Path) -> None:
    kernel, loop = link_kernel(tmp_path, "-g")
    source, module = tmp_path / "tiny.c", tmp_path / "tiny.ko"
    # Sections as the kernel has them, `warm` in the second.
    aside = '__attribute__((section(".noinstr.text"), noinline)) int warm'
    text = SOURCE.replace("__attribute__((noinline)) int warm", aside)
    source.write_text(text.replace("start_kernel", "init_module"))
    flags = ("-O1", "-g", "-mcmodel=kernel", "-fno-pie")
    subprocess.run([CLANG, *flags, "-c", source, "-o", module], check=True)
    start = 0xFFFF_FFFF_C000_0000
    second = start + -(-section_size(module) // 16) * 16
    record, recording = tmp_path / "perf.txt", tmp_path / "perf.data"
    text = recorded(loop, samples=50) + mapping(start, 0x4000, "[tiny]", offset=0)
    for function, at in (("hot", start), ("warm", second)):
        inside = loop_of(module, function)
        text += sample(inside.target + at, inside.stack(at), "a 7 [000] 1.0:") * 40
    record.write_text(text)
    converted(kernel, record, "perf-data", recording, "--module", module)
    texts = []
    for one in (record, recording):
        converted(kernel, one, "unsymbolized", one.with_suffix(".out"), "--module", module)
        texts.append(one.with_suffix(".out.tiny").read_text())
    assert [line.rpartition(":")[2] for line in texts[0].splitlines()] == [
        *("2", "600", "600", "2", "640", "640")
    ]
    assert texts[0] == texts[1]


def test_a_module_has_its_functions_in_the_profile(tmp_path: Path) -> None:
    kernel, loop = link_kernel(tmp_path, "-g", "-fdebug-info-for-profiling")
    source = tmp_path / "tiny.c"
    source.write_text(SOURCE.replace("hot", "busy").replace("start_kernel", "init_module"))
    module = tmp_path / "tiny.ko"
    flags = ("-O1", "-g", "-fdebug-info-for-profiling", "-mcmodel=kernel", "-fno-pie")
    subprocess.run([CLANG, *flags, "-c", source, "-o", module], check=True)
    start = 0xFFFF_FFFF_C000_0000
    inside = loop_of(module, "busy")
    record = tmp_path / "perf.txt"
    line = mapping(start, 0x4000, "[tiny]", offset=0)
    stack = inside.stack(start)
    samples = sample(inside.target + start, stack, "a 7 [000] 1.0:") * 500
    record.write_text(recorded(loop) + line + samples)
    converted(kernel, record, "autofdo-text", tmp_path / "out", "--module", module)
    profile = (tmp_path / "out").read_text()
    assert "\nbusy:" in f"\n{profile}"
    assert "\nhot:" in f"\n{profile}"
    without = tmp_path / "without"
    converted(kernel, record, "autofdo-text", without)
    assert "busy:" not in without.read_text()
    alone = tmp_path / "alone"
    converted(module, record, "autofdo-text", alone)
    assert alone.read_text().startswith("busy:")
    assert "hot:" not in alone.read_text()
