"""Tarballs of a root file system: of Yocto, Buildroot, mmdebstrap, `docker export`."""

from __future__ import annotations

from pathlib import PurePosixPath

from mepof.app.image.layers import overlay
from mepof.app.image.model import Image
from mepof.app.image.written import Tarball
from mepof.app.laid import Laid
from mepof.errors import InputError

# A system has at least one of these.
_TOP = frozenset(("bin", "etc", "sbin", "usr"))
# Of an initramfs; the guest begins with its own.
_INIT = "init"


def read_root(tarball: Tarball) -> Image:
    """The files of a system, which says nothing of how it starts programs.

    Raises:
        InputError: it is not of a system, or is damaged.
    """
    parts = [PurePosixPath(name).parts for name in tarball.names() if name]
    tops = {each[0] for each in parts}
    if not tops & _TOP:
        remedy = "pack the root directory of a system, with /bin, /etc, /sbin or /usr"
        if len(tops) == 1 and {each[1] for each in parts if len(each) > 1} & _TOP:
            remedy = (
                f"its files are below {min(tops)}/: pack it by tar -C {min(tops)} -cf TARBALL ."
            )
        raise InputError(
            f"{tarball.path} is a tarball of neither an image nor a root file system", remedy
        )
    files: dict[str, Laid] = {}
    left_out = overlay(files, tarball.plain, str(tarball.path))
    init = files.get(_INIT)
    if init is not None and not init.is_directory:
        del files[_INIT]
        left_out.append(f"/{_INIT}")
    return Image(files=files, left_out=tuple(left_out))
