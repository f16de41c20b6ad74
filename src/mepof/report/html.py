"""``report.html``: one self-contained file."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from mepof.report import text
from mepof.report.metrics import SIGNS, TONES, less_word, verdict_word
from mepof.report.model import Report
from mepof.report.views.between import between_of
from mepof.report.views.cases import metrics_of
from mepof.report.views.checks import checks_of
from mepof.report.views.comparisons import comparisons_of
from mepof.report.views.core_model import core_view
from mepof.report.views.disagreements import disagreement_lines
from mepof.report.views.groups import groups_of
from mepof.report.views.image_set import ImageSet
from mepof.report.views.locations import locations_of
from mepof.report.views.result import result_of
from mepof.report.views.step_times import step_times_of
from mepof.report.views.suites import suites_of

_FILTERS: tuple[Callable[..., str], ...] = (
    text.relative,
    text.relative_interval,
    text.percent,
    text.plain_percent,
    text.interval,
    text.amount,
    text.figure,
    text.duration,
    text.size,
    text.outliers,
    text.points,
)


def render(report: Report) -> str:
    """The page of a report."""
    image_set = ImageSet.of(report)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            image_set=image_set,
            checks=checks_of(report),
            comparisons=comparisons_of(report),
            disagreements=disagreement_lines(report),
            result=result_of(report, image_set),
            between=between_of(report, image_set),
            groups=groups_of(report, image_set),
            metrics=metrics_of(report, image_set),
            suites=suites_of(report, image_set),
            core=core_view(report, image_set),
            locations=locations_of(report, image_set),
            step_times=step_times_of(report),
        )
    )


@cache
def environment(*packages: str) -> Environment:
    """What templates are rendered with: the filters and words of reports, and nothing unescaped.

    Args:
        packages: whose templates there are beside those of the report.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "mepof.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda v: (
            text.printable(v, keep="\n\t\N{NO-BREAK SPACE}") if type(v) is str else v
        ),
    )
    for function in _FILTERS:
        environment.filters[function.__name__] = function
    environment.globals |= {
        "SIGNS": SIGNS,
        "TONES": TONES,
        "less_word": less_word,
        "verdict_word": verdict_word,
    }
    return environment
