"""The file that a watcher reads: what is followed, what is made of it, and who is told."""

from __future__ import annotations

import shutil
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from mepof.adapter.feed.protocol import FEEDS, Follow
from mepof.adapter.history import History
from mepof.adapter.publish import INDEX, check_names
from mepof.adapter.repositories import check_programs, directories
from mepof.adapter.sign import Gnupg, Minisign, Signer
from mepof.adapter.webhook import key_of
from mepof.described import Described, check_distinct, read_described
from mepof.errors import InputError
from mepof.executor.programs import compiled, plan_of
from mepof.g4 import Source
from mepof.plan.model import Input, Plan
from mepof.source.keyring import keyring_of
from mepof.spec.flash import Flash
from mepof.spec.kernel_package import KernelPackage

#: What stands for the release in a program.
MARK = "{source}"
_ANY = "debian:linux-source-6.12"


class Limits(Described):
    """The rule by which the profile of an earlier release is used again; all in percent.

    Attributes:
        reuse: of samples in functions that changed, up to which the old profile is used.
        refresh: up to which the training is repeated on a scouted kernel; beyond it, all of it is.
        matched: of samples that must match the first kernel that is built with the old profile.
    """

    reuse: float = Field(default=10.0, ge=0, le=100)
    refresh: float = Field(default=40.0, ge=0, le=100)
    matched: float = Field(default=80.0, ge=0, le=100)

    @model_validator(mode="after")
    def _are_in_order(self) -> Self:
        if self.refresh < self.reuse:
            raise ValueError("`refresh` must not be below `reuse`")
        return self


class Webhook(Described):
    """Who is told over HTTP.

    Attributes:
        secret: path of the file with the key that signs; only its owner may read it.
    """

    url: str
    secret: str

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.password:
            raise ValueError("write an http:// or https:// URL without a password")
        return url


class Watched(Described):
    """The file.

    Attributes:
        program: path of a G4 program in which ``{source}`` stands for the release.
        publish: directory for what is published, the history and the runs.
        interval: seconds between two looks at a feed.
        sign: GnuPG key that signs the index.
        minisign: path of the secret key, without a password, by which minisign signs it.
        worse: percent by which an image may be worse than that of the last good release.
        notify: command that is called with the state, the release and the message as JSON.
        judge: when the profile of an earlier release is used again.
        webhook: who else is told.
        follow: what is followed.
    """

    program: str
    publish: str
    interval: int = Field(default=3600, ge=60)
    sign: str | None = None
    minisign: str | None = None
    worse: float = Field(default=2.0, ge=0, le=100)
    notify: tuple[str, ...] = ()
    judge: Limits = Limits()
    webhook: tuple[Webhook, ...] = ()
    follow: tuple[Follow, ...] = ()

    @model_validator(mode="after")
    def _has_one_signature(self) -> Self:
        if self.sign is not None and self.minisign is not None:
            raise ValueError("the index is signed by `sign` or by `minisign`, not by both")
        return self


@dataclass(frozen=True)
class Hook:
    """A webhook and its key."""

    url: str
    key: bytes = field(repr=False)

    @property
    def shown(self) -> str:
        """What is said of it: a URL may contain a token."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True)
class Task:
    """What a watcher does: the file, its program's text, and where everything goes.

    Attributes:
        home: the file's directory, to which the paths in it and in its program are relative.
    """

    home: Path
    watched: Watched
    text: str
    directory: Path
    signer: Signer | None
    hooks: tuple[Hook, ...]

    @property
    def published(self) -> Path:
        """The directory that holds what is published."""
        return self.directory / "published"

    @property
    def history_file(self) -> Path:
        """The file of :meth:`history`, which makes it."""
        return self.directory / "history.sqlite"

    def history(self) -> History:
        """What was seen and done."""
        return History(self.history_file)

    def formats(self, plan: Plan | None = None) -> set[str]:
        """The formats of the packages that its program makes, with ``home`` as the working
        directory.

        Args:
            plan: of the program, if it is there.
        """
        plan = plan or compiled(_example(self.watched.program, self.text))
        packaged = (step for step in plan.steps if step.kind == KernelPackage.kind)
        return {KernelPackage[Input].of(step, step.inputs).format for step in packaged}

    def check(self) -> None:
        """Look for what every release will need, with ``home`` as the working directory.

        Raises:
            InputError: a file does not exist, or is not what it should be, or there is one where
                something is published.
            EnvironmentLack: a keyring or a tool is not on this machine.
        """
        try:
            for follow in self.watched.follow:
                if (signer := FEEDS.get(follow.feed).signer(follow)) is not None:
                    keyring_of(signer)
            formats = self.formats(plan_of(_example(self.watched.program, self.text)))
        except InputError as error:
            remedy = error.remedy or f"paths are relative to {self.home}"
            raise InputError(error.message, remedy) from error
        signatures = {INDEX + self.signer.suffix} if self.signer else set()
        check_names(self.published, directories(formats) | signatures)
        check_programs(formats)


def read_task(path: Path) -> Task:
    """The task that a file describes. Paths in it are relative to it.

    Raises:
        InputError: the file, its program, a key or a table in it is wrong, or nothing can be run
            by ``notify``.
    """
    watched = read_described(path, Watched, "watch file")
    try:
        check_distinct(follow.name for follow in watched.follow)
        check_distinct(hook.url for hook in watched.webhook)
    except ValueError as error:
        raise InputError(f"{path}: {error}", "give each its own name") from error
    if not watched.follow:
        raise InputError(f"{path} follows nothing", "add a table [[follow]]")
    for follow in watched.follow:
        try:
            FEEDS.get(follow.feed).check(follow)
        except InputError as error:
            raise InputError(f"{path}: {error.message}", error.remedy) from error
    source = Source.read(path.parent / watched.program)
    if MARK not in source.text:
        raise InputError(
            f"{path.parent / watched.program} does not say where the release goes",
            f"write {MARK} for the kernel: adap {MARK} pgo rand kbench.",
        )
    # What is wrong whatever the release is wrong now.
    with chdir(path.parent):
        plan = compiled(_example(source.name, source.text))
        if watched.notify and shutil.which(watched.notify[0]) is None:
            raise InputError(
                f"{path}: `notify`: there is no program `{watched.notify[0]}`",
                f"name one of PATH, or an executable file; paths are relative to {Path.cwd()}",
            )
    if any(step.kind == Flash.kind for step in plan.steps):
        raise InputError(
            f"{source.name} flashes a phone, and nobody is there when it is watched",
            "remove `flash`, and flash what is published by hand: docs/devices/phone.md",
        )
    here = path.parent.absolute()
    signer: Signer | None = None
    if watched.minisign is not None:
        signer = Minisign(here / watched.minisign)
    elif watched.sign is not None:
        signer = Gnupg(watched.sign)
    hooks = tuple(Hook(each.url, key_of(here / each.secret)) for each in watched.webhook)
    return Task(here, watched, source.text, here / watched.publish, signer, hooks)


def filled(text: str, address: str) -> str:
    """The text of a program with an address in place of each mark, quoted or not."""
    return text.replace(f'"{MARK}"', MARK).replace(MARK, f'"{address}"')


def _example(name: str, text: str) -> Source:
    """The program for some release."""
    return Source(name, filled(text, _ANY))
