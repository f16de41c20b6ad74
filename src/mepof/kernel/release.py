"""The name by which a kernel calls itself, ``uname -r``."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

from mepof.errors import WorkError

# init/version-timestamp.c, before Linux 6.1 init/version.c: linux_banner.
_BANNER = re.compile(rb"Linux version ([!-~]{1,64}) \(")


def release_of(vmlinux: Path) -> str:
    """The release that a linked kernel states in its banner.

    Raises:
        WorkError: it states none.
    """
    try:
        with vmlinux.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            found = _BANNER.search(data)
            if found is not None:
                return found[1].decode("ascii")
    except (OSError, ValueError) as error:  # an empty file
        raise WorkError(f"{vmlinux} cannot be read as a kernel: {error}") from error
    raise WorkError(f"{vmlinux} does not state its release")
