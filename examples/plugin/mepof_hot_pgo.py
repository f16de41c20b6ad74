"""``hot-pgo``: ``pgo`` with a profile of the hottest functions alone.

In training by kbench, about half of the functions that run have a hundredth of all counts among
them. Without their counts, a build compiles fewer files with the profile, and the code of the other
files is that of the plain kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.algorithm.pgo import Pgo
from mepof.algorithm.protocol import Algorithm, Conversion
from mepof.profile.aging import Aged, Decay
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Tools

#: The share of all counts that is kept. What LLVM calls hot has the same
#: (LLVM 22, llvm/lib/ProfileData/ProfileSummaryBuilder.cpp, ``ProfileSummaryCutoffHot``).
PERCENT = 99

# Of the text form of ``llvm-profdata``: the lines before the first function, and the counters of a
# function.
_HEAD = re.compile(r"\A([#:].*\n)*")
_COUNTERS = re.compile(r"^# Counter Values:\n([\d\n]+)", re.M)


class HotPgo(Pgo):
    """:class:`Pgo` that keeps the hottest functions of each profile that it writes.

    The quality is that of everything that was counted.
    """

    def convert(self, conversion: Conversion) -> Quality:
        quality = super().convert(conversion)
        self._keep_hottest(conversion.output, conversion.tools)
        return quality

    def merge(
        self,
        weighted: Sequence[tuple[Path, Fraction]],
        output: Path,
        tools: Tools,
    ) -> Quality:
        quality = super().merge(weighted, output, tools)
        self._keep_hottest(output, tools)
        return quality

    def renew(
        self, new: Path, old: Path, decay: Decay, output: Path, tools: Tools
    ) -> tuple[Quality, Aged]:
        renewed = super().renew(new, old, decay, output, tools)
        self._keep_hottest(output, tools)
        return renewed

    def _keep_hottest(self, directory: Path, tools: Tools) -> None:
        (name,) = self.profile_names
        profile = directory / name
        merger = tools.toolchain.tool("profile-merger")
        with TemporaryDirectory() as scratch:
            text = Path(scratch) / "text"
            tools.run([merger, "merge", "--text", profile, "-o", text])
            text.write_text(hottest(text.read_text(encoding="utf-8")), encoding="utf-8")
            tools.run([merger, "merge", "--num-threads=1", text, "-o", profile])


def hottest(profile: str, percent: int = PERCENT) -> str:
    """A profile with the fewest functions that have a share of all counts, the hottest first.

    Args:
        profile: in the text form of ``llvm-profdata``, as the result.
        percent: the share.
    """
    body = _HEAD.sub("", profile, count=1)
    functions = [each for each in body.split("\n\n") if each.strip()]
    counts = {each: _count(each) for each in functions}
    missing = sum(counts.values()) * percent
    kept = []
    for each in sorted(functions, key=lambda each: (-counts[each], each)):
        if missing <= 0:
            break
        missing -= 100 * counts[each]
        kept.append(each.strip("\n") + "\n\n")
    return profile.removesuffix(body) + "".join(kept)


def _count(function: str) -> int:
    counters = _COUNTERS.search(function)
    return sum(map(int, counters[1].split())) if counters else 0


#: What the entry point names; mypy checks that it is an algorithm.
ALGORITHM: Algorithm = HotPgo("kernel.hotprofdata")
