"""How like the work that its profile counted a case is: trained, near or far."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from mepof.suite.cases import CaseId

#: How like the training a case is; only by its name, it is ``untrained`` if it is not trained.
Kind = Literal["trained", "near", "far", "untrained"]

KINDS: tuple[Kind, ...] = get_args(Kind)

# The least percentage of each kind. Of its own cases, a training counts 92 % at least: a function
# that Clang inlines before it counts has no count of its own (docs/statistics.md).
_TRAINED_FROM, _NEAR_FROM = 90.0, 60.0


@dataclass(frozen=True)
class Likeness:
    """What is known of an image's cases and of its profile.

    Attributes:
        ran: the cases that the training ran; None where the training is unknown.
        percent: of a case's kernel instructions, those in functions with a count in the profile;
            cases of which that is unknown are left out.
    """

    ran: frozenset[CaseId] | None = None
    percent: Mapping[CaseId, float] = field(default_factory=dict)

    def kind(self, case: CaseId) -> Kind | None:
        """What the case is: by what it executes, or else by its name; None if that is unknown."""
        percent = self.percent.get(case)
        if percent is not None:
            if percent >= _TRAINED_FROM:
                return "trained"
            return "near" if percent >= _NEAR_FROM else "far"
        if self.ran is None:
            return None
        return "trained" if case in self.ran else "untrained"


def counted_percents(
    executed: Mapping[CaseId, Mapping[str, int]],
    counted: Collection[str],
    defined: Collection[str],
) -> dict[CaseId, float]:
    """The percentage of each case's instructions in functions with a count.

    A function that the image does not define is inlined there wherever it is called, and its
    callers have its counts: it is left out. So are cases that execute nothing else, and all of them
    if the profile has none of the image's functions: then it has hashes for names.

    Args:
        executed: instructions of each function, by the name of its symbol.
        counted: the functions with a count, as :meth:`Algorithm.executed` gives them.
        defined: the functions of the image that was built with the profile.
    """
    known = {_plain(name.rpartition(";")[2]) for name in counted}
    able = {_plain(name) for name in defined}
    if known.isdisjoint(able):
        return {}
    able |= known
    found = {}
    for case, functions in executed.items():
        counts = [(_plain(name), count) for name, count in functions.items()]
        if total := sum(count for name, count in counts if name in able):
            found[case] = 100 * sum(count for name, count in counts if name in known) / total
    return found


def _plain(symbol: str) -> str:
    """The name in the source: without the suffixes of parts and copies.

    On x86, `SYSCALL_DEFINE0(getpid)` makes the symbol `__x64_sys_getpid` an alias of
    `__do_sys_getpid`, the name in debug information and so in a profile of samples.
    """
    name = symbol.partition(".")[0]
    call = name.removeprefix("__x64_sys_")
    return name if call == name else f"__do_sys_{call}"
