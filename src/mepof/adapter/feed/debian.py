"""``debian``: the versions of a package of kernel source."""

from __future__ import annotations

from fnmatch import fnmatchcase

from mepof.adapter.feed.protocol import Follow, Release, Seen, memory_of
from mepof.errors import InputError
from mepof.source.debian import PREFIX, versions
from mepof.source.protocol import Workshop, parse


class DebianFeed:
    """apt's index; apt asks archives only for what has changed."""

    def check(self, follow: Follow) -> None:
        if follow.package is None or follow.url is not None:
            raise InputError(
                f"`{follow.name}` follows debian, which takes `package` and no `url`",
                'write package = "linux-source-6.12"',
            )
        if follow.monikers or follow.signed_by is not None:
            key = "monikers" if follow.monikers else "signed-by"
            raise InputError(
                f"`{follow.name}` follows debian, which takes no `{key}`",
                "remove it: apt verifies packages, and `match` chooses versions",
            )
        parse(_address(follow, "1"))

    def signer(self, follow: Follow) -> str | None:
        return None  # apt has its own

    def current(self, follow: Follow, release: Release) -> Release:
        return Release(release.name, _address(follow, release.name))

    def look(self, follow: Follow, memory: str, workshop: Workshop) -> Seen:
        assert follow.package is not None
        suite = f"/{follow.suite}" if follow.suite else ""
        found = versions(f"{PREFIX}{follow.package}{suite}", workshop)
        matching = [v for v in reversed(found) if fnmatchcase(v, follow.match)]
        state = memory_of(matching)
        if state == memory:
            return Seen(None, memory)
        return Seen(tuple(Release(v, _address(follow, v)) for v in matching), state)


def _address(follow: Follow, version: str) -> str:
    suite = f"/{follow.suite}" if follow.suite else ""
    return f"{PREFIX}{follow.package}={version}{suite}"


FEED = DebianFeed()
