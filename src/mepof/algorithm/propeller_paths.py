"""``propeller-paths``: ``propeller``, with copies of blocks along hot paths.

A block that two paths join has one location, which at most one of them falls through to. A copy for
the other path costs its bytes and saves a taken branch. Counts of branches do not tell which path
goes on where; branch stacks do, so these are sampled instead of every branch.
"""

from __future__ import annotations

from mepof.algorithm.propeller import Propeller

# A prime, so that the samples do not keep step with loops.
ALGORITHM = Propeller("paths", period=1009, path_cloning=True)
