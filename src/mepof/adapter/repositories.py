"""What is published as repositories, one for each format of packages that has one.

The lists are part of the state of the index: they and their signatures change in one step with it.
The packages lie in the directories of their releases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from mepof.adapter.published import Published
from mepof.adapter.repository.protocol import REPOSITORIES
from mepof.adapter.results import Artifacts
from mepof.adapter.sign import Signer
from mepof.package.contents import headers_beside
from mepof.package.protocol import FORMATS
from mepof.process import find_tool
from mepof.toolchain.protocol import Run


def check_programs(formats: Iterable[str]) -> None:
    """Look for the programs that write packages of some formats, and their repositories.

    Raises:
        EnvironmentLack: one is not installed.
    """
    known = REPOSITORIES.all()
    for name in sorted(set(formats)):
        listed = known[name].programs if name in known else ()
        for program, package in (*FORMATS.get(name).programs, *listed):
            find_tool(program, f"apt-get install {package}")


def packages_of(found: Artifacts, done: Path, follow: str, work: Path) -> list[Path]:
    """The packages that a run made, and the metapackages by which machines follow them.

    Args:
        done: the directory of the run's results.
        work: where metapackages are made.

    Raises:
        WorkError: a package cannot be read.
    """
    packages = []
    for form, repository in REPOSITORIES.all().items():
        suffix = FORMATS.get(form).suffix
        names = (name for name, kind in found if kind == "package")
        kernels = [path for name in names if (path := done / f"{name}.{suffix}").is_file()]
        packages += [p for path in kernels for p in (path, headers_beside(path)) if p.is_file()]
        packages += repository.metapackages(kernels, follow, work)
    return packages


def write_repositories(
    state: Path, published: Iterable[tuple[Path, Published]], signer: Signer | None, run: Run
) -> None:
    """Write and sign the lists of all packages; none of a format of which there are no packages.

    Raises:
        EnvironmentLack: a program that writes them is not installed.
        WorkError: a package cannot be read, or a list cannot be signed.
    """
    everything = list(published)
    for form, repository in REPOSITORIES.all().items():
        suffix = f".{FORMATS.get(form).suffix}"
        follows: dict[str, list[tuple[Published, list[Path]]]] = {}
        for directory, made in everything:
            packages = [directory / name for name in made.packages if name.endswith(suffix)]
            if packages:
                follows.setdefault(made.follow, []).append((made, packages))
        for follow, releases in follows.items():
            lists = state / repository.directory / follow
            lists.mkdir(parents=True)
            repository.write(lists, follow, releases, signer, run)


def directories(formats: Collection[str] | None = None) -> set[str]:
    """Those of the lists of some formats of packages, or of all, below what is published."""
    known = REPOSITORIES.all().items()
    return {each.directory for form, each in known if formats is None or form in formats}
