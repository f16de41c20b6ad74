"""``report.html``: one file with nothing outside it, for people who look rather than read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from mepof.report import text
from mepof.report.model import Report
from mepof.report.views.cases import metrics_of
from mepof.report.views.core import core_view
from mepof.report.views.costs import costs_of
from mepof.report.views.image_set import Cast
from mepof.report.views.kernel import kernel_view
from mepof.report.views.result import result_of
from mepof.report.views.suites import suites_of

_FILTERS: tuple[Callable[..., str], ...] = (
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
    cast = Cast.of(report)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            cast=cast,
            result=result_of(report, cast),
            metrics=metrics_of(report, cast),
            suites=suites_of(report, cast),
            core=core_view(report, cast),
            kernel=kernel_view(report, cast),
            costs=costs_of(report),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("mepof.report"),
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
    environment.globals["SIGNS"] = text.SIGNS
    return environment
