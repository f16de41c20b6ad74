"""GCC, on machines made of scripts, and its flags, word for word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mepof import arch
from mepof.errors import EnvironmentLack, InputError
from mepof.process import look_again, run
from mepof.toolchain import programs
from mepof.toolchain.gcc import TOOLCHAIN, Gcc
from mepof.toolchain.named import check_files, select
from mepof.toolchain.protocol import Meaning

BINUTILS = ("ld.bfd", "ar", "nm", "objcopy")
GCC = Gcc("-12")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only directory on PATH, with binutils."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(arch, "machine", lambda: "x86_64")
    programs.banner_of.cache_clear()
    for name in BINUTILS:
        script(tmp_path / name, f"GNU {name} (GNU Binutils) 2.40\nor a later version")
    yield tmp_path
    programs.banner_of.cache_clear()


def script(path: Path, prints: str) -> None:
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)


def install(machine: Path, version: str, prefix: str = "") -> None:
    suffix = f"-{version.split('.')[0]}"
    script(machine / f"{prefix}gcc{suffix}", f"gcc{suffix} (Debian {version}-14) {version}")


def test_gcc_is_the_newest_version_that_is_installed(machine: Path) -> None:
    for version in ("10.2.1", "11.3.0", "14.1.0"):
        install(machine, version)
    assert [each.suffix for each in Gcc.installed()] == ["-14", "-11"]
    assert select("gcc") == Gcc("-14")
    install(machine, "12.2.0")
    assert select("gcc-12").version == "12.2.0"
    identity = {name: line.rpartition(", ")[0] for name, line in GCC.identity().items()}
    assert identity == {
        "gcc": "gcc-12 (Debian 12.2.0-14) 12.2.0",
        "ld.bfd": "GNU ld.bfd (GNU Binutils) 2.40",
    }


def test_the_version_stands_behind_the_name_of_the_package(machine: Path) -> None:
    script(machine / "gcc", "gcc (GCC) 13.2.1 20230801 (Red Hat 13.2.1-1)")
    assert select("gcc").version == "13.2.1"
    script(machine / "gcc-15", "gcc-15 without a number 15.1")
    with pytest.raises(EnvironmentLack, match="gcc-15 does not report its version"):
        _ = select("gcc-15").version


def test_a_tool_that_does_not_run_is_an_error_of_the_machine(machine: Path) -> None:
    script(machine / "gcc", "gcc (GCC) 13.3.0")
    lacking = machine / "ld.bfd"
    lacking.write_text("#!/bin/sh\necho 'libbfd.so: cannot open shared object file'\nexit 127\n")
    with pytest.raises(EnvironmentLack, match=r"libbfd\.so: cannot open") as caught:
        select(f"gcc:{machine}")
    assert caught.value.remedy is not None and f"ldd {lacking}" in caught.value.remedy


def test_a_version_that_does_not_run_is_not_to_be_installed_again(machine: Path) -> None:
    lacking = machine / "gcc-13"
    lacking.write_text("#!/bin/sh\necho 'libmpc.so: cannot open shared object file'\nexit 127\n")
    lacking.chmod(0o755)
    with pytest.raises(EnvironmentLack, match=r"libmpc\.so: cannot open") as caught:
        select("gcc-13")
    assert caught.value.remedy == (
        f"install what it needs, such as shared libraries: see `ldd {lacking}`"
    )


def test_a_missing_version_is_named_with_its_packages(machine: Path) -> None:
    with pytest.raises(EnvironmentLack, match="gcc-13 is not installed") as caught:
        select("gcc-13")
    assert caught.value.remedy == "apt-get install gcc-13 binutils"


def test_each_architecture_has_tools_of_its_own(machine: Path) -> None:
    arm64 = arch.get("arm64")
    variables = GCC.make_variables(arm64)
    assert variables["CROSS_COMPILE"] == "aarch64-linux-gnu-"
    assert variables["CC"] == "aarch64-linux-gnu-gcc-12"
    assert variables["LD"] == "aarch64-linux-gnu-ld.bfd"
    assert variables["HOSTCC"] == "gcc-12"
    with pytest.raises(
        EnvironmentLack, match="aarch64-linux-gnu-gcc-12 is not installed"
    ) as caught:
        GCC.kconfig_environment(arm64)
    assert caught.value.remedy == (
        "apt-get install gcc-12-aarch64-linux-gnu binutils-aarch64-linux-gnu"
    )
    install(machine, "12.2.0", "aarch64-linux-gnu-")
    environment = GCC.kconfig_environment(arm64)
    assert environment["CC_VERSION_TEXT"] == "gcc-12 (Debian 12.2.0-14) 12.2.0"
    assert environment["CLANG_FLAGS"] == ""


def test_the_identity_of_a_cross_build_is_that_of_its_own_tools(machine: Path) -> None:
    arm64, cross = arch.get("arm64"), "aarch64-linux-gnu-"
    install(machine, "12.2.0")
    with pytest.raises(EnvironmentLack, match="aarch64-linux-gnu-gcc-12 is not inst") as caught:
        GCC.identity(arm64)
    assert caught.value.remedy == (
        "apt-get install gcc-12-aarch64-linux-gnu binutils-aarch64-linux-gnu"
    )
    install(machine, "12.2.0", cross)
    script(machine / f"{cross}ld.bfd", "GNU ld (GNU Binutils for Debian) 2.40")
    plain, before = GCC.identity(), GCC.identity(arm64)
    assert GCC.identity(arch.get("x86-64")) == plain
    install(machine, "12.3.0", cross)
    programs.banner_of.cache_clear()
    programs._digest.cache_clear()
    after = GCC.identity(arm64)
    assert after["gcc"].startswith("gcc-12 (Debian 12.3.0-14) 12.3.0")
    assert after["gcc"] != before["gcc"] and after["ld.bfd"] == before["ld.bfd"]
    assert GCC.identity() == plain


FLAGS: dict[Meaning, str] = {
    "debug-directory": "-fdebug-prefix-map=$(CURDIR)=D",
    "function-sections": "-ffunction-sections",
    "count": "-fprofile-generate=. -fprofile-prefix-path=$(CURDIR) -fno-tree-loop-im "
    "-Wno-maybe-uninitialized $(if $(CONFIG_X86),,-fprofile-update=atomic) "
    "$(if $(CONFIG_ARM64),-mno-outline-atomics)",
    "drop-counting": "-fno-profile-generate -fno-profile-arcs -fno-profile-values",
    "use-counts": "-fprofile-use --param=inline-heuristics-hint-percent=2400",
    "quiet-counts": "-Wno-missing-profile -Wno-coverage-mismatch",
    "keep-untrained": "-fprofile-partial-training",
}


@pytest.mark.parametrize("meaning", FLAGS)
def test_a_meaning_always_has_the_same_words(meaning: Meaning) -> None:
    flags = GCC.flags(meaning, directory="D", targets="T", profile="P")
    assert " ".join(flags) == FLAGS[meaning]


def test_functions_cannot_be_left_out_of_a_profile(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gcc-12 cannot leave single functions out"):
        GCC.drop_functions("counts", ["f"], tmp_path, tmp_path, run)


def test_counting_needs_a_compiler_for_plug_ins_and_the_header_of_the_same_compiler(
    machine: Path,
) -> None:
    install(machine, "12.2.0")
    x86, required = arch.get("x86-64"), {"gcc-instrumentation"}
    with pytest.raises(EnvironmentLack, match=r"without gcc-plugin.h and g\+\+ ") as caught:
        check_files(GCC, x86, required)
    assert caught.value.remedy == "apt-get install gcc-12-plugin-dev g++"
    check_files(GCC, x86, set())

    script(machine / "gcc-12", str(machine / "plugin"))
    script(machine / "g++", "12.2.0")
    header = machine / "plugin/include/gcc-plugin.h"
    header.parent.mkdir(parents=True)
    header.touch()
    check_files(GCC, x86, required)
    assert {file.path for file in TOOLCHAIN.files()} == {header, machine / "g++"}

    with pytest.raises(EnvironmentLack, match=r"arm64 without gcc-plugin.h ") as caught:
        check_files(GCC, arch.get("arm64"), required)
    assert caught.value.remedy == "apt-get install gcc-12-plugin-dev-aarch64-linux-gnu"


def test_this_machines_own_architecture_needs_no_cross_tools(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm64 = arch.get("arm64")
    monkeypatch.setattr(arch, "machine", lambda: "aarch64")
    assert GCC.make_variables(arm64)["CROSS_COMPILE"] == ""
    assert GCC.tool("linker", arm64) == "ld.bfd"
    assert GCC.tool("linker", arch.get("x86-64")) == "x86_64-linux-gnu-ld.bfd"


def test_a_directory_as_packages_are_unpacked_to(tmp_path: Path) -> None:
    """Debian's binutils have a link without the machine's name in another package."""
    for name in ("gcc", *(f"x86_64-linux-gnu-{name}" for name in BINUTILS)):
        script(tmp_path / name, f"{name} (Debian 16.2.0-4) 16.2.0")
    variables = select(f"gcc:{tmp_path}").make_variables(arch.get("x86-64"))
    assert variables["CROSS_COMPILE"] == f"{tmp_path}/x86_64-linux-gnu-"
    assert variables["LD"] == f"{tmp_path}/x86_64-linux-gnu-ld.bfd"
    assert variables["CC"] == variables["HOSTCC"] == f"{tmp_path}/gcc"


def test_a_directory_with_a_cross_compiler(machine: Path, tmp_path: Path) -> None:
    install(machine, "12.2.0")
    script(machine / "gcc", "gcc (Debian 12.2.0-14) 12.2.0")
    inside = tmp_path / "arm-gnu-toolchain" / "bin"
    inside.mkdir(parents=True)
    prefix = "aarch64-none-linux-gnu-"
    for name in BINUTILS:
        script(inside / f"{prefix}{name}", f"GNU {name} (Arm GNU Toolchain) 2.41")
    script(inside / f"{prefix}gcc", "aarch64-none-linux-gnu-gcc (Arm GNU Toolchain 13.3) 13.3.1")
    found = select(f"gcc:{inside.parent}")
    variables = found.make_variables(arch.get("arm64"))
    assert found.version == "13.3.1" and "13.3.1, " in found.identity()["gcc"]
    assert variables["CROSS_COMPILE"] == f"{inside}/{prefix}"
    assert variables["CC"] == f"{inside}/{prefix}gcc"
    assert variables["LD"] == f"{inside}/{prefix}ld.bfd"
    assert variables["HOSTCC"] == "gcc"


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("arm", "arm-none-eabi-"),
        ("arm", "armv7a-unknown-linux-gnueabihf-"),
        ("arm64", "aarch64-none-elf-"),
        ("arm64", "aarch64-elf-"),
    ],
)
def test_a_compiler_for_machines_without_a_system_compiles_kernels(
    machine: Path, tmp_path: Path, name: str, prefix: str
) -> None:
    target, inside = arch.get(name), tmp_path / "bare"
    inside.mkdir()
    script(machine / "gcc", "gcc (Debian 12.2.0-14) 12.2.0")
    for command in (*BINUTILS, "gcc-nm", "gcc-ar"):
        script(inside / f"{prefix}{command}", f"GNU {command} (Arm GNU Toolchain) 2.41")
    script(inside / f"{prefix}gcc", f"{prefix}gcc (Arm GNU Toolchain) 13.3.1 20240614")
    found = select(f"gcc:{inside}")
    assert found.tool("compiler", target) == f"{inside}/{prefix}gcc"
    assert found.tool("nm", target) == f"{inside}/{prefix}nm"
    assert found.make_variables(target)["CROSS_COMPILE"] == f"{inside}/{prefix}"
    other = arch.get("arm64" if name == "arm" else "arm")
    with pytest.raises(EnvironmentLack, match=f"no compiler for {other.name}"):
        found.tool("compiler", other)


def test_a_compiler_for_the_system_comes_before_one_without(tmp_path: Path) -> None:
    """Also of what a merged directory has for both."""
    for kind in ("eabi", "linux-gnueabihf"):
        script(tmp_path / f"arm-none-{kind}-gcc", "gcc (Arm GNU Toolchain) 13.3.1")
    assert select(f"gcc:{tmp_path}").tool("compiler", arch.get("arm")).endswith("gnueabihf-gcc")


def test_a_compiler_of_programs_for_windows_is_none_for_kernels(tmp_path: Path) -> None:
    script(tmp_path / "x86_64-w64-mingw32-gcc", "gcc (GCC) 13.3.0")
    with pytest.raises(EnvironmentLack, match="does not have gcc"):
        select(f"gcc:{tmp_path}")


def test_the_version_is_that_of_the_compiler_for_an_architecture(machine: Path) -> None:
    script(machine / "gcc", "gcc (Debian 14.2.0-8) 14.2.0")
    script(machine / "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-gcc (Debian 12.2.0-14) 12.2.0")
    found = select("gcc")
    assert (found.version, found.version_for(arch.get("arm64"))) == ("14.2.0", "12.2.0")
    assert found.version_for(arch.get("x86-64")) == "14.2.0"
    with pytest.raises(EnvironmentLack, match="arm-linux-gnueabi-gcc is not installed"):
        found.version_for(arch.get("arm"))


def test_all_that_ones_own_compiler_starts_is_part_of_the_identity(
    machine: Path, tmp_path: Path
) -> None:
    arm64, inside = arch.get("arm64"), tmp_path / "own"
    inside.mkdir()
    prefix = inside / "aarch64-none-linux-gnu-"
    for name in BINUTILS:
        script(Path(f"{prefix}{name}"), f"GNU {name} (Arm GNU Toolchain) 2.41")
    for name in ("cc1", "as"):
        script(inside / name, name)
    driver = Path(f"{prefix}gcc")
    says = f"echo '{driver.name} (Arm) 13.3.1'"
    driver.write_text(f"#!/bin/sh\ncase $1 in -p*) echo {inside}/${{1##*=}};; *) {says};; esac\n")
    driver.chmod(0o755)
    script(machine / "gcc", "gcc (Debian 12.2.0-14) 12.2.0")
    seen = []
    for part in ("", "cc1", "as", f"{prefix.name}ld.bfd"):
        if part:
            with (inside / part).open("a") as file:
                file.write("# rebuilt\n")
        look_again()
        seen.append(tuple(sorted(select(f"gcc:{inside}").identity(arm64).items())))
    assert len({*seen}) == 4
    assert "GNU ld.bfd (Arm GNU Toolchain) 2.41" in str(seen[0])


def test_a_directory_with_nothing_but_a_compiler(machine: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "gcc-14"
    (prefix / "bin").mkdir(parents=True)
    script(prefix / "bin" / "gcc", "gcc (GCC) 14.2.0")
    variables = select(f"gcc:{prefix}").make_variables(arch.get("x86-64"))
    assert variables["CC"] == variables["HOSTCC"] == f"{prefix}/bin/gcc"
    assert (variables["CROSS_COMPILE"], variables["LD"]) == ("", "ld.bfd")
    with pytest.raises(EnvironmentLack, match="nothing does not exist") as caught:
        select(f"gcc:{machine / 'nothing'}")
    assert caught.value.remedy is None


def test_a_directory_does_not_lend_its_name_to_the_compiler_of_the_system(
    machine: Path, tmp_path: Path
) -> None:
    install(machine, "12.2.0")
    script(machine / "gcc", "gcc (Debian 12.2.0-14) 12.2.0")
    inside = tmp_path / "host" / "bin"
    inside.mkdir(parents=True)
    script(inside / "arm-buildroot-linux-gnueabihf-gcc", "gcc (Buildroot 2025.02) 13.3.0")
    found = select(f"gcc:{inside}")
    assert found.tool("compiler", arch.get("arm")).startswith(str(inside))
    for other in ("arm64", "x86-64"):
        with pytest.raises(EnvironmentLack, match=f"no compiler for {other}") as caught:
            found.tool("compiler", arch.get(other))
        assert "it has arm-buildroot-linux-gnueabihf-gcc" in str(caught.value.remedy)
    assert found.tool("compiler") == "gcc"


@pytest.mark.parametrize(
    ("below", "name"),
    [
        ("sysroots/x86_64-pokysdk-linux/usr/bin/aarch64-poky-linux", "aarch64-poky-linux-gcc"),
        ("host/bin", "arm-buildroot-linux-gnueabihf-gcc"),
    ],
)
def test_the_directory_of_an_sdk_is_not_that_of_its_programs(
    tmp_path: Path, below: str, name: str
) -> None:
    (tmp_path / below).mkdir(parents=True)
    script(tmp_path / below / name, f"{name} (GCC) 13.3.0")
    with pytest.raises(EnvironmentLack, match="does not have gcc") as caught:
        select(f"gcc:{tmp_path}")
    assert caught.value.remedy == f"name {tmp_path / below}"


def test_a_toolchain_for_several_architectures_has_a_directory_for_each(tmp_path: Path) -> None:
    # As kernel.org has them.
    for name in ("aarch64-linux", "x86_64-linux"):
        inside = tmp_path / name / "bin"
        inside.mkdir(parents=True)
        script(inside / f"{name}-gcc", f"{name}-gcc (GCC) 13.2.0")
    with pytest.raises(EnvironmentLack, match="does not have gcc") as caught:
        select(f"gcc:{tmp_path}")
    x86, arm = (tmp_path / name / "bin" for name in ("x86_64-linux", "aarch64-linux"))
    assert caught.value.remedy == f"name {x86} or {arm}"
    with pytest.raises(EnvironmentLack, match="aarch64-linux- does not exist") as caught:
        select(f"gcc:{arm}/aarch64-linux-")
    assert caught.value.remedy == f"set toolchain gcc:{arm}"


def test_a_machine_without_a_compiler_cannot_use_one_for_others(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "bin"
    inside.mkdir()
    script(inside / "aarch64-none-linux-gnu-gcc", "gcc (Arm GNU Toolchain) 13.3.1")
    monkeypatch.setenv("PATH", str(machine))
    with pytest.raises(EnvironmentLack, match="gcc is not installed, which compiles") as caught:
        select(f"gcc:{tmp_path}")
    assert f"{inside} has none for this machine" in caught.value.message
    assert caught.value.remedy == "apt-get install gcc binutils"


def test_a_compiler_with_its_version_in_its_name_is_to_be_linked(tmp_path: Path) -> None:
    install(tmp_path, "14.2.0")
    with pytest.raises(EnvironmentLack, match="does not have gcc") as caught:
        select(f"gcc:{tmp_path}")
    assert "link gcc to gcc-14 there" in str(caught.value.remedy)


def test_a_toolchain_is_a_directory_that_kbuild_can_use(tmp_path: Path) -> None:
    script(tmp_path / "gcc", "gcc (GCC) 14.2.0")
    with pytest.raises(InputError, match="gcc is a file") as caught:
        select(f"gcc:{tmp_path / 'gcc'}")
    assert f"`set toolchain gcc:{tmp_path}`" in str(caught.value.remedy)
    (tmp_path / "my tools").mkdir()
    script(tmp_path / "my tools" / "gcc", "gcc (GCC) 14.2.0")
    with pytest.raises(InputError, match="has a blank"):
        select(f"gcc:{tmp_path / 'my tools'}")


def test_who_packaged_a_compiler_may_have_a_version_too(tmp_path: Path) -> None:
    for by in ("Buildroot 2025.02", "crosstool-NG 1.26.0.120_d5ee30a"):
        script(tmp_path / "gcc", f"gcc ({by}) 13.3.0")
        look_again()
        assert select(f"gcc:{tmp_path}").version == "13.3.0"
