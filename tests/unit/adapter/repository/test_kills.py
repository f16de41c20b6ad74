"""Publishing that is killed: readers see what was there before, or all of what is new."""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
import tarfile
from functools import partial
from pathlib import Path

import pytest
from writers.kills import calls_of, killed_at

from mepof.adapter.sign import Gnupg
from mepof.process import run

from .releases import prepared, published

TOOLS = ("createrepo_c", "rpmbuild", "repo-add", "bsdtar")

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason=f"one of {', '.join(TOOLS)} is not installed"
)


def read(directory: Path) -> set[str]:
    """The releases in the index and in each list, which are the same; all signatures are right."""
    verify = ("gpg", "--batch", "--verify")
    run([*verify, directory / "index.json.asc", directory / "index.json"])
    index = json.loads((directory / "index.json").read_text())
    apt = directory / "dists/stable"
    run([*verify, apt / "Release.gpg", apt / "Release"])
    packages = (apt / "main/binary-amd64/Packages").read_text()
    rpm = directory / "rpm/stable/repodata"
    run([*verify, rpm / "repomd.xml.asc", rpm / "repomd.xml"])
    (primary,) = rpm.glob("*-primary.xml.gz")
    pacman = directory / "pacman/stable/x86_64"
    run([*verify, pacman / "mepof-stable.db.sig", pacman / "mepof-stable.db"])
    releases = {each["release"] for each in index["releases"]}
    assert releases == set(
        re.findall(r"^Package: linux-image-(6[\d.]+)-mepof-opt$", packages, re.MULTILINE)
    )
    metadata = gzip.decompress(primary.read_bytes()).decode()
    assert releases == set(re.findall(r"<name>kernel-(6[\d.]+)-mepof-opt<", metadata))
    linked = {path.name for path in pacman.glob("*.pkg.tar.zst") if path.is_file()}
    assert linked == {f"linux-mepof-opt-{each}-1-x86_64.pkg.tar.zst" for each in releases}
    newest = max(releases, key=lambda each: int(each.rpartition(".")[2]))
    with tarfile.open(pacman / "mepof-stable.db") as database:
        assert f"linux-mepof-opt-{newest}-1" in database.getnames()
    return releases


@pytest.mark.parametrize("moments", [4, pytest.param(80, marks=pytest.mark.patient)])
def test_kill_9_at_random_moments_leaves_the_lists_and_the_index_of_one_state(
    tmp_path: Path, gnupg: str, moments: int
) -> None:
    chosen = random.Random(7)
    Gnupg(gnupg).check(run)
    directory = tmp_path / "published"
    forms = ("deb", "pkg", "rpm")
    first = prepared(tmp_path, forms, "6.12.1", 1)
    calls = calls_of(partial(published, first))
    before = read(directory)
    for moment in range(moments):
        if moment % 4 == 0:
            release = f"6.12.{2 + moment // 4}"
            ready = prepared(tmp_path, forms, release, 1)
        killed_at(partial(published, ready), chosen.randrange(1, calls))
        assert read(directory) in (before, before | {release})
        if moment % 4 == 3:
            published(ready)
            before |= {release}
            assert read(directory) == before
