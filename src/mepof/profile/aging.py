"""What an old profile still counts beside a new one.

The old profile is scaled so that its total is a stated part of the new one's, whatever the lengths
of the two recordings. The sum then has the scale of the new profile, so that the counts of a loop
do not grow from round to round.

Totals cannot be compared if the new profile counted a part of the kernel only. Then the functions
that both have tell the scale, and those that were not counted keep their share.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, groupby

from mepof.errors import InputError
from mepof.profile import sample_tree
from mepof.profile.reinlining import reinlined, scaled
from mepof.profile.sample_tree import Function
from mepof.toolchain.profile_names import current

#: A function that the new profile does not have is dropped below this share of the new total. To
#: LLVM, cold is what lies beyond 99.9999 % of all counts (LLVM 22,
#: llvm/lib/ProfileData/ProfileSummaryBuilder.cpp, ``ProfileSummaryCutoffCold``): a function that
#: has faded that far becomes unknown again, which is not cold.
MIN_SHARE = Fraction(1, 10**6)
#: As many functions must tell the scale of a part: a few may be called otherwise by now.
MIN_TELLING = 10


@dataclass(frozen=True)
class Decay:
    """How an old profile counts.

    Attributes:
        weight: its total in the sum, relative to the new profile's; from 0 to 1.
        same_source: both profiles are of the same source. Otherwise their lines differ.
        part: the new profile counted some files of the kernel only.
    """

    weight: Fraction
    same_source: bool
    part: bool = False


@dataclass(frozen=True)
class Aged:
    """What is left of an old profile.

    Attributes:
        again: functions that the new profile has as well, and that are kept.
        unseen: functions that only the old one has, and that are kept.
        dropped: those that have faded below :data:`MIN_SHARE`.
        replaced: functions of another source, of which the new counts alone are kept.
    """

    again: int
    unseen: int
    dropped: int
    replaced: int

    @property
    def kept(self) -> int:
        """The functions that are left."""
        return self.again + self.unseen

    def __str__(self) -> str:
        parts = [f"{self.again:,} functions of the old profile ran again"]
        parts += [f"{self.unseen:,} that did not are kept"]
        parts += [f"{self.dropped:,} have faded"] if self.dropped else []
        parts += [f"{self.replaced:,} are replaced"] if self.replaced else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Refreshed(Aged):
    """What is left of an old profile beside one that counted some files only.

    ``unseen`` are the functions of the other files, and ``dropped`` those that these files do not
    have any more.

    Attributes:
        scale: how many times as often code ran in the new training as in the old one.
        telling: the functions that tell the scale.
    """

    scale: Fraction
    telling: int

    def __str__(self) -> str:
        parts = [
            f"the new training ran {float(self.scale):.3g} times as much as the old one, by "
            f"{self.telling:,} functions that both counted"
        ]
        parts += [f"{self.unseen:,} functions that were not counted again are kept"]
        parts += [f"{self.again:,} are added up"] if self.again else []
        parts += [f"{self.replaced:,} are replaced"]
        parts += [f"{self.dropped:,} are gone"] if self.dropped else []
        return ", ".join(parts)


def renew_samples(new: str, old: str, decay: Decay) -> tuple[str, str, Aged]:
    """A new AutoFDO profile in the inlining of an old one, and what the old one counts beside it;
    all of them in the text form. Their sum is the renewed profile.

    Raises:
        InputError: one of the profiles has no samples.
    """
    older, newer = sample_tree.parse(old), sample_tree.parse(new)
    newer = reinlined(newer, older, same_source=decay.same_source)
    total, old_total = (sum(f.total for f in functions.values()) for functions in (newer, older))
    _require(total, "new")
    _require(old_total, "old")
    factor = decay.weight * total / old_total
    seen = {*newer, *(name for function in newer.values() for name in function.callees())}
    kept: dict[str, Function] = {}
    fates = _Fates()
    for name, function in older.items():
        known = newer.get(name)
        same = decay.same_source or function.checksum is not None
        same = same and (known is None or known.checksum == function.checksum)
        if fates.keeps(name in seen, same, factor * function.total, total):
            kept[name] = scaled(function, factor.numerator, factor.denominator)
    return sample_tree.render(newer), sample_tree.render(kept), fates.aged()


def age_counts(old: str, new: str, decay: Decay) -> tuple[str, Aged]:
    """The same for profiles of counters, in the text form of ``llvm-profdata``.

    A function whose control flow has changed is replaced, of the same source or not: its hash
    identifies it.

    Raises:
        InputError: one of the profiles has no counts, or nothing tells their scale.
    """
    (head, older), (_, newer) = _records(old), _records(new)
    total = sum(record.total for record in newer)
    old_total = sum(record.total for record in older)
    _require(total, "new")
    _require(old_total, "old")
    if decay.part:
        return _refreshed(head, older, newer, decay.weight)
    factor = decay.weight * total / old_total
    ran = {record.name for record in newer if record.total}
    known = {record.name for record in newer}
    flows = {(record.name, record.hash) for record in newer}
    kept = [*head]
    fates = _Fates()
    for record in older:
        if not record.total:
            continue
        same = record.name not in known or (record.name, record.hash) in flows
        if fates.keeps(record.name in ran, same, factor * record.total, total):
            kept += [*_scaled_record(record.lines, factor), ""]
    return "".join(f"{line}\n" for line in kept), fates.aged()


def _refreshed(
    head: list[str], older: list[_Record], newer: list[_Record], weight: Fraction
) -> tuple[str, Aged]:
    """What old counters still say beside those of some files.

    A function of these files counts as in any sum. Where it did not change, that is
    ``1 + weight`` times what the old profile has; so all others are multiplied by that, too.
    """
    scale, telling = _scale(older, newer)
    known = {record.name for record in newer}
    flows = {(record.name, record.hash) for record in newer}
    # A static function has its file in its name.
    files = {record.name.rpartition(";")[0] for record in newer} - {""}
    kept = [*head]
    again = unseen = dropped = replaced = 0
    for record in older:
        if record.name in known:
            factor = weight * scale
            if (record.name, record.hash) not in flows or factor * record.total < 1:
                replaced += record.total > 0
                continue
            again += 1
        elif record.name.rpartition(";")[0] in files:
            dropped += record.total > 0
            continue
        else:
            factor = (1 + weight) * scale
            unseen += record.total > 0
        # To a compiler, a count of 0 is cold, which code that ran is not.
        least = 0 if record.name in known else 1
        kept += [*_scaled_record(record.lines, factor, least), ""]
    left = Refreshed(again, unseen, dropped, replaced, scale, telling)
    return "".join(f"{line}\n" for line in kept), left


def _scale(older: Iterable[_Record], newer: Iterable[_Record]) -> tuple[Fraction, int]:
    """How many times as often code ran in the new training as in the old one, and how many
    functions tell this.

    It is the median of what functions with an unchanged control flow say, weighted by their old
    counts: the factor with the least sum of absolute differences. A function that is called
    differently by now does not shift it.

    Raises:
        InputError: too few such functions ran in both, or one of them would decide alone.
    """
    before = {(record.name, record.hash): record.total for record in older if record.total}
    ratios = sorted(
        (Fraction(record.total, old), old)
        for record in newer
        if record.total and (old := before.get((record.name, record.hash)))
    )
    so_far = list(accumulate(old for _, old in ratios))
    why = None
    if len(ratios) < MIN_TELLING:
        why = (
            f"{len(ratios)} functions that were counted again are as they were, and "
            f"{MIN_TELLING} are needed"
        )
    elif 2 * max(old for _, old in ratios) > so_far[-1]:
        why = "one function has more than half of the counts that would tell it"
    if why is not None:
        raise InputError(
            f"the scale of the old counts is unknown: {why}",
            "count more files again, or all of them: `set instrument all`",
        )
    return ratios[bisect_left(so_far, so_far[-1] / 2)][0], len(ratios)


@dataclass
class _Fates:
    """Counts what happens to the functions of the old profile."""

    again: int = 0
    unseen: int = 0
    dropped: int = 0
    replaced: int = 0

    def keeps(self, seen: bool, comparable: bool, counts: Fraction, total: int) -> bool:
        """Whether a function is kept.

        Args:
            seen: the new profile has it as well.
            comparable: its counts are those of the same code in both.
            counts: what it would count in the sum.
            total: of the new profile.
        """
        if seen and not comparable:
            self.replaced += 1
            return False
        if counts < (1 if seen else max(Fraction(1), MIN_SHARE * total)):
            self.dropped += 1
            return False
        self.again += seen
        self.unseen += not seen
        return True

    def aged(self) -> Aged:
        return Aged(self.again, self.unseen, self.dropped, self.replaced)


def _require(total: int, which: str) -> None:
    if total == 0:
        raise InputError(f"the {which} profile has no counts", "leave it out of the loop")


def _scaled(count: str, factor: Fraction, least: int) -> int:
    number = int(count)
    return max(number * factor.numerator // factor.denominator, least if number else 0)


@dataclass(frozen=True)
class _Record:
    """A function of a profile of counters.

    Attributes:
        name: of its symbol, after its file and ``;`` if it is static.
    """

    name: str
    hash: str
    total: int
    lines: tuple[str, ...]


# The comments that llvm-profdata writes (LLVM 22, llvm/lib/ProfileData/InstrProfWriter.cpp,
# ``writeRecordInText``).
_HASH, _COUNTERS, _VALUES = "# Func Hash:", "# Counter Values:", "# ValueKind"
# Which function ran when stands before the functions, up to a blank line.
_TRACES = ":temporal_prof_traces"


def _records(text: str) -> tuple[list[str], list[_Record]]:
    """The first lines, which say what was counted, and the functions."""
    head: list[str] = []
    records: list[_Record] = []
    for blank, group in groupby(text.splitlines(), lambda line: not line.strip()):
        lines = list(group)
        if blank:
            continue
        if not records:
            while lines and lines[0].startswith(("#", ":")) and lines[0] != _TRACES:
                head.append(lines.pop(0))
        if _HASH not in lines:
            continue
        flow = lines[lines.index(_HASH) + 1]
        total = sum(int(line) for section, line in _sections(lines) if section == _COUNTERS)
        records.append(_Record(current(lines[0]), flow, total, tuple(lines)))
    return head, records


def _sections(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line without a comment, under the comment above it."""
    section = ""
    for line in lines:
        if line.startswith("# "):
            section = _VALUES if line.startswith(_VALUES) else line
        else:
            yield section, line


def _scaled_record(lines: Iterable[str], factor: Fraction, least: int = 0) -> Iterator[str]:
    """The lines of a function with its counters, and the counts of its values, scaled.

    Args:
        least: what is left of a count that is not 0.
    """
    section, values = "", False
    for line in lines:
        if line.startswith("# "):
            section, values = line, values or line.startswith(_VALUES)
            yield line
        elif section == _COUNTERS:
            yield str(_scaled(line, factor, least))
        elif values and ":" in line:
            name, _, count = line.rpartition(":")
            yield f"{name}:{_scaled(count, factor, least)}"
        else:
            yield line
