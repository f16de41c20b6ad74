"""``pkg``: a repository for pacman, with a database for each follow and architecture, which
repo-add writes."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Mapping, Sequence, Set
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.adapter.repository.protocol import Releases, link
from mepof.adapter.sign import Signer
from mepof.errors import WorkError
from mepof.package.contents import add
from mepof.package.pkg import read_fields
from mepof.process import find_tool
from mepof.toolchain.protocol import Run

_PROGRAM, _PACKAGE = "repo-add", "pacman-package-manager"
# What pacman downloads of a repository, and the files that each has of a package.
_KINDS = {"db": {"desc"}, "files": {"desc", "files"}}


class PacmanRepository:
    """What pacman reads."""

    directory = "pacman"
    # repo-add runs the others.
    programs: tuple[tuple[str, str], ...] = (
        (_PROGRAM, _PACKAGE),
        ("bsdtar", "libarchive-tools"),
        ("vercmp", "makepkg"),
    )

    def metapackages(self, kernels: Sequence[Path], follow: str, work: Path) -> list[Path]:
        """None: a newer kernel has the name of the one before."""
        return []

    def write(
        self, lists: Path, follow: str, releases: Releases, signer: Signer | None, run: Run
    ) -> None:
        found: dict[str, dict[Path, str]] = {}
        for _, packages in sorted(releases, key=lambda each: each[0].published_at):
            for path in packages:
                said = read_fields(path, run)
                below = lists / said["arch"]
                below.mkdir(exist_ok=True)
                name = f"{said['pkgname']}-{said['pkgver']}-{said['arch']}.pkg.tar.zst"
                found.setdefault(said["arch"], {})[link(path, below, name)] = said["pkgname"]
        for arch, links in found.items():
            made = _databases(lists / arch, f"mepof-{follow}", links, run)
            if signer is not None:
                # Not before: repo-add would have the packages' signatures in the database.
                for path in (*links, *made):
                    signer.sign_list(path, path.with_name(f"{path.name}.sig"), "binary", run)


def _databases(lists: Path, name: str, packages: Mapping[Path, str], run: Run) -> list[Path]:
    """Write the databases, which have the newest version of each package alone.

    Args:
        packages: the name of each.

    Raises:
        WorkError: a package is missing in them.
    """
    program = find_tool(_PROGRAM, f"apt-get install {_PACKAGE}")
    options = ("--quiet", "--nocolor", "--prevent-downgrade")
    made = []
    with TemporaryDirectory() as work:
        # Not compressed; the path that is given decides that.
        run([program, *options, Path(work) / f"{name}.db.tar", *packages], env={"LC_ALL": "C"})
        for kind, files in _KINDS.items():
            path = lists / f"{name}.{kind}"
            needed = {(each, file) for each in packages.values() for file in files}
            path.write_bytes(_same(Path(work) / f"{name}.{kind}.tar", needed))
            made.append(path)
    return made


def _same(archive: Path, needed: Set[tuple[str, str]]) -> bytes:
    """What is in an archive of repo-add, which has the time and the user, as the same bytes.

    Args:
        needed: names of packages and files, which must not be empty.

    Raises:
        WorkError: one is missing. On a full disk, repo-add ends with status 0, too.
    """
    data, found = BytesIO(), set[tuple[str, str]]()
    try:
        with tarfile.open(archive) as given, tarfile.open(fileobj=data, mode="w") as tar:
            for each in sorted(given, key=lambda member: member.name):
                file = given.extractfile(each)
                content = None if file is None else file.read()
                add(tar, each.name, content)
                if content:
                    package, _, name = each.name.partition("/")
                    found.add((package.rsplit("-", 2)[0], name))
    except tarfile.TarError:  # it is cut off
        found.clear()
    if not needed <= found:
        raise WorkError(
            f"{_PROGRAM} did not write all of {archive.name}",
            f"is the disk of {archive.parent.parent} full?",
        )
    return gzip.compress(data.getvalue(), mtime=0)


REPOSITORY = PacmanRepository()
