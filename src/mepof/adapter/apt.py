"""What is published as a repository from which apt installs and upgrades: a suite for each follow.

The lists are part of the state of the index: they and their signatures change in one step with it.
The packages lie in the directories of their releases.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path

from mepof.adapter.published import Published
from mepof.adapter.results import Artifacts
from mepof.adapter.sign import Signer
from mepof.package.contents import headers_beside
from mepof.package.deb import FORMAT, metapackage
from mepof.package.debian_archive import fields, read_control
from mepof.toolchain.protocol import Run

#: Directory of the lists, a link to those of the newest state.
LISTS = "dists"
_COMPONENT = "main"


def packages_of(found: Artifacts, done: Path, follow: str, work: Path) -> list[Path]:
    """The Debian packages that a run made, and for each architecture the metapackages that depend
    on the last kernel of them and on its headers.

    Args:
        done: the directory of the run's results.
        work: where metapackages are made.
    """
    names = (name for name, kind in found if kind == "package")
    made = [path for name in names if (path := done / f"{name}.{FORMAT.suffix}").is_file()]
    last = {fields(read_control(path))["Architecture"]: path for path in made}
    packages = [each for path in made for each in (path, headers_beside(path)) if each.is_file()]
    for arch, path in last.items():
        for kind, what, package in (
            ("image", "the newest kernel", path),
            ("headers", "headers of the newest kernel", headers_beside(path)),
        ):
            if package.is_file():
                name = f"linux-{kind}-mepof-{follow.replace('_', '-')}"
                target = work / f"{name}-{arch}.{FORMAT.suffix}"
                metapackage(package, name, what, target)
                packages.append(target)
    return packages


def write_lists(
    state: Path, published: Iterable[tuple[Path, Published]], signer: Signer | None, run: Run
) -> None:
    """Write and sign the lists of all packages; none if there are no packages.

    Raises:
        WorkError: a package cannot be read, or a list cannot be signed.
    """
    follows: dict[str, list[tuple[Path, Published]]] = {}
    for directory, made in published:
        if made.packages:
            follows.setdefault(made.follow, []).append((directory, made))
    for follow, releases in follows.items():
        suite = state / LISTS / follow
        lists: dict[str, list[str]] = {}
        for directory, made in releases:
            for name in made.packages:
                control = read_control(directory / name)
                lists.setdefault(fields(control)["Architecture"], []).append(
                    f"{control}Filename: {directory.name}/{name}\n"
                    f"Size: {(directory / name).stat().st_size}\nSHA256: {made.sha256[name]}\n"
                )
        sums = []
        for arch, stanzas in sorted(lists.items()):
            text = "\n".join(stanzas).encode()
            # gzip would write the time.
            for name, data in (("Packages", text), ("Packages.gz", gzip.compress(text, mtime=0))):
                path = f"{_COMPONENT}/binary-{arch}/{name}"
                (suite / path).parent.mkdir(parents=True, exist_ok=True)
                (suite / path).write_bytes(data)
                sums.append(f" {sha256(data).hexdigest()} {len(data)} {path}\n")
        newest = max(datetime.fromisoformat(made.published_at) for _, made in releases)
        about = {
            "Origin": "mepof",
            "Label": "mepof",
            "Suite": follow,
            "Codename": follow,
            "Date": format_datetime(newest, usegmt=True),
            "Architectures": " ".join(sorted(lists)),
            "Components": _COMPONENT,
            "Description": f"Kernels that mepof published of {follow}",
        }
        head = "".join(f"{name}: {value}\n" for name, value in about.items())
        (suite / "Release").write_text(f"{head}SHA256:\n{''.join(sums)}", encoding="utf-8")
        if signer is not None:
            signer.sign_lists(suite / "Release", run)
