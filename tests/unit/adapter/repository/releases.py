"""Releases with packages of kernels that nobody compiled, published as a watcher does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from package.kernels import kernel, package, with_headers

from adapter.test_publish import MADE
from mepof.adapter.publish import is_published, publish, write_index
from mepof.adapter.published import Published
from mepof.adapter.repositories import packages_of
from mepof.adapter.sign import Gnupg
from mepof.package.protocol import FORMATS
from mepof.process import run


@dataclass(frozen=True)
class Ready:
    """What a run left, and is to be published in ``root/published``."""

    root: Path
    out: Path
    packages: Sequence[Path]
    made: Published

    @property
    def target(self) -> Path:
        return self.root / f"published/stable-{self.made.release}"


def prepared(
    root: Path, forms: Sequence[str], version: str, number: int, *, headers: bool = False
) -> Ready:
    """A release with packages of a kernel."""
    out = root / f"run-{version}"
    out.mkdir(parents=True)
    made_of = kernel(out, version, revision=number)
    for form in forms:
        package(out, with_headers(made_of) if headers else made_of, FORMATS.get(form))
    found = {("opt", "image"): out, ("opt", "package"): out}
    work = root / f"work-{version}"
    work.mkdir()
    packages = packages_of(found, out, "stable", work)  # type: ignore[arg-type]
    made = MADE.model_copy(
        update={
            "release": version,
            "packages": tuple(path.name for path in packages),
            "published_at": f"2026-01-{number:02}T00:00:00+00:00",
        }
    )
    return Ready(root, out, packages, made)


def published(ready: Ready, key: str | None = "m@example.org") -> Path:
    """Publish it, unless it is, as a watcher does."""
    extras = {path.name: path for path in ready.packages if path.parent != ready.out}
    if not is_published(ready.target):
        publish(ready.out, ready.target, extras, ready.made)
    index(ready.root, key)
    return ready.target


def release(
    root: Path,
    form: str,
    version: str,
    number: int,
    key: str | None = "m@example.org",
    *,
    headers: bool = False,
) -> Path:
    """Publish a release with a package."""
    return published(prepared(root, (form,), version, number, headers=headers), key)


def publish_package(package: Path, root: Path) -> None:
    """Publish a release 6.12.96 with a package as it is, which no list has yet."""
    made = MADE.model_copy(update={"release": "6.12.96", "packages": (package.name,)})
    publish(package.parent, root / "published/stable-6.12.96", {}, made)


def index(root: Path, key: str | None = "m@example.org") -> None:
    write_index(root / "published", Gnupg(key) if key else None, run)


def damage(path: Path) -> None:
    """Change a byte of a file; of a signature, one that is not its description."""
    data = bytearray(path.read_bytes())
    data[len(data) * 2 // 3] ^= 1
    path.write_bytes(data)


def files(directory: Path) -> dict[str, bytes]:
    """What is in a directory, but for signatures."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.suffix not in {".asc", ".sig"}
    }
