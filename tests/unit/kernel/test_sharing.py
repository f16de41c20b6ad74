"""What builds share, on a kernel in miniature."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX

from mepof.kernel import sharing
from mepof.toolchain import programs, versions
from mepof.toolchain.named import select

from .conftest import SPEC, Bench

VERSION = "echo 'gcc (GCC) 14.2.0'"


def test_without_sharing_no_object_is_taken_from_ccache_and_the_images_are_the_same(
    bench: Bench,
) -> None:
    asked = bench.root / "asked"
    ccache = bench.root / "tools" / "ccache"
    told = '"${CCACHE_DISABLE:-shares} ${CCACHE_PREFIX##*/}"'
    ccache.write_text(f'#!/bin/sh\necho {told} >> {asked}\nexec "$@"\n')
    shared = bench.build(name="shared")
    assert set(asked.read_text().splitlines()) == {"shares mepof-compile"}
    asked.unlink()
    alone = bench.build(name="alone", spec=replace(SPEC, share=False))
    assert set(asked.read_text().splitlines()) == {"1 "}
    for name in ("kernel", "vmlinux", "config", "build.json"):
        assert (shared / name).read_bytes() == (alone / name).read_bytes()


def test_the_callers_settings_of_ccache_decide_nothing_but_where_objects_are_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = bench.root / "asked"
    ccache = bench.root / "tools" / "ccache"
    ccache.write_text(f'#!/bin/sh\nenv | grep ^CCACHE_ | cut -d = -f 1 >> {asked}\nexec "$@"\n')
    kept = ("CCACHE_REMOTE_STORAGE", "CCACHE_REMOTE_ONLY", "CCACHE_MAXSIZE", "CCACHE_PREFIX")
    for name in (*kept, "CCACHE_COMPILERCHECK", "CCACHE_DISABLE", "CCACHE_SLOPPINESS"):
        monkeypatch.setenv(name, "none")
    bench.build()
    own = ("CCACHE_DIR", "CCACHE_BASEDIR", "CCACHE_NOHASHDIR", "CCACHE_DEPEND")
    assert set(asked.read_text().split()) == {*own, "CCACHE_COMPILERCHECK", *kept}


def compiler_check(bench: Bench, toolchain: str) -> str | None:
    chosen = select(toolchain)
    found = sharing.environment(chosen, SPEC.arch, bench.root, bench.root, share=False)
    return found["CCACHE_COMPILERCHECK"]


def test_objects_of_ones_own_compiler_are_known_by_what_it_starts_too(bench: Bench) -> None:
    def machine(name: str) -> Path:
        inside = bench.root / name
        inside.mkdir()
        driver = f"case $1 in -p*) echo $(dirname $0)/${{1##*=}};; *) {VERSION};; esac"
        for program, text in (("gcc", driver), ("cc1", "exit")):
            (inside / program).write_text(f"#!/bin/sh\n{text}\n")
            (inside / program).chmod(0o755)
        return inside

    here, there = machine("here"), machine("there")
    os.utime(there / "gcc", (1, 1))
    before = compiler_check(bench, f"gcc:{here}")
    assert before is not None and before.startswith("string:")
    assert compiler_check(bench, f"gcc:{there}") == before
    with (here / "cc1").open("a") as file:
        file.write("# another pass\n")
    programs._digest.cache_clear()
    assert compiler_check(bench, f"gcc:{here}") != before


def test_objects_of_the_systems_compiler_are_known_as_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "own_file", lambda program: None)
    assert compiler_check(bench, f"clang{SUFFIX}") == "mtime"


def test_an_object_that_holds_another_file_is_not_taken_from_ccache(bench: Bench) -> None:
    for name, text in {
        "certs/system_certificates.S": '\t.incbin "certs/signing_key.x509"\n',
        "kernel/configs.c": 'asm("\t.incbin \\"kernel/config_data.gz\\"\\n");\n',
        "drivers/firmware.S": 'INCBIN(Firmware, "firmware.bin")\n',
        "init/main.S": '\t.include "init/other.S"\n',
    }.items():
        (bench.tree / name).parent.mkdir(exist_ok=True)
        (bench.tree / name).write_text(text)
    bench.build()
    held = {
        *("arch/x86/realmode/rmpiggy.o", "arch/arm/boot/compressed/piggy.o"),
        *("drivers/of/overlay.dtbo.o", "arch/arm64/boot/dts/board.dtb.o"),
        *("drivers/base/firmware_loader/builtin/nic.bin.gen.o", "drivers/firmware.o"),
        *("certs/system_certificates.o", "kernel/configs.o"),
    }
    made = " ".join(sorted({*held, "init/main.o", "kernel/b.o"}))
    objects = bench.paths().work / "tree" / "build"
    (objects / "Makefile").write_text(
        f"all: {made}\n"
        "include mepof-selected.mk\n"
        f'{made}:\n\t@[ "$$CCACHE_PREFIX$$CCACHE_DISABLE" != 1 ] || echo $@\n'
        f".PHONY: all {made}\n"
    )
    command = ["make", "-s", "-C", str(objects), "all"]
    environment = {**os.environ, "MAKEFLAGS": "", "CCACHE_PREFIX": "compile"}
    shown = subprocess.check_output(command, text=True, env=environment)
    assert set(shown.splitlines()) == held
