"""Kernels in which an indirect branch may only go to a landing pad: arm64's, with BTI."""

from __future__ import annotations

from mepof.errors import InputError
from mepof.kernel.kconfig import Fragments

_OPTION = "ARM64_BTI_KERNEL"


def check_placed(fragments: Fragments, arch: str) -> None:
    """Refuse a kernel whose blocks are to be placed apart, and that has landing pads.

    Clang puts no pad where a branch from one part of a function to another needs a register: such a
    kernel goes down before it has a console. Kconfig turns BTI on unless a configuration says
    otherwise.

    Raises:
        InputError: it has them.
    """
    if arch == "arm64" and fragments.values().get(_OPTION, fragments.default) == "y":
        raise InputError(
            f"Propeller places no blocks of an arm64 kernel with BTI (CONFIG_{_OPTION})",
            f"set a configuration with `# CONFIG_{_OPTION} is not set`",
        )
