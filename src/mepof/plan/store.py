"""The content-addressed store: artifacts by digest, and the action that made each.

Everything is written in ``tmp/`` and renamed: an artifact to ``objects/<digest>``, and only
then is ``actions/<fingerprint>.json`` written, which assigns it to a step. Any number of
processes may use one store; ``docs/store.md`` describes the layout.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import tempfile
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mepof.disk import sync, why_unwritable
from mepof.errors import InputError, Interrupted, WorkError
from mepof.plan.action import Action, Artifact
from mepof.plan.digest import Entry, file_digest, listing_digest, tree_digest, walk
from mepof.plan.disk_full import means_full

_LOCK_POLL_SECONDS = 0.1
# With more files, one sync of the file system is faster than one per file.
_MAX_FILE_SYNCS = 200


#: The environment variable that names a store.
VARIABLE = "MEPOF_STORE"


def default_store() -> Path:
    """``$MEPOF_STORE``, or ``mepof`` in the user's cache directory.

    Raises:
        InputError: neither is set.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mepof"
    except RuntimeError as error:  # a user without an account, as containers have them
        raise InputError(
            "the user has no home directory for the store", "set MEPOF_STORE"
        ) from error


class Store:
    """One store directory. Reading needs no :meth:`open`; everything that writes does.

    Args:
        root: the directory; it may not exist yet.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.cache = self.root / "cache"
        self.host_memory = self.cache / "host-files.sqlite"
        self._session: Path | None = None
        self._opening = threading.Lock()

    def check(self) -> None:
        """Refuse a directory that cannot hold a store; nothing is written.

        Raises:
            InputError: it is not a directory, or cannot be written.
        """
        if why := why_unwritable(self.root):
            raise InputError(
                f"the store {self.root} cannot be used: {why}",
                "choose another one with --store or MEPOF_STORE",
            )

    def open(self) -> None:
        """Create the directories and remove what killed processes left in ``tmp/``.

        Raises:
            InputError: the store cannot be written.
        """
        with self._opening:
            if self._session is not None:
                return
            try:
                for name in ("objects", "actions", "tmp", "work", "locks", "logs", "cache"):
                    (self.root / name).mkdir(parents=True, exist_ok=True)
                self._check_one_file_system()
                self._remove_stale()
                self._session, handle = self._begin_session()
            except OSError as error:
                if means_full(error):
                    raise
                raise InputError(
                    f"the store {self.root} cannot be used: {error.strerror}",
                    "choose another one with --store or MEPOF_STORE",
                ) from error
            weakref.finalize(self, _end_session, self._session, handle)

    def _check_one_file_system(self) -> None:
        # What is made is moved there, not copied.
        for name in ("objects", "actions"):
            if (self.root / name).stat().st_dev != (self.root / "tmp").stat().st_dev:
                raise InputError(
                    f"the store {self.root} is on two file systems: {name} and tmp",
                    "move all of it, or choose another one with --store or MEPOF_STORE",
                )

    @property
    def identity(self) -> str:
        """A name of this directory, the same for all machines that can see it.

        Raises:
            OSError: it cannot be written.
        """
        path = self.root / "identity"
        if not path.exists():
            handle, name = tempfile.mkstemp(dir=self._session)
            with os.fdopen(handle, "w") as file:
                file.write(f"{uuid.uuid4().hex}\n")
            with contextlib.suppress(FileExistsError):
                os.link(name, path)
            Path(name).unlink()
        return path.read_text().strip()

    # --- reading -----------------------------------------------------------------------

    def object(self, digest: str) -> Path:
        """The path of the artifact with that digest, which may not exist."""
        return self.root / "objects" / digest

    def action(self, fingerprint: str) -> Action | None:
        """The recorded action of a fingerprint, even if its artifact is gone."""
        try:
            return Action.from_json(self._action_path(fingerprint).read_text())
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def find(self, fingerprint: str) -> Action | None:
        """The action of a fingerprint, if its artifact exists and has the right shape.

        The check compares paths, kinds and sizes; it does not read contents. In an open store, the
        artifact counts as used now.
        """
        action = self.action(fingerprint)
        if action is None or not self._whole(action.artifact):
            return None
        if self._session is not None:
            with contextlib.suppress(OSError):  # another user's
                os.utime(self._action_path(fingerprint))
        return action

    def actions(self) -> Iterator[Action]:
        """All recorded actions, in no particular order."""
        for path in (self.root / "actions").glob("*.json"):
            action = self.action(path.stem)
            if action is not None:
                yield action

    def used(self) -> dict[str, float]:
        """When a run last used each artifact that an action has, in seconds of the epoch."""
        found: dict[str, float] = {}
        for path in (self.root / "actions").glob("*.json"):
            if (action := self.action(path.stem)) is not None:
                digest = action.artifact.digest
                found[digest] = max(path.stat().st_mtime, found.get(digest, 0))
        return found

    def log(self, step: str, fingerprint: str) -> Path:
        """The log file of a step; its recipe and reproducer are next to it."""
        return self.root / "logs" / f"{step.replace('/', '-')}-{fingerprint[:12]}.log"

    def work(self, fingerprint: str) -> Path:
        """The scratch directory of a fingerprint."""
        return self.root / "work" / fingerprint

    # --- writing -----------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(
        self, name: str, waiting: Callable[[], None], cancel: threading.Event
    ) -> Iterator[None]:
        """Hold the lock of that name against all other processes.

        Args:
            name: a fingerprint or a device's name.
            waiting: called once if another process holds it.
            cancel: set it to give up waiting.

        Raises:
            Interrupted: ``cancel`` was set.
        """
        path = self.root / "locks" / f"{name.replace('/', '-')}.lock"
        # One that another user made is locked, too.
        handle = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        try:
            if not _try_lock(handle):
                waiting()
                while not _try_lock(handle):
                    if cancel.wait(_LOCK_POLL_SECONDS):
                        raise Interrupted("interrupted")
            yield
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty directory to fill and commit; it is removed if it was not committed."""
        assert self._session is not None, "the store is not open"
        with contextlib.ExitStack() as stack:
            path = Path(tempfile.mkdtemp(dir=self._session))
            stack.callback(remove_tree, path)
            path.chmod(0o755)
            yield path

    def commit(self, tree: Path, wanted: str | None = None) -> Artifact:
        """Move a filled :meth:`scratch` directory into the store, read-only from then on.

        If the store already has the same artifact, the new one is dropped, unless the old one
        is damaged.

        Args:
            wanted: the digest that it must have.

        Raises:
            WrongContent: it has another one; nothing is moved.
        """
        entries = walk(tree)
        artifact = artifact_of(tree, entries)
        if wanted is not None and artifact.digest != wanted:
            raise WrongContent(f"its content is {artifact.digest[:12]}, not {wanted[:12]}")
        _seal(tree, entries)
        # A directory can be moved only if it is writable, which a copied one may not be.
        tree.chmod(0o755)
        target = self.object(artifact.digest)
        try:
            tree.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if self._whole(artifact):
                return artifact
            with self.scratch() as aside:
                # A read-only directory cannot be moved.
                target.chmod(0o755)
                target.rename(aside)
                tree.rename(target)
        target.chmod(0o555)
        sync(target.parent)
        return artifact

    def record(self, action: Action) -> None:
        """Record that a fingerprint has an artifact, which must be committed already."""
        self._replace(self._action_path(action.fingerprint), action.to_json())

    def take_work(self, fingerprint: str) -> tuple[Path, bool]:
        """The scratch directory of a step, and whether an earlier attempt left it."""
        path = self.work(fingerprint)
        left = path.is_dir()
        path.mkdir(exist_ok=True)
        return path, left

    def drop_work(self, fingerprint: str) -> None:
        """Remove the scratch directory of a finished step."""
        remove_tree(self.work(fingerprint))

    # --- what a store that others share does more --------------------------------------

    def bring(self, artifacts: Mapping[str, Artifact], emit: Callable[[str], None]) -> None:
        """Make sure that artifacts which :meth:`find` promised are here, before they are read.

        Args:
            artifacts: by the name of the input.
            emit: shows the user a line.

        Raises:
            ArtifactLost: some are not, and must be made again.
        """
        lost = [each.digest for each in artifacts.values() if not self.object(each.digest).is_dir()]
        if lost:
            raise ArtifactLost(tuple(lost), "the store does not have it any more")

    def share(self, action: Action, emit: Callable[[str], None], *, replace: bool = False) -> None:
        """Give others what a step made.

        Args:
            replace: what they have under this name may be wrong.
        """

    def refuse(self, fingerprint: str) -> None:
        """Do not offer this action again: its artifact cannot be had."""

    def intact(self, digest: str) -> bool:
        """Whether an artifact is here and has this content; reads all of it."""
        try:
            return artifact_of(self.object(digest)).digest == digest
        except OSError:
            return False

    def discard(self, digest: str) -> None:
        """Remove an artifact whose content is wrong."""
        remove_tree(self.object(digest))

    # --- inside ------------------------------------------------------------------------

    def _action_path(self, fingerprint: str) -> Path:
        return self.root / "actions" / f"{fingerprint}.json"

    def _whole(self, artifact: Artifact) -> bool:
        try:
            return listing_digest(walk(self.object(artifact.digest))) == artifact.listing
        except OSError:
            return False

    def _replace(self, path: Path, text: str) -> None:
        assert self._session is not None, "the store is not open"
        handle, name = tempfile.mkstemp(dir=self._session)
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).rename(path)
        sync(path.parent)

    def _begin_session(self) -> tuple[Path, int]:
        while True:
            path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self.root / "tmp"))
            # Another process may consider it stale before we hold the lock.
            try:
                handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue
            fcntl.flock(handle, fcntl.LOCK_EX)
            if path.exists():
                return path, handle
            os.close(handle)

    def _remove_stale(self) -> None:
        for path in (self.root / "tmp").iterdir():
            with contextlib.suppress(OSError):
                handle = os.open(path, os.O_RDONLY)
                try:
                    if _try_lock(handle):
                        remove_tree(path)
                finally:
                    os.close(handle)


_FILES = ("file", "exec")


class WrongContent(Exception):
    """A tree does not have the digest that it should have."""


class ArtifactLost(WorkError):
    """Artifacts that a step reads are gone or wrong, so the steps that made them must run again.

    Args:
        digests: of the artifacts.
        why: what happened to them.
        wrong: those of them under whose names something else was found.
    """

    def __init__(self, digests: tuple[str, ...], why: str, wrong: tuple[str, ...] = ()) -> None:
        named = ", ".join(digest[:12] for digest in digests)
        super().__init__(f"the artifact {named} is lost: {why}", "run again")
        self.digests = digests
        self.why = why
        self.wrong = wrong


def artifact_of(tree: Path, entries: Sequence[Entry] | None = None) -> Artifact:
    """The digests of a directory; reads all of it.

    Args:
        entries: what :func:`~mepof.plan.digest.walk` found in it, if that is known.
    """
    entries = walk(tree) if entries is None else entries
    files = {r: file_digest(f"{tree}/{r}") for r, kind, _ in entries if kind in _FILES}
    return Artifact(tree_digest(tree, entries, files), listing_digest(entries))


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _end_session(path: Path, handle: int) -> None:
    remove_tree(path)
    with contextlib.suppress(OSError):
        os.close(handle)


def remove_tree(path: Path) -> None:
    """Remove a directory, read-only or not; ignores what cannot be removed."""
    with contextlib.suppress(OSError):
        path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                child = Path(folder, name)
                if not child.is_symlink():
                    child.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)


def _seal(tree: Path, entries: Sequence[Entry]) -> None:
    """Make everything below the root read-only, and sync it before it becomes visible."""
    modes: Mapping[str, int] = {"file": 0o444, "exec": 0o555, "dir": 0o555}
    files = 0
    for relative, kind, _ in entries:
        if kind in modes:
            (tree / relative).chmod(modes[kind])
            files += kind in _FILES
    if files > _MAX_FILE_SYNCS:
        _sync_file_system(tree)
        return
    for relative, kind, _ in entries:
        if kind in modes:
            sync(tree / relative)
    sync(tree)


def _sync_file_system(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(handle)
