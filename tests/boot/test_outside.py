"""A kernel that is trained and built by an algorithm of another distribution."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.outside_algorithm import install

from mepof.executor.protocol import Finished
from mepof.profile.artifact import ProfileDescription
from mepof.profile.counts import read_counts

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

PROGRAM = """\
set config slim.
set seed 1.
opt debian:linux-source-6.12 hot-pgo rand kbench O2.
eval plain.img;opt.img syscall;overhead;proc;pipe;file.
"""
PROMISED_PERCENT = 13.5


def test_an_algorithm_of_another_distribution_trains_builds_and_is_measured(
    finished: Finished, tmp_path: Path
) -> None:
    installed = install(tmp_path / "site")
    program, out = tmp_path / "hot.g4", tmp_path / "out"
    program.write_text(PROGRAM)
    installed.mepof("run", program, "--out", out)
    report = json.loads((out / "report.json").read_text())
    images = {image["name"]: image for image in report["images"]}
    assert images["opt"]["self_check"] == "passed"
    (gain,) = (
        row["geomean_improvement_percent"]
        for row in report["summary"]
        if (row["image"], row["metric"]) == ("opt", "kernel_instructions")
    )
    assert gain >= PROMISED_PERCENT
    # About half of the functions that ran in the same actions, as pgo has them.
    kept = read_counts(out / "opt.hotprofdata")
    known = ProfileDescription.read(finished.run.steps["opt/profile"].path)
    assert 300 < len(kept) < 0.6 * known.quality.executed
