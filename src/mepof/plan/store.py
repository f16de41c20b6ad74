"""The content-addressed store: artifacts by their digest, and which step made which.

Nothing counts before it is renamed into place: an artifact is written in ``tmp/`` and
renamed to ``objects/<digest>``, and only then does ``actions/<fingerprint>.json`` say that a
step has it. Any number of processes may work on one store; ``docs/store.md`` has the layout.
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
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from mepof.errors import InputError, Interrupted
from mepof.plan.action import Action, Artifact
from mepof.plan.digest import Entry, file_digest, listing_digest, tree_digest, walk
from mepof.plan.disk_full import means_full

_LOCK_POLL_SECONDS = 0.1
# Above this many files, one sync of the file system is faster than one for each of them.
_FEW_FILES = 200


class Store:
    """One store directory. Reading needs no :meth:`open`; everything that writes does.

    Args:
        root: the directory; it need not exist yet.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.cache = self.root / "cache"
        self.host_memory = self.cache / "host-files.sqlite"
        self._session: Path | None = None
        self._opening = threading.Lock()

    def check(self) -> None:
        """Refuse a place where no store can be; nothing is made.

        Raises:
            InputError: it is not a directory, or cannot be written.
        """
        existing = next(path for path in (self.root, *self.root.parents) if path.exists())
        if not existing.is_dir():
            why = os.strerror(errno.ENOTDIR)
        elif not os.access(existing, os.W_OK | os.X_OK):
            why = os.strerror(errno.EACCES)
        else:
            return
        raise InputError(f"the store {self.root} cannot be used: {why}", "name another one")

    def open(self) -> None:
        """Make the directories and remove what killed processes left in ``tmp/``.

        Raises:
            InputError: the store cannot be written.
        """
        with self._opening:
            if self._session is not None:
                return
            try:
                for name in ("objects", "actions", "tmp", "work", "locks", "logs", "cache"):
                    (self.root / name).mkdir(parents=True, exist_ok=True)
                self._remove_stale()
                self._session, handle = self._begin_session()
            except OSError as error:
                if means_full(error):
                    raise
                raise InputError(
                    f"the store {self.root} cannot be used: {error.strerror}", "name another one"
                ) from error
            weakref.finalize(self, _end_session, self._session, handle)

    # --- reading -----------------------------------------------------------------------

    def object(self, digest: str) -> Path:
        """Where the artifact of that digest is, or would be."""
        return self.root / "objects" / digest

    def action(self, fingerprint: str) -> Action | None:
        """What is recorded for a fingerprint, whether or not the artifact is still there."""
        try:
            return Action.from_json(self._action_path(fingerprint).read_text())
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def find(self, fingerprint: str) -> Action | None:
        """The action of a fingerprint, if its artifact is there and has the right shape.

        The check compares paths, kinds and sizes; it does not read contents.
        """
        action = self.action(fingerprint)
        return action if action is not None and self._whole(action.artifact) else None

    def actions(self) -> Iterator[Action]:
        """Everything recorded, in no order."""
        for path in (self.root / "actions").glob("*.json"):
            action = self.action(path.stem)
            if action is not None:
                yield action

    def log(self, step: str, fingerprint: str) -> Path:
        """The log file of a step; its recipe and reproducer stand beside it."""
        return self.root / "logs" / f"{step.replace('/', '-')}-{fingerprint[:12]}.log"

    def work(self, fingerprint: str) -> Path:
        """The scratch directory of a fingerprint."""
        return self.root / "work" / fingerprint

    # --- writing -----------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(
        self, name: str, waiting: Callable[[], None], cancel: threading.Event
    ) -> Iterator[None]:
        """Hold the lock of that name against all processes.

        Args:
            name: a fingerprint or a device's name.
            waiting: called once if someone else holds it.
            cancel: set it to give up waiting.

        Raises:
            Interrupted: ``cancel`` was set.
        """
        path = self.root / "locks" / f"{name.replace('/', '-')}.lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
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
        """An empty directory to fill and commit; what is left of it is removed at the end."""
        assert self._session is not None, "the store is not open"
        with contextlib.ExitStack() as stack:
            path = Path(tempfile.mkdtemp(dir=self._session))
            stack.callback(remove_tree, path)
            path.chmod(0o755)
            yield path

    def commit(self, tree: Path) -> Artifact:
        """Move a filled :meth:`scratch` directory into the store, read-only from then on.

        If the store has the same artifact already, ours is dropped; if that one is damaged, it
        is replaced.
        """
        entries = walk(tree)
        files = {r: file_digest(f"{tree}/{r}") for r, kind, _ in entries if kind in _FILES}
        artifact = Artifact(tree_digest(tree, entries, files), listing_digest(entries))
        _seal(tree, entries)
        # Moving a directory needs the right to write it, which a copied one may not give us.
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
                # Only the owner may move a read-only directory after making it writable.
                target.chmod(0o755)
                target.rename(aside)
                tree.rename(target)
        target.chmod(0o555)
        _sync(target.parent)
        return artifact

    def record(self, action: Action) -> None:
        """Say that a fingerprint has an artifact, which is committed already."""
        self._replace(self._action_path(action.fingerprint), action.to_json())

    def take_work(self, fingerprint: str) -> tuple[Path, bool]:
        """The scratch directory of a step, and whether an earlier attempt left it."""
        path = self.work(fingerprint)
        left = path.is_dir()
        path.mkdir(exist_ok=True)
        return path, left

    def drop_work(self, fingerprint: str) -> None:
        """Remove the scratch directory of a step that is done."""
        remove_tree(self.work(fingerprint))

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
        _sync(path.parent)

    def _begin_session(self) -> tuple[Path, int]:
        while True:
            path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self.root / "tmp"))
            # Another process may take it for stale before we have the lock.
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
    """Remove a directory, read-only or not; what cannot be removed stays."""
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
    """Make everything below the root read-only, and durable before it can be seen."""
    modes: Mapping[str, int] = {"file": 0o444, "exec": 0o555, "dir": 0o555}
    files = 0
    for relative, kind, _ in entries:
        if kind in modes:
            (tree / relative).chmod(modes[kind])
            files += kind in _FILES
    if files > _FEW_FILES:
        _sync_file_system(tree)
        return
    for relative, kind, _ in entries:
        if kind in modes:
            _sync(tree / relative)
    _sync(tree)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_file_system(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(handle)
