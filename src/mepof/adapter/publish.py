"""What was made of a release, in a directory of its own, and the index of all of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from mepof.adapter.published import FILE, Published
from mepof.adapter.repositories import directories, write_repositories
from mepof.adapter.sign import Signer
from mepof.disk import sync
from mepof.errors import InputError
from mepof.executor.pins import PINS
from mepof.plan.digest import file_digest
from mepof.toolchain.protocol import Run

#: The list of everything that is published.
INDEX = "index.json"
# Below what is published: a directory for each state of the index, and a link to the newest.
_INDEXES, _CURRENT = "indexes", "current"
# A reader that has fetched an index finds its signature for this many changes.
_KEPT = 3
# Of a release that is being copied.
_SCRATCH = ".mepof-"
# What a run leaves for itself.
_OWN = frozenset({"journal.jsonl", "progress.json", PINS})


def is_published(target: Path) -> bool:
    """Whether a release is there, whole."""
    return (target / FILE).is_file()


def publish(
    out: Path, target: Path, extras: Mapping[str, Path], provenance: Published
) -> Published:
    """Copy the results of a run to ``target``, which appears whole or not at all.

    Args:
        extras: further files, by their names.
        provenance: of what it was made, without digests.

    Raises:
        OSError: a full disk, for instance.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.glob(f"{_SCRATCH}*/"):  # of a killed watcher; ours holds the lock
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=target.parent) as scratch:
        fresh = Path(scratch) / target.name
        shutil.copytree(out, fresh, ignore=lambda _, names: _OWN.intersection(names))
        for name, path in extras.items():
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, fresh / name)
        files = sorted(path for path in fresh.rglob("*") if path.is_file())
        digests = {path.relative_to(fresh).as_posix(): file_digest(path) for path in files}
        made = provenance.model_copy(update={"sha256": digests})
        _write(fresh / FILE, {"schema": Published.schema_name, **made.model_dump(mode="json")})
        # On the disk before its name is: after a power cut, what is there is whole.
        for path in (*files, *(path for path in fresh.rglob("*") if path.is_dir()), fresh):
            sync(path)
        if target.exists():  # without its provenance: not ours, or damaged
            shutil.rmtree(target)
        fresh.rename(target)
        sync(target.parent)
    return made


def check_names(directory: Path, names: Iterable[str]) -> None:
    """Refuse what is not ours where the index goes, and what is reached by links beside it.

    Args:
        directory: of everything that is published.
        names: of the links: signatures, and the lists of repositories.

    Raises:
        InputError: there is a file, a directory or a link of the user's own.
    """
    indexes = directory / _INDEXES
    taken = [indexes] if indexes.exists() and not indexes.is_dir() else []
    paths = (directory / name for name in (INDEX, *sorted(names)))
    taken += [path for path in paths if os.path.lexists(path) and not _is_ours(path)]
    if taken:
        raise InputError(
            f"{taken[0]} is not of mepof, which publishes by that name",
            "move it away, or set another directory as `publish`",
        )


def write_index(directory: Path, signer: Signer | None, run: Run) -> None:
    """Write the list of everything that is published, and sign it.

    The index and its signature change together: both are reached through one link.

    Args:
        signer: None does not sign.

    Raises:
        InputError: there is a file of the user's own where it goes.
        WorkError: it cannot be signed.
        OSError: it cannot be written.
    """
    check_names(directory, ())
    releases, published = [], []
    for path in sorted(directory.glob(f"[!.]*/{FILE}")):
        made = Published.read(path.parent)
        published.append((path.parent, made))
        shown = made.model_dump(
            mode="json", include={"follow", "release", "address", "profile", "published_at"}
        )
        releases.append({"directory": path.parent.name, **shown, "provenance": file_digest(path)})
    indexes = directory / _INDEXES
    indexes.mkdir(parents=True, exist_ok=True)
    current = indexes / _CURRENT
    serials = sorted(int(path.name) for path in indexes.iterdir() if path.name.isdecimal())
    if current.exists():
        before = json.loads((current / INDEX).read_text(encoding="utf-8"))
        signed = signer is None or (current / f"{INDEX}{signer.suffix}").is_file()
        if before["releases"] == releases and signed:
            _link_to_current(directory)  # it may have been killed before it did
            return
    serial = serials[-1] + 1 if serials else 1
    for stale in indexes.glob(".*"):
        shutil.rmtree(stale) if stale.is_dir() and not stale.is_symlink() else stale.unlink()
    fresh = indexes / f".{serial}"
    fresh.mkdir()
    document = {"schema": "mepof-index/1", "serial": serial, "releases": releases}
    _write(fresh / INDEX, document)
    write_repositories(fresh, published, signer, run)
    if signer is not None:
        signer.sign(fresh / INDEX, f"mepof index {serial}", run)
    check_names(directory, (path.name for path in fresh.iterdir()))
    for path in (*sorted(fresh.rglob("*")), fresh):
        sync(path)
    fresh.rename(indexes / str(serial))
    _link(current, str(serial))
    _link_to_current(directory)
    for old in serials[: -_KEPT + 1]:
        shutil.rmtree(indexes / str(old))


def _link_to_current(directory: Path) -> None:
    """Let the names of the index and of the lists lead to the newest state."""
    names = {path.name for path in (directory / _INDEXES / _CURRENT).iterdir()}
    for name in names:
        if not _is_ours(directory / name):
            _link(directory / name, _target(name))
    for name in directories() - names:
        if _is_ours(directory / name):  # the last package is gone
            (directory / name).unlink()
    for stale in directory.glob(f"{INDEX}.*"):
        if stale.name not in names and _is_ours(stale):  # of another way to sign
            stale.unlink()
    sync(directory)


def _target(name: str) -> str:
    """Where a name of the index or of lists leads to."""
    return f"{_INDEXES}/{_CURRENT}/{name}"


def _is_ours(path: Path) -> bool:
    return path.is_symlink() and path.readlink() == Path(_target(path.name))


def _link(path: Path, to: str) -> None:
    fresh = path.with_name(f".{path.name}.link")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(to)
    fresh.replace(path)


def _write(path: Path, document: Mapping[str, object]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
