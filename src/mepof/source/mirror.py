"""One git repository for all that runs fetch, whatever server it comes from.

Kernels of all trees share most of their objects, so the second release costs little. Commits are
fetched without their history (``--depth=1``); those that are here are never asked for again.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mepof.described import nearest
from mepof.errors import InputError, WorkError
from mepof.process import Completed, find_tool
from mepof.source.address import scheme_of
from mepof.source.protocol import Workshop, locked

MAX_ATTEMPTS = 4
_FIRST_WAIT = 2.0
_ASKING_SECONDS = 120.0
_FETCHING_SECONDS = 4 * 3600.0

_TRANSIENT = re.compile(
    r"Could not resolve host|Temporary failure in name resolution|Connection (refused|reset|timed"
    r" out|closed)|Operation timed out|early EOF|unexpected disconnect|hung up unexpectedly"
    r"|RPC failed|returned error: (408|425|429|5\d\d)|Failed to connect|did not finish within"
)
# What servers and git itself say of a commit that no ref names, or that does not exist.
_UNKNOWN = re.compile(r"not our ref|does not allow request for unadvertised object")
# Of a clone without all files, which its git would have to fetch first.
_PARTIAL = "it is a partial clone: name the repository that it was cloned from"
# The refs of the mirror: what the last fetch brought, and everything that a run may need again.
_FETCHED, _KEPT = "refs/mepof/fetched", "refs/mepof/kept"
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Nothing may ask the user, and only transports that fetch.
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "LC_ALL": "C",
}
# git serves no repository of another user without it.
_ANY_OWNER = "--upload-pack=git -c 'safe.directory=*' upload-pack"
# What a user has configured for clones must not change files: line ends, filters.
_PLAIN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


@dataclass(frozen=True)
class Ref:
    """A ref of a server: its name, its commit, and for an annotated tag the tag's own hash."""

    name: str
    commit: str
    tag: str | None = None


def is_commit(text: str) -> bool:
    """Whether a text is the whole hash of a commit."""
    return _HASH.fullmatch(text) is not None


def resolve(url: str, names: tuple[str, ...], workshop: Workshop) -> list[Ref]:
    """The refs of a server that have one of these full names; ``HEAD`` is one.

    Raises:
        WorkError: the server does not answer, or has no repository there.
    """
    asked = [pattern for name in names for pattern in (name, f"{name}^{{}}")]
    found = _listed(_asked(url, ["--", _as_git_reads(url), *asked], workshop))
    return [
        Ref(name, found.get(f"{name}^{{}}", found[name]), found[name] if tagged else None)
        for name in names
        if name in found
        for tagged in [f"{name}^{{}}" in found]
    ]


def no_such_ref(url: str, kind: str, name: str, workshop: Workshop) -> InputError:
    """The error for a tag or branch that a server does not have; suggests the nearest."""
    prefixes = {"tag": ("refs/tags/",), "branch": ("refs/heads/",)}
    wanted = prefixes.get(kind, ("refs/tags/", "refs/heads/"))
    asked = ["--heads", "--tags", "--refs", "--", _as_git_reads(url)]
    listed = _listed(_asked(url, asked, workshop))
    known = [
        ref.removeprefix(prefix) for ref in listed for prefix in wanted if ref.startswith(prefix)
    ]
    remedy = nearest(name, known) if known else "the repository is empty"
    return InputError(
        f"{url} has no {kind} `{name}`", remedy if len(remedy) < 200 else "check its name"
    )


def tags(url: str, workshop: Workshop) -> frozenset[str]:
    """The names of all tags of a server.

    Raises:
        WorkError: the server does not answer, or has no repository there.
    """
    asked = ["--tags", "--refs", "--", _as_git_reads(url)]
    listed = _listed(_asked(url, asked, workshop))
    return frozenset(name.removeprefix("refs/tags/") for name in listed)


def _asked(url: str, arguments: list[str], workshop: Workshop) -> Completed:
    asking = ["ls-remote", "--quiet", *_served(url), *arguments]
    return _git(asking, url, "read", workshop, timeout=_ASKING_SECONDS)


def _as_git_reads(url: str) -> str:
    """A URL, or the path of a bundle: git reads one by its path alone."""
    path = unquote(urlsplit(url).path) if scheme_of(url) == "file" else ""
    return path if path and Path(path).is_file() else url


def _served(url: str) -> tuple[str, ...]:
    """How git is told to serve a repository of this machine; nothing for one of a server."""
    return (_ANY_OWNER,) if scheme_of(url) == "file" else ()


def _listed(done: Completed) -> dict[str, str]:
    lines = (line.split("\t") for line in done.output.splitlines())
    return {line[1]: line[0] for line in lines if len(line) == 2 and is_commit(line[0])}


class Mirror:
    """The repository; it is made when it is first used."""

    def __init__(self, workshop: Workshop) -> None:
        self.path = workshop.cache / "git"
        self._workshop = workshop

    def fetch(self, url: str, hash: str, ref: str | None = None) -> None:
        """Have a commit, or an annotated tag, with its files.

        Args:
            ref: a full name that had it when the run was planned, for servers that give only
                what a ref names.

        Raises:
            InputError: the server does not have it.
            WorkError: the server does not answer, or does not give it.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path.with_name("git.lock"), self._workshop, f"another run fetches {url}"):
            self._prepare()
            if self.has(hash):
                return
            self._workshop.note(f"fetching {hash[:12]} from {url}")
            ways = [("--depth=1", f"+{hash}:{_FETCHED}")]
            if ref is not None:
                # A server over plain files knows no depth.
                ways += [("--depth=1", f"+{ref}:{_FETCHED}"), ("--force", f"+{ref}:{_FETCHED}")]
            failure: WorkError | None = None
            reached = False
            for option, wanted in ways:
                try:
                    self._fetch(url, option, wanted)
                except WorkError as error:
                    failure = failure or error
                    if _TRANSIENT.search(error.message):
                        break  # retried already; the other ways fail alike
                    continue
                reached = True
                if self._keep(hash):
                    return
        if failure is not None and not reached:
            if ref is None and _UNKNOWN.search(failure.message):
                raise InputError(
                    f"{url} has no commit {hash}, or gives only what a ref names",
                    "check the hash, or name a tag or branch that has it: #tag=NAME",
                ) from failure
            raise failure
        raise WorkError(
            f"{ref or 'a ref'} of {url} has moved from {hash[:12]}, and the server gives only"
            " what a ref names",
            "run it again, to plan it with what is there now",
        )

    def has(self, hash: str) -> bool:
        """Whether a commit or tag is here, from a fetch that was finished."""
        argv = ["rev-parse", "--verify", "--quiet", f"{_KEPT}/{hash}"]
        return self._git(argv, check=False).status == 0

    def _keep(self, hash: str) -> bool:
        """Keep an object under its own name, if the last fetch has brought it with its files."""
        there = self._git(["cat-file", "-e", f"{hash}^{{tree}}"], check=False).status == 0
        if there:
            self._git(["rev-list", "--objects", "--no-walk", "--quiet", hash])
            self._git(["update-ref", f"{_KEPT}/{hash}", hash])
        return there

    def text(self, hash: str, path: str) -> str | None:
        """A file of a commit; None if it does not exist."""
        done = self._git(["cat-file", "blob", f"{hash}:{path}"], check=False)
        return done.output if done.status == 0 else None

    def tag(self, hash: str) -> str:
        """The text of an annotated tag, signature included."""
        return self._git(["cat-file", "tag", hash]).output

    def date(self, commit: str) -> str:
        """When it was committed, ISO 8601."""
        return self._git(["show", "--no-patch", "--format=%cI", commit]).output.strip()

    def lay_out(self, commit: str, output: Path) -> None:
        """Write the files of a commit into a directory."""
        index = self._workshop.work / "index"
        for left in (index, index.with_name("index.lock")):
            left.unlink(missing_ok=True)
        environment = {**_PLAIN, "GIT_INDEX_FILE": str(index)}
        self._git(["read-tree", commit], environment=environment)
        self._git(
            [
                "-c",
                "core.bare=false",
                "-c",
                "core.symlinks=true",
                "-c",
                "core.fileMode=true",
                f"--work-tree={output}",
                "checkout-index",
                "--all",
                "--force",
            ],
            environment=environment,
        )
        index.unlink(missing_ok=True)

    def _prepare(self) -> None:
        if not (self.path / "HEAD").is_file():
            self._git(["init", "--bare", "--quiet"])
        # We hold the lock: what a killed fetch left is in the way of ours.
        (self.path / "shallow.lock").unlink(missing_ok=True)

    def _fetch(self, url: str, option: str, wanted: str) -> None:
        quiet = ("--quiet", "--no-auto-gc", "--no-write-fetch-head", "--no-recurse-submodules")
        where = (f"--git-dir={self.path}", "-c", "protocol.version=2")
        origin = _as_git_reads(url)
        _git(
            [*where, "fetch", *quiet, *_served(url), "--no-tags", option, "--", origin, wanted],
            url,
            "fetched from",
            self._workshop,
            timeout=_FETCHING_SECONDS,
        )

    def _git(
        self, arguments: list[str], check: bool = True, environment: dict[str, str] | None = None
    ) -> Completed:
        git = find_tool("git", "apt-get install git")
        argv = [git, f"--git-dir={self.path}", *arguments]
        return self._workshop.run(argv, env=environment or _PLAIN, check=check)


def _git(
    arguments: list[str], url: str, verb: str, workshop: Workshop, timeout: float
) -> Completed:
    """Run git with a server, again where that may help."""
    git = find_tool("git", "apt-get install git")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            done = workshop.run([git, *arguments], env=_ENVIRONMENT, timeout=timeout, check=False)
            if done.status == 0:
                return done
            why, partial = _complaint(done.output), "promisor remote" in done.output
        except WorkError as error:  # the time limit
            why, partial = error.message, False
        if not _TRANSIENT.search(why) or attempt == MAX_ATTEMPTS:
            remedy = f"check the address: git ls-remote {_as_git_reads(url)}"
            raise WorkError(f"{url} cannot be {verb}: {why}", _PARTIAL if partial else remedy)
        seconds = _FIRST_WAIT * 2 ** (attempt - 1)
        seconds += random.uniform(0, seconds / 2)
        workshop.note(f"{url}: {why}; again in {seconds:.0f} s")
        workshop.wait(seconds)
    raise AssertionError("unreachable")


def _complaint(output: str) -> str:
    """What git complains of: its first fatal line, else the last one.

    The reason may be in the line after it, for each address of the host, or in that before it,
    which ssh wrote.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    fatal = (at for at, line in enumerate(lines) if line.startswith(("fatal:", "ERROR:")))
    at = next(fatal, len(lines) - 1)
    text = lines[at] if lines else "git says nothing"
    if text.endswith(":") and at + 1 < len(lines):
        text += f" {lines[at + 1]}"
    if text.startswith("fatal: Could not read from remote repository") and at > 0:
        text = lines[at - 1]
    return re.sub(r"^(fatal|error|remote error|ERROR): ", "", text)
