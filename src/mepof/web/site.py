"""What every view is given: where runs are, what is known of them, and how a page is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from mepof.plan.store import Store
from mepof.report.html import environment
from mepof.web.catalogue import Catalogue, Entry
from mepof.web.guard import COOKIE, Sessions
from mepof.web.launch import Launcher
from mepof.web.live import Stopping
from mepof.web.provenance import Provenance
from mepof.web.reports import Reports
from mepof.web.steps import SIGNS, WORDS


@dataclass(frozen=True)
class Site:
    """One server.

    Attributes:
        out: the directory of the runs.
        programs: the directory whose programs can be started; None allows text only.
        may_start: whether runs can be started, cancelled and resumed.
        stopping: ends the streams of events.
    """

    out: Path
    store: Store
    sessions: Sessions
    programs: Path | None = None
    may_start: bool = True
    stopping: Stopping = field(default_factory=Stopping)

    @cached_property
    def catalogue(self) -> Catalogue:
        """The runs."""
        return Catalogue(self.out)

    @cached_property
    def reports(self) -> Reports:
        """The reports of the runs."""
        return Reports(self.store)

    @cached_property
    def provenance(self) -> Provenance:
        """Where the artifacts of the store come from."""
        return Provenance(self.store)

    @cached_property
    def launcher(self) -> Launcher:
        """What starts, cancels and resumes runs."""
        return Launcher(self.catalogue.root, self.store.root)

    @cached_property
    def templates(self) -> Environment:
        """The templates of this room, and those of reports."""
        return environment("mepof.web")

    def read(self) -> None:
        """Read everything that views of many runs need; what was read is kept."""
        for entry in self.catalogue.entries().values():
            self.reports.headlines(entry)
        self.provenance.known()
        for name in self.templates.list_templates(["j2"]):
            self.templates.get_template(name)

    def entry(self, request: Request) -> Entry:
        """The run that an address names; as of now if it is to be changed.

        Raises:
            HTTPException: there is none; 404.
        """
        return self.run(request.path_params["run"], fresh=request.method == "POST")

    def run(self, identifier: str, fresh: bool = False) -> Entry:
        """A run by its id.

        Raises:
            HTTPException: there is none; 404.
        """
        entry = self.catalogue.find(identifier, fresh)
        if entry is None:
            raise HTTPException(404, "there is no such run")
        return entry

    def page(
        self,
        request: Request,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: object,
    ) -> HTMLResponse:
        """A page of the site."""
        html = self.templates.get_template(f"pages/{template}.html.j2").render(
            path=request.url.path,
            status=status,
            csrf_token=self.sessions.csrf_token,
            has_session=COOKIE in request.cookies,
            may_start=self.may_start,
            SIGNS_OF_STEPS=SIGNS,
            WORDS_OF_STEPS=WORDS,
            **values,
        )
        return HTMLResponse(html, status, dict(headers or {}))
