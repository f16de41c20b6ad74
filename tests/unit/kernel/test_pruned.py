"""Files that are compiled from what they use of their headers, by real compilers through ccache."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mepof.kernel.sharing import write_compile
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Toolchain

HEADER = """\
#define TWICE(value) ((value) * 2)
struct pair { int first, second; };
static inline int sum(const struct pair *pair) { return pair->first + pair->second; }
static inline int difference(const struct pair *pair) { return pair->first - pair->second; }
"""
SOURCE = '#include "pair.h"\nint f(struct pair *pair) { return TWICE(sum(pair)); }\n'

pytestmark = pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed")


@dataclass(frozen=True)
class Kernel:
    """A file of a kernel and its header, in a directory."""

    directory: Path
    compiler: str
    toolchain: Toolchain

    def command(self, *more: str) -> list[str]:
        fixed = ("-O2", "-nostdinc", "-D__KERNEL__", "-DX=1", "-I", ".", "-Wp,-MMD,.f.o.d")
        return [self.compiler, *fixed, *more, "-c", "-o", "f.o", "f.c"]

    def compile(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Compile it as a build does."""
        program = write_compile(self.toolchain, self.directory)
        settings = {"CCACHE_DIR": str(self.cache), "CCACHE_PREFIX": str(program)}
        return subprocess.run(
            ["ccache", *self.command(*more)],
            env={**os.environ, **settings, "CCACHE_DEPEND": "1", "CCACHE_NOHASHDIR": "1"},
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def cache(self) -> Path:
        return self.directory / "ccache"

    def object_of_the_compiler(self, *more: str) -> bytes:
        """What the compiler makes of the whole file."""
        made = self.directory / "f.o"
        subprocess.run(self.command(*more), cwd=self.directory, check=True, timeout=60)
        contents = made.read_bytes()
        made.unlink()
        return contents

    def pruned(self) -> tuple[int, int]:
        """How many files were compiled from what they use, and how many of them ccache had."""
        own = self.cache / "pruned"
        if not own.exists():
            return 0, 0
        shown = subprocess.run(
            ["ccache", "--print-stats"],
            env={**os.environ, "CCACHE_DIR": str(own)},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        count = dict(line.split("\t") for line in shown.stdout.splitlines())
        found = int(count["preprocessed_cache_hit"])
        return found + int(count["cache_miss"]), found


@pytest.fixture(params=["clang-22", "clang-19"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    (tmp_path / "pair.h").write_text(HEADER)
    (tmp_path / "f.c").write_text(SOURCE)
    return Kernel(tmp_path, request.param, select(request.param))


def test_the_object_is_that_of_the_whole_file(kernel: Kernel) -> None:
    wanted = kernel.object_of_the_compiler()
    wanted_dependencies = (kernel.directory / ".f.o.d").read_text()
    (kernel.directory / ".f.o.d").unlink()
    done = kernel.compile()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (kernel.directory / "f.o").read_bytes() == wanted
    assert (kernel.directory / ".f.o.d").read_text() == wanted_dependencies
    assert kernel.pruned() == (1, 0)
    assert not list(kernel.directory.glob("*.i"))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(("first - pair->second", "second - pair->first"), 1, id="not used"),
        pytest.param(("#define", "struct other;\n\n#define"), 1, id="lines"),
        pytest.param(("first + pair->second", "second - pair->first"), 0, id="used"),
        pytest.param(("* 2", "* 3"), 0, id="macro"),
    ],
)
def test_a_changed_header_matters_where_it_is_used(
    kernel: Kernel, change: tuple[str, str], found: int
) -> None:
    assert kernel.compile().returncode == 0
    header = kernel.directory / "pair.h"
    assert change[0] in HEADER
    header.write_text(HEADER.replace(*change))
    wanted = kernel.object_of_the_compiler()
    assert kernel.compile().returncode == 0
    assert (kernel.directory / "f.o").read_bytes() == wanted
    assert kernel.pruned() == (2, found)


def test_errors_are_those_of_the_whole_file(kernel: Kernel) -> None:
    (kernel.directory / "f.c").write_text(f"{SOURCE}int g(void) {{ return missing; }}\n")
    done = kernel.compile()
    assert done.returncode == 1
    assert done.stderr.count(" error: ") == 1 and "missing" in done.stderr
    assert [path.name for path in kernel.directory.glob("*.[io]")] == []


def test_an_error_of_the_preprocessor_is_told_once(kernel: Kernel) -> None:
    (kernel.directory / "f.c").write_text(f'{SOURCE}#include "none.h"\n')
    done = kernel.compile()
    assert done.returncode == 1
    assert done.stderr.count("none.h' file not found") == 1


@pytest.mark.parametrize(
    "more", ["-g", "-g1", "-fsanitize=undefined", "-ftest-coverage", "-flto=thin"]
)
def test_where_all_of_a_file_matters_the_compiler_has_all(kernel: Kernel, more: str) -> None:
    wanted = kernel.object_of_the_compiler(more)
    assert kernel.compile(more).returncode == 0
    assert (kernel.directory / "f.o").read_bytes() == wanted
    assert kernel.pruned() == (0, 0)


def test_a_file_that_asks_for_its_place_is_compiled_whole(kernel: Kernel) -> None:
    (kernel.directory / "f.c").write_text(f"{SOURCE}int g(void) {{ return __builtin_LINE(); }}\n")
    wanted = kernel.object_of_the_compiler()
    assert kernel.compile().returncode == 0
    assert (kernel.directory / "f.o").read_bytes() == wanted
    assert kernel.pruned() == (0, 0)


def test_of_warnings_only_those_that_a_build_reads_are_told(kernel: Kernel) -> None:
    compiler = kernel.directory / kernel.compiler
    compiler.write_text(
        f"""#!/bin/sh
        case "$*" in *cpp-output*)
            echo "f.c: function changed f [-Wbackend-plugin]" >&2
            echo "f.c: from a macro [-Wunused-value]" >&2
        esac
        exec {shutil.which(kernel.compiler)} "$@"
        """
    )
    compiler.chmod(0o755)
    done = replace(kernel, compiler=str(compiler)).compile("-Wno-error=backend-plugin")
    assert done.stderr == "f.c: function changed f [-Wbackend-plugin]\n"
    assert kernel.pruned() == (1, 0)
