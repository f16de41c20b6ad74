"""Profiles of instrumented kernels, among files that may be AutoFDO profiles.

The first bytes are those of LLVM 22, llvm/include/llvm/ProfileData: ``InstrProf.h`` (indexed) and
``InstrProfReader.h`` (raw, of 64 and 32 bits).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mepof.algorithm.pgo import merge_profiles
from mepof.algorithm.protocol import Quality
from mepof.errors import InputError
from mepof.process import run
from mepof.profile.weighted import Weighted
from mepof.toolchain import clang

_INDEXED = b"\xfflprofi\x81"
_RAW = (b"\xfflprofr\x81", b"\xfflprofR\x81")
_MAGIC = {_INDEXED, *_RAW, *(raw[::-1] for raw in _RAW)}


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
