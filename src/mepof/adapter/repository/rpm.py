"""``rpm``: a repository for dnf and zypper, with a directory of rpm-md metadata for each follow,
which createrepo_c writes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from mepof.adapter.repository.protocol import Releases, link, write_metapackages
from mepof.adapter.sign import Signer
from mepof.package.rpm import metapackage, read_label
from mepof.process import find_tool
from mepof.toolchain.protocol import Run

_PROGRAM, _PACKAGE = "createrepo_c", "createrepo-c"
# What is not said is decided by the version of createrepo_c.
_OPTIONS = (
    *("--quiet", "--error-exit-val", "--workers=1", "--no-database"),
    *("--general-compress-type=gz", "--checksum=sha256", "--unique-md-filenames"),
)


class RpmRepository:
    """What dnf and zypper read."""

    directory = "rpm"
    programs: tuple[tuple[str, str], ...] = ((_PROGRAM, _PACKAGE), ("rpm", "rpm"))

    def metapackages(self, kernels: Sequence[Path], follow: str, work: Path) -> list[Path]:
        last = {read_label(path).arch: path for path in kernels}
        names = (f"kernel-mepof-{follow}", f"kernel-devel-mepof-{follow}")
        return write_metapackages(last, names, work, metapackage)

    def write(
        self, lists: Path, follow: str, releases: Releases, signer: Signer | None, run: Run
    ) -> None:
        newest = 0
        for made, packages in releases:
            published = int(datetime.fromisoformat(made.published_at).timestamp())
            newest = max(newest, published)
            for path in packages:
                # It is in the metadata.
                os.utime(path, (published, published))
                link(path, lists, f"{read_label(path)}.rpm")
        program = find_tool(_PROGRAM, f"apt-get install {_PACKAGE}")
        run([program, *_OPTIONS, f"--revision={newest}", "--set-timestamp-to-revision", lists])
        if signer is not None:
            index = lists / "repodata/repomd.xml"
            signer.sign_list(index, index.with_name(f"{index.name}.asc"), "armored", run)


REPOSITORY = RpmRepository()
