"""The commands, variables and flags that a kernel is built with, word for word.

A kernel is reproducible, so what changes one of these changes every image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX, VERSION, tools_alone, write_tree

from mepof import arch
from mepof.kernel import kbuild, make_command, overlay
from mepof.kernel.build_spec import BuildPaths, BuildSpec, FileFlags
from mepof.process import Completed, run
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

EXCLUDED = " ".join(each.match for each in overlay.exclusions())
# What a shell may have, of kernels that were built by hand, a CI and a hook of git's.
CALLERS = (
    *("ARCH", "SUBARCH", "CROSS_COMPILE", "CROSS_COMPILE_COMPAT", "LLVM", "LLVM_IAS", "DTC_FLAGS"),
    *("HOSTCFLAGS", "HOSTCXXFLAGS", "HOSTLDFLAGS", "HOSTLDLIBS", "HOST_EXTRACFLAGS"),
    *("KAFLAGS", "KCFLAGS", "KCPPFLAGS", "KRUSTFLAGS", "USERCFLAGS", "USERLDFLAGS"),
    *(
        "KBUILD_EXTMOD",
        "KBUILD_OUTPUT",
        "KBUILD_VERBOSE",
        "KBUILD_BUILD_USER",
        "KBUILD_MODPOST_WARN",
    ),
    *("KCONFIG_WERROR", "KCONFIG_WARN_UNKNOWN_SYMBOLS", "KCONFIG_ALLCONFIG", "KCONFIG_AUTOCONFIG"),
    *("BUILD_NUMBER", "KMI_GENERATION", "BRANCH", "CONFIG_KASAN", "INSTALL_MOD_STRIP"),
    *("GIT_DIR", "GNUMAKEFLAGS", "MAKEFILES", "XZ_OPT", "ZSTD_CLEVEL", "GZIP"),
    *("CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "CCC_OVERRIDE_OPTIONS"),
)
# What a build may need of it.
KEPT = ("HOME", "LIBRARY_PATH", "KBUILD_SIGN_PIN", "RUST_LIB_SRC", "TMPDIR")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a toolchain and a tree."""
    for name in CALLERS + KEPT:
        monkeypatch.setenv(name, "callers")
    write_tree(tmp_path / "tree")
    with tools_alone(tmp_path / "tools", monkeypatch):
        yield tmp_path


def test_make_always_gets_the_same_words_and_environment(root: Path) -> None:
    (root / "mini.config").write_text("# base: allnoconfig\nCONFIG_NET=y\n")
    (root / "output").mkdir()
    calls: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def recorded(argv: Sequence[str], env: Mapping[str, str], **options: object) -> Completed:
        calls.append((argv, env))
        return partial(run, log=root / "log")(argv, env=env, **options)  # type: ignore[arg-type]

    kbuild.build(
        BuildSpec(
            arch.get("x86-64"),
            (root / "mini.config",),
            cflags=("-O3", "-fmini"),
            ldflags=("--one", "--two"),
            variables={"CLANG_AUTOFDO_PROFILE": "profile"},
        ),
        Tools(select(f"clang{SUFFIX}"), recorded),
        BuildPaths(
            *(root / name for name in ("tree", "work", "output", "log", "cache")),
        ),
        3,
        lambda done, total, file: None,
    )
    make = [
        *("make", "-C", f"{root}/work/tree", f"O={root}/work/tree/build"),
        *("ARCH=x86_64", "CC=ccache clang-22"),
        *("HOSTCC=$(if $(CONFIG_RUST),,ccache )clang-22", "LLVM=-22", "LLVM_IAS=1"),
        *("LD=ld.lld-22", "AR=llvm-ar-22", "NM=llvm-nm-22", "OBJCOPY=llvm-objcopy-22"),
        *("OBJDUMP=llvm-objdump-22", "READELF=llvm-readelf-22", "STRIP=llvm-strip-22"),
        *("HOSTAR=llvm-ar-22", "HOSTLD=ld.lld-22"),
        "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
        *("KBUILD_BUILD_USER=mepof", "KBUILD_BUILD_HOST=mepof", "KBUILD_BUILD_VERSION=1"),
        *("PAHOLE=not-installed", "RUSTC=not-installed", "BINDGEN=not-installed"),
        "KCFLAGS=-fdebug-compilation-dir=build",
        "KAFLAGS=-fdebug-compilation-dir=build",
        "HOSTCFLAGS=-Icallers -isystemcallers",
        *("MEPOF_CFLAGS=-O3 -fmini", "MEPOF_RUSTFLAGS=", "MEPOF_LDFLAGS=--one --two"),
        *("MEPOF_SELECTED=mepof-selected.mk", "CLANG_AUTOFDO_PROFILE=profile"),
        f"MEPOF_EXCLUDE={EXCLUDED}",
    ]
    content = select(f"clang{SUFFIX}").compiler_content(arch.get("x86-64"))
    environment = {
        **dict.fromkeys(CALLERS),
        "LOCALVERSION": "",
        **{"KCONFIG_CONFIG": ".config", "MAKEFLAGS": "", "MFLAGS": "", "MAKELEVEL": "0"},
        **{"LC_ALL": "C", "CCACHE_DIR": f"{root}/cache/ccache", "CCACHE_BASEDIR": str(root)},
        **{"CCACHE_NOHASHDIR": "1", "CCACHE_DEPEND": "1"},
        "CCACHE_COMPILERCHECK": f"string:{content}",
        "CCACHE_PREFIX": f"{root}/work/mepof-compile",
    }
    configured = environment | {"KCONFIG_ALLCONFIG": f"{root}/work/tree/build/.mepof-config"}
    assert calls == [
        ([*make, "allnoconfig"], configured),
        ([*make, "prepare"], environment),
        ([*make, "-j3", "bzImage"], environment),
    ]


def test_programs_of_the_build_find_the_headers_that_the_caller_names(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As libelf's, where a machine has it elsewhere; empty names and blanks mean none."""
    names = ("tree", "work", "output", "log", "cache")
    spec, paths = BuildSpec(arch.get("x86-64"), ()), BuildPaths(*(root / name for name in names))
    for value, expected in (("/elf:/ssl", ["HOSTCFLAGS=-I/elf -I/ssl"]), (":/a b", [])):
        monkeypatch.setenv("CPATH", value)
        monkeypatch.delenv("C_INCLUDE_PATH", raising=False)
        words = make_command.words(spec, select(f"clang{SUFFIX}"), paths)
        assert [each for each in words if each.startswith("HOSTCFLAGS")] == expected


@pytest.mark.parametrize(
    ("name", "make", "source", "triple"),
    [
        ("x86-64", "x86_64", "x86", "x86_64-linux-gnu"),
        ("arm64", "arm64", "arm64", "aarch64-linux-gnu"),
        ("arm", "arm", "arm", "arm-linux-gnueabi"),
        ("um", "um", "um", "x86_64-linux-gnu"),
    ],
)
def test_kconfig_always_gets_the_same_environment(
    root: Path, name: str, make: str, source: str, triple: str
) -> None:
    spec = BuildSpec(arch.get(name), ())
    assert make_command.kconfig_environment(spec, select(f"clang{SUFFIX}"), "6.12.7") == {
        "ARCH": make,
        "SRCARCH": source,
        "HEADER_ARCH": "x86",
        "KERNELVERSION": "6.12.7",
        "CC": "clang-22",
        "HOSTCC": "clang-22",
        "HOSTCXX": "clang-22",
        "LD": "ld.lld-22",
        "AR": "llvm-ar-22",
        "NM": "llvm-nm-22",
        "OBJCOPY": "llvm-objcopy-22",
        "RUSTC": "rustc",
        "BINDGEN": "bindgen",
        "PAHOLE": "pahole",
        "CC_VERSION_TEXT": f"mini clang version {VERSION} (test)",
        "CLANG_FLAGS": f"--target={triple} -fintegrated-as",
        "RUSTC_VERSION_TEXT": "",
    }


def test_a_kernels_own_ways_to_use_profiles_are_left_off(tmp_path: Path) -> None:
    (tmp_path / "gki.config").write_text("CONFIG_AUTOFDO_CLANG=y\nCONFIG_NET=y\n")
    fragments = BuildSpec(arch.get("arm64"), (tmp_path / "gki.config",)).configuration()
    asked = {setting.symbol: setting.value for setting in fragments.settings}
    assert asked == {"AUTOFDO_CLANG": "n", "PROPELLER_CLANG": "n", "NET": "y"}


def test_objects_do_not_get_flags_that_they_opt_out_of(tmp_path: Path) -> None:
    flags = [
        FileFlags(("fs/a.o", "fs/b.o", "mm/a.o"), ("-fa", "-fb"), but=("fs/%", "mm/b.o")),
        FileFlags(("fs/a.o",), ("-fc",)),
    ]
    text = make_command.selection(flags, select("gcc"))
    shown = "$(info $(call mepof-selected,fs/a.o);$(call mepof-selected,mm/a.o))"
    (tmp_path / "Makefile").write_text(f"{text}{shown}\nall: ;\n")
    said = run(["make", "-s", "-C", tmp_path]).output
    assert [part.split() for part in said.strip().split(";")] == [["-fc"], ["-fa", "-fb"]]
