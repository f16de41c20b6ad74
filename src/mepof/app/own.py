"""Apps of the user: a file beside programs and data describes them (docs/apps.md)."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from mepof import arch as architectures
from mepof.app.apps import Action, App, app_names
from mepof.described import (
    Described,
    Word,
    WrongAt,
    check_distinct,
    matching,
    read_described,
)
from mepof.errors import InputError
from mepof.suite.cases import MIN_MEMORY
from mepof.toml_lines import Location

#: The largest number of a user or group: the kernel takes 2³² - 1 as none (chown(2)).
MAX_OWNER = 2**32 - 2
#: MiB of a guest.
MAX_MEMORY = 64 * 1024
#: Limits in the guest's time; the longest is a day.
MIN_SECONDS = 0.1
MAX_SECONDS = 86400


# What a line has that only a shell understands.
_OF_A_SHELL = re.compile(r"""[|&;<>()$`\\"'*?~#{}\[\]]""")


def _refuse_line(argv: object) -> object:
    """Show how a command that is written as for a shell is one of an array."""
    if isinstance(argv, str):
        by_shell = _OF_A_SHELL.search(argv) is not None
        words = ["/bin/sh", "-ec", argv] if by_shell else argv.split() or ["/bin/true"]
        example = json.dumps(words, ensure_ascii=False)
        raise ValueError(f"must be an array, such as `{example}`")
    return tuple(argv) if isinstance(argv, list) else argv


#: A program and its arguments.
Argv = Annotated[tuple[str, ...], BeforeValidator(_refuse_line)]


class CopiedFile(Described):
    """A file beside the description, and its absolute path in the guest."""

    source: str = Field(alias="from", min_length=1)
    to: Annotated[
        str,
        matching(
            "/[^\0]*[^/\0]", "be an absolute path in the guest, of a file and not a directory"
        ),
    ]


class Start(Described):
    """A command of a described app, and how it starts.

    Attributes:
        argv: without it, the image's entry point runs.
        seconds: limit in the guest's time.
        input: its standard input: a file beside the description, or an absolute path in the guest.
        environment: variables, beside the app's.
        workdir: working directory in the guest.
        user: number, or name in the guest's ``/etc/passwd``; both may be followed by ``:group``.
    """

    name: Word
    argv: Argv = ()
    seconds: float = Field(gt=0)
    input: Annotated[str, matching("[^\0\n]+", "be the path of a file, on one line")] | None = None
    environment: Mapping[str, str] = {}
    workdir: Annotated[str, matching("/[^\0]*", "be an absolute path in the guest")] | None = None
    user: int | str | None = None

    @field_validator("seconds")
    @classmethod
    def _limit_is_usable(cls, seconds: float) -> float:
        if not MIN_SECONDS <= seconds <= MAX_SECONDS:
            raise ValueError(f"must be from {MIN_SECONDS} to {MAX_SECONDS}")
        return seconds

    @field_validator("environment")
    @classmethod
    def _variables_can_be_set(cls, variables: Mapping[str, str]) -> Mapping[str, str]:
        return _check_variables(variables)

    @field_validator("user")
    @classmethod
    def _user_is_one(cls, user: int | str | None) -> int | str | None:
        if isinstance(user, str) and not user.partition(":")[0]:
            raise ValueError("must begin with a user's number or name")
        if isinstance(user, int) and not 0 <= user <= MAX_OWNER:
            raise ValueError(f"must be from 0 to {MAX_OWNER}")
        return user


class OwnProgram(Described):
    """A program of this machine.

    Attributes:
        path: that of the guest, too.
        package: what to install if it is missing.
    """

    path: str
    package: str | None = None

    @field_validator("path")
    @classmethod
    def _is_absolute(cls, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError("must be an absolute path, which the program has in the guest, too")
        return path


class OwnAction(Start, Action):
    """An action of a described app."""

    # Groups of cases are those of suites.
    unoffered: ClassVar[frozenset[str]] = frozenset(("includes",))

    argv: Argv = ()


class Ready(Described):
    """When a service is ready: all that is given is true.

    Attributes:
        port: a TCP port of 127.0.0.1 or ::1 accepts a connection.
        output: the service has written this text.
        argv: this program, started again and again, ends with status 0.
    """

    port: int | None = Field(default=None, ge=1, le=65535)
    output: Annotated[str, matching("[^\0]+", "be a text without NUL characters")] | None = None
    argv: Argv = ()


class Setup(Start):
    """A command that runs before the first action, or a service that goes on while they run.

    Attributes:
        ready: makes it a service, whose ``seconds`` limit how long it takes to become ready, and
            then to stop.
        stop: the signal that stops a service.
    """

    ready: Ready | None = None
    stop: str = "TERM"

    @field_validator("stop")
    @classmethod
    def _is_a_signal(cls, name: str) -> str:
        if f"SIG{name}" not in signal.Signals.__members__:
            raise ValueError("must be a signal's name, such as `TERM`, `INT` or `QUIT`")
        return name

    @model_validator(mode="after")
    def _only_services_stop(self) -> Setup:
        if self.ready is None and "stop" in self.model_fields_set:
            raise ValueError("only a service has `stop`; write `ready = {}` to make it one")
        return self


class OwnApp(App):
    """An app that the user describes.

    Attributes:
        image: an OCI image layout or a tarball, which may be followed by ``:tag``.
        packages: of Debian, with what they depend on.
        leave_out: dependencies of them to do without.
        directory: what is laid into the guest as it is, over image and packages.
        files: single files, laid over it.
        programs: of this machine, each taken with its shared libraries.
        environment: variables of all its commands.
        setup: what runs before the first action, in order.
    """

    brings_files: ClassVar[bool] = True
    unoffered: ClassVar[frozenset[str]] = frozenset(("suites",))

    actions: tuple[OwnAction, ...] = Field(alias="action")
    image: str | None = Field(default=None, min_length=1)
    packages: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    directory: str | None = Field(default=None, min_length=1)
    files: tuple[CopiedFile, ...] = ()
    programs: tuple[OwnProgram, ...] = Field(default=(), alias="program")
    environment: Mapping[str, str] = {}
    memory: int = Field(default=MIN_MEMORY, ge=MIN_MEMORY, le=MAX_MEMORY)
    setup: tuple[Setup, ...] = ()

    @field_validator("title")
    @classmethod
    def _title_is_one_line(cls, title: str) -> str:
        if not title.strip() or not title.isprintable():
            raise ValueError("must be one line of text")
        return title

    @field_validator("suites")
    @classmethod
    def _has_no_suites(cls, suites: tuple[str, ...]) -> tuple[str, ...]:
        if suites:
            raise ValueError("only installed apps have suites; name the suite as a second app")
        return suites

    @field_validator("environment")
    @classmethod
    def _variables_can_be_set(cls, variables: Mapping[str, str]) -> Mapping[str, str]:
        return _check_variables(variables)

    @field_validator("packages", "leave_out")
    @classmethod
    def _are_packages(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        # https://www.debian.org/doc/debian-policy/ch-controlfields.html#source
        for name in names:
            bare, equals, _ = name.partition("=")
            if equals and _PACKAGE.match(bare):
                raise ValueError(
                    f"`{name}` names a version, which cannot be chosen: the package sources of "
                    f"this machine decide it; write `{bare}`"
                )
            if not _PACKAGE.match(name):
                raise ValueError(f"`{name}` is not the name of a Debian package")
        return names

    @field_validator("leave_out")
    @classmethod
    def _are_not_named(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        packages = info.data.get("packages")
        if packages is None:  # which is wrong itself
            return names
        for name in names:
            if not packages:
                raise ValueError(f"there are no `packages` to leave `{name}` out of")
            if name in packages:
                raise ValueError(f"`{name}` is one of the `packages`, too")
        return names

    @field_validator("setup")
    @classmethod
    def _setup_is_distinct(cls, setup: tuple[Setup, ...]) -> tuple[Setup, ...]:
        check_distinct(each.name for each in setup)
        return setup

    @field_validator("actions")
    @classmethod
    def _there_are_actions(cls, actions: tuple[OwnAction, ...]) -> tuple[OwnAction, ...]:
        if not actions:
            raise ValueError("there is no action")
        return actions

    @model_validator(mode="after")
    def _commands_can_run(self) -> OwnApp:
        commands: dict[Location, Start] = {("action", n): a for n, a in enumerate(self.actions)}
        commands |= {("setup", n): s for n, s in enumerate(self.setup)}
        for location, each in commands.items():
            if not each.argv and self.image is None:
                raise WrongAt(
                    f"`{each.name}` has no argv, and there is no image with an entry point",
                    (*location, "argv"),
                )
            _check_argv(each.name, each.argv, (*location, "argv"))
            if isinstance(each, Setup) and each.ready is not None:
                _check_argv(each.name, each.ready.argv, (*location, "ready", "argv"))
        return self


_PACKAGE = re.compile(r"^[a-z0-9][a-z0-9+.-]+$")


def _check_argv(name: str, argv: Sequence[str], location: Location) -> None:
    if argv and (not argv[0] or any("\0" in word for word in argv)):
        raise WrongAt(f"the argv of `{name}` cannot be run", location)


def _check_variables(variables: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"`{name}` cannot be a variable")
    return variables


def load_own(description: Path) -> OwnApp:
    """The app that a file describes; its name is its title.

    Raises:
        InputError: the file is wrong, or its title is the name of an installed app.
    """
    app = read_described(description, OwnApp, "app", {"name": description.stem})
    if app.title in app_names():
        raise InputError(f"{description}: `{app.title}` is an installed app", "change the title")
    return app.model_copy(update={"name": app.title})


def check_distinct_apps(apps: Sequence[App]) -> None:
    """Refuse apps that a report could not keep apart: with equal titles, or an action in common.

    Raises:
        InputError: there are such.
    """
    for number, app in enumerate(apps):
        for other in apps[:number]:
            if app.name == other.name:
                raise InputError(f"two apps are called `{app.name}`", "change a title")
            both = {a.name for a in app.actions} & {a.name for a in other.actions}
            if both:
                raise InputError(
                    f"the apps `{other.name}` and `{app.name}` both have an action `{min(both)}`",
                    "rename one",
                )
            if isinstance(app, OwnApp) and isinstance(other, OwnApp):
                both = {s.name for s in app.setup} & {s.name for s in other.setup}
                if both:
                    raise InputError(
                        f"the apps `{other.name}` and `{app.name}` both set up `{min(both)}`",
                        "rename one",
                    )


def check_program_arch(app: OwnApp, arch: str) -> None:
    """Refuse programs of this machine for a guest of another architecture."""
    if app.programs and arch != architectures.host():
        raise InputError(
            f"the app {app.title} takes {app.programs[0].path} from this machine, "
            f"which does not run on {arch}",
            f"lay programs for {arch} into the guest by `packages`, `image` or `directory`",
        )
