"""What people have in place of a kernel's source tree, and what is to be named instead."""

from __future__ import annotations

from pathlib import Path

from mepof import magic
from mepof.errors import InputError
from mepof.kernel.source import check_kernel

_DSC, _EXTRACT = "the description of a source package", "`dpkg-source -x {file}`"
_BUNDLE, _CLONE = "a git bundle", "`git clone {file}`"
# Of files, how they begin, what they are, and what makes a tree of them. Sources: RPM's
# docs/manual/format_v3.md, dsc(5), gitformat-bundle(5), mepof.magic.
_FILES = (
    (
        (0, b"\xed\xab\xee\xdb"),
        "a package of rpm",
        "`rpm -i {file}`, if it has source, and `rpmbuild -bp --nodeps ~/rpmbuild/SPECS/*.spec`",
    ),
    (magic.ZIP, "a zip archive", "`unzip {file}`"),
    (magic.LZ4, "compressed by lz4", "`tar -I lz4 -xf {file}`"),
    ((0, b"# v2 git bundle"), _BUNDLE, _CLONE),
    ((0, b"# v3 git bundle"), _BUNDLE, _CLONE),
    ((0, b"Format: 3"), _DSC, _EXTRACT),
    ((0, b"-----BEGIN PGP SIGNED"), _DSC, _EXTRACT),
)
_HEAD_BYTES = max(offset + len(there) for (offset, there), *_ in _FILES)
# Of directories, what they have, and what makes a tree with their patches.
_RECIPES = (
    ("PKGBUILD", "`makepkg --nobuild --nodeps` there"),
    ("*.dsc", _EXTRACT),
    ("*.spec", "`rpmbuild -bp --nodeps {file}`"),
    ("*.src.rpm", "`rpm -i {file}`, then `rpmbuild -bp --nodeps ~/rpmbuild/SPECS/*.spec`"),
)
# Where a workspace has a kernel: Android's `common`, a vendor's `kernel/msm-5.10`.
_BELOW = ("*/Kbuild", "*/*/Kbuild")
_THEN = "unpack it by {}, and name the directory with the kernel that it makes"


def file_is(path: Path) -> tuple[str, str | None]:
    """What a file is that is not a tarball, and a remedy."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    for there, what, command in _FILES:
        if magic.has(head, there):
            return what, _THEN.format(command.format(file=path))
    return "neither a kernel source tree nor a tarball of one", None


def instead_of(directory: Path) -> str | None:
    """What to name in place of a directory that is not a kernel source tree."""
    for pattern in _BELOW:
        if found := [each.parent for each in sorted(directory.glob(pattern)) if _is_tree(each)]:
            return f"name {found[0]}"
    for pattern, command in _RECIPES:
        if recipes := sorted(directory.glob(pattern)):
            return _THEN.format(command.format(file=recipes[0]))
    if (directory / ".git").exists():
        where = f"git+file://{directory.absolute()}"
        return f"check the kernel out; or name its commit: {where}#branch=NAME"
    return None


def _is_tree(kbuild: Path) -> bool:
    try:
        check_kernel(kbuild.parent, kbuild.parent)
    except InputError:
        return False
    return True
