"""arm64 end to end: cross-built, booted, profiled, optimised and measured.

A cold store builds three more kernels, so ``make test`` leaves these tests to ``make test-all``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mepof.cli.progress import LogDisplay
from mepof.device import agent
from mepof.device.observation import Measure
from mepof.device.protocol import (
    DEVICES,
    INITRAMFS,
    KernelPanic,
    Outcome,
    Session,
)
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.process import run

from .conftest import check_general, with_general

pytestmark = [
    pytest.mark.boot,
    pytest.mark.arm64,
    pytest.mark.skipif(
        shutil.which("qemu-system-aarch64") is None,
        reason="qemu-system-aarch64 is not installed: apt-get install qemu-system-arm",
    ),
]

PROGRAM = Path(__file__).parents[2] / "examples" / "arm64.g4"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arm64")


@pytest.fixture(scope="module")
def arm64(executor: LocalExecutor, out: Path, pytestconfig: pytest.Config) -> Finished:
    """The example, run to its end."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return executor.run(plan_of(Source.read(PROGRAM)), out, LogDisplay(Console(stderr=True)))


@pytest.fixture
def session(arm64: Finished) -> Session:
    """A boot of the optimised kernel without requests."""
    steps = arm64.run.steps
    return Session(
        arch="arm64",
        kernel=steps["opt/build"].path / "kernel",
        initramfs=steps["guest"].path / INITRAMFS,
        requests=(),
        seed=1,
    )


def boot(session: Session, directory: Path) -> Outcome:
    return DEVICES.get("qemu").boot(session, directory, run, lambda count: None)


def report_of(out: Path) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads((out / "report.json").read_text())
    return loaded


def test_every_image_boots_and_passes_its_check(arm64: Finished, out: Path) -> None:
    images = {image["name"]: image for image in report_of(out)["images"]}
    assert set(images) == {"plain", "opt"}
    assert all(i["booted"] and i["self_check"] == "passed" for i in images.values())


def test_the_profile_makes_the_kernel_faster(arm64: Finished, out: Path) -> None:
    (row,) = [
        row
        for row in report_of(out)["summary"]
        if (row["image"], row["metric"]) == ("opt", "kernel_instructions")
    ]
    assert row["geomean_improvement_percent"] >= 5.0


def test_a_boot_repeats_to_the_last_instruction(
    arm64: Finished, session: Session, tmp_path: Path
) -> None:
    work = (
        agent.Exec(("/bin/kbench", "run", "proc"), 60),
        agent.Exec(("/bin/kbench", "run", "pipe128"), 60),
    )
    plugins = {"plugins": arm64.run.steps["plugins"].path}
    counted = replace(session, requests=work, measure=Measure(), artifacts=plugins)
    first, second = (boot(counted, tmp_path / name) for name in ("first", "second"))
    assert first.intervals == second.intervals
    # Guest time counts all instructions since power-on, and both contain it.
    assert first.replies == second.replies
    assert first.console == second.console
    assert len(first.intervals) == 2


def test_every_action_of_general_succeeds_in_what_the_kernel_has(
    session: Session, tmp_path: Path
) -> None:
    check_general(boot(with_general(session, tmp_path), tmp_path / "boot").replies)


def test_a_panic_is_reported(session: Session, tmp_path: Path) -> None:
    empty = tmp_path / "initramfs"
    empty.write_bytes(b"")
    broken = replace(session, initramfs=empty)
    with pytest.raises(KernelPanic, match="not syncing"):
        boot(broken, tmp_path / "boot")
