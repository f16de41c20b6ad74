"""What was made of a release, in a directory of its own, and the index of all of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mepof.errors import WorkError
from mepof.plan.digest import file_digest
from mepof.process import find_tool, run

_PROVENANCE = "provenance.json"
_INDEX = "index.json"
# What a run leaves for itself.
_OWN = frozenset({"journal.jsonl"})


def is_published(target: Path) -> bool:
    """Whether a release is there, whole."""
    return (target / _PROVENANCE).is_file()


def publish(out: Path, target: Path, provenance: Mapping[str, object]) -> None:
    """Copy the results of a run to ``target``, which appears whole or not at all.

    Args:
        provenance: of what it was made.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.glob(".*/"):  # of a killed watcher; ours holds the lock
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as scratch:
        fresh = Path(scratch) / target.name
        shutil.copytree(out, fresh, ignore=lambda _, names: _OWN.intersection(names))
        files = {
            path.relative_to(fresh).as_posix(): file_digest(path)
            for path in sorted(fresh.rglob("*"))
            if path.is_file()
        }
        document = {"schema": "mepof-provenance/1", **provenance, "sha256": files}
        _write(fresh / _PROVENANCE, document)
        if target.exists():  # without its provenance: not ours, or damaged
            shutil.rmtree(target)
        fresh.rename(target)


def write_index(directory: Path, key: str | None) -> None:
    """Write the list of everything that is published, and sign it.

    Args:
        key: of the user's GnuPG keyring; None does not sign.

    Raises:
        WorkError: it cannot be signed.
    """
    releases = []
    for path in sorted(directory.glob(f"[!.]*/{_PROVENANCE}")):
        made = json.loads(path.read_text())
        shown = {name: made[name] for name in ("follow", "release", "address", "published_at")}
        releases.append({"directory": path.parent.name, **shown, "provenance": file_digest(path)})
    fresh = directory / f".{_INDEX}.{os.getpid()}"
    _write(fresh, {"schema": "mepof-index/1", "releases": releases})
    signature = directory / f"{_INDEX}.asc"
    if key is not None:
        made_signature = fresh.with_suffix(".asc")
        gpg = find_tool("gpg", "apt-get install gpg")
        options = ("--batch", "--yes", "--armor", "--detach-sign", "--local-user", key)
        done = run([gpg, *options, "--output", made_signature, fresh], check=False)
        if done.status != 0:
            fresh.unlink()
            raise WorkError(
                f"the index cannot be signed by {key}: {done.output.splitlines()[-1:]}",
                "gpg --list-secret-keys shows the keys",
            )
        made_signature.replace(signature)
    fresh.replace(directory / _INDEX)


def _write(path: Path, document: Mapping[str, object]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
