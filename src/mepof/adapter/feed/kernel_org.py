"""``kernel-org``: the list of releases that kernel.org publishes as JSON."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from hashlib import sha256
from urllib.parse import urljoin

from pydantic import BaseModel, ValidationError

from mepof.adapter.feed.protocol import Follow, Release, Seen, version_key
from mepof.described import first_error, nearest
from mepof.errors import InputError, WorkError
from mepof.kernel.source import KernelVersion
from mepof.source.download import changed
from mepof.source.protocol import Workshop, parse
from mepof.source.tarball import signer_of_host

URL = "https://www.kernel.org/releases.json"
# Of release candidates, it makes tarballs when they are asked for, so nobody has signed them; their
# tags are signed.
_UNSIGNED = "https://git.kernel.org/"
_MAINLINE = "git+https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git"
# Those of its releases that have a tarball, which linux-next does not.
_MONIKERS = ("longterm", "mainline", "stable")
# How kernel.org names releases; another list may have other names.
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-rc(\d+))?")


class _Listed(BaseModel):
    version: str
    moniker: str
    source: str | None = None
    iseol: bool = False


class _List(BaseModel):
    releases: tuple[_Listed, ...]


class KernelOrgFeed:
    """https://www.kernel.org/releases.json, asked for only if it has changed."""

    def check(self, follow: Follow) -> None:
        if follow.package or follow.suite:
            raise InputError(f"`{follow.name}`: `kernel-org` takes no package", "remove it")
        if self.signer(follow) is None:
            raise InputError(
                f"`{follow.name}` does not say how the releases of {follow.url} are verified",
                'add signed-by = "KEYRING"; `kernel.org` for copies of its tarballs',
            )
        for moniker in follow.monikers:
            if follow.url is None and moniker not in _MONIKERS:
                raise InputError(
                    f"`{follow.name}`: kernel.org has no tarballs of the moniker `{moniker}`",
                    nearest(moniker, _MONIKERS),
                )

    def signer(self, follow: Follow) -> str | None:
        return follow.signed_by or signer_of_host(follow.url or URL)

    def current(self, follow: Follow, release: Release) -> Release:
        source = release.address.removeprefix("git+").partition("#")[0]
        return _release(release.name, source, follow)

    def look(self, follow: Follow, memory: str, workshop: Workshop) -> Seen:
        url = follow.url or URL
        # Another choice from the same list is not what was seen the last time.
        choice = sha256(repr((url, follow.match, follow.monikers)).encode()).hexdigest()[:16]
        known, _, before = memory.partition(" ")
        text, validator = changed(url, before if known == choice else "", workshop)
        if text is None:
            return Seen(None, memory)
        try:
            listed = _List.model_validate(json.loads(text)).releases
        except ValidationError as error:
            raise WorkError(f"{url} is not a list of releases: {first_error(error)}") from error
        except ValueError as error:
            raise WorkError(f"{url} is not JSON: {error}") from error
        found = [
            _release(each.version, urljoin(url, each.source), follow)
            for each in listed
            if each.source is not None
            and (not follow.monikers or each.moniker in follow.monikers)
            and fnmatchcase(each.version, follow.match)
        ]
        for release in found:
            parse(release.address)
        return Seen(
            tuple(sorted(found, key=lambda r: version_key(r.name))), f"{choice} {validator}"
        )


def _release(name: str, source: str, follow: Follow) -> Release:
    form = _VERSION.fullmatch(name)
    version = None
    if form is not None:
        first, second, third = (int(part or 0) for part in form.groups()[:3])
        version = KernelVersion(first, second, third, int(form[4]) if form[4] else None)
    return Release(name, _address(name, source, follow), version)


def _address(version: str, source: str, follow: Follow) -> str:
    if source.startswith(_UNSIGNED):
        return f"{_MAINLINE}#tag=v{version}&signed-by={follow.signed_by or signer_of_host(source)}"
    return f"{source}#signed-by={follow.signed_by}" if follow.signed_by else source


FEED = KernelOrgFeed()
