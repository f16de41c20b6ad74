"""Toolchains by the names that programs give them: what each can do, and which one is meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from mepof.arch import Arch
from mepof.errors import EnvironmentLack, InputError, MepofError
from mepof.toolchain.protocol import TOOLCHAINS, Toolchain

#: The toolchain of a program that names none.
DEFAULT = "clang"
# What the names that other tools have for toolchains contain.
_MEANT = {"gcc": "gcc", "clang": "clang", "llvm": "clang", "-gnu": "gcc"}


def names() -> tuple[str, ...]:
    """The words for toolchains in programs: each family, and each of its versions."""
    return tuple(
        name
        for family, found in TOOLCHAINS.all().items()
        for name in (family, *(f"{family}-{version}" for version in found.versions()))
    )


def meant(word: str) -> str | None:
    """The name of a toolchain for what make (``LLVM=-19``), packages (``llvm-19``) or compilers
    (``aarch64-linux-gnu-gcc-13``, ``CROSS_COMPILE=aarch64-linux-gnu-``) call it."""
    found = (family for part, family in _MEANT.items() if part in word.lower())
    if (family := next(found, "clang" if word.startswith("-") else None)) is None:
        return None
    version = re.search(r"(?:(?:gcc|clang|llvm)\W*|^-)(\d+)", word, re.I)
    name = f"{family}-{version[1]}" if version else family
    return name if name in names() else family


def capabilities() -> dict[str, frozenset[str]]:
    """What each toolchain can do that not every one can, by its G4 names; without a version, what
    some version can."""
    return {name: _capabilities(*_parse(name)) for name in names()}


def builders(arch: Arch) -> tuple[str, ...]:
    """The G4 names of the toolchains that build kernels for an architecture."""
    return tuple(name for name in names() if arch.built_by(_parse(name)[0]))


def exclusive() -> dict[str, frozenset[str]]:
    """The capabilities of which one build takes a single profile, by the toolchains' G4 names."""
    return {name: TOOLCHAINS.get(_parse(name)[0]).exclusive for name in names()}


def select(name: str) -> Toolchain:
    """The toolchain of a G4 name: ``clang`` is the newest one here, ``clang-22`` that one, and
    ``clang:DIRECTORY`` the one there.

    Raises:
        InputError: the name is unknown.
        EnvironmentLack: it is not installed.
    """
    family, version = _parse(name)
    if "/" in family:
        known = " or ".join(f"{each}:{name}" for each in _suited(name))
        raise InputError(f"{name} does not say what kind of toolchain it is", f"write {known}")
    try:
        found, directory = TOOLCHAINS.get(family), name.partition(":")[2]
    except InputError as error:
        near = meant(family)
        raise InputError(
            error.message, f"did you mean `{near}`?" if near else error.remedy
        ) from None
    return found.at(Path(directory).absolute()) if directory else found.select(version)


def check_requirements(toolchain: str, requirements: Mapping[str, Collection[str]]) -> None:
    """Refuse a toolchain that cannot do what is required. It need not be installed; then one
    without a version in its name may be any.

    Args:
        toolchain: its G4 name.
        requirements: capabilities, by the name of what requires them.

    Raises:
        InputError: it does not have one of them.
    """
    family, version = _parse(toolchain)
    has = _capabilities(family, version)
    if version is None and any(requirements.values()):
        with suppress(MepofError):
            chosen = select(toolchain)
            has, version = chosen.capabilities, chosen.version
    for name, required in requirements.items():
        if missing := sorted(set(required) - has):
            if oldest := oldest_with(family, version, missing):
                raise InputError(
                    f"{name} needs {family} {oldest} or later, not {version}",
                    f"set toolchain {family}-{oldest}, or a newer one",
                )
            able = families_with(frozenset(required))
            raise InputError(
                f"{toolchain} cannot be used with {name}: it needs {' or '.join(able or missing)}",
                f"set toolchain {able[0]}" if able else None,
            )


def families_with(required: frozenset[str]) -> tuple[str, ...]:
    """The families of toolchains of which some version has all of these capabilities."""
    families = TOOLCHAINS.all().items()
    return tuple(name for name, family in families if required <= family.capabilities.keys())


def oldest_with(family: str, version: str | None, missing: Collection[str]) -> int | None:
    """The oldest major version of a family that has what an older one lacks; None if it is not for
    its age that one lacks it.

    Args:
        version: that lacks it.
        missing: capabilities.
    """
    since = TOOLCHAINS.get(family).capabilities
    if version is None or not set(missing) <= since.keys():
        return None
    oldest = max(since[each] for each in missing)
    return oldest if int(version.partition(".")[0]) < oldest else None


def check_files(toolchain: Toolchain, arch: Arch, required: Collection[str]) -> None:
    """Refuse a toolchain without the files that instrumentation needs.

    Args:
        arch: what kernels are built for.
        required: the capabilities by which they are instrumented.

    Raises:
        EnvironmentLack: a file is missing.
    """
    missing = [
        file
        for file in toolchain.files(arch)
        if file.capability in required and not (file.path is not None and file.path.is_file())
    ]
    if missing:
        names = " and ".join(file.name for file in missing)
        packages = [file.package for file in missing if file.package is not None]
        raise EnvironmentLack(
            f"{toolchain.name} cannot instrument kernels for {arch.name} without {names}",
            f"apt-get install {' '.join(packages)}" if packages else "run `mepof doctor`",
        )


def installed_with(capability: str) -> Iterator[Toolchain]:
    """The installed toolchains of a family that has a capability, from the newest on.

    Raises:
        InputError: no toolchain has it.
        EnvironmentLack: none that has it is installed.
    """
    for family in (DEFAULT, *TOOLCHAINS.names()):
        found = TOOLCHAINS.get(family)
        if capability in found.capabilities:
            yield found.select(None)
            for version in found.versions():
                with suppress(EnvironmentLack):
                    yield found.select(version)
            return
    raise InputError(f"no toolchain has {capability}")


def _suited(directory: str) -> tuple[str, ...]:
    """The families that have a toolchain in a directory, or all if none has."""
    found = []
    for name, family in TOOLCHAINS.all().items():
        with suppress(MepofError):
            family.at(Path(directory).absolute())
            found.append(name)
    return tuple(found) or TOOLCHAINS.names()


def _capabilities(family: str, version: str | None) -> frozenset[str]:
    """Those of a version; without one, those that some version has."""
    found = TOOLCHAINS.get(family)
    return frozenset(found.capabilities) if version is None else found.capabilities_of(version)


def _parse(name: str) -> tuple[str, str | None]:
    """A G4 name as a family and a version."""
    name = name.partition(":")[0]
    families = TOOLCHAINS.names()
    family, dash, version = name.rpartition("-")
    if name not in families and dash and family in families:
        return family, version
    return name, None
