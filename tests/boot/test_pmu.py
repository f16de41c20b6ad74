"""The emulated PMU on a real kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.device import agent
from mepof.device.initramfs import Entry, archive, tree
from mepof.device.observation import Measure
from mepof.device.protocol import DEVICES, Interval, Outcome, Session
from mepof.executor.protocol import Finished
from mepof.kernel.overlay import native_directory
from mepof.pmu.locations import functions_of, locations_of, read_raw
from mepof.pmu.settings import modelling
from mepof.process import run
from mepof.suite.cases import cases_of

from .conftest import session_of

pytestmark = pytest.mark.boot

CASES = cases_of(["proc", "pipe"])
ZEN4 = modelling("zen4")
ZEN4_LOCATIONS = replace(ZEN4, locations=True)


@pytest.fixture(scope="module")
def pmu(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    out = tmp_path_factory.mktemp("pmu")
    subprocess.run(
        ["make", "-s", "-C", native_directory() / "pmu", f"OUT={out}"], check=True, timeout=120
    )
    return {"pmu": out}


@pytest.fixture(scope="module")
def session(finished: Finished) -> Session:
    work = tuple(agent.Exec(case.argv, 120) for case in CASES)
    return replace(session_of(finished, "opt/build"), requests=work)


def boot(session: Session, directory: Path) -> Outcome:
    return DEVICES.get("qemu").boot(session, directory, run, lambda count: None)


def counts(interval: Interval) -> tuple[int, ...]:
    return (
        interval.kernel_instructions,
        interval.user_instructions,
        interval.kernel_taken_branches,
        interval.user_taken_branches,
    )


@pytest.mark.parametrize("cpus", [1, 4])
def test_its_counts_equal_those_of_the_counting_plugin_and_repeat(
    session: Session,
    plugins: Mapping[str, Path],
    pmu: Mapping[str, Path],
    tmp_path: Path,
    cpus: int,
) -> None:
    # On the same processor, since kernels choose code by it.
    counted_on = Measure(cpu=ZEN4.cpu)
    counting = replace(session, measure=counted_on, artifacts=plugins, cpus=cpus)
    modelling, locating = (
        replace(session, measure=measure, artifacts=pmu, cpus=cpus)
        for measure in (ZEN4, ZEN4_LOCATIONS)
    )
    counted = boot(counting, tmp_path / "counted").intervals
    modelled = boot(modelling, tmp_path / "modelled").intervals
    located = boot(locating, tmp_path / "located").intervals
    assert [counts(one) for one in modelled] == [counts(one) for one in counted]
    assert modelled == located


def test_locations_are_functions_of_the_kernel(
    finished: Finished, session: Session, pmu: Mapping[str, Path], tmp_path: Path
) -> None:
    located = replace(session, measure=ZEN4_LOCATIONS, artifacts=pmu)
    outcome = boot(located, tmp_path / "located")
    assert outcome.locations is not None
    build = finished.run.steps["opt/build"].path
    ran = [(case.suite, case.name) for case in CASES]
    found = locations_of("zen4", ran, read_raw(outcome.locations), functions_of(build))
    for case, interval in zip(found.cases, outcome.intervals, strict=True):
        assert interval.kernel_events is not None
        for event in ("l1i_misses", "l1d_misses", "dtlb_walks", "direction_mispredictions"):
            happened = sum(f.events.get(event, 0) for f in case.functions)
            assert happened == interval.kernel_events[event]
        executed = sum(f.instructions for f in case.functions)
        assert executed == pytest.approx(interval.kernel_instructions, rel=1e-4)
        unknown = sum(f.instructions for f in case.functions if f.name == "[unknown]")
        assert unknown < 0.01 * executed
    of_pipes = {f.name for case in found.cases if case.case == "pipe128" for f in case.functions}
    assert {"do_syscall_64", "pipe_write"} <= of_pipes


def test_large_pages_save_tlb_misses(
    finished: Finished, pmu: Mapping[str, Path], tmp_path: Path
) -> None:
    """A walk through 32 MiB, to a random page of 4 KiB a million times."""
    command = ["make", "-s", "-C", f"{native_directory()}/suites", f"OUT={tmp_path}"]
    subprocess.run([*command, "SUITE=pages"], check=True, timeout=120)
    program = (tmp_path / "pages").read_bytes()
    added = tmp_path / "archive.cpio"
    added.write_bytes(archive(tree([Entry("suites/pages", 0o755, program)])))
    walks = [agent.Exec(("/suites/pages", f"walk-{size}"), 120) for size in ("4k", "2m")]
    session = replace(
        session_of(finished, "plain/build"),
        requests=tuple(walks),
        archives=(added,),
        memory=1024,
        measure=ZEN4,
        artifacts=pmu,
    )
    outcome = boot(session, tmp_path / "boot")
    for request, reply in zip(walks, outcome.replies, strict=True):
        agent.expect_success(request, reply)
    small, large = (interval.user_events for interval in outcome.intervals)
    assert small is not None
    assert large is not None
    assert small["dtlb_misses"] > 1_000_000
    assert large["dtlb_misses"] < 100
    assert (small["unknown_pages"], large["unknown_pages"]) == (0, 0)
