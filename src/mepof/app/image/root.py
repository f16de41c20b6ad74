"""Tarballs of a root file system: of Yocto, Buildroot, mmdebstrap, `docker export`."""

from __future__ import annotations

from mepof.app.image.layers import overlay
from mepof.app.image.model import Image
from mepof.app.image.written import Tarball
from mepof.app.laid import Laid
from mepof.errors import InputError

# A system has at least one of these.
_TOP = frozenset(("bin", "etc", "sbin", "usr"))


def read_root(tarball: Tarball) -> Image:
    """The files of a system, which says nothing of how it starts programs.

    Raises:
        InputError: it is not of a system, or is damaged.
    """
    tops = {name.partition("/")[0] for name in tarball.names()} - {""}
    if not tops & _TOP:
        remedy = "pack the root directory of a system, with /bin, /etc, /sbin or /usr"
        below = {name.split("/")[1] for name in tarball.names() if "/" in name}
        if len(tops) == 1 and below & _TOP:
            (top,) = tops
            remedy = f"its files are below {top}/: pack it by tar -C {top} -cf TARBALL ."
        raise InputError(
            f"{tarball.path} is a tarball of neither an image nor a root file system", remedy
        )
    files: dict[str, Laid] = {}
    left_out = overlay(files, tarball.plain, str(tarball.path))
    return Image(files=files, left_out=tuple(left_out))
