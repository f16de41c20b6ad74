"""Clang's flags, word for word: with others, kernels and profiles would not be the same."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from mepof.toolchain.clang import Clang
from mepof.toolchain.protocol import Meaning, Role

CLANG = Clang("-22")
FLAGS: dict[Meaning, str] = {
    "debug-directory": "-fdebug-compilation-dir=D",
    "compile-preprocessed": "-Qunused-arguments -Wno-error -fno-caret-diagnostics",
    "function-sections": "-ffunction-sections",
    "whole-functions": "-fno-split-machine-functions",
    "count": "-Xclang -fprofile-instrument=llvm -mllvm -vp-counters-per-site=T",
    "count-in-context": "-fcs-profile-generate -mllvm -vp-counters-per-site=T",
    "use-counts": "-fprofile-use=P",
    "quiet-counts": "-Wno-profile-instr-unprofiled -Wno-profile-instr-out-of-date "
    "-Wno-backend-plugin",
    "tell-discarded-counts": "-Wno-profile-instr-unprofiled -Wno-profile-instr-out-of-date "
    "-Wno-error=backend-plugin",
    "drop-counting": "-Xclang -fprofile-instrument=none",
    "drop-counts": "-fno-profile-use",
    "counts-from-root": "-mllvm -static-func-strip-dirname-prefix=L",
    "keep-lines": "-fno-optimize-sibling-calls -mllvm -enable-tail-merge=false "
    "-mllvm -disable-tail-duplicate -mllvm -disable-early-taildup -mllvm -tail-dup-placement=0",
    "discriminators": "-fdebug-info-for-profiling",
    "profiling-lines": "$(if $(CONFIG_DEBUG_INFO),,-gmlt)",
    "split-functions": "$(if $(CONFIG_ARM64_BTI_KERNEL),,-fsplit-machine-functions)",
    "use-lto-samples": "$(if $(CONFIG_LTO_CLANG_THIN),--lto-sample-profile=P) "
    "$(if $(CONFIG_LTO_CLANG_THIN),$(if $(CONFIG_ARM64_BTI_KERNEL),,"
    "-plugin-opt=-split-machine-functions))",
    "map-blocks": "-fbasic-block-address-map",
    "map-lto-blocks": "$(if $(CONFIG_LTO_CLANG_THIN),--lto-basic-block-address-map)",
    "inline-unmarked": "-D__no_profile_instrument_function__=__unused__",
    "probes": "-fpseudo-probe-for-profiling -fno-unique-internal-linkage-names",
    "use-samples": "-fprofile-sample-use=P",
    "drop-samples": "-fno-profile-sample-use -fno-split-machine-functions",
    "unsampled-cold": "-fprofile-sample-accurate",
    "exact-samples": "-mllvm -profile-summary-cutoff-hot=999000",
    "rematch-samples": "-mllvm -salvage-stale-profile -mllvm -salvage-unused-profile",
    "place-blocks": "-fbasic-block-sections=list=P",
    "drop-blocks": "-fbasic-block-sections=none",
    "order-functions": "--symbol-ordering-file=O --no-warn-symbol-ordering",
    "place-lto-blocks": "--lto-basic-block-sections=P",
    "shuffle-sections": "--shuffle-sections=.text*=S",
}
VALUES = {
    "directory": "D",
    "targets": "T",
    "profile": "P",
    "order": "O",
    "seed": "S",
    "levels": "L",
}


def test_every_meaning_of_clangs_has_its_words_here() -> None:
    assert FLAGS.keys() == CLANG.description.flags.keys()


@pytest.mark.parametrize("meaning", FLAGS)
def test_a_meaning_always_has_the_same_words(meaning: Meaning) -> None:
    assert " ".join(CLANG.flags(meaning, pattern=".text*", **VALUES)) == FLAGS[meaning]


def test_clang_has_a_tool_for_every_role() -> None:
    tools = {role: CLANG.tool(role) for role in get_args(Role)}
    assert tools == {
        "compiler": "clang-22",
        "linker": "ld.lld-22",
        "archiver": "llvm-ar-22",
        "nm": "llvm-nm-22",
        "objcopy": "llvm-objcopy-22",
        "profile-merger": "llvm-profdata-22",
        "rewriter": "llvm-bolt-22",
    }


@pytest.mark.parametrize(
    ("flags", "of_rustc"),
    [
        (
            "-fdebug-info-for-profiling $(if $(CONFIG_DEBUG_INFO),,-gmlt) -D__x__=__unused__",
            "$(if $(call test-ge,$(CONFIG_RUSTC_VERSION),109800),-Zdebuginfo-for-profiling,"
            "-Zdebug-info-for-profiling) $(if $(CONFIG_DEBUG_INFO),,-Cdebuginfo=limited)",
        ),
        (
            "-fprofile-sample-use=P/x.afdo -ffunction-sections "
            "$(if $(CONFIG_ARM64_BTI_KERNEL),,-fsplit-machine-functions) -mllvm -a=1 -O3 -mllvm -b",
            "-Zprofile-sample-use=P/x.afdo $(if $(CONFIG_DEBUG_INFO),,-Cdebuginfo=limited) "
            "-Zfunction-sections=y "
            "$(if $(CONFIG_ARM64_BTI_KERNEL),,-Cllvm-args=-split-machine-functions) "
            "-Cllvm-args=-a=1 -Cllvm-args=-b",
        ),
        (
            "-fno-profile-sample-use -fno-split-machine-functions",
            "mepof-none -Cllvm-args=-split-machine-functions=false",
        ),
        ("-fpseudo-probe-for-profiling -fno-unique-internal-linkage-names", "mepof-none"),
        (
            "-Xclang -fprofile-instrument=llvm -mllvm -vp-counters-per-site=4",
            "$(if $(CONFIG_RUSTC_CLANG_LLVM_COMPATIBLE),$(if $(filter rust/%,$(mepof-object)),,"
            "-Cprofile-generate -Zno-profiler-runtime)) -Cllvm-args=-vp-counters-per-site=4",
        ),
        (
            "-fprofile-use=P/x.profdata -Wno-profile-instr-unprofiled",
            "$(if $(CONFIG_RUSTC_CLANG_LLVM_COMPATIBLE),$(if $(filter rust/%,$(mepof-object)),,"
            "-Cprofile-use=P/x.profdata))",
        ),
        ("-Xclang -fprofile-instrument=none", "mepof-none"),
        ("-fcs-profile-generate -fbasic-block-sections=list=P -fno-split-x", ""),
    ],
)
def test_rustc_gets_what_it_has_of_the_flags(flags: str, of_rustc: str) -> None:
    assert " ".join(CLANG.rust(re.split(r"(?<!if) ", flags))) == of_rustc
