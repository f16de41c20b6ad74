"""The rule by which a release is built with the profile of an earlier one, or trained again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mepof.adapter.judge import Judgement
from mepof.adapter.published import Origin, Published
from mepof.adapter.reuse import trained
from mepof.adapter.watched import Limits

#: ``reuse``: build with the old profile. ``refresh``: train on a scouted kernel, of which only the
#: files that run are instrumented. ``full``: as the program says.
Kind = Literal["reuse", "refresh", "full"]


@dataclass(frozen=True)
class Decision:
    """What is done about the profile of a release.

    Attributes:
        changed: by result, the share of samples in functions that changed, in percent.
        profiles: by result, the profile to build with.
    """

    kind: Kind
    reason: str
    changed: Mapping[str, float] = field(default_factory=dict)
    profiles: Mapping[str, Origin] = field(default_factory=dict)

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
    judged: Mapping[str, Judgement], profiles: Mapping[str, Origin], limits: Limits
) -> Decision:
    """Apply the rule to the worst of the profiles.

    Args:
        judged: each result's profile against the new source.
    """
    name = max(judged, key=lambda each: judged[each].changed_percent)
    worst = judged[name]
    reason = f"of the profile of {profiles[name].release}, {worst}"
    changed = {each: round(judged[each].changed_percent, 2) for each in judged}
    kind: Kind = "full"
    if worst.changed_percent <= limits.reuse:
        kind = "reuse"
    elif worst.changed_percent <= limits.refresh:
        kind = "refresh"
    return Decision(kind, reason, changed, dict(profiles) if kind == "reuse" else {})
