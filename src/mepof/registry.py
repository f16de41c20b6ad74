"""Finding the variants of a thing by name: one file each, plus entry points from outside.

A package such as ``mepof.algorithm`` holds one module per algorithm; the module's name
(with ``_`` for ``-``) is the name that users write, and its module-level object of the
registry's attribute name is the variant. Another distribution adds one with an entry point in
the group ``mepof.<package>``.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from mepof.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Registry(Generic[T]):
    """The named variants in one package.

    Args:
        package: dotted name of the package to walk.
        attribute: the module attribute that holds the variant; modules without it are
            not variants.
        noun: what a variant is called in messages.
    """

    package: str
    attribute: str
    noun: str

    def all(self) -> dict[str, T]:
        """Every variant by its name, sorted."""
        found: dict[str, T] = {}
        root = importlib.import_module(self.package)
        for info in pkgutil.iter_modules(root.__path__):
            module = importlib.import_module(f"{self.package}.{info.name}")
            if hasattr(module, self.attribute):
                found[info.name.replace("_", "-")] = getattr(module, self.attribute)
        for point in entry_points(group=self.package):
            found[point.name] = point.load()
        return dict(sorted(found.items()))

    def names(self) -> tuple[str, ...]:
        """The names that users can write."""
        return _names(self)

    def get(self, name: str) -> T:
        """The variant of that name.

        Raises:
            InputError: there is none; the nearest name is suggested.
        """
        variants = self.all()
        if name in variants:
            return variants[name]
        near = get_close_matches(name, variants, n=1)
        hint = f"did you mean `{near[0]}`?" if near else "known: " + ", ".join(variants)
        raise InputError(f"unknown {self.noun} `{name}`", hint)


@cache
def _names(registry: Registry[object]) -> tuple[str, ...]:
    return tuple(registry.all())
