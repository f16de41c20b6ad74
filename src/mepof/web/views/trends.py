"""How gains go over releases."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mepof.web.queries import text_in
from mepof.web.site import Site
from mepof.web.trends import Trend, metrics_in, trends_of
from mepof.web.views.runs import title_of

_MAX_PROGRAMS = 12


def routes(site: Site) -> Sequence[BaseRoute]:
    """The addresses of this view."""

    def trends(request: Request) -> Response:
        runs = [(e, site.reports.headlines(e)) for e in site.catalogue.entries().values()]
        runs = [(entry, headlines) for entry, headlines in runs if headlines]
        metrics = metrics_in(headline for _, headlines in runs for headline in headlines)
        metric = text_in(request, "metric")
        metric = metric if metric in metrics else next(iter(metrics), "")
        found = trends_of(runs, metric)
        return site.page(
            request,
            "trends",
            metric=metric,
            metrics=metrics,
            trends=[(_title(trend), trend) for trend in found[:_MAX_PROGRAMS]],
            more=max(0, len(found) - _MAX_PROGRAMS),
        )

    return (Route("/trends", trends),)


def _title(trend: Trend) -> str:
    """What the program of the last release says of itself."""
    return title_of(trend.points[0].entry.run.program)
