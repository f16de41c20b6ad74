"""Apps of the user: a file beside programs and data describes them.

A guest gets what the description names: a directory as it is, single files, and programs of this
machine with their shared libraries (docs/apps.md).
"""

from __future__ import annotations

import filecmp
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from pydantic import Field, field_validator

from mepof.app.apps import Action, App, app_names
from mepof.app.laid import Laid, check_start
from mepof.described import Described, read_described
from mepof.errors import InputError
from mepof.plan.digest import walk
from mepof.suite.cases import Tool
from mepof.toolchain import shared_libraries

# Of the host, whose programs `[[program]]` takes.
_HOST = "x86-64"
# File systems that the guest mounts hide what lies there.
_MOUNTED = frozenset(("dev", "proc", "sys", "tmp"))
_GUEST_FILES = frozenset(("init", "bin/kbench"))
#: Those of every guest; the kernel does not replace one by a link.
GUEST_DIRECTORIES = frozenset(("bin", "dev", "etc", "mepof", "proc", "root", "sys", "tmp"))


class CopiedFile(Described):
    """A file beside the description, and its absolute path in the guest."""

    source: str = Field(alias="from", min_length=1)
    to: str = Field(pattern="^/[^\0]*[^/\0]$")


class OwnApp(App):
    """An app that the user describes.

    Attributes:
        directory: what is laid into the guest as it is.
        files: single files, laid over it.
        programs: of this machine, each taken with its shared libraries.
    """

    directory: str | None = Field(default=None, min_length=1)
    files: tuple[CopiedFile, ...] = ()
    programs: tuple[Tool, ...] = Field(default=(), alias="program")

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

    @field_validator("actions")
    @classmethod
    def _actions_can_run(cls, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        if not actions:
            raise ValueError("there is no action")
        for action in actions:
            if not action.argv[0] or any("\0" in word for word in action.argv):
                raise ValueError(f"the argv of `{action.name}` cannot be run")
        return actions


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


def own_files(app: OwnApp, description: Path) -> dict[str, Laid]:
    """What the user lays into the guest, by its path there without the leading slash.

    Raises:
        InputError: a file is missing, outside of the description's directory, neither a file, a
            directory nor a link, or where the guest has something else.
    """
    base = description.parent
    found: dict[str, Laid] = {}
    if app.directory is not None:
        found |= _directory(_beside(base, app.directory), description)
    for file in app.files:
        path = _beside(base, file.source)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path} is not a regular file", "name directories by `directory`")
        parts = PurePosixPath(file.to).parts[1:]
        if ".." in parts:
            raise InputError(f"{description}: `{file.to}` has `..` in it")
        _lay(found, "/".join(parts), Laid(path, executable=_executable(status.st_mode)))
    for path_in_guest, laid in found.items():
        _refuse_the_guests(path_in_guest, laid, description)
    return found


def check_distinct_files(apps: Iterable[tuple[OwnApp, Path]]) -> None:
    """Refuse apps of one guest that lay different things at one path.

    Args:
        apps: each with its description.

    Raises:
        InputError: there are such, or as of :func:`own_files`.
    """
    found: dict[str, tuple[str, Laid]] = {}
    for app, description in apps:
        for path, laid in own_files(app, description).items():
            other, known = found.setdefault(path, (app.title, laid))
            if not _same(known, laid):
                raise InputError(
                    f"the apps `{other}` and `{app.title}` lay different files at /{path}",
                    "move one",
                )


def _same(one: Laid, other: Laid) -> bool:
    if one.source is None or other.source is None:
        return one == other
    equal = filecmp.cmp(one.source, other.source, shallow=False)
    return equal and one.executable == other.executable


def all_files(app: OwnApp, description: Path, arch: str) -> dict[str, Laid]:
    """The same with the programs of this machine and their libraries, so that every action can
    start.

    Raises:
        InputError: as of :func:`own_files`, or an action's program cannot run in the guest.
        EnvironmentLack: a program of this machine or one of its libraries is missing.
    """
    found = own_files(app, description)
    for program in app.programs:
        for path in shared_libraries.closure(program.path, program.package):
            _lay(found, str(path).lstrip("/"), Laid(path, executable=True))
    for path_in_guest in found:
        for parent in map(str, PurePosixPath(path_in_guest).parents):
            if parent in found and (found[parent].source or found[parent].link):
                raise InputError(f"{description}: /{path_in_guest} is below /{parent}, a file")
    for action in app.actions:
        check_start(action, found, arch)
    return found


def check_program_arch(app: OwnApp, arch: str) -> None:
    """Refuse programs of this machine for a guest of another architecture."""
    if app.programs and arch != _HOST:
        raise InputError(
            f"the app {app.title} takes {app.programs[0].path} from this machine, "
            f"which does not run on {arch}",
            f"lay programs for {arch} into the guest by `directory`",
        )


def _beside(base: Path, relative: str) -> Path:
    """A path of the description, which must exist below the description's directory."""
    path = base / relative
    if not path.resolve().is_relative_to(base.resolve()):
        raise InputError(
            f"{path} is outside of the description's directory", f"copy it into {base}"
        )
    if not path.exists():
        raise InputError(f"{path} does not exist")
    return path


def _directory(root: Path, description: Path) -> Iterator[tuple[str, Laid]]:
    if not root.is_dir():
        raise InputError(f"{description}: {root} is not a directory")
    try:
        entries = walk(root)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
    for relative, kind, status in entries:
        path = root / relative
        if not relative.isprintable():
            raise InputError(f"{str(path)!r} is not a name that a guest can have")
        match kind:
            case "dir":
                yield relative, Laid()
            case "link":
                yield relative, Laid(link=str(path.readlink()))
            case "file" | "exec":
                yield relative, Laid(path, executable=_executable(status.st_mode))
            case _:
                raise InputError(
                    f"{path} is neither a file, a directory nor a link", "leave it out"
                )


def _executable(mode: int) -> bool:
    return bool(mode & stat.S_IXUSR)


def _lay(found: dict[str, Laid], path: str, laid: Laid) -> None:
    known = found.get(path, laid)
    if known != laid:
        raise InputError(f"/{path} would be two files: {known.source} and {laid.source}")
    found[path] = laid


def _refuse_the_guests(path: str, laid: Laid, description: Path) -> None:
    top = path.partition("/")[0]
    if path in GUEST_DIRECTORIES:
        if laid != Laid():
            raise InputError(f"{description}: /{path} is a directory of every guest")
    elif top in _MOUNTED:
        raise InputError(
            f"{description}: /{path} would be hidden, because the guest mounts /{top}",
            "lay it elsewhere",
        )
    elif path in _GUEST_FILES or top == "mepof":
        raise InputError(f"{description}: /{path} is a file of the guest's own", "rename it")
