"""The step that packages what a kernel is built of, for its own build system."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from typing import Any, cast

import pytest
from writers.mini_kernel import SUFFIX, write_tree

from mepof.algorithm.protocol import ALGORITHMS, Use
from mepof.errors import InputError, WorkError
from mepof.kernel.description import Safety
from mepof.kernel.safeguard import OptOut
from mepof.plan.model import HostInput, Json, Step
from mepof.process import run
from mepof.spec.kernel_build import Instrumented, KernelBuild
from mepof.steps.kernel_ingredients import Ingredients
from mepof.steps.kernel_package import BODY
from mepof.toolchain.clang import Clang
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

from .room import Room
from .test_kernel_build import BASE

PROFILE = ":ir\n../init/a.c;start\n# Func Hash:\n1\n# Counter Values:\n7\n\n"
COMPILER = f"clang{SUFFIX}"


def params_of(*uses: str, **more: Json) -> dict[str, Json]:
    built: dict[str, Json] = {**BASE, "config": [None], "toolchain": COMPILER, "uses": [*uses]}
    built |= more
    return {"format": "source", "arch": "x86-64", "toolchain": COMPILER, "built": built}


def packaged(
    room: Room,
    *uses: str,
    opt_out: OptOut | None = None,
    config: str = "CONFIG_NET=y\n",
    **more: Json,
) -> Path:
    """The directory that is in the package of the miniature kernel, which has a configuration."""
    root = room.root
    if not (root / "tree").exists():
        write_tree(root / "tree")
    (root / "my.profdata").write_text(PROFILE)
    (root / "mini.config").write_text("# base: allnoconfig\n")
    build = root / "finished"
    build.mkdir()
    (build / "vmlinux").write_bytes(b"\0Linux version 6.12.7 (someone) #1\n\0")
    (build / "config").write_text(config)
    if opt_out is not None:
        Safety(
            booted=True,
            self_check="passed",
            release="6.12.7",
            opt_out=opt_out,
            failure=None,
            objtool=(),
        ).write(build)
    inputs = {
        "kernel": build,
        "built__source": root / "tree",
        "built__config__0": root / "mini.config",
        **({"built__profile": root / "my.profdata"} if uses else {}),
    }
    context = room.context(BODY.kind, params_of(*uses, **more), **inputs)
    BODY.run(context)
    with tarfile.open(context.output / "package.source.tar") as tar:
        tar.extractall(root / "unpacked", filter="data")
    (made,) = (root / "unpacked").iterdir()
    assert made.name == "linux-6.12.7-mepof"
    return made


def commands(room: Room, made: Path, *lacks: str) -> dict[str, str]:
    """What make compiles each object with, in a tree to which the package was applied."""
    tree, objects = room.root / "mine", room.root / "objects"
    write_tree(tree)
    patch = ["patch", "-p1", "--batch", "-i"]
    subprocess.run([*patch, made / "mepof.patch"], cwd=tree, check=True, capture_output=True)
    subprocess.run(["cp", "-r", made / "mepof", tree], check=True)
    for name in lacks:
        (tree / name).unlink()
    words = (f"O={objects}", f"CC={COMPILER}", "vmlinux")
    ended = subprocess.run(["make", "-C", tree, *words], capture_output=True, text=True)
    if ended.returncode:
        raise WorkError(ended.stderr)
    found = objects.rglob("*.o")
    return {str(each.relative_to(objects)): each.read_text() for each in found}


def test_make_builds_with_the_profile_wherever_the_tree_is(room: Room, tools: Path) -> None:
    made = packaged(room, "pgo")
    names = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
    assert names == [
        *("README.md", "config", "mepof.config", "mepof.patch"),
        *("mepof/flags.mk", "mepof/kernel.profdata", "mepof/selected.mk"),
    ]
    # A static function is named by its file from the root of the tree.
    assert "\ninit/a.c;start\n" in (made / "mepof/kernel.profdata").read_text()
    compiled = commands(room, made)
    tree = room.root / "mine"
    for name in ("init/a.o", "kernel/b.o"):
        assert f" -fprofile-use={tree}/mepof/kernel.profdata " in compiled[name]
        levels = str(tree).count("/") + 1
        assert f"-mllvm -static-func-strip-dirname-prefix={levels} " in compiled[name]
    # What mepof never gives a profile.
    assert "-fprofile-use" not in compiled["kernel/bounds.o"]


def test_what_the_checks_left_out_of_the_profile_stays_out(room: Room, tools: Path) -> None:
    opt_out = OptOut(files=("kernel/b.o",), functions={"init/a.o": ("stop",)})
    compiled = commands(room, packaged(room, "pgo", opt_out=opt_out))
    assert compiled["kernel/b.o"].index("-fprofile-use") < compiled["kernel/b.o"].index(
        "-fno-profile-use"
    )
    assert "-fno-profile-use" not in compiled["init/a.o"]
    (spared,) = (room.root / "mine/mepof").glob("spared-*")
    assert f"-fprofile-use={spared}" in compiled["init/a.o"]
    assert compiled["init/a.o"].count("-static-func-strip-dirname-prefix=") == 1


def test_profiles_without_some_functions_are_of_the_kind_that_they_were_made_of() -> None:
    asked = KernelBuild[HostInput](
        arch="x86-64",
        toolchain=COMPILER,
        config=(),
        options=(),
        source=HostInput("/tree"),
        uses=("pgo", "propeller"),
    )
    build = Ingredients(asked, (), None, Use(Clang(SUFFIX), None))
    counts = ("kernel.profdata", "spared-0123abcd-0")
    others = (*ALGORITHMS.get("propeller").profile_names, "spared-0123abcd-1")
    assert [*map(build.are_counts, counts)] == [True, True]
    assert not any(map(build.are_counts, others))


@pytest.mark.parametrize("algorithm", ["gcc-autofdo", "gcc-pgo"])
def test_what_stays_out_of_a_profile_for_gcc_is_not_given_its_flags(
    algorithm: str, tmp_path: Path
) -> None:
    asked = KernelBuild[HostInput](
        arch="x86-64",
        toolchain="gcc",
        config=(),
        options=(),
        source=HostInput("/tree"),
        uses=(algorithm,),
        exclude=("init/%",),
    )
    toolchain = select("gcc")
    build = Ingredients(asked, (), tmp_path, Use(toolchain, None))
    assert [each.but for each in build.spec().selected] == [("init/%",)]
    made = build.without(OptOut(files=("kernel/b.o",)), tmp_path, Tools(toolchain, run))
    assert [each.but for each in made.selected] == [("init/%", "kernel/b.o")]


def test_a_file_goes_without_counts_of_gcc_for_the_sake_of_one_function(tmp_path: Path) -> None:
    asked = KernelBuild[HostInput](
        arch="x86-64",
        toolchain="gcc",
        config=(),
        options=(),
        source=HostInput("/tree"),
        uses=("gcc-pgo",),
    )
    toolchain = select("gcc")
    build = Ingredients(asked, (), tmp_path, Use(toolchain, None))
    assert not build.spares_functions(tmp_path, Tools(toolchain, run))
    opt_out = OptOut(files=("kernel/b.o",), functions={"init/a.o": ("stop",)})
    (selected,) = build.without(opt_out, tmp_path, Tools(toolchain, run)).selected
    assert selected.but == ("kernel/b.o", "init/a.o")
    assert build.without(opt_out, tmp_path, Tools(toolchain, run)).profiles == {
        "kernel.gcda.tar": tmp_path / "kernel.gcda.tar"
    }


@pytest.mark.parametrize(
    ("of", "laid"),
    [
        ({"uses": ("autofdo",)}, True),
        ({"instrumented": Instrumented[Path](algorithm="pgo")}, True),
        ({}, False),  # a plain kernel is the user's
    ],
)
def test_the_overlays_of_an_architecture_are_for_the_kernels_of_algorithms(
    tmp_path: Path, of: dict[str, Any], laid: bool
) -> None:
    def overlays(arch: str) -> tuple[str, ...]:
        asked = KernelBuild[Path](
            arch=arch, toolchain=COMPILER, config=(), options=(), source=tmp_path, **of
        )
        return Ingredients(asked, (), tmp_path, Use(Clang(SUFFIX), None)).spec().overlays

    own = {"arm64": "resched-apart", "x86-64": "entry-apart"}
    for arch, name in own.items():
        assert {each for each in own.values() if each in overlays(arch)} == (
            {name} if laid else set()
        )
        assert ({"migration-apart", "rcu-apart"} <= {*overlays(arch)}) is laid


def test_without_the_flags_make_stops_instead_of_building_a_plain_kernel(
    room: Room, tools: Path
) -> None:
    with pytest.raises(WorkError, match=r"mepof/flags\.mk"):
        commands(room, packaged(room, "pgo"), "mepof/flags.mk")


def test_options_and_lines_of_samples_are_part_of_it(room: Room, tools: Path) -> None:
    made = packaged(room, "autofdo", options=["O3", "ThinLTO"])
    assert "CONFIG_LTO_CLANG_THIN=y\n" in (made / "mepof.config").read_text()
    flags = (made / "mepof/flags.mk").read_text()
    assert "--lto-sample-profile=$(srctree)/mepof/kernel.afdo" in flags
    assert "strip-dirname" not in flags
    readme = (made / "README.md").read_text()
    assert "# Linux 6.12.7, autofdo\n" in readme
    assert "`make O=…`" in readme


@pytest.mark.parametrize(
    ("algorithm", "config", "where"),
    [
        ("pgo", "CONFIG_NET=y\n", "objects may be anywhere"),
        ("pgo", "CONFIG_LTO_CLANG_FULL=y\n", "objects may be anywhere"),
        ("pgo", "CONFIG_LTO_CLANG_THIN=y\n", "objects belong in the tree"),
        ("autofdo", "CONFIG_LTO_CLANG_THIN=y\n", "objects may be anywhere"),
    ],
)
def test_where_thinlto_finds_the_static_functions_that_were_counted(
    room: Room, tools: Path, algorithm: str, config: str, where: str
) -> None:
    readme = (packaged(room, algorithm, config=config) / "README.md").read_text()
    assert f"- **Directory**: {where}" in readme


def test_a_kernel_that_is_rewritten_is_refused_before_a_build() -> None:
    inputs = {"kernel": HostInput("/b"), "built.source": HostInput("/tree")}
    params = params_of("bolt")
    cast(dict[str, Json], params["built"])["config"] = []
    with pytest.raises(InputError, match="bolt rewrites the finished kernel") as caught:
        BODY.check(Step("opt/package", BODY.kind, params, inputs))
    assert caught.value.remedy == (
        "package it in another format than source, or use another algorithm"
    )
