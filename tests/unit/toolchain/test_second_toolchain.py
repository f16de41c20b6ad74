"""A toolchain beside Clang, of which nothing but its own file knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib import invalidate_caches
from pathlib import Path

import pytest
from writers.mini_kernel import VERSION, write_tools, write_tree
from writers.second_toolchain import Mcc

from mepof import arch
from mepof.algorithm.protocol import ALGORITHMS, Use
from mepof.errors import EnvironmentLack, InputError
from mepof.executor.programs import plan_of
from mepof.g4 import Source, check, parse
from mepof.g4.vocabulary import vocabulary
from mepof.kernel import kbuild
from mepof.kernel.build_spec import PROFILES, BuildPaths, BuildSpec
from mepof.kernel.objects import functions_in
from mepof.process import run
from mepof.registry import _names
from mepof.toolchain import named, programs
from mepof.toolchain.named import check_requirements, select
from mepof.toolchain.probe import toolchain_tools
from mepof.toolchain.protocol import Tools

NAME = "mcc-22"
ENTRY_POINTS = "[mepof.toolchain]\nmcc = writers.second_toolchain:TOOLCHAIN\n"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed distribution that adds the toolchain, and its programs."""
    metadata = tmp_path / "site" / "mepof_mcc-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mepof-mcc\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    invalidate_caches()
    described = Mcc.description.tools.items()
    commands: dict[str, str] = {role: f"{tool.command}-22" for role, tool in described}
    spelling = {"-fprofile-use": "--counts", "-fno-profile-use": "--no-counts"}
    directory = write_tools(tmp_path / "tools", commands, spelling)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    for forget in (_names, programs.banner_of, programs.version_of):
        forget.cache_clear()
    yield directory
    for forget in (_names, programs.banner_of, programs.version_of):
        forget.cache_clear()


def test_programs_can_name_it_and_each_of_its_versions(tools: Path) -> None:
    assert {"mcc", "mcc-22", "mcc-2", "clang", "clang-22"} <= set(named.names())
    assert vocabulary().toolchains == named.names()
    for name, sound in (("mcc", True), ("mcc-22", True), ("mcc-1", False), ("mccc", False)):
        program = parse(Source("p.g4", f"set toolchain {name}\n")).program
        assert (check(program, vocabulary()) == ()) == sound, name


def test_it_is_found_by_its_name(tools: Path) -> None:
    assert select(NAME) == Mcc("-22")
    assert select("mcc").version == VERSION
    with pytest.raises(EnvironmentLack, match="mcc-21 is not installed") as caught:
        select("mcc-21")
    assert caught.value.remedy == "apt-get install mcc-21 mcc-tools-21"
    with pytest.raises(InputError, match="unknown toolchain `mc`"):
        select("mc")


def test_a_kernel_is_built_by_its_tools_with_its_flags(tools: Path, tmp_path: Path) -> None:
    toolchain, pgo = select(NAME), ALGORITHMS.get("pgo")
    (tmp_path / "kernel.profdata").write_text("counts")
    used = pgo.use(tmp_path, Use(toolchain, True))
    spec = BuildSpec(arch.get("x86-64"), (), selected=used.selected, profiles=used.profiles)
    (tmp_path / "mini.config").write_text("# base: allnoconfig\nCONFIG_NET=y\n")
    paths = BuildPaths(
        write_tree(tmp_path / "tree"),
        *(tmp_path / name for name in ("work", "output", "log", "cache")),
    )
    paths.output.mkdir()
    calls: list[str] = []

    def recorded(argv: list[str], **options: object) -> object:
        calls.append(" ".join(argv))
        return partial(run, log=paths.log)(argv, **options)  # type: ignore[arg-type]

    kbuild.build(
        replace(spec, fragments=(tmp_path / "mini.config",)),
        Tools(toolchain, recorded),  # type: ignore[arg-type]
        paths,
        1,
        lambda done, total, file: None,
    )
    command = (paths.work / "tree/build/init/a.o").read_text().partition("\n")[0]
    assert command.startswith(" --debug-from build")
    assert "--counts=../mepof-profiles/" in command
    assert functions_in(paths.output)["init/a.o"] == ["start", "stop"]
    assert json.loads((paths.output / "build.json").read_text())["origin"]["compiler"] == VERSION
    assert all("MCC=-22" in call and "CROSS_COMPILE=x86_64-linux-gnu-" in call for call in calls)
    assert all("CC=ccache mcc-22" in call for call in calls)
    assert not any(word in " ".join(calls).lower() for word in ("clang", "llvm"))


def test_profiles_are_made_by_its_tools(tools: Path, tmp_path: Path) -> None:
    pgo, mine = ALGORITHMS.get("pgo"), Tools(select(NAME), partial(run, log=tmp_path / "log"))
    weighted = [(tmp_path / "a", Fraction(2)), (tmp_path / "b", Fraction(1))]
    assert pgo.merge(weighted, tmp_path, mine).executed == 500
    merged = (tmp_path / "kernel.profdata").read_text()
    assert merged.startswith(f"2*{tmp_path}/a/kernel.profdata 1*{tmp_path}/b/kernel.profdata")
    spared = pgo.spare(tmp_path, ["start"], tmp_path / "less", mine)
    assert spared is not None
    assert (tmp_path / "less").read_text().startswith("--drop=start ")
    assert spared.cflags == (f"--counts={PROFILES}/less",)


def test_an_algorithm_that_it_cannot_serve_is_refused(tools: Path) -> None:
    needs = {name: ALGORITHMS.get(name).requires for name in ("pgo", "autofdo", "propeller")}
    check_requirements(NAME, {"pgo": needs["pgo"]})
    for name in ("autofdo", "propeller"):
        with pytest.raises(InputError, match=f"with {name}: it needs clang ") as caught:
            check_requirements(NAME, {"pgo": needs["pgo"], name: needs[name]})
        assert caught.value.remedy == "set toolchain clang"
    # Where nobody asked first, nothing is built either.
    with pytest.raises(InputError, match="mcc-22 has no flags for `"):
        ALGORITHMS.get("autofdo").use(Path("/p"), Use(select(NAME), True))


def refused(program: str) -> list[tuple[str, str | None]]:
    """What is refused of a program."""
    source = Source("p.g4", program)
    found = check(parse(source).program, vocabulary())
    return [(each.message, each.help) for each in found]


def test_a_program_that_needs_another_toolchain_is_refused_before_anything_is_built(
    tools: Path,
) -> None:
    opt = "opt debian:linux-source-6.12 {} rand kbench {}.\n"
    assert refused(opt.format("autofdo+propeller", "ThinLTO")) == []
    assert refused("set toolchain mcc.\n" + opt.format("pgo", "O3")) == []
    assert refused("set toolchain mcc-22.\n" + opt.format("pgo+propeller", "O3;ThinLTO")) == [
        (
            "`propeller` needs clang, and the toolchain is `mcc-22`",
            "write `set toolchain clang` before it",
        ),
        (
            "`ThinLTO` needs clang, and the toolchain is `mcc-22`",
            "write `set toolchain clang` before it",
        ),
    ]
    build = "build debian:linux-source-6.12 {}.\n"
    assert refused("set toolchain mcc-22.\n" + build.format("O3")) == []
    assert refused("set toolchain mcc-22.\n" + build.format("O3;ThinLTO")) == [
        (
            "`ThinLTO` needs clang, and the toolchain is `mcc-22`",
            "write `set toolchain clang` before it",
        ),
    ]
    later = "set toolchain mcc-22.\nset toolchain clang.\n"
    assert refused(later + opt.format("pgo+propeller", "ThinLTO")) == []


def test_a_profile_from_outside_that_it_cannot_use_is_refused_before_anything_is_built(
    tools: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.afdo").write_text("main:1:1\n 0: 1\n")
    text = f"set toolchain mcc.\nrecomp debian:linux-source-6.12 {tmp_path}/x.afdo.\n"
    with pytest.raises(InputError, match="mcc cannot be used with autofdo: it needs clang "):
        plan_of(Source("p.g4", text))


def test_doctor_looks_for_its_programs_but_does_not_need_them(tools: Path) -> None:
    found = {tool.command: tool for tool in toolchain_tools()}
    assert not found["mcc-22"].required
    assert found["mcc-symbols-22"].remedy == "apt-get install mcc-tools-22"
    assert any(tool.required for tool in found.values())
