"""What belongs to a kernel where it is installed, of trees in miniature."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX, forget_tools, write_tools

from mepof import arch
from mepof.errors import WorkError
from mepof.kernel import installed
from mepof.kernel.build_spec import BuildPaths, BuildSpec
from mepof.kernel.installed import DEVICE_TREES, HEADERS
from mepof.process import run
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

MODULES = "CONFIG_MODULES=y\n"
TREES = "CONFIG_OF_EARLY_FLATTREE=y\n"
# Its makefile has what is asked of kbuild; the objects' directory is its own.
MAKEFILE = """\
export srctree := ..
run-command:
	$(MAKE) -C $(O) -f $(CURDIR)/Makefile there
there:
	$(KBUILD_RUN_COMMAND)
dtbs:
	mkdir -p $(O)/arch/arm64/boot/dts/acme && cp board.txt $(O)/arch/arm64/boot/dts/acme/x.dtb
dtbs_install:
	mkdir -p $(INSTALL_DTBS_PATH)/acme && cp board.txt $(INSTALL_DTBS_PATH)/acme/x.dtb
"""
SCRIPT = """\
mkdir -p "$1/scripts/mod"
echo "of $srctree" > "$1/which"
cp Module.symvers "$1/"
cp scripts/mod/modpost "$1/scripts/mod/"
cp "$srctree/Makefile" "$1/"
"""


def program(machine: int) -> bytes:
    return b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + machine.to_bytes(2, "little") + b"code"


@dataclass
class Finished:
    """A finished build."""

    root: Path
    paths: BuildPaths

    def put(self, below: Path, name: str, content: bytes | str = "", mode: int = 0o644) -> None:
        path = below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)

    def keep(self, config: str, name: str = "x86-64") -> str | None:
        self.put(self.paths.output, "config", config)
        spec = BuildSpec(arch=arch.get(name), fragments=())
        tools = Tools(select(f"clang{SUFFIX}"), partial(run, log=self.paths.log))
        return installed.keep(spec, tools, self.paths, 1)

    def kept(self, name: str) -> dict[str, tarfile.TarInfo]:
        with tarfile.open(self.paths.output / name) as tar:
            return {each.name: each for each in tar}

    def text(self, name: str) -> str:
        with tarfile.open(self.paths.output / HEADERS) as tar:
            file = tar.extractfile(name)
            assert file is not None
            return file.read().decode()


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Finished]:
    tools = write_tools(tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    forget_tools()
    tree, work, output = (tmp_path / name for name in ("linux", "work", "output"))
    paths = BuildPaths(tree, work, output, tmp_path / "log", tmp_path / "cache")
    made = Finished(tmp_path, paths)
    made.put(tree, "Makefile", MAKEFILE)
    made.put(tree, "board.txt", "a board")
    made.put(tree, "arch/x86/Makefile")
    made.put(tree, "arch/x86/include/asm/io.h")
    made.put(tree, "arch/x86/kernel/setup.c")
    made.put(tree, "include/linux/io.h")
    made.put(tree, "scripts/Makefile.lib", "_c_flags = -Wall\n")
    made.put(tree, "scripts/kconfig/conf.c")
    (tree / "include/linux/link.h").symlink_to("io.h")
    work.mkdir()
    # As a view is: of links, with other files in place of some.
    paths.view.mkdir()
    for each in tree.iterdir():
        (paths.view / each.name).symlink_to(each)
    objects = paths.objects
    made.put(objects, "Module.symvers", "0x1 printk vmlinux EXPORT_SYMBOL\n")
    made.put(objects, "scripts/mod/modpost", program(62), 0o755)
    made.put(objects, "scripts/mod/modpost.o", program(62))
    made.put(objects, "scripts/mod/.modpost.cmd")
    made.put(objects, "tools/objtool/objtool", program(62), 0o755)
    made.put(objects, "include/config/auto.conf")
    made.put(objects, "include/config/NET")
    made.put(objects, "include/generated/autoconf.h")
    made.put(objects, "arch/x86/include/generated/asm/types.h")
    made.put(objects, "init/main.o", program(62))
    yield made
    forget_tools()


def test_headers_of_an_older_kernel_are_listed_here(build: Finished) -> None:
    assert build.keep(MODULES) is None
    kept = build.kept(HEADERS)
    assert list(kept) == sorted(kept)
    assert set(kept) == {
        *(".config", "Makefile", "Module.symvers", "arch/x86/Makefile"),
        *("arch/x86/include/asm/io.h", "arch/x86/include/generated/asm/types.h"),
        *("include/config/auto.conf", "include/generated/autoconf.h"),
        *("include/linux/io.h", "include/linux/link.h"),
        *("scripts/Makefile.lib", "scripts/mod/modpost", "tools/objtool/objtool"),
    }
    assert kept["scripts/mod/modpost"].mode == 0o755
    assert kept["Module.symvers"].mode == 0o644
    assert kept["include/linux/link.h"].linkname == "io.h"
    assert build.text(".config") == MODULES


def test_newer_kernels_say_what_they_need(build: Finished) -> None:
    build.put(build.paths.tree, "scripts/package/install-extmod-build", SCRIPT)
    assert build.keep(MODULES) is None
    kept = build.kept(HEADERS)
    assert set(kept) == {".config", "Makefile", "Module.symvers", "scripts/mod/modpost", "which"}
    # A view has links, and makefiles with flags that other modules do not have.
    assert build.text("which") == f"of {build.paths.tree}\n"


def test_the_same_build_gives_the_same_bytes(build: Finished) -> None:
    build.keep(MODULES)
    first = (build.paths.output / HEADERS).read_bytes()
    os.utime(build.paths.tree / "Makefile", (0, 0))
    build.keep(MODULES)
    assert (build.paths.output / HEADERS).read_bytes() == first


def test_programs_for_another_machine_are_no_headers(build: Finished) -> None:
    build.keep(MODULES)
    why = build.keep(MODULES, "arm64")
    assert why == "kbuild's programs are for this machine, not for arm64; build it on one"
    assert not (build.paths.output / HEADERS).exists()


def test_a_script_that_fails_costs_only_another_machine_its_headers(build: Finished) -> None:
    script = "echo error: cannot find -lcrypto; exit 1\n"
    build.put(build.paths.tree, "scripts/package/install-extmod-build", script)
    assert "cannot find -lcrypto" in (build.keep(MODULES, "arm64") or "")
    with pytest.raises(WorkError, match="cannot find -lcrypto"):
        build.keep(MODULES)


def test_a_kernel_without_modules_has_no_headers(build: Finished) -> None:
    build.keep(MODULES)
    assert build.keep("") is None
    assert not (build.paths.output / HEADERS).exists()


def test_device_trees_are_kept_where_the_configuration_has_boards(build: Finished) -> None:
    assert build.keep(TREES, "arm64") is None
    assert not (build.paths.output / DEVICE_TREES).exists()
    build.put(build.paths.tree, "arch/arm64/boot/dts/Makefile")
    build.keep("", "arm64")
    assert not (build.paths.output / DEVICE_TREES).exists()
    build.keep(TREES, "arm64")
    assert list(build.kept(DEVICE_TREES)) == ["acme/x.dtb"]


def test_a_configuration_without_boards_installs_no_device_trees(build: Finished) -> None:
    build.put(build.paths.tree, "arch/arm64/boot/dts/Makefile")
    build.put(build.paths.tree, "Makefile", "dtbs:\n")
    build.keep(TREES, "arm64")
    assert not (build.paths.output / DEVICE_TREES).exists()


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ((), "clang-22 ld.lld-22"),
        (("CC=clang", "LD=ld.lld", "V=1"), "clang-22 ld.lld-22 1"),
        (("CC=other -m32",), "other -m32 ld.lld-22"),
        (("LLVM=1", "CC=clang"), "clang-22 ld.lld-22"),
        (("LLVM=-19",), "clang-19 ld.lld-19"),
        (("LLVM=/llvm/", "CC=clang"), "clang ld.lld/llvm/"),
    ],
)
def test_modules_are_compiled_as_their_kernel_unless_make_is_told_otherwise(
    build: Finished, given: tuple[str, ...], used: str
) -> None:
    rest = """
CC = clang$(LLVM)
LD = ld.lld$(LLVM)
export CC LD
all:
	@$(MAKE) --no-print-directory -f inner
"""
    build.put(build.paths.tree, "Makefile", rest)
    build.keep(MODULES)
    build.put(build.root, "headers/Makefile", build.text("Makefile"))
    build.put(build.root, "headers/inner", "all:\n\t@echo $(CC) $(LD) $(V)\n")
    done = subprocess.run(
        ["make", "-s", "-C", build.root / "headers", *given],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "CC": "of-the-environment"},
    )
    assert done.stdout.strip() == used
