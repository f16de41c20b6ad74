"""The store: which artifacts it has, what is in them, and where each comes from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from mepof.report.text import duration
from mepof.web.catalogue import Entry
from mepof.web.contents import inside, items_of, text_of
from mepof.web.functions import functions_of, profile_in
from mepof.web.logs import commands_of
from mepof.web.provenance import Origin
from mepof.web.queries import number_in, text_in
from mepof.web.reports import DIGEST
from mepof.web.site import Site

_PAGE = 50
_MAX_RUNS = 20
_MAX_FUNCTIONS = 200


@dataclass(frozen=True)
class Made:
    """An origin as the page shows it."""

    origin: Origin
    took: str
    params: str
    commands: tuple[str, ...]

    @classmethod
    def of(cls, origin: Origin) -> Made:
        """An origin with its commands."""
        return cls(
            origin,
            duration(origin.action.seconds),
            json.dumps(origin.action.ingredients.params, indent=1, sort_keys=True),
            commands_of(origin.log.with_suffix(".sh")),
        )


def routes(site: Site) -> Sequence[BaseRoute]:
    """The addresses of this view."""

    def store(request: Request) -> Response:
        known = site.provenance.known()
        kind, find = text_in(request, "kind"), text_in(request, "find")
        shown = [a for a in known.latest if not kind or a.ingredients.kind == kind]
        if find:
            shown = [a for a in shown if find in f"{a.step} {a.artifact.digest} {a.fingerprint}"]
        pages = max(1, -(-len(shown) // _PAGE))
        page = min(max(1, number_in(request, "page", 1)), pages)
        return site.page(
            request,
            "store",
            actions=[(a, duration(a.seconds)) for a in shown[_PAGE * (page - 1) : _PAGE * page]],
            count=len(shown),
            kinds=sorted(Counter(a.ingredients.kind for a in known.latest).items()),
            kind=kind,
            find=find,
            number=page,
            pages=pages,
            root=str(site.store.root),
        )

    def artifact(request: Request) -> Response:
        digest = _digest(request)
        known = site.provenance.known()
        made = known.made.get(digest, ())
        path = site.store.object(digest)
        if not made and not path.is_dir():
            raise HTTPException(404, "the store does not have this artifact")
        items, count = items_of(path) if path.is_dir() else ((), 0)
        return site.page(
            request,
            "artifact",
            digest=digest,
            made=[(action, duration(action.seconds)) for action in made],
            present=path.is_dir(),
            items=items,
            count=count,
            directory="",
            readers=known.readers.get(digest, ())[:_PAGE],
            runs=_runs(site, digest),
            profile=profile_in(path) if path.is_dir() else None,
        )

    def files(request: Request) -> Response:
        digest, relative = _digest(request), request.path_params["path"].rstrip("/")
        path = inside(site.store.object(digest), relative)
        if path is None:
            raise HTTPException(404, "the artifact has no such file")
        if path.is_dir():
            items, count = items_of(path)
            return site.page(
                request, "files", digest=digest, items=items, count=count, directory=relative
            )
        text = text_of(path)
        if text is not None and "download" not in request.query_params:
            return Response(text, media_type="text/plain; charset=utf-8")
        return FileResponse(
            path, media_type="application/octet-stream", filename=f"{digest[:12]}-{path.name}"
        )

    def provenance(request: Request) -> Response:
        digest = _digest(request)
        made = site.provenance.known().made.get(digest)
        if not made:
            raise HTTPException(404, "no step of this store made the artifact")
        history = site.provenance.history(made[0])
        return site.page(
            request,
            "provenance",
            digest=digest,
            action=made[0],
            history=[Made.of(origin) for origin in history],
            tools=_tools(history),
        )

    def functions(request: Request) -> Response:
        digest, find = _digest(request), text_in(request, "find")
        path = site.store.object(digest)
        profile = profile_in(path) if path.is_dir() else None
        if profile is None:
            raise HTTPException(404, "the artifact is not a profile of functions")
        # The counts of a kernel are read for seconds.
        found = site.beside.result(
            str(profile), lambda: functions_of(profile), f"{profile.name} is being read."
        )
        shown = [
            (rank, f) for rank, f in enumerate(found.functions, 1) if find in f.name and f.total
        ]
        return site.page(
            request,
            "functions",
            digest=digest,
            profile=found,
            shown=shown[:_MAX_FUNCTIONS],
            count=len(shown),
            find=find,
        )

    return (
        Route("/store", store),
        Route("/store/{digest}", artifact),
        Route("/store/{digest}/provenance", provenance),
        Route("/store/{digest}/functions", functions),
        Route("/store/{digest}/files/{path:path}", files),
    )


def _digest(request: Request) -> str:
    digest = str(request.path_params["digest"])
    if not DIGEST.fullmatch(digest):
        raise HTTPException(404, "an artifact is named by 64 hexadecimal digits")
    return digest


def _runs(site: Site, digest: str) -> list[tuple[Entry, str]]:
    """The runs that have an artifact, and the step that made it there."""
    found: list[tuple[Entry, str]] = []
    for entry in site.catalogue.entries().values():
        for step in entry.run.steps.values():
            if step.digest == digest:
                found.append((entry, step.step))
                break
        if len(found) == _MAX_RUNS:
            break
    return found


def _tools(history: Sequence[Origin]) -> Mapping[str, str]:
    """Every tool in a history, with all its versions."""
    tools: dict[str, dict[str, None]] = {}
    for origin in history:
        for name, version in sorted(origin.action.ingredients.tools.items()):
            tools.setdefault(str(name), {})[str(version)] = None
    return {name: ", ".join(versions) for name, versions in sorted(tools.items())}
