"""A store with a remote behind it, which several machines share.

``find`` also knows the actions of the remote, so a step that another machine made is finished
here without its artifact; ``bring`` fetches the artifact when a step or the user reads it. What
arrives counts only if it has the digest that its action names.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from mepof.errors import InputError
from mepof.plan.action import Action, Artifact
from mepof.plan.archive import ARCHIVE, NotAnArchive, pack, unpack
from mepof.plan.lease import Lease
from mepof.plan.remote import Remote, RemoteDenied, RemoteSilent
from mepof.plan.store import ArtifactLost, Store, WrongContent

T = TypeVar("T")

FORMAT = "mepof-store/1"
_MARK = "store.json"
_DIGEST = re.compile(r"[0-9a-f]{64}")
# What the remote does not have, it is not asked for again so soon.
_MISS_SECONDS = 10.0
_MIB = 1 << 20
_REFUSED = "is refused"


class SharedStore(Store):
    """A store whose artifacts others share.

    A remote that fails does not fail a run: it is left alone from then on, and the user is told.

    Args:
        root: the store of this machine.
        remote: the files of all.
        note: shows the user a line; called by any thread.
    """

    def __init__(self, root: Path, remote: Remote, note: Callable[[str], None]) -> None:
        super().__init__(root)
        self.remote = remote
        self._note = note
        #: The name of the remote, however it is reached; None until it has answered.
        self.remote_identity: str | None = None
        self._lease = Lease(remote)
        self._usable = True
        self._writable = True
        self._lock = threading.Lock()
        self._known: dict[str, Action] = {}
        self._missed: dict[str, float] = {}
        self._refused: set[str] = set()
        self._wrong: set[str] = set()
        self._here: set[str] = set()

    def open(self) -> None:
        """Open the store here, and mark the remote as a store if nobody has.

        Raises:
            InputError: the remote holds something else, or a store of another version.
        """
        super().open()
        self._guarded(self.check_remote)
        self._lease.keep(lambda: self._guarded(self._lease.write, writing=True))

    def check_remote(self) -> None:
        """Mark the remote as a store if nobody has.

        Raises:
            InputError: it holds something else, or a store of another version.
            WorkError: it does not answer, or refuses us.
        """
        text = self.remote.read(_MARK)
        if text is None:
            with self.scratch() as directory:
                mark = {"format": FORMAT, "id": uuid.uuid4().hex}
                (directory / _MARK).write_text(json.dumps(mark) + "\n")
                self.remote.put(_MARK, directory / _MARK)
            # Such as on the disk below a file system that is not mounted.
            self._note(f"{self.remote.url} is a new store, which nobody has used before")
        self.remote_identity = identity_of(self.remote)

    def close(self) -> None:
        """Write to the lease what was used last."""
        if self._session is not None:  # an explanation writes nothing
            self._lease.end()
            self._guarded(self._lease.write, writing=True)
        self.remote.close()

    def find(self, fingerprint: str) -> Action | None:
        """The action of a fingerprint, here or in the remote."""
        found = super().find(fingerprint) or self._known.get(fingerprint)
        if found is None and self._worth_asking(fingerprint):
            text = self._guarded(lambda: self.remote.read(_action(fingerprint)))
            found = None if text is None else _trusted(text, fingerprint)
            if text is not None and found is None:
                self._note(f"{_action(fingerprint)} is damaged in {self.remote.url}: not used")
            if found is None:
                self._missed[fingerprint] = time.monotonic()
            else:
                self._known[fingerprint] = found
                if self._session is not None:
                    self.record(found)
        if found is not None and self._usable:
            self._lease.use(fingerprint)
        return found

    def bring(self, artifacts: Mapping[str, Artifact], emit: Callable[[str], None]) -> None:
        """Fetch the artifacts that are not here, each verified by its digest.

        Raises:
            ArtifactLost: the remote does not have them, or has something else under their names.
        """
        lost: dict[str, str] = {}
        for artifact in dict.fromkeys(artifacts.values()):
            if artifact.digest in self._here:
                continue
            why = None if self._whole(artifact) else self._fetch(artifact, emit)
            if why is None:
                self._here.add(artifact.digest)
            else:
                lost[artifact.digest] = why
        if lost:
            wrong = tuple(digest for digest, why in lost.items() if _REFUSED in why)
            raise ArtifactLost(tuple(lost), "; ".join(dict.fromkeys(lost.values())), wrong)

    def share(self, action: Action, emit: Callable[[str], None], *, replace: bool = False) -> None:
        """Push an artifact, and then its action."""
        if replace:
            self._wrong.add(action.artifact.digest)
            self._refused.add(action.fingerprint)
        if self._usable and self._writable:
            self._guarded(lambda: self.push(action, emit), writing=True)

    def push(self, action: Action, emit: Callable[[str], None]) -> bool:
        """Push an action and its artifact, unless the remote has them.

        Returns:
            whether anything was missing there.

        Raises:
            WorkError: the remote does not answer, or refuses us.
        """
        self._lease.use(action.fingerprint, action.artifact.digest)
        self._lease.write()
        name = _object(action.artifact.digest)
        missing = action.artifact.digest in self._wrong or self.remote.size(name) is None
        with tempfile.TemporaryDirectory(dir=self._session) as directory:
            if missing:
                archive = Path(directory, "archive")
                pack(self.object(action.artifact.digest), archive)
                size = archive.stat().st_size
                emit(f"pushing {size / _MIB:.1f} MiB to {self.remote.url}")
                self.remote.put(name, archive)
                self._wrong.discard(action.artifact.digest)
            known = self.remote.read(_action(action.fingerprint))
            again = action.fingerprint in self._refused
            if again or known is None or _trusted(known, action.fingerprint) is None:
                text = Path(directory, "action")
                text.write_text(action.to_json())
                self.remote.put(_action(action.fingerprint), text)
                missing = True
        return missing

    def refuse(self, fingerprint: str) -> None:
        """Do not take this action from the remote: its artifact cannot be had."""
        self._refused.add(fingerprint)
        self._known.pop(fingerprint, None)

    def expect(self, action: Action) -> None:
        """Take note of an action that another machine shares."""
        self._known[action.fingerprint] = action

    def try_again(self) -> None:
        """Use the remote again, if it failed before."""
        with self._lock:
            self._usable = self._writable = True

    def _worth_asking(self, fingerprint: str) -> bool:
        missed = self._missed.get(fingerprint)
        return (
            self._usable
            and fingerprint not in self._refused
            and (missed is None or time.monotonic() - missed > _MISS_SECONDS)
        )

    def _fetch(self, artifact: Artifact, emit: Callable[[str], None]) -> str | None:
        """Fetch an artifact; why it cannot be had, or None."""
        if not self._usable:
            return f"{self.remote.url} is not used any more"
        partial = self.cache / "fetch" / artifact.digest
        partial.parent.mkdir(exist_ok=True)
        waiting = "waiting: another run fetches the same artifact"
        with self.lock(f"fetch-{artifact.digest}", lambda: emit(waiting), self.remote.cancel):
            if self._whole(artifact):
                return None
            # An earlier run may have left the beginning of an archive that has been replaced.
            for resumed in (partial.exists(), False):
                why = self._fetch_once(artifact, partial, emit)
                if why is None or not resumed:
                    break
        if why is not None:
            self._wrong.add(artifact.digest)
        return why

    def _fetch_once(
        self, artifact: Artifact, partial: Path, emit: Callable[[str], None]
    ) -> str | None:
        name = _object(artifact.digest)
        said = False

        def got(done: int, size: int) -> None:
            nonlocal said
            if not said:
                emit(f"fetching {size / _MIB:.1f} MiB from {self.remote.url}")
                said = True

        there = self._guarded(lambda: self.remote.fetch(name, partial, got))
        if there is None:
            return f"{self.remote.url} does not answer"
        try:
            if not there:
                return f"{self.remote.url} does not have it any more"
            with self.scratch() as tree:
                unpack(partial, tree)
                if self.commit(tree, artifact.digest) != artifact:
                    return f"the action of {artifact.digest[:12]} has a wrong listing"
            return None
        except (NotAnArchive, WrongContent) as error:
            return f"{name} in {self.remote.url} {_REFUSED}: {error}"
        finally:
            partial.unlink(missing_ok=True)

    def _guarded(self, do: Callable[[], T], *, writing: bool = False) -> T | None:
        """Do something with the remote, or say once why it is not used any more."""
        if not self._usable:
            return None
        try:
            return do()
        except (RemoteDenied, RemoteSilent) as error:
            still = writing and isinstance(error, RemoteDenied)
            with self._lock:
                first = self._writable if still else self._usable
                self._writable = False
                self._usable = self._usable and still
            if first:
                self._note(
                    f"{error}; "
                    + ("what is made here stays here" if still else "continuing without it")
                )
        return None


def _object(digest: str) -> str:
    return f"objects/{digest}.{ARCHIVE}"


def _action(fingerprint: str) -> str:
    return f"actions/{fingerprint}.json"


def identity_of(remote: Remote) -> str:
    """What identifies a store.

    Raises:
        InputError: it holds something else, or a store of another version.
        WorkError: it does not answer, or refuses us.
    """
    mark = remote.read(_MARK)
    if mark is None:
        raise InputError(
            f"{remote.url} has no store",
            "mount it, or correct the name: `mepof store push` makes one",
        )
    found = _identity(mark)
    if found is None:
        raise InputError(
            f"{remote.url} is not a store that this version can share",
            f"choose one whose {_MARK} says {FORMAT}",
        )
    return found


def _identity(text: bytes) -> str | None:
    try:
        mark = json.loads(text)
        return str(mark["id"]) if mark["format"] == FORMAT else None
    except (ValueError, KeyError, TypeError):
        return None


def _trusted(text: bytes, fingerprint: str) -> Action | None:
    """The action in a text, if it is that of this fingerprint."""
    try:
        action = Action.from_json(text.decode())
        fits = (
            action.fingerprint == action.ingredients.fingerprint() == fingerprint
            and _DIGEST.fullmatch(action.artifact.digest)
            and _DIGEST.fullmatch(action.artifact.listing)
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return action if fits else None
