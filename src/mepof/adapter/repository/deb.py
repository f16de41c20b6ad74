"""``deb``: a repository from which apt installs and upgrades, with a suite for each follow."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path

from mepof.adapter.repository.protocol import Releases, write_metapackages
from mepof.adapter.sign import Signer
from mepof.package.deb import metapackage
from mepof.package.debian_archive import fields, read_control
from mepof.toolchain.protocol import Run

_COMPONENT = "main"


class AptRepository:
    """What apt reads."""

    directory = "dists"
    programs: tuple[tuple[str, str], ...] = ()

    def metapackages(self, kernels: Sequence[Path], follow: str, work: Path) -> list[Path]:
        last = {fields(read_control(path))["Architecture"]: path for path in kernels}
        suite = follow.replace("_", "-")
        names = (f"linux-image-mepof-{suite}", f"linux-headers-mepof-{suite}")
        return write_metapackages(last, names, work, metapackage)

    def write(
        self, lists: Path, follow: str, releases: Releases, signer: Signer | None, run: Run
    ) -> None:
        stanzas: dict[str, list[str]] = {}
        for made, packages in releases:
            for path in packages:
                control = read_control(path)
                stanzas.setdefault(fields(control)["Architecture"], []).append(
                    f"{control}Filename: {path.parent.name}/{path.name}\n"
                    f"Size: {path.stat().st_size}\nSHA256: {made.sha256[path.name]}\n"
                )
        sums = []
        for arch, each in sorted(stanzas.items()):
            text = "\n".join(each).encode()
            # gzip would write the time.
            for name, data in (("Packages", text), ("Packages.gz", gzip.compress(text, mtime=0))):
                path = lists / _COMPONENT / f"binary-{arch}" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                named = path.relative_to(lists)
                sums.append(f" {sha256(data).hexdigest()} {len(data)} {named}\n")
        newest = max(datetime.fromisoformat(made.published_at) for made, _ in releases)
        about = {
            "Origin": "mepof",
            "Label": "mepof",
            "Suite": follow,
            "Codename": follow,
            "Date": format_datetime(newest, usegmt=True),
            "Architectures": " ".join(sorted(stanzas)),
            "Components": _COMPONENT,
            "Description": f"Kernels that mepof published of {follow}",
        }
        head = "".join(f"{name}: {value}\n" for name, value in about.items())
        release = lists / "Release"
        release.write_text(f"{head}SHA256:\n{''.join(sums)}", encoding="utf-8")
        if signer is not None:
            signer.sign_list(release, lists / "Release.gpg", "armored", run)
            signer.sign_list(release, lists / "InRelease", "clear", run)


REPOSITORY = AptRepository()
