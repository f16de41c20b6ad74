"""Starts a run from a program, cancels one, and resumes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from mepof.errors import MepofError
from mepof.executor.programs import WrongProgram
from mepof.g4.source import Source
from mepof.web.catalogue import Entry
from mepof.web.contents import inside
from mepof.web.forms import posted
from mepof.web.launch import checked
from mepof.web.logs import tail
from mepof.web.queries import text_in
from mepof.web.site import Site

_MAX_PROGRAMS = 200
_MAX_DEPTH = 3


def routes(site: Site) -> Sequence[BaseRoute]:
    """The addresses of this view; none if nothing may be started."""
    if not site.may_start:
        return ()

    def form(
        request: Request,
        name: str = "",
        text: str = "",
        problem: str = "",
        remedy: str | None = None,
        steps: int | None = None,
        status: int = 200,
    ) -> Response:
        return site.page(
            request,
            "start",
            status,
            name=name,
            text=text,
            problem=problem,
            remedy=remedy,
            steps=steps,
            programs=list(_programs(site.programs)),
            directory=str(site.programs),
            chosen=text_in(request, "file"),
            out=str(site.catalogue.root),
            here=str(Path.cwd()),
        )

    def empty(request: Request) -> Response:
        chosen = text_in(request, "file")
        if not chosen:
            return form(request)
        path = inside(site.programs, chosen) if site.programs else None
        if path is None or path.suffix != ".g4" or not path.is_file():
            raise HTTPException(404, "there is no such program")
        return form(request, path.stem, Source.read(path).text)

    def start(request: Request, given: Mapping[str, str]) -> Response:
        name = given.get("name", "").strip()
        text = given.get("program", "").replace("\r\n", "\n")
        try:
            if given.get("do") != "start":
                return form(request, name, text, steps=len(checked(text).steps))
            site.launcher.start(name, text)
        except WrongProgram as error:
            return form(request, name, text, error.message, status=422)
        except MepofError as error:
            return form(request, name, text, error.message, error.remedy, status=422)
        return RedirectResponse(f"/started/{name}", 303)

    def started(request: Request) -> Response:
        name = request.path_params["name"]
        process = site.launcher.started(name)
        if process is None:
            raise HTTPException(404, "no such run was started here")
        entry = _latest(site, name)
        if entry is not None and (entry.run.pid == process.process.pid):
            return RedirectResponse(f"/runs/{entry.run.id}", 303)
        return site.page(
            request,
            "started",
            name=name,
            ended=process.status is not None,
            said=tail(site.launcher.said(name)),
        )

    def cancel(request: Request, given: Mapping[str, str]) -> Response:
        entry = site.entry(request)
        site.launcher.cancel(entry)
        return RedirectResponse(f"/runs/{entry.run.id}", 303)

    def resume(request: Request, given: Mapping[str, str]) -> Response:
        entry = site.entry(request)
        site.launcher.resume(entry)
        return RedirectResponse(f"/started/{entry.name}", 303)

    return (
        Route("/start", empty),
        Route("/start", posted(site.sessions, start), methods=["POST"]),
        Route("/started/{name:path}", started),
        Route("/runs/{run}/cancel", posted(site.sessions, cancel), methods=["POST"]),
        Route("/runs/{run}/resume", posted(site.sessions, resume), methods=["POST"]),
    )


def _latest(site: Site, name: str) -> Entry | None:
    return next((e for e in site.catalogue.entries().values() if e.name == name and e.latest), None)


def _programs(directory: Path | None) -> Iterator[str]:
    """The programs that are offered, by path below the directory."""
    if directory is None:
        return
    found = sorted(
        path.relative_to(directory)
        for depth in range(_MAX_DEPTH)
        for path in directory.glob("*/" * depth + "*.g4")
    )
    for path in found[:_MAX_PROGRAMS]:
        if (real := inside(directory, path.as_posix())) is not None and real.is_file():
            yield path.as_posix()
