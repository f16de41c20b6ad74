"""Finding Clang, on machines made of scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mepof import arch
from mepof.algorithm.protocol import ALGORITHMS, Round, Use
from mepof.errors import EnvironmentLack, InputError
from mepof.toolchain import programs, scheduling_models
from mepof.toolchain.clang import Clang
from mepof.toolchain.named import capabilities, check_requirements, select
from mepof.toolchain.probe import look_for, toolchain_tools

TOOLS = ("clang", "ld.lld", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-profdata")
CROSS = "--target=aarch64-linux-gnu"


def forget() -> None:
    for cached in (programs.banner_of, programs.version_of, programs._digest):
        cached.cache_clear()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only directory on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    forget()
    yield tmp_path
    forget()


def install(machine: Path, suffix: str, version: str, *but: str) -> None:
    for name in TOOLS:
        if name not in but:
            path = machine / f"{name}{suffix}"
            path.write_text(f"#!/bin/sh\necho 'Debian {name} version {version} (x)'\n")
            path.chmod(0o755)


def test_clang_is_the_newest_complete_version(machine: Path) -> None:
    install(machine, "-19", "19.1.7")
    install(machine, "-20", "20.1.0")
    install(machine, "-22", "22.1.8", "llvm-profdata")
    install(machine, "", "21.0.0")
    assert select("clang") == Clang("-20")
    assert [c.suffix for c in Clang.installed()] == ["-20", "-19"]
    assert select("clang-19") == Clang("-19")
    assert select("clang-19").version == "19.1.7"


@pytest.mark.parametrize(("version", "found"), [("21.0.1", True), ("13.0.1", False)])
def test_tools_without_a_version_in_their_name_do_if_new_enough(
    machine: Path, version: str, found: bool
) -> None:
    install(machine, "", version)
    if found:
        assert select("clang").make_variables(arch.get("x86-64"))["LLVM"] == "1"
    else:
        with pytest.raises(EnvironmentLack):
            select("clang")


@pytest.mark.parametrize(
    ("native", "compiler"), [("aarch64", "clang-22"), ("x86_64", f"clang-22 {CROSS}")]
)
def test_old_kernels_are_told_every_tool_and_the_target(
    monkeypatch: pytest.MonkeyPatch, native: str, compiler: str
) -> None:
    monkeypatch.setattr(arch, "machine", lambda: native)
    assert Clang("-22").make_variables(arch.get("arm64")) == {
        "LLVM": "-22",
        "LLVM_IAS": "1",
        "CC": compiler,
        "LD": "ld.lld-22",
        "AR": "llvm-ar-22",
        "NM": "llvm-nm-22",
        "OBJCOPY": "llvm-objcopy-22",
        "OBJDUMP": "llvm-objdump-22",
        "READELF": "llvm-readelf-22",
        "STRIP": "llvm-strip-22",
        "HOSTCC": "clang-22",
        "HOSTAR": "llvm-ar-22",
        "HOSTLD": "ld.lld-22",
    }


@pytest.mark.parametrize(
    ("suffix", "models"), [("-22", "-22"), ("-23", "-23"), ("-19", "-22"), ("", "")]
)
def test_models_are_of_a_clang_that_is_new_enough(suffix: str, models: str) -> None:
    assert scheduling_models.suffix_for(suffix) == models


def test_no_clang_at_all_is_an_error_with_its_remedy(machine: Path) -> None:
    with pytest.raises(EnvironmentLack, match="no Clang of version 14 or newer") as caught:
        select("clang")
    assert caught.value.remedy == "run `make setup`"


def test_a_version_without_a_tool_is_reported_with_what_installs_it(machine: Path) -> None:
    install(machine, "-22", "22.1.8", "ld.lld")
    with pytest.raises(EnvironmentLack, match=r"ld\.lld-22 is not installed") as caught:
        select("clang-22")
    assert caught.value.remedy == "apt-get install clang-22 lld-22 llvm-22"


def test_a_version_may_have_tools_without_it_in_their_names(machine: Path) -> None:
    install(machine, "", "22.1.8")
    assert select("clang-22") == Clang("")
    with pytest.raises(EnvironmentLack, match=r"clang-21 is not installed"):
        select("clang-21")
    install(machine, "-22", "22.1.0")
    assert select("clang-22") == Clang("-22")


def test_a_version_that_is_too_old_is_not_to_be_installed(machine: Path) -> None:
    install(machine, "-13", "13.0.1")
    with pytest.raises(InputError, match="unknown toolchain `clang-13`") as caught:
        select("clang-13")
    assert caught.value.remedy == "known: clang-14 to clang-30"
    with pytest.raises(InputError, match="unknown toolchain `clang-r498229b`") as caught:
        select("clang-r498229b")
    assert "`set toolchain clang:DIRECTORY`" in str(caught.value.remedy)


def test_a_merger_may_say_its_version_only_after_a_command(machine: Path) -> None:
    install(machine, "-19", "19.1.7")
    merger = machine / "llvm-profdata-19"
    merger.write_text('#!/bin/sh\n[ "$1" = merge ] && echo "LLVM version 19.1.7"\n')
    assert select("clang-19").identity()["llvm-profdata"].startswith("LLVM version 19.1.7")
    found = {each.name: each for each in map(look_for, toolchain_tools())}
    assert found[merger.name].state == "ok"


def test_what_clang_can_do_depends_on_its_version(machine: Path) -> None:
    newest = Clang("-22").capabilities
    counts = frozenset(
        {"llvm-instrumentation", "llvm-lto", "llvm-passes", "pruned-files", "section-shuffle"}
    )
    assert Clang("-14").capabilities == Clang("-18").capabilities == counts < newest
    assert Clang("-19").capabilities == newest == frozenset(Clang.description.capabilities)
    install(machine, "", "18.1.8")
    assert Clang("").capabilities == counts
    can = capabilities()
    assert (can["clang"], can["clang-19"], can["clang-18"]) == (newest, newest, counts)


def test_an_algorithm_that_is_newer_than_the_compiler_is_refused_with_the_version_that_it_needs(
    machine: Path,
) -> None:
    needs = {name: ALGORITHMS.get(name).requires for name in ("pgo", "cspgo", "propeller")}
    with pytest.raises(InputError) as caught:
        check_requirements("clang-16", needs)
    assert caught.value.message == "propeller needs clang 19 or later, not 16"
    assert caught.value.remedy == "set toolchain clang-19, or a newer one"
    # Which version these are of is known once they are installed.
    directory = machine / "prebuilt"
    for name in ("clang", f"clang:{directory}"):
        check_requirements(name, needs)
    directory.mkdir()
    for place in (machine, directory):
        install(place, "", "17.0.2")
    for name in ("clang", f"clang:{directory}"):
        with pytest.raises(InputError, match=r"propeller needs clang 19 or later, not 17\.0\.2"):
            check_requirements(name, needs)
        del needs["propeller"]
        check_requirements(name, needs)
        needs["propeller"] = ALGORITHMS.get("propeller").requires


@pytest.mark.parametrize(("suffix", "is_taught"), [("-22", False), ("-23", True)])
def test_objtool_learns_what_newer_compilers_make_of_split_functions(
    suffix: str, is_taught: bool
) -> None:
    used = ALGORITHMS.get("autofdo").use(Path("profile"), Use(Clang(suffix), None))
    assert ("objtool-jumps" in used.overlays) is is_taught


@pytest.mark.parametrize(("suffix", "overlays"), [("-14", ["pgo-former-names"]), ("-19", [])])
def test_kernels_that_older_versions_count_are_told_former_names(
    suffix: str, overlays: list[str]
) -> None:
    for name in ("pgo", "cspgo"):
        for round in (Round(1), Round(2, Path("earlier"))):
            added = ALGORITHMS.get(name).instrument(Clang(suffix), round).overlays
            assert [each for each in added if each.startswith("pgo")] == ["pgo", *overlays]


def test_the_layout_of_profiles_is_in_a_package_that_every_version_has(machine: Path) -> None:
    (header,) = Clang("-15").files()
    assert (header.path, header.package) == (None, "libclang-common-15-dev")


def test_a_tool_that_reports_no_version_is_an_error(machine: Path) -> None:
    install(machine, "", "unknown")
    with pytest.raises(EnvironmentLack, match="does not report its version"):
        select("clang")


def test_a_directory_has_a_toolchain_of_its_own(machine: Path, tmp_path: Path) -> None:
    install(machine, "-22", "22.1.8")
    prebuilt = tmp_path / "clang-r563880"
    (prebuilt / "bin").mkdir(parents=True)
    install(prebuilt / "bin", "", "21.0.0")
    for named in (prebuilt, prebuilt / "bin"):
        found = select(f"clang:{named}")
        assert (found.name, found.version) == (f"clang:{prebuilt}/bin", "21.0.0")
    assert select("clang").packages() == ("clang-22", "lld-22", "llvm-22")
    assert found.packages() == ()
    variables = found.make_variables(arch.get("x86-64"))
    assert variables["LLVM"] == f"{prebuilt}/bin/"
    assert variables["LD"] == f"{prebuilt}/bin/ld.lld"
    assert variables["STRIP"] == f"{prebuilt}/bin/llvm-strip"


def test_nothing_is_added_to_the_tools_of_a_directory(machine: Path, tmp_path: Path) -> None:
    install(machine, "", "22.1.8")
    prebuilt = tmp_path / "prebuilt"
    prebuilt.mkdir()
    install(prebuilt, "", "21.0.0", "llvm-ar", "llvm-profdata")
    with pytest.raises(EnvironmentLack, match=r"prebuilt does not have llvm-ar, llvm-profdata"):
        select(f"clang:{prebuilt}")
    install(prebuilt, "", "13.0.1")
    with pytest.raises(EnvironmentLack, match=r"clang is of version 13\.0\.1"):
        select(f"clang:{prebuilt}")


@pytest.mark.parametrize("name", ["clang", "clang-22"])
def test_tools_of_two_versions_do_not_work_together(machine: Path, name: str) -> None:
    install(machine, "", "22.1.0")
    (machine / "llvm-profdata").unlink()
    (machine / "old").mkdir()
    install(machine / "old", "", "14.0.6")
    (machine / "llvm-profdata").symlink_to(machine / "old" / "llvm-profdata")
    with pytest.raises(EnvironmentLack, match=r"llvm-profdata is of version 14\.0") as caught:
        select(name)
    assert caught.value.remedy is not None and "clang:DIRECTORY" in caught.value.remedy


def test_a_compiler_that_is_rebuilt_is_another_one(machine: Path) -> None:
    install(machine, "-22", "22.1.8")
    before = select("clang-22").identity()
    with (machine / "clang-22").open("a") as file:
        file.write("# with another pass\n")
    forget()
    after = select("clang-22").identity()
    assert before["clang"] != after["clang"] and before["ld.lld"] == after["ld.lld"]


def test_a_compiler_of_the_system_is_its_version() -> None:
    forget()
    assert re.fullmatch(r"[^,]*clang version [^,]*", select("clang").identity()["clang"])
