"""``pkg``: a repository for pacman, with a database for each follow and architecture, which
repo-add writes."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from mepof.adapter.repository.protocol import Releases, link
from mepof.adapter.sign import Signer
from mepof.package.contents import add
from mepof.package.pkg import read_fields
from mepof.process import find_tool
from mepof.toolchain.protocol import Run

_PROGRAM, _PACKAGE = "repo-add", "pacman-package-manager"
# What pacman downloads of a repository: packages, and all files in them.
_KINDS = ("db", "files")


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
        found: dict[str, list[Path]] = {}
        for _, packages in sorted(releases, key=lambda each: each[0].published_at):
            for path in packages:
                said = read_fields(path, run)
                below = lists / said["arch"]
                below.mkdir(exist_ok=True)
                name = f"{said['pkgname']}-{said['pkgver']}-{said['arch']}.pkg.tar.zst"
                found.setdefault(said["arch"], []).append(link(path, below, name))
        for arch, links in found.items():
            made = _databases(lists / arch, f"mepof-{follow}", links, run)
            if signer is not None:
                # Not before: repo-add would have the packages' signatures in the database.
                for path in (*links, *made):
                    signer.sign_list(path, path.with_name(f"{path.name}.sig"), "binary", run)


def _databases(lists: Path, name: str, packages: Sequence[Path], run: Run) -> list[Path]:
    """Write the databases, which have the newest version of each package alone."""
    program = find_tool(_PROGRAM, f"apt-get install {_PACKAGE}")
    options = ("--quiet", "--nocolor", "--prevent-downgrade")
    made = []
    with TemporaryDirectory() as work:
        # Not compressed; the path that is given decides that.
        run([program, *options, Path(work) / f"{name}.db.tar", *packages], env={"LC_ALL": "C"})
        for kind in _KINDS:
            path = lists / f"{name}.{kind}"
            path.write_bytes(_same(Path(work) / f"{name}.{kind}.tar"))
            made.append(path)
    return made


def _same(archive: Path) -> bytes:
    """What is in an archive of repo-add, which has the time and the user, as the same bytes."""
    data = BytesIO()
    with tarfile.open(archive) as given, tarfile.open(fileobj=data, mode="w") as tar:
        for each in sorted(given, key=lambda member: member.name):
            file = given.extractfile(each)
            add(tar, each.name, None if file is None else file.read())
    return gzip.compress(data.getvalue(), mtime=0)


REPOSITORY = PacmanRepository()
