"""``cspgo``: counters again, in a kernel that was optimised with counters.

The second round instruments after inlining, so that a function that was inlined into several
callers has counts for each of them (context-sensitive PGO). The final profile holds the counts of
both rounds: https://clang.llvm.org/docs/UsersManual.html#cmdoption-fcs-profile-generate.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from mepof.algorithm.pgo import NODES_PER_SITE, Pgo, run_time
from mepof.algorithm.protocol import BuildAddition, Conversion, Round, Use
from mepof.profile.instrumentation import merge_profiles
from mepof.profile.quality import Quality
from mepof.toolchain.protocol import Toolchain


class CsPgo(Pgo):
    """Two rounds of :class:`Pgo`, the second on the profile of the first."""

    rounds = 2

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        if round.profile is None:
            return super().instrument(toolchain, round)
        flags = toolchain.flags("count-in-context", targets=NODES_PER_SITE)
        used = self.use(round.profile, Use(toolchain, True, exact=True))
        opt_out = toolchain.flags("drop-counting")
        return run_time(toolchain) + used + BuildAddition(cflags=flags, opt_out=opt_out)

    def convert(self, conversion: Conversion) -> Quality:
        earlier = conversion.round.profile
        known: list[Path] = [] if earlier is None else [earlier / self._file]
        given = [(path, Fraction(1)) for path in (*known, *conversion.raw)]
        return merge_profiles(given, conversion.output / self._file, conversion.tools)


ALGORITHM = CsPgo("kernel.csprofdata")
