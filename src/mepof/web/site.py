"""What every view is given: where runs are, what is known of them, and how a page is made."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from concurrent.futures import Future
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
from mepof.web.patience import Beside, finished
from mepof.web.provenance import Provenance
from mepof.web.reports import Reports
from mepof.web.steps import SIGNS, WORDS


@dataclass
class Reading:
    """How far the first reading is.

    Attributes:
        whole: ends with it; None if nobody has begun it.
        runs: of which the reports are read; 0 while the journals are.
    """

    whole: Future[None] | None = None
    runs: int = 0
    done: int = 0

    def text(self) -> str:
        """It in words."""
        if not self.runs:
            return "The journals are being read."
        return f"The reports of {self.done:,} of {self.runs:,} runs are read."


@dataclass(frozen=True)
class Site:
    """One server.

    Attributes:
        out: the directory of the runs.
        programs: the directory whose programs can be started; None allows text only.
        may_start: whether runs can be started, cancelled and resumed.
        stopping: ends the streams of events.
        beside: does what takes longer than a view may.
    """

    out: Path
    store: Store
    sessions: Sessions
    programs: Path | None = None
    may_start: bool = True
    stopping: Stopping = field(default_factory=Stopping)
    beside: Beside = field(default_factory=Beside)
    _reading: Reading = field(default_factory=Reading)

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
        """The templates of this package, and those of reports."""
        return environment("mepof.web")

    def begin_reading(self) -> None:
        """Begin to read everything that views of many runs need; what was read is kept."""
        self._reading.whole = self.beside.begin("everything", self._read)

    def _read(self) -> None:
        # To collect all of what stays would stop every view for a third of a second.
        gc.disable()
        try:
            for name in self.templates.list_templates(["j2"]):
                self.templates.get_template(name)
            entries = self.catalogue.entries()
            self._reading.runs = len(entries)
            for count, entry in enumerate(entries.values()):
                self._reading.done = count
                self.reports.headlines(entry)
            self.provenance.known()
        finally:
            gc.freeze()
            gc.enable()

    @property
    def is_read(self) -> bool:
        """Whether :meth:`wait` has nothing to wait for, and nothing to say."""
        whole = self._reading.whole
        return whole is None or (whole.done() and whole.exception() is None)

    def wait(self) -> None:
        """Wait a moment until everything is read, if that was begun.

        Raises:
            Unfinished: it takes longer.
        """
        if self._reading.whole is not None:
            finished(self._reading.whole, self._reading.text)

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
