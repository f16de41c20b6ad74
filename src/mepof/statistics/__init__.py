"""Comparing the costs of images. ``docs/statistics.md`` describes and justifies the method.

All computation is on log costs. Swapping two images then only changes the sign, and the mean
over cases is the geometric mean, which does not depend on the cases' units.
"""

from mepof.statistics.compare import (
    Comparison,
    compare,
    min_boots,
    narrow,
    reduction_percent,
)
from mepof.statistics.interval import (
    BCA_UNITS,
    CONFIDENCE,
    RESAMPLES,
    RESAMPLING_SEED,
    mean_interval,
)
from mepof.statistics.outlier import Outlier, outliers
from mepof.statistics.sample import (
    PRACTICAL_PERCENT,
    LogCosts,
    Unit,
    builds_of,
    log_costs,
    mean_cost,
    mean_over_cases,
)
from mepof.statistics.verdict import LEVEL, Judged, Verdict, enough, judge

__all__ = [
    "BCA_UNITS",
    "CONFIDENCE",
    "LEVEL",
    "PRACTICAL_PERCENT",
    "RESAMPLES",
    "RESAMPLING_SEED",
    "Comparison",
    "Judged",
    "LogCosts",
    "Outlier",
    "Unit",
    "Verdict",
    "builds_of",
    "compare",
    "enough",
    "judge",
    "log_costs",
    "mean_cost",
    "mean_interval",
    "mean_over_cases",
    "min_boots",
    "narrow",
    "outliers",
    "reduction_percent",
]
