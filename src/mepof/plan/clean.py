"""Removing from a shared store what nobody has used for some time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from mepof.plan.action import Action
from mepof.plan.archive import ARCHIVE, NotAnArchive, unpack
from mepof.plan.lease import DIRECTORY, Held, moment
from mepof.plan.remote import Remote
from mepof.plan.store import artifact_of, remove_tree

# A run that has just begun may not have written its lease yet.
MIN_AGE = timedelta(days=1)
_REQUESTS_AT_ONCE = 16


@dataclass(frozen=True)
class Cleaned:
    """What was removed, or would be.

    Attributes:
        actions: how many steps are forgotten.
        artifacts: how many artifacts are removed.
        size: their bytes, as archives.
        kept: how many artifacts stay.
        held: how many leases hold.
    """

    actions: int
    artifacts: int
    size: int
    kept: int
    held: int


def clean(remote: Remote, keep: timedelta, now: datetime, *, dry_run: bool = False) -> Cleaned:
    """Remove actions that no run used within ``keep``, and then artifacts that no action names.

    A lease that holds keeps what it names, however old. Runs may go on meanwhile: one that finds
    an action without its artifact makes it again.

    Args:
        keep: at least a day, so that runs can write their leases.

    Raises:
        WorkError: the remote does not answer, or refuses us.
    """
    oldest = now - max(keep, MIN_AGE)
    leases = _leases(remote)
    recent = [each for each in leases.values() if each.until > now or each.renewed > oldest]
    used = frozenset[str]().union(*(each.fingerprints for each in recent))
    actions = _actions(remote)
    gone = {
        name: action
        for name, action in actions.items()
        if action is None or (action.fingerprint not in used and moment(action.made_at) < oldest)
    }
    named = {
        action.artifact.digest
        for name, action in actions.items()
        if action is not None and name not in gone
    }
    objects = remote.sizes("objects")
    # Read again: what somebody is about to push is named before it is looked for.
    latest = _leases(remote)
    pushed = frozenset[str]().union(
        *(each.digests for each in latest.values() if each.until > now or each.renewed > oldest)
    )
    unnamed = {name: size for name, size in objects.items() if not _is_needed(name, named, pushed)}
    if not dry_run:
        over = [name for name, held in leases.items() if held not in recent]
        _remove(remote, [f"actions/{name}" for name in gone])
        _remove(remote, [f"objects/{name}" for name in unnamed])
        _remove(remote, [f"{DIRECTORY}/{name}" for name in over])
    held = sum(each.until > now for each in leases.values())
    kept = len(objects) - len(unnamed)
    return Cleaned(len(gone), len(unnamed), sum(unnamed.values()), kept, held)


def wrong_archives(remote: Remote, work: Path) -> tuple[int, list[str]]:
    """How many artifacts a remote has, and the names of those that do not have their digest.

    Args:
        work: an empty directory for one artifact at a time.

    Raises:
        WorkError: the remote does not answer, or refuses us.
    """
    names = [name for name in sorted(remote.sizes("objects")) if name.endswith(f".{ARCHIVE}")]
    wrong = []
    for name in names:
        archive, tree = work / "archive", work / "tree"
        tree.mkdir()
        try:
            if not remote.fetch(f"objects/{name}", archive, _unheard):
                continue  # cleaned meanwhile
            unpack(archive, tree)
            if artifact_of(tree).digest != name.partition(".")[0]:
                raise NotAnArchive("another artifact")
        except NotAnArchive:
            wrong.append(f"objects/{name}")
        finally:
            archive.unlink(missing_ok=True)
            remove_tree(tree)
    return len(names), wrong


def _unheard(done: int, size: int) -> None:
    pass


def _is_needed(name: str, named: set[str], pushed: frozenset[str]) -> bool:
    digest, _, suffix = name.partition(".")
    # Anything else is what a push that was cut off left.
    return digest in pushed or (digest in named and suffix == ARCHIVE)


def _remove(remote: Remote, names: list[str]) -> None:
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        list(pool.map(remote.remove, names))


def _leases(remote: Remote) -> dict[str, Held]:
    found: dict[str, Held] = {}
    for name, text in _texts(remote, DIRECTORY).items():
        try:
            found[name] = Held.parse(text)
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _actions(remote: Remote) -> dict[str, Action | None]:
    """The actions by the names of their files; None for a damaged one."""
    found: dict[str, Action | None] = {}
    for name, text in _texts(remote, "actions").items():
        try:
            action = Action.from_json(text.decode())
            moment(action.made_at)
            found[name] = action
        except (ValueError, KeyError, TypeError, AttributeError):
            found[name] = None
    return found


def _texts(remote: Remote, directory: str) -> dict[str, bytes]:
    names = [name for name in remote.sizes(directory) if name.endswith(".json")]
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        texts = pool.map(lambda name: remote.read(f"{directory}/{name}"), names)
        return {name: text for name, text in zip(names, texts, strict=True) if text is not None}
