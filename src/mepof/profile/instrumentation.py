"""Profiles of instrumented kernels, among files that may be AutoFDO profiles.

The first bytes are those of LLVM 22, llvm/include/llvm/ProfileData: ``InstrProf.h`` (indexed) and
``InstrProfReader.h`` (raw, of 64 and 32 bits).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from mepof.errors import InputError, WorkError
from mepof.process import Completed, run
from mepof.profile.quality import Quality
from mepof.profile.weighted import Weighted, whole_weights
from mepof.toolchain import clang
from mepof.toolchain.clang import Clang

_INDEXED = b"\xfflprofi\x81"
_RAW = (b"\xfflprofr\x81", b"\xfflprofR\x81")
_MAGIC = {_INDEXED, *_RAW, *(raw[::-1] for raw in _RAW)}

# A kernel always runs some thousand functions, if only to boot. Fewer says that the
# profile was read from the wrong place or reset too late.
_FEWEST_FUNCTIONS = 300


def is_instrumentation(path: Path) -> bool:
    """Whether a file holds counts of an instrumented kernel.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(8) in _MAGIC
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def merge_instrumentation(weighted: Sequence[Weighted], output: Path) -> Quality:
    """Write the weighted sum of profiles of instrumented kernels, whole or not at all.

    Raises:
        EnvironmentLack: there is no llvm-profdata.
        WorkError: it refuses a profile.
    """
    partial = output.with_name(f".{output.name}.{os.getpid()}")
    given = [(w.path.resolve(), w.weight) for w in weighted]
    try:
        quality = merge_profiles(given, partial, clang.select("clang"), run)
        partial.replace(output)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)
    return quality


def merge_profiles(
    weighted: Sequence[tuple[Path, Fraction]],
    output: Path,
    toolchain: Clang,
    runner: Callable[..., Completed],
) -> Quality:
    """Write the weighted sum of raw or finished profiles.

    Raises:
        WorkError: one of them is not readable.
    """
    profdata = toolchain.tool("llvm-profdata")
    whole = whole_weights([weight for _, weight in weighted])
    inputs = [
        f"--weighted-input={weight},{path}"
        for (path, _), weight in zip(weighted, whole, strict=True)
    ]
    try:
        runner([profdata, "merge", "--num-threads=1", f"--output={output}", *inputs])
    except WorkError as error:
        raise WorkError(
            f"the profile cannot be read: {error.message}",
            "it must come from a kernel that was built by the same compiler version",
        ) from error
    shown = runner([profdata, "show", "--value-cutoff=1", output])
    return _quality(shown.output)


def _quality(shown: str) -> Quality:
    """Read ``llvm-profdata show --value-cutoff=1``: it counts the functions with any count."""
    total = _number(r"^Total functions: (\d+)", shown)
    below = _number(r"^Number of functions with maximum count \(< 1\): (\d+)", shown)
    executed = total - below
    reasons = []
    if executed < _FEWEST_FUNCTIONS:
        reasons.append(f"only {executed} functions ran; a workload runs thousands")
    return Quality(
        functions=total,
        executed=executed,
        coverage_percent=round(100 * executed / total, 2) if total else 0.0,
        verdict="poor" if reasons else "good",
        reasons=tuple(reasons),
        exact=True,
    )


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.M)
    return int(found.group(1)) if found else 0
