"""The list of runs, and one run: its plan, its steps, their logs, its report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mepof.plan.progress import read_progress
from mepof.report.text import duration, printable
from mepof.web.catalogue import Entry
from mepof.web.graph import draw
from mepof.web.launch import LOG_NAME
from mepof.web.live import stream
from mepof.web.logs import MAX_BYTES, commands_of, read, readable, size, tail
from mepof.web.queries import number_in, text_in
from mepof.web.reports import Headline, Place
from mepof.web.site import Site
from mepof.web.steps import StepRow, rows_of

_PAGE = 50
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
# A report has styles in its page, and nothing else that a browser would run or fetch.
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none';"
    " form-action 'none'; sandbox"
)


@dataclass(frozen=True)
class RunLine:
    """A run in the list."""

    entry: Entry
    title: str
    took: str
    headlines: tuple[Headline, ...]


def routes(site: Site) -> Sequence[BaseRoute]:
    """The addresses of this view."""

    def runs(request: Request) -> Response:
        version = _version(site)
        entries = list(site.catalogue.entries().values())
        wanted = text_in(request, "find")
        if wanted:
            entries = [e for e in entries if wanted.lower() in f"{e.name} {e.state}".lower()]
        pages = max(1, -(-len(entries) // _PAGE))
        page = min(max(1, number_in(request, "page", 1)), pages)
        shown = entries[_PAGE * (page - 1) : _PAGE * page]
        return site.page(
            request,
            "runs",
            lines=[_line(site, entry) for entry in shown],
            count=len(entries),
            number=page,
            pages=pages,
            find=wanted,
            out=str(site.out),
            version=version,
        )

    def runs_events(request: Request) -> Response:
        # What the page shows; something may have changed since it was made.
        seen = request.query_params.get("seen", "")

        def look() -> dict[str, object]:
            nonlocal seen
            changed, seen = seen != (now := _version(site)), now
            return {"changed": True} if changed else {}

        return stream(request, site.stopping, look)

    def run(request: Request) -> Response:
        entry = site.entry(request)
        rows = rows_of(entry, _progress(entry))
        return site.page(
            request,
            "run",
            entry=entry,
            title=title_of(entry.run.program),
            took=_took(entry),
            began=began_of(entry),
            rows=rows,
            by_step={row.step: row for row in rows},
            graph=draw({row.step: row.inputs for row in rows}),
            reports=site.reports.places(entry),
            headlines=site.reports.headlines(entry),
            said=tail(entry.out / LOG_NAME) if entry.latest else "",
        )

    def run_events(request: Request) -> Response:
        identifier = site.entry(request).run.id
        known: dict[str, object] = {}
        ended = False

        def look() -> dict[str, object] | None:
            nonlocal ended
            if ended:
                return None
            entry = site.catalogue.find(identifier)
            if entry is None:
                return None
            fresh = dict(_state_of(entry))
            news = {key: value for key, value in fresh.items() if known.get(key) != value}
            known.update(news)
            ended = not entry.alive
            return {"changes": news} if news else {}

        return stream(request, site.stopping, look)

    def step(request: Request) -> Response:
        entry, row = _step(site, request)
        log = _log(site, row)
        return site.page(
            request,
            "step",
            entry=entry,
            row=row,
            log=tail(log),
            log_path=log,
            log_bytes=size(log) if log else 0,
            foreign=not _is_ours(site, entry),
            commands=commands_of(log.with_suffix(".sh")) if log else (),
            readers=[r.step for r in rows_of(entry, {}) if row.step in r.inputs],
        )

    def log_events(request: Request) -> Response:
        entry, row = _step(site, request)
        log = _log(site, row)
        identifier, name = entry.run.id, row.step
        # What comes before is on the page already.
        position = number_in(request, "from", 0)
        ended = False

        def look() -> dict[str, object] | None:
            nonlocal position, ended
            if log is None or ended:
                return None
            current = site.catalogue.find(identifier)
            known = current.run.steps.get(name) if current else None
            ended = not (current and current.alive and known and known.state == "running")
            data = read(log, position)
            if not ended:
                # A character may have been written in part; a line is whole.
                whole = data.rfind(b"\n") + 1
                data = data if len(data) == MAX_BYTES and not whole else data[:whole]
            position += len(data)
            return {"text": readable(data)} if data else {}

        return stream(request, site.stopping, look)

    def report(request: Request) -> Response:
        entry = site.entry(request)
        page = site.reports.page(_place(site, entry, request.path_params["report"]))
        headers = {"content-security-policy": _REPORT_POLICY}
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)

    def program(request: Request) -> Response:
        text = site.entry(request).run.program
        return Response(text, media_type="text/plain; charset=utf-8")

    return (
        Route("/", runs),
        Route("/events", runs_events),
        Route("/runs/{run}", run),
        Route("/runs/{run}/events", run_events),
        Route("/runs/{run}/program", program),
        Route("/runs/{run}/steps/{step:path}", step),
        Route("/runs/{run}/logs/{step:path}", log_events),
        Route("/runs/{run}/reports/{report:path}", report),
    )


def title_of(program: str) -> str:
    """What a program says of itself: its first comment, or its first statement but settings."""
    lines = [line.strip() for line in program.splitlines() if line.strip()]
    if lines and lines[0].startswith("#"):
        return printable(lines[0].strip("# ")) or "a program"
    return printable(next((line for line in lines if not line.startswith("set ")), "a program"))


def began_of(entry: Entry) -> str:
    """When a run began, to the second, in UTC."""
    return datetime.fromisoformat(entry.run.started).strftime("%Y-%m-%d %H:%M:%S")


def _version(site: Site) -> str:
    """Changes whenever the list does."""
    shown = [(e.run.id, e.state, e.made, e.total) for e in site.catalogue.entries().values()]
    return sha256(repr(shown).encode()).hexdigest()[:16]


def _line(site: Site, entry: Entry) -> RunLine:
    headlines = site.reports.headlines(entry)
    return RunLine(entry, title_of(entry.run.program), _took(entry), headlines)


def _took(entry: Entry) -> str:
    ended = entry.run.ended
    if ended is None and not entry.alive:
        return ""
    last = datetime.fromisoformat(ended) if ended else datetime.now(UTC)
    return duration(max(0.0, (last - datetime.fromisoformat(entry.run.started)).total_seconds()))


def _progress(entry: Entry) -> dict[str, str]:
    if not (entry.alive and entry.latest):
        return {}
    return {step: printable(text) for step, text in read_progress(entry.out).items()}


def _state_of(entry: Entry) -> Iterator[tuple[str, object]]:
    """Everything of a run that changes, by where it is on the page."""
    yield "", {"state": entry.state, "made": entry.made, "total": entry.total}
    for row in rows_of(entry, _progress(entry)):
        running = row.state == "running"
        yield (
            row.step,
            {
                "state": row.state,
                "word": row.word,
                "sign": row.sign,
                "waits": printable(row.waits),
                # The page counts on by itself.
                "took": "" if running else row.took,
                "since": row.since,
            },
        )


def _step(site: Site, request: Request) -> tuple[Entry, StepRow]:
    entry = site.entry(request)
    wanted = request.path_params["step"]
    for row in rows_of(entry, _progress(entry)):
        if row.step == wanted:
            return entry, row
    raise HTTPException(404, "the run has no such step")


def _is_ours(site: Site, entry: Entry) -> bool:
    return Path(entry.run.store) == site.store.root


def _log(site: Site, row: StepRow) -> Path | None:
    """The log of a step in the served store."""
    known = row.journalled
    if known is None or not _FINGERPRINT.fullmatch(known.fingerprint):
        return None
    logs = site.store.root / "logs"
    # A step that came from the store may have been made under another name.
    named = Path(known.log) if known.log else logs
    if named.parent != logs or named.suffix != ".log":
        named = site.store.log(row.step, known.fingerprint)
    return named if named.is_file() and not named.is_symlink() else None


def _place(site: Site, entry: Entry, name: str) -> Place:
    for place in site.reports.places(entry):
        if place.name == name:
            return place
    raise HTTPException(404, "the run has no such report")
