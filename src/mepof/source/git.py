"""A commit of a git repository: any URL that git reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mepof.errors import InputError
from mepof.kernel.source import check_kernel
from mepof.plan.digest import file_digest
from mepof.source.address import (
    BARE,
    Address,
    attribute_keys,
    has_tarball_suffix,
    scheme_of,
    split,
)
from mepof.source.keyring import keyring_of, verify
from mepof.source.mirror import Mirror, Ref, is_commit, no_such_ref, resolve
from mepof.source.protocol import Pin, Workshop

KINDS = ("tag", "branch", "commit")
_KEYS = (BARE, *KINDS, "signed-by")
_PREFIX = "git+"
_SCHEMES = ("git", "ssh", "http", "https", "file")
# git check-ref-format, as far as a shell or git itself could misread a name.
_REF = re.compile(r"(?!-|/)(?!.*(\.\.|@\{|//|\.lock$|[/.]$))[^\x00-\x20\x7f~^:?*\[\\]+")
_SIGNATURE = "-----BEGIN PGP SIGNATURE-----"


class GitSource:
    """``git+https://HOST/linux.git#tag=v6.12``: also ``#branch=``, ``#commit=``, ``#NAME``."""

    def reads(self, address: str) -> bool:
        scheme = scheme_of(address)
        if address.startswith(_PREFIX) or scheme in ("git", "ssh"):
            return True
        location = address.partition("#")[0]
        if scheme == "file":
            return not has_tarball_suffix(location)
        named = not attribute_keys(address).isdisjoint(KINDS)
        return scheme in ("http", "https") and (location.endswith(".git") or named)

    def parse(self, address: str) -> None:
        _parsed(address)

    def host(self, address: str) -> None:
        return None

    def check(self, address: str) -> None:
        _parsed(address)

    def pin(self, address: str, workshop: Workshop) -> Pin:
        parsed = _parsed(address)
        kind, name = wanted(parsed)
        if kind == "commit":
            return {"commit": name}
        ref = ref_of(parsed.location, kind, name, workshop)
        shown = re.sub("^refs/(heads|remotes)/", "branch ", ref.name).replace("refs/tags/", "tag ")
        if not ref.name.startswith("refs/tags/"):
            workshop.note(f"{shown} of {parsed.location} is at {ref.commit} now")
        signed = {"tag": ref.tag} if ref.tag and "signed-by" in parsed.attributes else {}
        if "signed-by" in parsed.attributes and not signed:
            raise InputError(
                f"{shown} of {parsed.location} has no signature", "name a signed tag: #tag=NAME"
            )
        return {"commit": ref.commit, "ref": ref.name, **signed}

    def identity(self, address: str, pin: Pin) -> Mapping[str, str]:
        signer = _parsed(address).attributes.get("signed-by")
        return {} if signer is None else {"keyring": file_digest(keyring_of(signer).path)}

    def fetch(self, address: str, pin: Pin, output: Path, workshop: Workshop) -> None:
        parsed = _parsed(address)
        signer = parsed.attributes.get("signed-by")
        mirror = Mirror(workshop)
        commit = pin["commit"]
        if signer is not None:
            keyring = keyring_of(signer)
            mirror.fetch(parsed.location, pin["tag"], pin.get("ref"))
            text = mirror.tag(pin["tag"])
            _check_tag(text, commit, wanted(parsed)[1], address)
            signed, signature = _split_tag(text, workshop)
            primary = verify(signed, signature, keyring, address, workshop)
            workshop.note(f"{address} is signed by {primary}")
        mirror.fetch(parsed.location, commit, pin.get("ref"))
        mirror.lay_out(commit, output)
        check_kernel(output, address)


def wanted(address: Address) -> tuple[str, str]:
    """The kind and name of what an address asks for; the kind is empty where it is open."""
    for kind in KINDS:
        if kind in address.attributes:
            return kind, address.attributes[kind]
    name = address.attributes.get(BARE, "")
    return ("commit" if is_commit(name) else ""), name


def ref_of(url: str, kind: str, name: str, workshop: Workshop) -> Ref:
    """The ref that a server has under a name.

    Args:
        kind: ``tag``, ``branch`` or empty for either; an empty name is the default branch.

    Raises:
        InputError: it has none, or both a tag and a branch.
        WorkError: the server does not answer.
    """
    tag, branch = f"refs/tags/{name}", f"refs/heads/{name}"
    # A clone on this machine has most branches of its origin as `origin/NAME` alone.
    remote = f"refs/remotes/{name}"
    names = {"tag": (tag,), "branch": (branch, remote)}.get(kind, (tag, branch, remote))
    found = resolve(url, names if name else ("HEAD",), workshop)
    if not found:
        raise no_such_ref(url, kind or "tag or branch", name or "HEAD", workshop)
    if [ref.name for ref in found[:2]] == [tag, branch]:
        raise InputError(
            f"{url} has both a tag and a branch `{name}`", f"write #tag={name} or #branch={name}"
        )
    return found[0]


def check_url(url: str, address: str) -> None:
    """Check that git reads a URL by a protocol that only fetches.

    Raises:
        InputError: it does not.
    """
    if scheme_of(url) not in _SCHEMES:
        raise InputError(
            f"`{address}` is not a URL that mepof lets git read",
            f"use {', '.join(_SCHEMES)} or USER@HOST:PATH; a directory is git+file:///PATH",
        )


def check_ref(name: str, address: str) -> None:
    """Check the name of a tag or branch.

    Raises:
        InputError: git does not allow it.
    """
    if _REF.fullmatch(name) is None:
        raise InputError(
            f"`{address}`: `{name}` is not the name of a tag or branch", "see git check-ref-format"
        )


def _parsed(address: str) -> Address:
    parsed = split(address.removeprefix(_PREFIX), _KEYS)
    given = [kind for kind in (*KINDS, BARE) if kind in parsed.attributes]
    if len(given) > 1:
        first, second = (kind or "tag or branch" for kind in given[:2])
        raise InputError(f"`{address}` names a {first} and a {second}", "name one: they may differ")
    check_url(parsed.location, address)
    kind, name = wanted(parsed)
    if kind == "commit" and not is_commit(name):
        raise InputError(
            f"`{address}`: `{name}` is not the whole hash of a commit",
            "write all 40 digits: git rev-parse COMMIT",
        )
    if kind != "commit" and name:
        check_ref(name, address)
    if "signed-by" in parsed.attributes and kind in ("commit", "branch"):
        raise InputError(
            f"`{address}`: only tags are signed", "write #tag=NAME, or remove signed-by"
        )
    return parsed


def _check_tag(text: str, commit: str, name: str, address: str) -> None:
    """Refuse a signed tag that is not the one that was asked for, or not of the commit.

    A server may give any tag under any name: an old release under that of a new one, for instance.
    """
    if _SIGNATURE not in text:
        raise InputError(f"{address} has no signature", "remove signed-by, or name a signed tag")
    lines = text.partition("\n\n")[0].split("\n")
    if lines[:1] != [f"object {commit}"]:
        raise InputError(f"{address}: its signed tag is not of the commit {commit}")
    signed = next((line.removeprefix("tag ") for line in lines if line.startswith("tag ")), "")
    if signed != name:
        raise InputError(
            f"{address}: what the server has by that name is the signed tag `{signed}`",
            "do not use it: ask another server for the tag",
        )


def _split_tag(text: str, workshop: Workshop) -> tuple[Path, Path]:
    """A tag's signed part and its signature, as files."""
    at = text.index(_SIGNATURE)
    signed, signature = workshop.work / "tag", workshop.work / "tag.asc"
    signed.write_text(text[:at], encoding="utf-8")
    signature.write_text(text[at:] + "\n", encoding="utf-8")
    return signed, signature


SOURCE = GitSource()
