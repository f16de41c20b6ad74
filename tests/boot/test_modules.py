"""Modules of a real kernel: loaded, counted, and optimised with their profile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mepof.device import agent, modules
from mepof.device.protocol import DEVICES, INITRAMFS, Outcome, Session
from mepof.executor.local import LocalExecutor
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Finished
from mepof.g4 import Source
from mepof.kernel.description import Safety
from mepof.kernel.modules import Modules
from mepof.process import run
from mepof.profile.counts import read_counts

pytestmark = [pytest.mark.boot, pytest.mark.rounds]

PROGRAM = Path(__file__).parents[2] / "examples" / "modules.g4"
LISTED = agent.Get("/proc/modules")


@pytest.fixture(scope="module")
def made(executor: LocalExecutor, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The example, run to its end: three kernels."""
    plan = plan_of(Source.read(PROGRAM))
    return executor.run(plan, tmp_path_factory.mktemp("modules"), lambda event: None)


def boot(kernel: Path, guest: Path, directory: Path, *, build: Path) -> Outcome:
    session = Session("x86-64", kernel / "kernel", guest / INITRAMFS, (LISTED,), 1)
    return modules.boot(DEVICES.get("qemu"), session, build, directory, run, lambda count: None)


def paths(finished: Finished) -> Mapping[str, Path]:
    return {name: step.path for name, step in finished.run.steps.items()}


def test_functions_of_modules_are_counted_and_the_optimised_ones_load(
    made: Finished, tmp_path: Path
) -> None:
    steps = paths(made)
    ran = {
        f.name.rpartition(";")[2]
        for f in read_counts(steps["opt/profile"] / "kernel.profdata")
        if f.total
    }
    assert {"ext4_map_blocks", "jbd2_journal_commit_transaction", "veth_xmit"} <= ran
    assert Safety.read(steps["opt/build"]).failure is None
    for build in (steps["plain/build"], steps["opt/build"]):
        (listed,) = boot(build, steps["guest"], tmp_path / "boot", build=build).replies
        assert isinstance(listed, agent.GetResult)
        loaded = {line.split()[0] for line in listed.data.decode().splitlines()}
        assert loaded == {module.name for module in Modules.read(build).modules}


def test_modules_of_another_kernel_are_refused_with_the_kernels_reason(
    made: Finished, finished: Finished, tmp_path: Path
) -> None:
    steps = paths(made)
    # slim has no modules at all.
    slim = finished.run.steps["plain/build"].path
    with pytest.raises(modules.ModuleNotLoaded, match="Function not implemented"):
        boot(slim, steps["guest"], tmp_path / "boot", build=steps["plain/build"])
