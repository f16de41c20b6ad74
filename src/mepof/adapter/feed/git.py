"""``git``: the tags of a repository."""

from __future__ import annotations

from fnmatch import fnmatchcase

from mepof.adapter.feed.protocol import Follow, Release, Seen, memory_of, version_key
from mepof.errors import InputError
from mepof.source.address import split
from mepof.source.git import check_url
from mepof.source.mirror import tags
from mepof.source.protocol import Workshop, parse


class GitFeed:
    """Tags; a tag that moves is not another release."""

    def check(self, follow: Follow) -> None:
        if follow.url is None:
            raise InputError(f"`{follow.name}` follows git and has no `url`", 'add url = "…"')
        if follow.package or follow.suite or follow.monikers:
            raise InputError(
                f"`{follow.name}` follows git, which takes `url` alone", "choose tags by `match`"
            )
        url = follow.url.removeprefix("git+")
        try:
            check_url(url, follow.url)
        except InputError as error:
            raise InputError(f"`{follow.name}`: `url`: {error.message}", error.remedy) from error
        if "#" in url:
            raise InputError(
                f"`{follow.name}`: `url`: `{follow.url}` names a tag or a branch",
                "remove what follows `#`, and choose tags by `match`",
            )
        split(url, ())
        parse(_address(follow, "v1"))

    def signer(self, follow: Follow) -> str | None:
        return follow.signed_by

    def current(self, follow: Follow, release: Release) -> Release:
        return Release(release.name, _address(follow, release.name))

    def look(self, follow: Follow, memory: str, workshop: Workshop) -> Seen:
        assert follow.url is not None
        listed = tags(follow.url.removeprefix("git+"), workshop)
        found = sorted((t for t in listed if fnmatchcase(t, follow.match)), key=version_key)
        state = memory_of(found)
        if state == memory:
            return Seen(None, memory)
        return Seen(tuple(Release(tag, _address(follow, tag)) for tag in found), state)


def _address(follow: Follow, tag: str) -> str:
    url = f"git+{(follow.url or '').removeprefix('git+')}"
    signed = f"&signed-by={follow.signed_by}" if follow.signed_by else ""
    return f"{url}#tag={tag}{signed}"


FEED = GitFeed()
