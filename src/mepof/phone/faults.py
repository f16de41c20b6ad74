"""What can go wrong with a virtual phone on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mepof.errors import InputError

IN_FASTBOOT = (
    "image-too-large",
    "locked",
    "lost-in-download",
    "lost-in-flash",
    "low-battery",
    "not-unlockable",
    "wrong-slot",
)
"""Of the boot loader, whatever is started."""

IN_KERNEL = ("adbd-dies", "boot-loop", "full-data", "kernel-panic", "slow-boot")
"""Of what is started, and therefore perhaps of one way of starting alone."""

STARTS = ("ram", "a", "b")
"""Ways to start: from memory, or one of the slots."""


@dataclass(frozen=True)
class Fault:
    """A fault, which happens whenever it can.

    Attributes:
        name: one of :data:`IN_FASTBOOT` or :data:`IN_KERNEL`.
        start: one of :data:`STARTS` that it is limited to, if any.
    """

    name: str
    start: str | None = None


def read_fault(text: str) -> Fault:
    """The fault that a user names: ``NAME``, or ``NAME@ram``, ``NAME@a``, ``NAME@b``.

    Raises:
        InputError: there is no such fault.
    """
    name, at, start = text.partition("@")
    if name not in (*IN_FASTBOOT, *IN_KERNEL):
        known = ", ".join(sorted((*IN_FASTBOOT, *IN_KERNEL)))
        raise InputError(f"unknown fault `{name}`", f"known: {known}")
    if not at:
        return Fault(name)
    if name in IN_FASTBOOT or start not in STARTS:
        raise InputError(
            f"the fault `{text}` cannot happen",
            f"append @ram, @a or @b to one of {', '.join(IN_KERNEL)}",
        )
    return Fault(name, start)


@dataclass(frozen=True)
class Faults:
    """All faults of a phone."""

    known: Sequence[Fault] = ()

    def has(self, name: str) -> bool:
        """Whether the boot loader has a fault."""
        return any(each.name == name for each in self.known)

    def of_start(self, start: str) -> tuple[str, ...]:
        """The faults of what is started.

        Args:
            start: one of :data:`STARTS`.
        """
        return tuple(
            each.name
            for each in self.known
            if each.name in IN_KERNEL and each.start in (None, start)
        )
