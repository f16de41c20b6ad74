"""Headers of a real kernel: modules of others are compiled with their package, and nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from mepof import arch
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import compiled
from mepof.g4 import Source
from mepof.kernel import installed, kbuild
from mepof.kernel.build_spec import BuildPaths, BuildSpec
from mepof.kernel.release import release_of
from mepof.package.contents import headers_beside
from mepof.package.protocol import FORMATS, Kernel
from mepof.plan.model import Plan
from mepof.process import run
from mepof.spec.kernel_source import KernelSource
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

# It compiles a kernel, though a tiny one.
pytestmark = [pytest.mark.boot, pytest.mark.rounds]

TINY = """\
# base: allnoconfig
CONFIG_64BIT=y
CONFIG_PRINTK=y
CONFIG_BINFMT_ELF=y
CONFIG_UNWINDER_ORC=y
CONFIG_CPU_MITIGATIONS=y
CONFIG_MITIGATION_RETPOLINE=y
CONFIG_MODULES=y
CONFIG_MODULE_UNLOAD=y
CONFIG_MODVERSIONS=y
CONFIG_CRC7=m
"""
# What a format installs them in.
BELOW = {
    "deb": "usr/src/linux-headers-{}",
    "rpm": "usr/src/kernels/{}",
    "pkg": "usr/lib/modules/{}/build",
}
MODULE = """
#include <linux/module.h>
#include <linux/slab.h>

static void *kept;

static int __init other_init(void)
{
	kept = kmalloc(64, GFP_KERNEL);
	pr_info("other: loaded\\n");
	return kept ? 0 : -ENOMEM;
}

static void __exit other_exit(void)
{
	kfree(kept);
}

module_init(other_init);
module_exit(other_exit);
MODULE_LICENSE("GPL");
"""


@pytest.fixture(scope="module")
def headers(
    executor: LocalExecutor, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Path]:
    """The headers of a tiny kernel, as each format of packages installs them."""
    root = tmp_path_factory.mktemp("headers")
    plan = compiled(Source("tiny.g4", "build debian:linux-source-6.12 O2."))
    steps = tuple(step for step in plan.steps if step.kind == KernelSource.kind)
    done = executor.run(Plan("", 0, steps, ()), root / "source", lambda event: None)
    tree = done.run.steps[steps[0].id].path
    work, output, fragment = root / "work", root / "output", root / "tiny.config"
    work.mkdir()
    output.mkdir()
    fragment.write_text(TINY)
    paths = BuildPaths(tree, work, output, root / "log", executor.store / "cache")
    spec = BuildSpec(arch.get("x86-64"), (fragment,), cflags=("-O3",), suffix="-mepof-opt")
    toolchain = select("clang")
    tools, cores = Tools(toolchain, partial(run, log=paths.log)), os.cpu_count() or 1
    kbuild.build(spec, tools, paths, cores, lambda done, total, name: None)
    assert installed.keep(spec, tools, paths, cores) is None
    kernel = Kernel(release_of(output / "vmlinux"), "6.12", spec.arch, toolchain.name, output)
    return {name: _installed(kernel, name, root / name) for name in BELOW}


def _installed(kernel: Kernel, name: str, root: Path) -> Path:
    """Where a format of packages installs the headers."""
    root.mkdir()
    form = FORMATS.get(name)
    package = root / f"package.{form.suffix}"
    form.write(kernel, None, package)
    made = headers_beside(package)
    run(
        ("dpkg-deb", "--extract", made, root)
        if name == "deb"
        else ("bsdtar", "-xf", made, "-C", root)
    )
    return root / BELOW[name].format(kernel.release)


@pytest.mark.parametrize(
    ("form", "given"),
    [("deb", ()), ("deb", ("CC=clang", "LD=ld.lld")), ("rpm", ()), ("pkg", ())],
    ids=["deb", "deb as DKMS", "rpm", "pkg"],
)
def test_a_module_is_compiled_with_the_package_alone(
    headers: Mapping[str, Path], tmp_path: Path, form: str, given: tuple[str, ...]
) -> None:
    (tmp_path / "other.c").write_text(MODULE)
    (tmp_path / "Makefile").write_text("obj-m := other.o\n")
    make = ["make", "-C", str(headers[form]), f"M={tmp_path}", *given, "modules"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "compiler differs" not in said
    assert "undefined" not in said
    made = (tmp_path / "other.ko").read_bytes()
    release = headers["deb"].name.removeprefix("linux-headers-")
    assert f"vermagic={release} ".encode() in made
    # The kernel refuses a module whose symbols have no versions.
    assert b"__versions" in made


def test_nothing_in_the_package_names_the_directory_of_the_build(
    headers: Mapping[str, Path],
) -> None:
    installed = headers["deb"]
    root = str(installed.parents[3]).encode()
    files = (path for path in installed.rglob("*") if path.is_file())
    assert [path for path in files if root in path.read_bytes()] == []
