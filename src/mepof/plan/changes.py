"""Describes the differences between two sets of ingredients of a step to the user."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mepof.errors import listed
from mepof.plan.fingerprint import Ingredients
from mepof.plan.model import HostInput, Input, Json, StepInput

_MAX_VALUE = 60
# Of changes, and of names in one of them: a line is read, not searched.
_MAX_NAMED = 6
_DIGEST = re.compile(r"(?:[a-z0-9]+:)?[0-9a-f]{32,}")


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        text: what changed, without digests and long values.
        detail: what changed, with the values before and after.
    """

    text: str
    detail: str


def changes(
    before: Ingredients, after: Ingredients, inputs: Mapping[str, Input] | None = None
) -> tuple[Change, ...]:
    """The differences between two sets of ingredients; the last stands for all beyond the first
    few.

    Args:
        inputs: the inputs by role, to name them; without them, changes name the role.
    """
    found = tuple(_differences(before, after, inputs or {}))
    shown, rest = found[:_MAX_NAMED], found[_MAX_NAMED:]
    if len(rest) < 2:
        return found
    details = "; ".join(change.detail for change in rest)
    return (*shown, Change(f"{len(rest)} more changes", details))


def _differences(
    before: Ingredients, after: Ingredients, inputs: Mapping[str, Input]
) -> Iterator[Change]:
    if before.kind != after.kind:
        yield _scalar("kind", before.kind, after.kind)
    if before.version != after.version:
        detail = (
            f"version of {after.kind} from {before.version or 'none'} to {after.version or 'none'}"
        )
        yield Change("this version of mepof does it differently", detail)
    yield from _members("", before.params, after.params)
    yield from _tools(before.tools, after.tools)
    for role in sorted({*before.inputs, *after.inputs}):
        old, new = before.inputs.get(role), after.inputs.get(role)
        if old != new:
            named = _named(role, inputs.get(role))
            done = "changed" if old and new else "added" if new else "removed"
            yield Change(f"{named} {done}", f"{named} from {old or 'none'} to {new or 'none'}")


def _tools(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    """One change per version, and one for all digests and files."""
    digests: list[Change] = []
    for name in sorted({*old, *new}):
        both = [tools[name] for tools in (old, new) if name in tools]
        found = _members("", *({name: t[name]} if name in t else {} for t in (old, new)))
        # Of files of a guest, directories and links have no digest.
        if name.startswith("/") or any(_DIGEST.search(value) for value in both):
            digests += [replace(change, text=_words(name)) for change in found]
        else:
            yield from found
    if digests:
        names = listed([change.text for change in digests], _MAX_NAMED)
        details = "; ".join(change.detail for change in digests)
        yield Change(f"{names} changed", details)


def _named(role: str, given: Input | None) -> str:
    match given:
        case HostInput(path):
            return path
        case StepInput(step):
            return f"the result of {step}"
    return f"input {role}"


def _members(prefix: str, old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[Change]:
    for key in sorted({*old, *new}):
        name = prefix + _words(key)
        if key not in new:
            full = _full(old[key])
            yield Change(f"{name} removed{_was(old[key])}", f"{name} removed (was {full})")
        elif key not in old:
            shown, full = _short(new[key]), _full(new[key])
            text = f"{name} added: {shown}" if shown else f"{name} added"
            yield Change(text, f"{name} added: {full}")
        elif old[key] != new[key]:
            yield from _value(name, old[key], new[key])


def _words(key: str) -> str:
    """A key in words; a path stays as it is."""
    return key if "/" in key else key.replace("_", " ")


def _value(name: str, old: Json, new: Json) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _members(f"{name} ", old, new)
    elif isinstance(old, list) and isinstance(new, list):
        yield _items(name, old, new)
    else:
        yield _scalar(name, old, new)


def _items(name: str, old: Sequence[Json], new: Sequence[Json]) -> Change:
    detail = f"{name} from {_full(old)} to {_full(new)}"
    parts = []
    for word, some, others in (("added", new, old), ("removed", old, new)):
        only = [item for item in some if item not in others]
        shown = [_short(item) for item in only]
        if only:
            parts.append(f"{word}: {', '.join(shown)}" if all(shown) else word)
    return Change(f"{name} {'; '.join(parts) or 'in another order'}", detail)


def _scalar(name: str, old: Json, new: Json) -> Change:
    shown = _short(old), _short(new)
    text = f"{name} from {shown[0]} to {shown[1]}" if all(shown) else f"{name} changed"
    return Change(text, f"{name} from {_full(old)} to {_full(new)}")


def _was(value: Json) -> str:
    shown = _short(value)
    return f" (was {shown})" if shown else ""


def _short(value: Json) -> str:
    """A value as a user would write it; empty if it is long or a digest."""
    match value:
        case dict():
            members = ((key, _short(member)) for key, member in value.items())
            text = ", ".join(f"{key} {shown}" for key, shown in members if shown)
        case list():
            text = ", ".join(map(_short, value)) or "none"
        case _:
            text = _full(value)
    return "" if len(text) > _MAX_VALUE or _DIGEST.search(text) or "\n" in text else text


def _full(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
