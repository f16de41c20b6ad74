"""The rule by which a release is built with the profile of an earlier one, or trained again."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mepof.adapter.judge import Judgement
from mepof.adapter.published import Origin, Published, Refreshed
from mepof.adapter.reuse import trained
from mepof.adapter.watched import Limits

#: ``reuse``: build with the old profile. ``refresh``: count again what changed, or, where a part
#: cannot be counted, train on a scouted kernel. ``full``: as the program says.
Kind = Literal["reuse", "refresh", "full"]


@dataclass(frozen=True)
class Decision:
    """What is done about the profile of a release.

    Attributes:
        changed: by result, the share of samples in functions that changed, in percent.
        profiles: by result, the profile to build with.
        refreshed: by result, what of its profile is counted again.
    """

    kind: Kind
    reason: str
    changed: Mapping[str, float] = field(default_factory=dict)
    profiles: Mapping[str, Origin] = field(default_factory=dict)
    refreshed: Mapping[str, Refreshed] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


def candidates(
    text: str, template: str, compilers: Mapping[str, str], last: Published | None
) -> Mapping[str, Origin] | str:
    """The profiles that a release may be built with, by result; otherwise why there are none.

    Args:
        text: the program of the release.
        template: the program as it is written.
        compilers: the version of each toolchain that it uses.
        last: the last release that was published.
    """
    if last is None:
        return "there is no earlier release"
    if last.template != template:
        return f"the program is not the one of {last.release}"
    if dict(last.compilers) != dict(compilers):
        return f"the compiler is not the one of {last.release}"
    results = trained(text)
    if not results:
        return "a profile of the program cannot be used alone"
    missing = [each.name for each in results if each.name not in last.profiles]
    if missing:
        return f"{last.release} has no profile `{missing[0]}`"
    return {each.name: last.profiles[each.name] for each in results}


def decide(
    judged: Mapping[str, Judgement],
    profiles: Mapping[str, Origin],
    limits: Limits,
    counting: Collection[str],
) -> Decision:
    """Apply the rule to the worst of the profiles.

    Args:
        judged: each result's profile against the new source.
        counting: the results whose profiles can be counted again in part.
    """
    name = max(judged, key=lambda each: judged[each].changed_percent)
    worst = judged[name]
    reason = f"of the profile of {profiles[name].release}, {worst}"
    changed = {each: round(judged[each].changed_percent, 2) for each in judged}
    if worst.changed_percent <= limits.reuse:
        return Decision("reuse", reason, changed, dict(profiles))
    if worst.changed_percent > limits.refresh:
        return Decision("full", reason, changed)
    made = {n: _refreshed(j, profiles[n]) for n, j in judged.items() if j.units}
    if (why := _whole(judged, made, limits, counting)) is not None:
        return Decision("refresh", f"{reason}; {why}", changed)
    reason = f"{reason}; counted again: {made[name]}"
    return Decision("refresh", reason, changed, dict(profiles), made)


def _refreshed(judged: Judgement, origin: Origin) -> Refreshed:
    before, share = origin.refreshed, judged.changed_percent
    return Refreshed(
        files=judged.units,
        percent=round(share, 2),
        total_percent=round(share + (before.total_percent if before else 0.0), 2),
        trained=before.trained if before else origin.release,
    )


def _whole(
    judged: Mapping[str, Judgement],
    made: Mapping[str, Refreshed],
    limits: Limits,
    counting: Collection[str],
) -> str | None:
    """Why profiles are not counted again in part; None if they are."""
    for name, each in judged.items():
        if name not in counting:
            return f"a part of the profile `{name}` cannot be counted alone"
        if each.unknown_percent > limits.reuse:
            return f"the files of functions with {each.unknown_percent:.1f} % are unknown"
    for part in made.values():
        if part.total_percent > limits.refresh:
            return f"{part.total_percent:.1f} % have been counted again since {part.trained}"
    return None
