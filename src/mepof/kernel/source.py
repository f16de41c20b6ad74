"""A kernel source tree, and the release that it is of."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from mepof.errors import InputError


@dataclass(frozen=True)
class KernelVersion:
    """A kernel release such as 6.12.117, ordered.

    Attributes:
        candidate: 3 of 6.13-rc3; None of a release.
    """

    version: int
    patchlevel: int
    sublevel: int
    candidate: int | None = None

    def __str__(self) -> str:
        candidate = "" if self.candidate is None else f"-rc{self.candidate}"
        return f"{self.version}.{self.patchlevel}.{self.sublevel}{candidate}"

    def __lt__(self, other: KernelVersion) -> bool:
        return self._position() < other._position()

    def _position(self) -> tuple[float, ...]:
        candidate = math.inf if self.candidate is None else self.candidate
        return self.version, self.patchlevel, self.sublevel, candidate

    def at_least(self, version: int, patchlevel: int) -> bool:
        """Whether this is that release or a later one; a candidate counts as its release."""
        return (self.version, self.patchlevel) >= (version, patchlevel)


def check_kernel(tree: Path, origin: Path | str) -> None:
    """Check that a directory is a kernel source tree.

    Args:
        origin: what the user gave us, which errors name instead of our copy.

    Raises:
        InputError: it is not.
    """
    if not (tree / "Kbuild").is_file():
        raise InputError(f"{origin} is not a kernel source tree: it has no Kbuild file")
    version_of(tree, origin)
    if (tree / "scripts/Makefile.build").is_file() and not (tree / "init/main.c").is_file():
        raise InputError(
            f"{origin} has the headers of a kernel alone: it has no init/main.c",
            "name the directory of its source",
        )
    with (tree / "Makefile").open("rb") as makefile:
        if makefile.readline().endswith(b"\r\n"):
            raise InputError(
                f"{origin} has the line ends of Windows, with which no kernel builds",
                "clone it by `git -c core.autocrlf=false clone`, or name git+URL#branch=NAME",
            )


def version_of(tree: Path, origin: Path | str | None = None) -> KernelVersion:
    """The release that the tree's Makefile states.

    Args:
        origin: what errors name instead of the tree's path.

    Raises:
        InputError: it states none.
    """
    name = origin or tree
    try:
        head = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")[:2000]
    except OSError as error:
        raise InputError(f"{name} is not a kernel source tree: it has no Makefile") from error
    found = {
        key: re.search(rf"^{key}\s*=\s*(\d+)", head, re.M)
        for key in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    }
    numbers = [int(match.group(1)) for match in found.values() if match]
    if len(numbers) != 3:
        raise InputError(
            f"{name} is not a kernel source tree: its Makefile does not state VERSION, PATCHLEVEL "
            "and SUBLEVEL"
        )
    candidate = re.search(r"^EXTRAVERSION\s*=\s*-rc(\d+)", head, re.M)
    version, patchlevel, sublevel = numbers
    return KernelVersion(version, patchlevel, sublevel, int(candidate[1]) if candidate else None)
