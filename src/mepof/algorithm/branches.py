"""What the algorithms share whose raw profile is a branch trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from mepof import _engine
from mepof.algorithm.protocol import Conversion
from mepof.device import recorder_trace
from mepof.device.agent import Request
from mepof.kernel.modules import Modules
from mepof.profile import aging, sample_tree
from mepof.profile.aging import Aged, Decay
from mepof.profile.quality import Quality
from mepof.profile.weighted import whole
from mepof.toolchain.protocol import Tools

# The engine's name for the event of an exact branch trace.
_EVERY_BRANCH = "every branch"


class Branches:
    """Profiles from taken branches, which a device records while the kernel runs."""

    rounds = 1
    records_branches = True
    period: int | None = None
    same_build = False
    repeats = True
    renews = True
    names_functions = True

    def reset(self) -> tuple[Request, ...]:
        return ()

    def collect(self, modules: bool) -> tuple[Request, ...]:
        return ()

    def drop_unexecuted(self, profile: Path, tools: Tools) -> None:
        """Do nothing: what never ran has no samples."""


def convert(
    conversion: Conversion,
    to: str,
    output: Path,
    *,
    lines: bool = False,
    path_cloning: bool = False,
    modules: Sequence[Path] = (),
) -> Quality:
    """Make a profile with the profile engine, and rate it.

    Args:
        to: one of the engine's output formats.
        output: as of the engine's ``convert``.
        lines: by debug lines, even where the kernel has pseudo probes.
        path_cloning: of ``propeller``, copy blocks along hot paths.
        modules: whose code the profile covers too, as built.
    """
    vmlinux = conversion.build / "vmlinux"
    recording = _engine.Recording(vmlinux, conversion.raw, modules=modules)
    # The step decides what a poor verdict means; the profile is kept for inspection.
    done = json.loads(
        _engine.convert(
            recording, to, output, lines=lines, path_cloning=path_cloning, allow_poor=True
        )
    )
    output.with_name(f"{output.name}.verdict.json").unlink(missing_ok=True)
    verdict = done["verdict"]
    functions = sum(binary["functions"] for binary in verdict["binaries"])
    executed = sum(binary["functions_executed"] for binary in verdict["binaries"])
    return Quality(
        functions=functions,
        executed=executed,
        coverage_percent=round(100 * executed / functions, 2) if functions else 0.0,
        verdict=verdict["quality"],
        reasons=tuple(verdict["reasons"]),
        exact=all(given["events"] == [_EVERY_BRANCH] for given in verdict["inputs"]),
    )


def recorded_modules(build: Path, traces: Sequence[Path]) -> tuple[Path, ...]:
    """The modules of a build that branch traces of it may have the addresses of."""
    built = Modules.find(build)
    known = () if built is None else built.modules
    if not known:
        return ()
    found: set[str] = set()
    for path in traces:
        match _engine.trace_format(path):
            case "recorder":
                found |= recorder_trace.modules_in(path)
            case "perf-data" | "perf-script":  # the engine passes over those that it does not name
                found |= {each.name for each in known}
    return tuple(each.file(build) for each in known if each.name in found)


def merge_samples(
    weighted: Sequence[tuple[Path, Fraction]],
    output: Path,
    *,
    form: str = "autofdo",
    like: Path | None = None,
) -> Quality:
    """Write the weighted sum of AutoFDO profiles.

    Args:
        form: one of the engine's profile formats.
        like: the profile that those were made of by way of text, which does not say all of it.

    Raises:
        InputError: one of them is not an AutoFDO profile, or they are of different kinds.
    """
    weights = whole([weight for _, weight in weighted])
    paths = [(path, weight) for (path, _), weight in zip(weighted, weights, strict=True)]
    done = json.loads(_engine.merge(paths, output, form, like=like))
    output.with_name(f"{output.name}.provenance.json").unlink(missing_ok=True)
    functions = done["statistics"]["functions"]
    return Quality(functions, functions, 100.0, "good")


def select_functions(
    profile: Path,
    output: Path,
    keep: Callable[[str, sample_tree.Function], bool],
    *,
    form: str,
) -> None:
    """Write an AutoFDO profile with some of its functions. What was inlined into them stays.

    Args:
        output: may be ``profile``.
        keep: whether to keep a function, by its name.
        form: one of the engine's profile formats.
    """
    scratch = output.with_name(f".{output.name}.txt")
    functions = sample_tree.parse(_as_text(profile, scratch))
    kept = {name: function for name, function in functions.items() if keep(name, function)}
    scratch.write_text(sample_tree.render(kept), encoding="utf-8")
    merge_samples([(scratch, Fraction(1))], output, form=form, like=profile)
    scratch.unlink()


def renew_samples(
    new: Path, old: Path, decay: Decay, output: Path, *, form: str = "autofdo"
) -> tuple[Quality, Aged]:
    """Write the sum of a new AutoFDO profile, in the inlining of an old one, and of what is left of
    that.

    Args:
        form: as of :func:`merge_samples`.

    Raises:
        InputError: one of them is not an AutoFDO profile, or has no samples, or they are of
            different kinds.
    """
    _engine.conflicts(new, old)  # text does not say all that makes profiles differ in kind
    scratch = output.with_name(f".{output.name}.txt")
    newer, older = (_as_text(path, scratch) for path in (new, old))
    parts = [output.with_name(f".{output.name}.{name}") for name in ("new", "old")]
    reinlined, aged, left = aging.renew_samples(newer, older, decay)
    try:
        for part, text in zip(parts, (reinlined, aged), strict=True):
            part.write_text(text, encoding="utf-8")
        kept = parts if left.kept else parts[:1]
        sum = [(part, Fraction(1)) for part in kept]
        return merge_samples(sum, output, form=form, like=new), left
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _as_text(profile: Path, scratch: Path) -> str:
    merge_samples([(profile, Fraction(1))], scratch, form="autofdo-text")
    text = scratch.read_text(encoding="utf-8")
    scratch.unlink()
    return text
