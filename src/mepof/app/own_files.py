"""What a described app lays into the guest: image, packages, directory, files and programs."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path, PurePosixPath

from mepof.app.debian import Package, package_files
from mepof.app.image.layers import HIDDEN, without_link
from mepof.app.image.model import OWN_INIT, Image
from mepof.app.image.read import check_image, read_image, registry_remedy
from mepof.app.laid import MAX_SIZE, Laid, check_name, is_directory, resolve, resolve_parent
from mepof.app.own import OwnApp
from mepof.errors import InputError
from mepof.plan.digest import walk
from mepof.toolchain import shared_libraries

#: Those that nothing replaces; on some architectures there is also ``bin/busybox``.
GUEST_FILES = frozenset(("init", "bin/kbench"))
#: Those of every guest; the kernel does not replace one by a link.
GUEST_DIRECTORIES = frozenset(("bin", "dev", "etc", "mepof", "proc", "root", "sys", "tmp"))
# How skopeo names what lies on a disk; a registry's names have no such beginning.
_BY_SKOPEO = re.compile("(?:oci|oci-archive|docker-archive):(?!//)")
_WHOLE_SYSTEM = "a whole system, such as a container's, is laid by `image`"
# Debian's numbers (/usr/share/doc/base-passwd/users-and-groups.txt), which no package brings.
_ACCOUNTS = (("root", 0, "/root"), ("www-data", 33, "/var/www"), ("nobody", 65534, "/nonexistent"))


def own_files(app: OwnApp, description: Path) -> dict[str, Laid]:
    """What the user lays into the guest from beside the description, by its path there without the
    leading slash.

    Raises:
        InputError: a file is missing, outside of the description's directory, neither a file, a
            directory nor a link, or where the guest has something of its own; or the image is not
            one.
    """
    base = description.parent
    if app.image is not None:
        check_image(_layout(base, app.image)[0])
    found: dict[str, Laid] = {}
    if app.directory is not None:
        found |= _directory(_beside(base, app.directory), description)
    for file in app.files:
        parts = PurePosixPath(file.to).parts[1:]
        if ".." in parts:
            raise InputError(f"{description}: `{file.to}` has `..` in it")
        if not parts:
            raise InputError(f"{description}: `{file.to}` is the root of the guest", "name a file")
        _add(found, "/".join(parts), _file(base, file.source))
    for path_in_guest, laid in found.items():
        _refuse_the_guests(path_in_guest, laid, description)
    for name, given in input_paths(app).items():
        if not given.startswith("/"):
            found[f"mepof/input/{name}"] = _file(base, given)
    return found


def input_paths(app: OwnApp) -> dict[str, str]:
    """Standard inputs as the description gives them, by the name that they have in the guest."""
    named = [(each.name, each.input) for each in app.actions]
    named += [(f"setup-{each.name}", each.input) for each in app.setup]
    return {name: given for name, given in named if given is not None}


def image_of(app: OwnApp, description: Path, arch: str) -> Image:
    """The image that the app runs in; an empty one if it names none."""
    if app.image is None:
        return Image()
    return read_image(*_layout(description.parent, app.image), arch)


def _layout(base: Path, image: str) -> tuple[Path, str | None]:
    """The directory or tarball of an image, and its tag, if it is named."""
    path, tag = image, ""
    named = _BY_SKOPEO.match(image)
    if named is not None and not (base / image).exists():
        raise InputError(
            f"the image `{image}` is named as for skopeo",
            f'write `image = "{image.removeprefix(named[0])}"`',
        )
    if not (base / image).exists():
        path, _, tag = image.partition(":")
    remedy = registry_remedy(image, base)
    if remedy is not None and ("://" in image or not (base / path).exists()):
        raise InputError(f"the image `{image}` is not below {base}", remedy)
    return _beside(base, path), tag or None


def check_distinct_files(apps: Iterable[tuple[OwnApp, Path]], arch: str | None = None) -> None:
    """Refuse apps of one guest that lay different things at one path.

    Args:
        apps: each with its description.
        arch: of the guest, to compare what comes with images and packages too, which may have to be
            downloaded.

    Raises:
        InputError: there are such, or as of :func:`own_files` or :func:`all_files`.
        EnvironmentLack: as of :func:`all_files`.
    """
    given = tuple(apps)
    found: dict[str, tuple[str, Laid]] = {}
    for app, description in given:
        if arch is not None and len(given) > 1:
            files = all_files(app, description, arch)
        else:
            files = own_files(app, description)
        for path, laid in files.items():
            other, known = found.setdefault(path, (app.title, laid))
            if not (known.same_as(laid) or (known.is_directory and laid.is_directory)):
                raise InputError(
                    f"the apps `{other}` and `{app.title}` lay different files at /{path}",
                    "move one, or give each app a guest of its own: a `profile` for each, then "
                    "`merge`, and an `eval` for each",
                )


def all_files(app: OwnApp, description: Path, arch: str) -> dict[str, Laid]:
    """The same over the image and the packages, with the programs of this machine and their
    libraries.

    Raises:
        InputError: as of :func:`own_files`; an image or package cannot be read, or does not fit.
        EnvironmentLack: what a package of this machine brings is missing, or a package cannot be
            downloaded.
    """
    found = dict(image_of(app, description, arch).files)
    for path, laid in _packages(app, arch)[0].items():
        _add(found, _at(path, found, description), laid)
    for name in GUEST_DIRECTORIES:
        without_link(found, name)
    for path, laid in found.items():
        if path != OWN_INIT:
            _refuse_the_guests(path, laid, description)
    # What the user writes replaces what image and packages bring.
    for path, laid in own_files(app, description).items():
        at = _at(path, found, description) if app.image or app.packages else path
        known = found.get(at)
        if laid.is_directory and known is not None and known.link is not None:
            leads_to = resolve(at, found)
            if leads_to is not None and is_directory(leads_to, found):
                continue  # such as /lib -> usr/lib: what is in it goes there
        if at not in found or not (laid.is_directory and found[at].is_directory):
            found[at] = laid
    for program in app.programs:
        elsewhere = f"install {program.path} elsewhere, such as below /opt, and name it there"
        for each in shared_libraries.closure(program.path, program.package):
            path, laid = str(each).lstrip("/"), Laid(each, executable=True)
            _refuse_the_guests(path, laid, description, elsewhere)
            _add(found, _at(path, found, description), laid)
    for path, laid in _accounts(app).items():
        known = found.get(path)
        # Builders of images leave an empty /etc/hosts where container runtimes mount theirs.
        if known is None or (known.source is not None and not known.size):
            found[path] = laid
    for path_in_guest in found:
        for parent in map(str, PurePosixPath(path_in_guest).parents):
            if parent in found and not found[parent].is_directory:
                raise InputError(f"{description}: /{path_in_guest} is below /{parent}, a file")
    return found


def packages_of(app: OwnApp, arch: str) -> dict[str, Package]:
    """Each package of an app, and of what they depend on, by name.

    Raises:
        InputError, EnvironmentLack: as of :func:`all_files`.
    """
    return _packages(app, arch)[1]


def _packages(app: OwnApp, arch: str) -> tuple[dict[str, Laid], dict[str, Package]]:
    return package_files(app.packages, app.leave_out, arch) if app.packages else ({}, {})


def _accounts(app: OwnApp) -> dict[str, Laid]:
    """The users and the host that C libraries look up, for apps that would otherwise lack them."""
    hosts = {"etc/hosts": Laid(b"127.0.0.1 localhost\n")}
    if app.image is not None:
        return hosts
    users = {each.user for each in (*app.actions, *app.setup)}
    if not (app.packages or users - {None, 0}):
        return {}
    # The same for all apps: the program that starts commands adds the other numbers that it needs.
    passwd = "".join(f"{name}:x:{n}:{n}::{home}:/bin/sh\n" for name, n, home in _ACCOUNTS)
    group = "".join(f"{name}:x:{n}:\n" for name, n, _ in _ACCOUNTS)
    return {
        "etc/passwd": Laid(passwd.encode()),
        "etc/group": Laid(group.replace("nobody:", "nogroup:").encode()),
        **hosts,
    }


def _at(path: str, files: MutableMapping[str, Laid], description: Path) -> str:
    """Where a path is laid when directories above it are links of an image."""
    at = resolve_parent(path, files)
    if at is None:
        raise InputError(f"{description}: the links above /{path} form a loop")
    return at


def _beside(base: Path, relative: str) -> Path:
    """A path of the description, which must exist below the description's directory."""
    path = base / relative
    if not path.resolve().is_relative_to(base.resolve()):
        raise InputError(
            f"{path} is outside of the description's directory", f"copy it into {base}"
        )
    if not path.exists():
        raise InputError(
            f"{path} does not exist", f"name a path below {base}, the description's directory"
        )
    return path


def _file(base: Path, relative: str) -> Laid:
    path = _beside(base, relative)
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file", "name directories by `directory`")
    return Laid(path, executable=_executable(status.st_mode))


def _directory(root: Path, description: Path) -> Iterator[tuple[str, Laid]]:
    if not root.is_dir():
        raise InputError(f"{description}: {root} is not a directory")
    try:
        entries = walk(root)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
    for relative, kind, status in entries:
        path = root / relative
        check_name(relative, str(root))
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


def _add(found: MutableMapping[str, Laid], path: str, laid: Laid) -> None:
    known = found.get(path)
    if known is None or (known.is_directory and laid.is_directory):
        found[path] = laid
    elif not known.same_as(laid):
        raise InputError(f"/{path} would be two files: {_origin(known)} and {_origin(laid)}")


def _origin(laid: Laid) -> str:
    match laid.source:
        case Path() as path:
            return str(path)
        case None:
            return "a directory" if laid.link is None else f"a link to {laid.link}"
        case _:
            return "that of the image or a package"


def _refuse_the_guests(
    path: str, laid: Laid, description: Path, elsewhere: str = f"lay it elsewhere; {_WHOLE_SYSTEM}"
) -> None:
    top = path.partition("/")[0]
    if laid.size > MAX_SIZE:
        raise InputError(
            f"{description}: /{path} has {laid.size / (1 << 30):.1f} GiB",
            "an initramfs holds files of less than 4 GiB: make it by a `[[setup]]`",
        )
    if path in GUEST_DIRECTORIES:
        if not laid.is_directory:
            raise InputError(f"{description}: /{path} is a directory of every guest", _WHOLE_SYSTEM)
    elif top in HIDDEN:
        raise InputError(
            f"{description}: /{path} would be hidden, because the guest mounts /{top}",
            elsewhere,
        )
    elif path in GUEST_FILES or top == "mepof":
        raise InputError(f"{description}: /{path} is a file of the guest's own", "rename it")
