"""Variants that are found by name, one file each.

A package such as ``mepof.algorithm`` holds one module per algorithm; the module's name
(with ``-`` for ``_``) is the name that users write, and its module-level object of the
registry's attribute name is the variant. Another distribution adds one with an entry point in
the group ``mepof.<package>``. Variants that are data are TOML files in one directory, such as
``suite/suites``; the file's stem is the name.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Generic, TypeVar

from mepof.described import Described, Named, nearest, read_described
from mepof.errors import EnvironmentLack, InputError

T = TypeVar("T")
D = TypeVar("D", bound=Described)


@dataclass(frozen=True)
class Registry(Generic[T]):
    """The variants that are modules of one package.

    Attributes:
        package: its dotted name.
        attribute: the module attribute that holds the variant; modules without it are
            not variants.
        noun: the kind of variant, for messages.
        protocol: the protocol that variants of other distributions must have all members of.
    """

    package: str
    attribute: str
    noun: str
    protocol: type | None = None

    def all(self) -> dict[str, T]:
        """Every variant that can be used, by its name: mepof's own, then those of other
        distributions, each sorted. Where several would do, the first is meant, so an installed
        distribution does not change what a program says."""
        own = self._own()
        found = self._others(own)
        others = {n: each for n, each in found.items() if not isinstance(each, EnvironmentLack)}
        return {**dict(sorted(own.items())), **dict(sorted(others.items()))}

    def unusable(self) -> dict[str, EnvironmentLack]:
        """Why variants of other distributions cannot be used, by their names."""
        found = self._others(self._own())
        return {n: each for n, each in found.items() if isinstance(each, EnvironmentLack)}

    def _others(self, own: Container[str]) -> dict[str, T | EnvironmentLack]:
        """The variants of other distributions, or why they cannot be used, by their names."""
        values: dict[str, set[str]] = {}
        for point in self._outside():
            values.setdefault(point.name, set()).add(point.value)
        found: dict[str, T | EnvironmentLack] = {}
        for point in self._outside():
            if point.name in own:
                found[point.name] = EnvironmentLack(
                    f"{self._named(point)}, has the name of one of mepof's own",
                    "give its entry point another name, or remove the package that adds it",
                )
            elif len(values[point.name]) > 1:
                found[point.name] = EnvironmentLack(
                    f"{self._named(point)}, has the name of another one",
                    "remove one of the packages that add it",
                )
            else:
                found[point.name] = self._load(point)
        return found

    def _own(self) -> dict[str, T]:
        found: dict[str, T] = {}
        root = importlib.import_module(self.package)
        for info in pkgutil.iter_modules(root.__path__):
            module = importlib.import_module(f"{self.package}.{info.name}")
            if hasattr(module, self.attribute):
                found[info.name.replace("_", "-")] = getattr(module, self.attribute)
        return found

    def _outside(self) -> tuple[EntryPoint, ...]:
        return _outside(self.package, entry_points, tuple(sys.path))

    def _named(self, point: EntryPoint) -> str:
        return f"the {self.noun} `{point.name}`, {point.value}"

    def _load(self, point: EntryPoint) -> T | EnvironmentLack:
        """The variant, or why it cannot be used."""
        named = self._named(point)
        remedy = "update or remove the package that adds it"
        try:
            variant: T = point.load()
            missing = [name for name in _members(self.protocol) if not hasattr(variant, name)]
        except (Exception, SystemExit) as error:
            return EnvironmentLack(f"{named}, cannot be loaded: {error}", remedy)
        if self.protocol is not None and isinstance(variant, type):
            return EnvironmentLack(
                f"{named}, is a class", "let its entry point name an instance of the class"
            )
        if missing:
            return EnvironmentLack(f"{named}, does not have {', '.join(missing)}", remedy)
        return variant

    def names(self) -> tuple[str, ...]:
        """The names that users can write."""
        return _names(self)

    def identity(self, *names: str) -> dict[str, str]:
        """What decides what variants of other distributions do: the distribution, its version and
        the content of its files. Our own are identified by the versions of what uses them."""
        return {
            f"{self.noun} {point.name}": _identity(point)
            for point in self._outside()
            if point.name in names
        }

    def get(self, name: str) -> T:
        """The variant of that name.

        Raises:
            InputError: there is none; the nearest name is suggested.
            EnvironmentLack: another distribution adds it, and it cannot be used.
        """
        if any(point.name == name for point in self._outside()) and (
            lack := self.unusable().get(name)
        ):
            raise lack
        variants = self.all()
        if name in variants:
            return variants[name]
        raise InputError(f"unknown {self.noun} `{name}`", nearest(name, variants))


@cache
def _outside(
    group: str, find: Callable[..., Iterable[EntryPoint]], path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """Those that installed distributions add. Reading what they all say of themselves takes 30 ms,
    and each statement of a program looks for its source."""
    return tuple(find(group=group))


def _identity(point: EntryPoint) -> str:
    """A distribution, and the digest of the package or module that a variant of it is in."""
    top = importlib.import_module(point.module.partition(".")[0])
    # A package without a file of its own may be shared by several distributions.
    module = top if top.__file__ is not None else importlib.import_module(point.module)
    assert module.__file__ is not None
    root = Path(module.__file__)
    files = [root]
    if hasattr(module, "__path__"):
        root = root.parent
        found = (path for path in root.rglob("*") if path.is_file())
        files = sorted(path for path in found if path.parent.name != "__pycache__")
    digest = sha256()
    for path in files:
        digest.update(f"{path.relative_to(root)}\0{sha256(path.read_bytes()).hexdigest()}".encode())
    known = () if point.dist is None else (point.dist.name, point.dist.version)
    return " ".join((*known, digest.hexdigest()))


def _members(protocol: type | None) -> list[str]:
    """The names of a protocol's members, sorted."""
    classes = [each for each in getattr(protocol, "__mro__", ()) if each is not object]
    names = {
        name for each in classes for name in (*vars(each).get("__annotations__", ()), *vars(each))
    }
    return sorted(name for name in names if not name.startswith("_"))


@cache
def _names(registry: Registry[object]) -> tuple[str, ...]:
    return tuple(registry.all())


@dataclass(frozen=True)
class DescribedRegistry(Generic[D]):
    """The variants that are TOML files of one directory.

    Attributes:
        model: what a file describes; one that is ``Named`` gets the file's stem.
        noun: the kind of variant, for messages.
        or_path: whether a path that ends in ``.toml`` is a name too.
    """

    directory: Path
    model: type[D]
    noun: str
    or_path: bool = False

    def names(self) -> tuple[str, ...]:
        """The names that users can write, sorted."""
        return tuple(sorted(path.stem for path in self.directory.glob("*.toml")))

    def get(self, name: str) -> D:
        """The variant of that name.

        Raises:
            InputError: there is none, or its file is wrong.
        """
        path = self.directory / f"{name}.toml"
        if self.or_path and name.endswith(".toml"):
            path = Path(name)
        elif name not in self.names():
            known = "known: " + ", ".join(self.names())
            also = "; or name a TOML file" if self.or_path else ""
            raise InputError(f"unknown {self.noun} `{name}`", known + also)
        given = {"name": path.stem} if issubclass(self.model, Named) else {}
        return read_described(path, self.model, self.noun, given)
