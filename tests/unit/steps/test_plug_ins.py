"""Variants of other distributions: their code identifies results, and changes nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import invalidate_caches
from pathlib import Path

import pytest

from mepof.algorithm.protocol import ALGORITHMS
from mepof.executor.programs import compiled
from mepof.g4 import Source
from mepof.registry import _names
from mepof.steps import BODIES

PROGRAM = """\
set package {format}.
opt debian:linux-source-6.12 {algorithm} {click} kbench.
merge opt.
set base ./old.profdata.
profile debian:linux-source-6.12 {algorithm} rand kbench.
"""
POINTS = """\
[mepof.algorithm]
mine = mepof_mine.algorithm:ALGORITHM
[mepof.scenario]
all = mepof_mine.scenario:SCENARIO
[mepof.package]
box = mepof_mine.package:FORMAT
"""
OWN = {"algorithm": "pgo", "click": "trav", "format": "deb"}
MINE = {"algorithm": "mine", "click": "all", "format": "box"}
#: The variants that decide what each kind of step makes.
DECIDING = {
    "kernel-build": {"algorithm mine"},
    "kernel-package": {"format of packages box"},
    "profile-collect": {"algorithm mine", "scenario all"},
    "profile-convert": {"algorithm mine"},
    "profile-merge": {"algorithm mine"},
    "profile-renew": {"algorithm mine"},
}


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of an installed distribution."""
    metadata = tmp_path / "site" / "mepof_mine-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mepof-mine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(POINTS)
    package = tmp_path / "site" / "mepof_mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "algorithm.py").write_text("from mepof.algorithm.pgo import ALGORITHM\n")
    (package / "scenario.py").write_text("from mepof.scenario.trav import SCENARIO\n")
    (package / "package.py").write_text("from mepof.package.deb import FORMAT\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    invalidate_caches()
    _names.cache_clear()
    yield package
    _names.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
        del sys.modules[name]


def identities(names: Mapping[str, str]) -> dict[str, list[Mapping[str, str]]]:
    """The identity of every step that a variant has a part in, by kind."""
    found: dict[str, list[Mapping[str, str]]] = {kind: [] for kind in DECIDING}
    for step in compiled(Source("p.g4", PROGRAM.format(**names))).steps:
        if step.kind in found:
            found[step.kind].append(BODIES.get(step.kind).identity(step))
    return found


def test_a_result_is_made_again_when_a_plug_in_that_decides_it_changes(
    plug_in: Path, tools: Path
) -> None:
    before = identities(MINE)
    (plug_in / "data.toml").write_text("level = 2\n")
    after = identities(MINE)
    for kind, names in DECIDING.items():
        changed = [
            {name for name in new if new[name] != old[name]}
            for old, new in zip(before[kind], after[kind], strict=True)
        ]
        assert names in changed, kind
    (conversion, *_) = after["profile-convert"]
    assert conversion["algorithm mine"].startswith("mepof-mine 1.0 ")


def test_built_in_variants_keep_their_identity(plug_in: Path, tools: Path) -> None:
    for kind, found in identities(OWN).items():
        assert found, kind
        for identity in found:
            assert not any(name.startswith(("algorithm", "scen", "format")) for name in identity)


def test_a_profile_that_one_of_our_algorithms_reads_is_of_no_plug_in(plug_in: Path) -> None:
    program = "recomp debian:linux-source-6.12 ./old.profdata O2."
    steps = {step.id: step for step in compiled(Source("p.g4", program)).steps}
    assert "mine" in ALGORITHMS.all()
    assert steps["recomp/build"].params["uses"] == ["pgo"]
