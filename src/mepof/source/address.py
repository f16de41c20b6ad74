"""Addresses: ``LOCATION#KEY=VALUE&KEY=VALUE``, as makepkg and pip write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from mepof.described import nearest
from mepof.errors import InputError

#: The key of a fragment without one: ``linux.git#v6.12``.
BARE = ""

_SCP = re.compile(r"^[\w.-]+@[\w.-]+:[^/].*|^[\w.-]+@[\w.-]+:/[^/].*")
_TARBALL = re.compile(r"\.(tar(\.(xz|gz|bz2|zst|lz))?|t[gx]z|tbz2?)$")
# How those of GitHub, GitLab and Bitbucket begin, which are also given as a user's name.
_TOKEN = re.compile(r"(?:gh[oprsu]_|github_pat_|glpat-|ATBB)[\w-]{16,}$")
_ATTRIBUTES = re.compile(r"[a-z0-9-]+=")


@dataclass(frozen=True)
class Address:
    """A location, and what its fragment says about it."""

    location: str
    attributes: Mapping[str, str]


def scheme_of(address: str) -> str:
    """The scheme of a URL in lower case; empty for a path, ``ssh`` for ``user@host:path``."""
    if _SCP.match(address):
        return "ssh"
    return address.partition("://")[0].lower() if "://" in address else ""


def has_tarball_suffix(location: str) -> bool:
    """Whether a location ends as tarballs do."""
    return _TARBALL.search(location) is not None


def attribute_keys(address: str) -> frozenset[str]:
    """The keys in the fragment of an address, known or not."""
    fragment = address.partition("#")[2]
    return frozenset(part.partition("=")[0] for part in fragment.split("&") if "=" in part)


def split(address: str, known: Collection[str]) -> Address:
    """An address in its parts.

    Args:
        known: the keys that its fragment may have; ``BARE`` among them if it may have none.

    Raises:
        InputError: a key is unknown, occurs twice, or has no value; or the URL holds a password.
    """
    location, mark, fragment = address.partition("#")
    attributes: dict[str, str] = {}
    parts = fragment.split("&") if mark else []
    if BARE in known and parts and parts[0] and not _ATTRIBUTES.match(fragment):
        attributes[BARE], *parts = parts
    for part in parts:
        key, equals, value = part.partition("=")
        names = [name for name in known if name]
        if not key or key not in names:
            raise InputError(f"`{address}`: unknown key `{key}` after `#`", nearest(key, names))
        if not equals or not value:
            raise InputError(f"`{address}`: `{key}` has no value", f"write {key}=VALUE")
        if key in attributes:
            raise InputError(f"`{address}`: `{key}` occurs twice", "write it once")
        attributes[key] = value
    _check_location(location, address)
    return Address(location, attributes)


def _check_location(location: str, address: str) -> None:
    if not location:
        raise InputError(f"`{address}` has no location before `#`", "write URL#KEY=VALUE")
    scheme = scheme_of(location)
    if not scheme or _SCP.match(location):
        return
    parsed = _parsed(location)
    if parsed.password is not None or _TOKEN.match(parsed.username or ""):
        # Programs and plans are kept, published and logged.
        what = "token" if parsed.password is None else "password"
        raise InputError(
            f"a URL of {parsed.hostname} holds a {what}",
            "remove it, and use ~/.netrc, a git credential helper or an ssh key",
        )
    if scheme != "file" and not parsed.hostname:
        raise InputError(f"`{address}` names no host", "write it like https://HOST/PATH")


def _parsed(location: str) -> SplitResult:
    try:
        parsed = urlsplit(location)
        _ = parsed.port
    except ValueError as error:
        raise InputError(f"`{location}` is not a URL: {error}") from error
    return parsed


def sha256_of(address: Address, text: str) -> str | None:
    """The checksum that an address states.

    Raises:
        InputError: it is not one.
    """
    given = address.attributes.get("sha256")
    if given is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", given):
        raise InputError(
            f"`{text}`: the sha256 is not 64 hexadecimal digits", "take it from `sha256sum FILE`"
        )
    return given.lower() if given else None
