"""Two or more runs by case, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mepof.web.compared import Subject, compared
from mepof.web.queries import text_in
from mepof.web.site import Site
from mepof.web.views.runs import began_of

# Shapes and colours together distinguish sixteen images.
_MAX_RUNS = 8


def routes(site: Site) -> Sequence[BaseRoute]:
    """The addresses of this view."""

    def compare(request: Request) -> Response:
        chosen = list(dict.fromkeys(request.query_params.getlist("run")))
        if not chosen:
            raise HTTPException(400, "choose the runs to compare in the list of runs")
        if len(chosen) > _MAX_RUNS:
            raise HTTPException(400, f"at most {_MAX_RUNS} runs can be compared")
        entries = [site.run(identifier) for identifier in reversed(chosen)]
        # The one that began first is what the others are compared with.
        entries.sort(key=lambda entry: entry.run.started)
        names = Counter(entry.name for entry in entries)
        subjects, without = [], []
        for entry in entries:
            name = entry.name
            if names[name] > 1:
                name = f"{name} of {began_of(entry)}"
            places = site.reports.places(entry)
            found = [(place.name, site.reports.read(place)) for place in places]
            comparing = [(title, report) for title, report in found if report.summary]
            if not comparing:
                without.append(name)
            for title, report in comparing:
                shown = name if len(comparing) == 1 else f"{name} ({title})"
                subjects.append(Subject(shown, report))
        return site.page(
            request,
            "compare",
            entries=entries,
            chosen=[entry.run.id for entry in entries],
            found=compared(subjects, text_in(request, "metric")),
            without=without,
        )

    return (Route("/compare", compare),)
