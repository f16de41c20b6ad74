"""Profiles of instrumented kernels, among files that may be AutoFDO profiles.

The first bytes are those of LLVM 22, llvm/include/llvm/ProfileData: ``InstrProf.h`` (indexed) and
``InstrProfReader.h`` (raw, of 64 and 32 bits).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof import _engine
from mepof.errors import InputError, WorkError
from mepof.process import run
from mepof.profile import aging
from mepof.profile.aging import Aged, Decay
from mepof.profile.published import published
from mepof.profile.quality import Quality
from mepof.profile.weighted import Weighted, whole_weights
from mepof.toolchain.named import installed_with
from mepof.toolchain.protocol import FunctionCount, Toolchain, Tools

#: The capability of a toolchain that counts in this format.
LLVM_INSTRUMENTATION = "llvm-instrumentation"
_INDEXED = b"\xfflprofi\x81"
_RAW = (b"\xfflprofr\x81", b"\xfflprofR\x81")
#: What is said of profiles that LLVM's tools refuse, or crash on.
UNREADABLE = "it must be whole, and of a kernel that was built by the same compiler version"
# By their first bytes, what people have beside such profiles.
_OTHERS = {
    b"PERFILE2": "convert it with `mepof profile convert`",
    # SPMagic of SampleProf.h for the extensible binary format, in LEB128.
    b"\x84\xe4\xd0\xb1\xf4\xc9\x94\xa8": "use it with `autofdo`, by the name of NAME.afdo",
}
_MAGIC = {_INDEXED, *_RAW, *(raw[::-1] for raw in _RAW)}
# Of the text form of `llvm-profdata merge --text`: what was counted, or a comment that it writes.
_TEXT = re.compile(rb"^(:fe|:ir|:csir|# Func Hash:)$", re.M)
_TEXT_HEAD = 4096

# A kernel always runs thousands of functions, if only to boot. Fewer means that the
# profile was read from the wrong file or reset too late. Where little is instrumented, it is what
# runs: this share of it is enough.
_MIN_FUNCTIONS = 300
_MIN_SHARE = 0.05


def is_instrumentation(path: Path) -> bool:
    """Whether a file holds counts of an instrumented kernel, raw, indexed or as text.

    Raises:
        InputError: it cannot be read.
    """
    head = _head(path, _TEXT_HEAD)
    return head[:8] in _MAGIC or _TEXT.search(head) is not None


def _head(path: Path, size: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def are_instrumentation(paths: Sequence[Path], remedy: str) -> bool:
    """Whether profiles are of instrumented kernels; else they are left to the engine.

    Raises:
        InputError: some are and some are not.
    """
    counts = {is_instrumentation(path): path for path in paths}
    if len(counts) > 1:
        # If it is not a profile of any kind, the engine says that.
        _engine.show(counts[False], 0, 0)
        raise InputError(
            f"{counts[True]} is a profile of an instrumented kernel and {counts[False]} is not",
            remedy,
        )
    return True in counts


def toolchain_reading(profiles: Sequence[Path]) -> Toolchain:
    """The installed toolchain whose tools read profiles: the newest, which reads what earlier ones
    have merged. Of raw profiles, every version reads its own alone: the newest that does.

    Where none reads all of them, it is the newest: its tools say why they do not.

    Raises:
        InputError: a profile cannot be opened.
        EnvironmentLack: none is installed.
    """
    found = installed_with(LLVM_INSTRUMENTATION)
    newest = next(found)
    raw = {head: path for path in profiles if (head := _head(path, 16))[:8] in _MAGIC - {_INDEXED}}

    def reads(toolchain: Toolchain) -> bool:
        show = (toolchain.tool("profile-merger"), "show")
        return all(run([*show, path.resolve()], check=False).status == 0 for path in raw.values())

    if not raw:
        return newest
    return next((each for each in (newest, *found) if reads(each)), newest)


def check_finished(path: Path, tools: Tools | None, raw: bool = False) -> None:
    """Look at a finished profile of counts.

    Args:
        tools: None where the toolchain is not installed; then only the first bytes are checked.
        raw: a raw profile will do, too.

    Raises:
        InputError: it is not one, or the toolchain cannot read it.
    """
    head = _head(path, 8)
    if not is_instrumentation(path):
        raise InputError(
            f"{path} is not an instrumentation profile",
            _OTHERS.get(
                head,
                "name the .profdata file of a run, or one of `llvm-profdata merge`; an AutoFDO "
                "profile, text too, is named NAME.afdo",
            ),
        )
    if not raw and head != _INDEXED:
        raise InputError(
            f"{path} is a raw or text profile", "convert it with `mepof profile merge`"
        )
    if tools is None:
        return
    with TemporaryDirectory() as scratch:
        try:
            tools.toolchain.merge_profiles([(path, 1)], Path(scratch) / "checked", tools.run)
        except WorkError as error:
            raise InputError(
                f"{tools.toolchain.name} cannot read the profile {path}: {error.message}",
                f"{UNREADABLE}: set toolchain",
            ) from error


def merge_instrumentation(weighted: Sequence[Weighted], output: Path) -> Quality:
    """Write the weighted sum of profiles of instrumented kernels, whole or not at all.

    Raises:
        InputError: the toolchain refuses a profile.
        EnvironmentLack: none that reads them is installed.
        WorkError: the disk is full.
    """
    given = [(w.path.resolve(), w.weight) for w in weighted]
    tools = Tools(toolchain_reading([path for path, _ in given]), run)
    with published(output) as written:
        try:
            return merge_profiles(given, written, tools)
        except WorkError as error:
            if os.strerror(errno.ENOSPC) in error.message:
                raise WorkError(f"no space left for {output}", "free some space") from error
            for each in weighted:
                check_finished(each.path, tools, raw=True)
            raise


def merge_profiles(
    weighted: Sequence[tuple[Path, Fraction]], output: Path, tools: Tools
) -> Quality:
    """Write the weighted sum of raw or finished profiles.

    Raises:
        WorkError: one of them is not readable.
    """
    whole = whole_weights([weight for _, weight in weighted])
    inputs = [(path, weight) for (path, _), weight in zip(weighted, whole, strict=True)]
    try:
        counted = tools.toolchain.merge_profiles(inputs, output, tools.run)
    except WorkError as error:
        raise WorkError(
            f"the profile cannot be read: {error.message}",
            UNREADABLE,
        ) from error
    return quality_of(counted)


def renew_profile(
    new: Path, old: Path, decay: Decay, output: Path, tools: Tools
) -> tuple[Quality, Aged]:
    """Write the sum of a new profile and of what is left of an old one.

    Raises:
        InputError: one of them has no counts.
        WorkError: one of them is not readable.
    """
    part = output.with_name(f".{output.name}.old")
    newer, older = (_as_text(path, part, tools) for path in (new, old))
    aged, left = aging.age_counts(older, newer, decay)
    try:
        part.write_text(aged, encoding="utf-8")
        kept = [new, part] if left.kept else [new]
        return merge_profiles([(path, Fraction(1)) for path in kept], output, tools), left
    finally:
        part.unlink(missing_ok=True)


def _as_text(profile: Path, scratch: Path, tools: Tools) -> str:
    merger = tools.toolchain.tool("profile-merger")
    tools.run([merger, "merge", "--text", profile, "-o", scratch])
    text = scratch.read_text(encoding="utf-8")
    scratch.unlink()
    return text


def quality_of(counted: FunctionCount) -> Quality:
    """How good a profile is that counted everything."""
    known, executed = counted.known, counted.executed
    reasons = []
    if executed < min(_MIN_FUNCTIONS, max(1, _MIN_SHARE * known)):
        reasons.append(f"only {executed} of {known} instrumented functions ran")
    return Quality(
        functions=known,
        executed=executed,
        coverage_percent=round(100 * executed / known, 2) if known else 0.0,
        verdict="poor" if reasons else "good",
        reasons=tuple(reasons),
        exact=True,
    )
