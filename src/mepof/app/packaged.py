"""Programs of Debian's packages, for guests that cannot have them from this machine."""

from __future__ import annotations

from collections.abc import Iterable

from mepof.app.debian import package_files
from mepof.app.laid import Laid, Member, resolve
from mepof.app.starts import closure
from mepof.errors import InputError
from mepof.suite.cases import Tool

#: The shell of guests that are built without one.
BUSYBOX = Tool(path="/bin/busybox", package="busybox-static")


def packaged(tools: Iterable[Tool], arch: str) -> tuple[dict[str, Laid], dict[str, str]]:
    """Programs with the libraries that they need.

    Returns:
        The files by their path in the guest without the leading slash; and, for the identity of a
        step, the version and digest of each package that any of them is from.

    Raises:
        InputError: a package does not have the program, or a library is missing; and as of
            :func:`~mepof.app.debian.package_files`.
        EnvironmentLack: likewise.
    """
    tools = tuple(tools)
    if not tools:
        return {}, {}
    files, packages = package_files(tuple(sorted({tool.package for tool in tools})), (), arch)
    found: dict[str, Laid] = {}
    for tool in tools:
        at = resolve(tool.path.lstrip("/"), files)
        if at is None or at not in files:
            raise InputError(f"the package {tool.package} for {arch} does not have {tool.path}")
        found |= closure(f"{tool.path} of the package {tool.package}", at, files, arch)
        found[tool.path.lstrip("/")] = found.pop(at)
    sources = {laid.source.archive for laid in found.values() if isinstance(laid.source, Member)}
    return found, {
        f"package {name}": str(package)
        for name, package in packages.items()
        if package.contents in sources
    }
