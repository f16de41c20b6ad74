"""Files of a directory, an SFTP server or a bucket, through fsspec.

The servers and libraries behind fsspec raise errors of every kind. Here they become four: a file
that is not there, :class:`RemoteLack`, :class:`RemoteDenied` and :class:`RemoteSilent`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import re
import shlex
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from mepof.errors import EnvironmentLack, InputError, Interrupted, MepofError, WorkError
from mepof.home import home
from mepof.plan.archive import REMEDY
from mepof.plan.disk_full import means_full

T = TypeVar("T")

_TRIES = 3
_FIRST_PAUSE_SECONDS = 0.5
_SILENCE_SECONDS = 60
_CHUNK = 4 << 20
# A put to these is atomic, and a rename is a copy.
_ATOMIC = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl"})
# When a file was written, as the libraries name it; some know only when it was created.
_TIMES = ("LastModified", "last_modified", "mtime", "modified", "created")
# What HTTP says of who may not do something, and of what a server never does.
_DENIED_STATUS = (401, 403, 405, 501)
_FULL_STATUS = 507
_GIVE = "give a directory, sftp://HOST/DIRECTORY or s3://BUCKET/DIRECTORY"


class RemoteDenied(WorkError):
    """The server refuses us, or has no space for more."""


class RemoteSilent(WorkError):
    """The server does not answer, or not as it should, after several tries."""


@dataclass(frozen=True)
class Entry:
    """A file of a remote.

    Attributes:
        size: in bytes.
        version: changes with its content.
        modified: when it was written.
    """

    size: int
    version: str
    modified: datetime


def _entry(info: dict[str, Any]) -> Entry | None:
    """A file as a library describes it; None if it does not say when it was written."""
    when = next((info[name] for name in _TIMES if info.get(name) is not None), None)
    if when is None and "modificationTime" in info:  # Hadoop's, in milliseconds
        when = info["modificationTime"] / 1000
    if when is None:
        return None
    moment = when if isinstance(when, datetime) else datetime.fromtimestamp(float(when), UTC)
    size = int(info["size"])
    version = info.get("ETag") or info.get("etag") or when
    return Entry(size, f"{version}-{size}", moment.astimezone(UTC))


def hidden(url: str) -> str:
    """A URL without its password, for messages."""
    return re.sub(r"(?<=://)([^/@:]*):[^/]*@", r"\1:***@", url)


class Remote:
    """A directory somewhere else.

    Args:
        url: as fsspec has it, such as ``s3://bucket/mepof``; a path without a protocol is a
            directory of this machine.
        cancel: set it to stop waiting for a server.

    Nothing is sent before the first use. Every method may raise :class:`RemoteDenied`,
    :class:`RemoteSilent` and, once ``cancel`` is set, :class:`~mepof.errors.Interrupted`.

    Raises:
        InputError: the URL is wrong.
        EnvironmentLack: the library for its protocol is missing.
    """

    def __init__(self, url: str, cancel: threading.Event | None = None) -> None:
        self.url = hidden(url)
        self.cancel = cancel or threading.Event()
        self._full_url = url
        # SFTP's client serves one thread at a time.
        self._idle: queue.SimpleQueue[Any] = queue.SimpleQueue()
        try:
            import fsspec
        except ImportError as error:
            raise EnvironmentLack(
                "a shared store needs the Python package fsspec", REMEDY
            ) from error
        protocol, separator, _ = url.partition("://")
        # Such as s3:/bucket and host:/directory, which would be made here.
        if not separator and ":" in url.partition("/")[0]:
            raise InputError(f"{self.url} is not the URL of a store", _GIVE)
        self._protocol = protocol if separator else "file"
        try:
            fsspec.get_filesystem_class(self._protocol)
        except ImportError as error:
            raise EnvironmentLack(
                f"{self._protocol}:// needs a Python package: {error}", REMEDY
            ) from error
        except ValueError as error:
            raise InputError(
                f"{self.url} is not the URL of a store: the protocol is unknown",
                _GIVE,
            ) from error
        self._root = fsspec.get_filesystem_class(self._protocol)._strip_protocol(url).rstrip("/")
        if not self._root:
            raise InputError(f"{self.url} names no directory", _GIVE)

    def close(self) -> None:
        """End the connections that nobody uses."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._end(self._idle.get_nowait())

    def exists(self) -> bool:
        """Whether there is anything at the URL itself."""
        return self._try(lambda fs: self._missing(lambda: fs.info(self._root))) is not None

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if there is none."""
        return self._try(lambda fs: self._missing(lambda: bytes(fs.cat_file(self._at(name)))))

    def size(self, name: str) -> int | None:
        """The size of a file in bytes; None if there is none."""
        return self._try(lambda fs: self._missing(lambda: int(fs.info(self._at(name))["size"])))

    def sizes(self, directory: str) -> dict[str, int]:
        """The sizes of all files below a directory, by their path below it."""
        return self._list(directory, lambda name, info: int(info["size"]))

    def entries(self, directory: str, denied: list[str] | None = None) -> dict[str, Entry]:
        """All files below a directory, by their path below it; ``""`` is the whole remote.

        Args:
            denied: gets the directories that we have no permission to read, by their path below
                it; without it, one is an error.

        Raises:
            WorkError: the server does not say when a file was written.
        """

        def entry(name: str, info: dict[str, Any]) -> Entry:
            if found := _entry(info):
                return found
            raise WorkError(
                f"{self.url} does not say when {name} was written",
                "copy the files to a directory with their times, and name that",
            )

        return self._list(directory, entry, denied)

    def _list(
        self,
        directory: str,
        of: Callable[[str, dict[str, Any]], T],
        denied: list[str] | None = None,
    ) -> dict[str, T]:
        start = self._at(directory) if directory else self._root

        def listed(fs: Any) -> tuple[dict[str, T], list[str]]:
            fs.invalidate_cache()
            found, unread = self._missing(lambda: _found(fs, start)) or ({}, [])
            if unread and denied is None:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), unread[0])
            below = {name[name.index(start) + len(start) + 1 :]: found[name] for name in found}
            if unknown := [name for name, info in below.items() if info["size"] is None]:
                raise WorkError(
                    f"{self.url} does not say how large {unknown[0]} is",
                    "name the directory behind this server, by sftp:// or as it is mounted",
                )
            return {name: of(name, info) for name, info in below.items()}, unread

        found, unread = self._try(listed)
        if denied is not None:
            denied += (name[len(start) + 1 :] for name in unread)
        return found

    def fetch(self, name: str, partial: Path, got: Callable[[int, int], None]) -> bool:
        """Copy a file here; what ``partial`` has of it already is not fetched again.

        Args:
            got: called with the bytes so far and the size of all.

        Returns:
            False if there is no such file, or it is not a regular one.
        """

        def copied(fs: Any) -> bool:
            info = fs.info(self._at(name))
            if info["type"] != "file":  # opening a pipe would wait for ever
                return False
            size = int(info["size"])
            with partial.open("ab") as target:
                offset = target.tell()
                if offset > size:
                    target.truncate(0)
                    offset = 0
                with fs.open(self._at(name), "rb", cache_type="none") as source:
                    source.seek(offset)
                    if hasattr(source, "prefetch"):  # SFTP waits for each block otherwise
                        source.prefetch(size)
                    while offset < size:
                        if self.cancel.is_set():
                            raise Interrupted("interrupted")
                        chunk = source.read(min(_CHUNK, size - offset))
                        if not chunk:
                            raise OSError("the file ended early")
                        target.write(chunk)
                        offset += len(chunk)
                        got(offset, size)
            return True

        return self._try(lambda fs: self._missing(lambda: copied(fs))) or False

    def put(self, name: str, source: Path) -> None:
        """Write a file, all of it or nothing."""
        target = self._at(name)

        def written(fs: Any) -> None:
            made = target if self._protocol in _ATOMIC else f"{target}.{uuid.uuid4().hex}.part"
            try:
                if made != target:  # a bucket has no directories, and would be made itself
                    fs.makedirs(target.rpartition("/")[0], exist_ok=True)
                fs.put_file(str(source), made)
                fs.invalidate_cache()
                if int(fs.info(made)["size"]) != source.stat().st_size:
                    raise OSError("the file arrived incomplete")
                if made != target:
                    fs.mv(made, target)
            except BaseException as error:
                if made != target:
                    with contextlib.suppress(Exception):
                        fs.rm_file(made)
                if means_full(error) or getattr(error, "status", None) == _FULL_STATUS:
                    raise RemoteDenied(
                        f"{self.url} has no space left",
                        f"free some there: `mepof store clean --shared-store {self.url}`",
                    ) from error
                raise

        self._try(written)

    def remove(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""
        self._try(lambda fs: self._missing(lambda: fs.rm_file(self._at(name))))

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _missing(self, do: Callable[[], T]) -> T | None:
        try:
            return do()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _try(self, do: Callable[[Any], T]) -> T:
        pause = _FIRST_PAUSE_SECONDS
        for left in reversed(range(_TRIES)):
            connection: Any = None
            try:
                connection = self._take()
                result = do(connection)
                self._idle.put(connection)
                return result
            except MepofError:
                self._end(connection)
                raise
            except PermissionError as error:
                self._end(connection)
                raise self._denied(error) from error
            except FileNotFoundError as error:
                self._end(connection)
                if connection is None:  # a key or a program of this machine
                    raise self._denied(error) from error
                raise RemoteSilent(
                    f"{self.url} does not exist: {_said(error)}", "create it, or correct the URL"
                ) from error
            except Exception as error:  # fsspec passes on what its libraries raise
                self._end(connection)
                if means_full(error):  # the disk here
                    raise
                if _means_denied(error):
                    raise self._denied(error) from error
                if not left:
                    raise RemoteSilent(
                        f"{self.url} does not answer as it should: {_said(error)}",
                        "check the URL and its settings, and that the server can be reached",
                    ) from error
            if self.cancel.wait(pause):
                raise Interrupted("interrupted")
            pause *= 2
        raise AssertionError

    def _take(self) -> Any:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return _connect(self._full_url, self._protocol)

    def _end(self, connection: Any) -> None:
        if self._protocol in ("sftp", "ssh") and connection is not None:
            connection.client.close()

    def _denied(self, error: Exception) -> RemoteDenied:
        return RemoteDenied(
            f"{self.url} refuses this: {_said(error)}",
            "check the user, the key or token and the permissions there",
        )


def _found(fs: Any, start: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What is known of all files below a directory, by their paths; and the directories that we
    have no permission to read, which `find` of fsspec leaves out."""
    from fsspec import AbstractFileSystem

    # A bucket has its own, and no directories.
    if getattr(fs.find, "__func__", None) is not AbstractFileSystem.find:
        return dict(fs.find(start, detail=True)), []
    found: dict[str, dict[str, Any]] = {}
    unread: list[str] = []
    pending = [start]
    while pending:
        directory = pending.pop()
        try:
            inside = fs.ls(directory, detail=True)
        except PermissionError:
            unread.append(directory)
            continue
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
            continue
        for info in inside:
            name = info["name"].rstrip("/")
            if info["type"] == "directory":
                pending += [name] if name != directory else []
            else:
                found[name] = info
    return found, unread


def _said(error: Exception) -> str:
    return hidden(" ".join(str(error).split())) or type(error).__name__


def _means_denied(error: Exception) -> bool:
    if getattr(error, "errno", None) == errno.EROFS:
        return True
    if getattr(error, "status", None) in _DENIED_STATUS:
        return True
    names = {each.__name__ for each in type(error).__mro__}
    return bool(
        names & {"AuthenticationException", "BadHostKeyException", "NoCredentialsError"}
    ) or any(word in str(error) for word in ("AccessDenied", "InvalidAccessKeyId", "known_hosts"))


def _connect(url: str, protocol: str) -> Any:
    import fsspec

    if protocol in ("sftp", "ssh"):
        return _sftp(url)
    settings: dict[str, bool] = {"auto_mkdir": True} if protocol == "file" else {}
    return fsspec.filesystem(
        protocol,
        **fsspec.get_filesystem_class(protocol)._get_kwargs_from_urls(url),
        **settings,
        use_listings_cache=False,
    )


def _way(known: Mapping[str, Any], host: str, port: int) -> str | None:
    """The command that reaches a host by others, if ssh_config(5) names them."""
    *first, last = str(known.get("proxyjump", "none")).split(",")
    if last == "none":
        way = known.get("proxycommand", "none")
        return None if way == "none" else str(way)
    jump = ("-J", ",".join(first)) if first else ()
    to = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    by = last if last.startswith("ssh://") else f"ssh://{last}"
    return shlex.join(("ssh", *jump, "-W", to, by))


def _sftp(url: str) -> Any:
    """An SFTP server: fsspec's client, but with the user's own ``known_hosts`` and ``config``.

    fsspec's trusts whatever key a host presents.
    """
    import paramiko
    from fsspec.implementations.sftp import SFTPFileSystem

    class Sftp(SFTPFileSystem):  # type: ignore[misc]
        cachable = False

        def _connect(self) -> None:
            self.client = paramiko.SSHClient()
            own = home() / ".ssh"
            self.client.load_system_host_keys()
            with contextlib.suppress(OSError):
                self.client.load_host_keys(str(own / "known_hosts"))
            self.client.set_missing_host_key_policy(_UnknownHost())
            asked = dict(self.ssh_kwargs)
            host = self.host
            with contextlib.suppress(OSError):
                known = paramiko.SSHConfig.from_path(str(own / "config")).lookup(host)
                host = known.get("hostname", host)
                asked.setdefault("port", int(known.get("port", 22)))
                if "user" in known:
                    asked.setdefault("username", known["user"])
                if "identityfile" in known:
                    asked.setdefault("key_filename", known["identityfile"])
                if way := _way(known, host, asked["port"]):
                    asked["sock"] = paramiko.ProxyCommand(way)
            limits = ("timeout", "banner_timeout", "auth_timeout", "channel_timeout")
            self.client.connect(host, **dict.fromkeys(limits, _SILENCE_SECONDS), **asked)
            self.client.get_transport().set_keepalive(_SILENCE_SECONDS // 2)
            self.ftp = self.client.open_sftp()
            self.ftp.get_channel().settimeout(_SILENCE_SECONDS)

    class _UnknownHost(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
        def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
            raise RemoteDenied(
                f"the key of {hostname} is not in known_hosts",
                f"connect once with ssh, and check {key.get_name()} {key.fingerprint}",
            )

    return Sftp(**SFTPFileSystem._get_kwargs_from_urls(url))
