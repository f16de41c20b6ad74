from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mepof.device.preparation import Cores
from mepof.device.shell import LocalShell, Ran
from mepof.errors import EnvironmentLack, WorkError
from mepof.measure.hardware import Bench, measure_running
from mepof.measure.measurement import CaseMeasurement
from mepof.measure.metrics import METRICS
from mepof.pmu.counter import Countable, Event
from mepof.suite.cases import Case, cases_of, load_suite

INSTRUCTIONS = Event("kernel_instructions", "instructions:k", "instructions")
WALKS = Event("kernel_tlb_walks", "cpu/x,name=kernel_tlb_walks/k", "kernel_tlb_walks")
COUNTABLE = Countable(((INSTRUCTIONS,), (WALKS,)), {})
(PROC,) = cases_of(["proc"])
TOOL = load_suite("tools").cases[0]


@dataclass(frozen=True)
class Hardware(LocalShell):
    """A machine whose kernel takes 100 instructions per operation, and 5000 to start a program."""

    status: int = 0
    start: int = 5000
    each: int = 100
    walks: tuple[int, ...] = (40, 30)
    selfcheck: int = 0
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        # After taskset, sh and its script.
        words = tuple(argv[6:])
        self.ran.append(words)
        if "selfcheck" in words:
            return Ran(self.selfcheck, "selfcheck=failed check=memory")
        operations = int(words[-1]) if "--operations" in words else 200
        name = "hackbench-pipe" if "hackbench-pipe" in words else "proc"
        said = f"case={name} operations={operations} elapsed_ns=9000 p50_ns=7 check=ok\n"
        if self.status:
            return Ran(self.status, "case=proc check=unsupported needs=CONFIG_X\n")
        if "instructions:k" in words:
            said += f"{self.start + operations * self.each};;instructions:k;9;100.00;;\n"
        if WALKS.text in words and not self.walks:
            said += "<not supported>;;kernel_tlb_walks;0;100.00;;\n"
        elif WALKS.text in words:
            value = self.walks[0] if operations == 200 else self.walks[1]
            said += f"{value};;kernel_tlb_walks;9;100.00;;\n"
        return Ran(0, said)


def measured(
    shell: Hardware, case: Case = PROC, countable: Countable = COUNTABLE
) -> CaseMeasurement:
    bench = Bench(shell, Cores((2, 3)), "/data/suites/", "/data")
    made = measure_running(bench, [case], 1, "made-up", countable)
    assert made.boot is not None
    (found,) = made.boot.cases
    return found


def test_what_surrounds_the_work_is_not_counted() -> None:
    case = measured(Hardware())
    assert case.counted is not None
    assert case.counted.figures == {"kernel_instructions": 10_000, "kernel_tlb_walks": 10}
    assert (case.counted.operations, case.operations) == (100, 200)
    costs = {metric.name: metric.cost(case) for metric in METRICS}
    assert costs["kernel_instructions"] == 100
    assert costs["kernel_tlb_walks"] == 0.1
    # Without a counter there is no cost; the time is that of the run without counting.
    assert costs["kernel_cycles"] is None
    assert costs["guest_time"] == 45
    assert case.figures == {"p50_ns": 7}


def test_programs_run_on_the_cores_where_they_are() -> None:
    shell = Hardware()
    measured(shell)
    assert shell.ran[0] == ("/data/suites/bin/kbench", "selfcheck")
    assert shell.ran[1] == ("/data/suites/bin/kbench", "run", "proc")
    assert shell.ran[2][-4:] == ("--", *shell.ran[1])
    assert shell.ran[3][-2:] == ("--operations", "100")


def test_counts_of_rare_events_are_not_negative() -> None:
    counted = measured(Hardware(walks=(30, 31))).counted
    assert counted is not None and counted.figures["kernel_tlb_walks"] == 0


def test_a_metric_without_an_event_is_left_out() -> None:
    counted = measured(Hardware(walks=())).counted
    assert counted is not None
    assert counted.figures == {"kernel_instructions": 10_000}
    assert counted.lacking == {"kernel_tlb_walks": f"{WALKS.text} is not supported"}


def test_machine_without_a_pmu_is_one_clear_error() -> None:
    with pytest.raises(EnvironmentLack, match=r"perf cannot count any metric: .* is not supported"):
        measured(Hardware(walks=()), countable=Countable(((WALKS,),), {}))


def test_whole_program_is_counted_where_its_work_is_fixed() -> None:
    counted = measured(Hardware(), TOOL).counted
    assert counted is not None and counted.whole_program
    assert counted.figures["kernel_instructions"] == 5000 + 200 * 100


def test_nothing_is_counted_without_events() -> None:
    assert measured(Hardware(), countable=Countable((), {})).counted is None


def test_the_reason_for_a_missing_metric_is_kept() -> None:
    lacking = {"kernel_l2_misses": "the PMU has none"}
    counted = measured(Hardware(), countable=Countable(((INSTRUCTIONS,),), lacking)).counted
    assert counted is not None and counted.lacking == lacking


def test_a_kernel_that_fails_its_check_is_a_result() -> None:
    bench = Bench(Hardware(selfcheck=1), Cores((0,)), "", "/tmp")
    made = measure_running(bench, [PROC], 1, "made-up", COUNTABLE)
    assert made.boot is None
    assert made.self_check.endswith("failed: selfcheck=failed check=memory")


def test_a_case_that_the_kernel_cannot_run_is_listed() -> None:
    bench = Bench(Hardware(status=77), Cores((0,)), "", "/tmp")
    made = measure_running(bench, [PROC], 1, "made-up", COUNTABLE)
    assert made.boot is not None
    assert [one.needs for one in made.boot.unsupported] == ["CONFIG_X"]


def test_a_missing_program_is_an_error_with_its_path() -> None:
    bench = Bench(LocalShell(), Cores((0,)), "/no/such", "/tmp")
    with pytest.raises(EnvironmentLack, match=r"/no/such/bin/kbench cannot be run on local"):
        measure_running(bench, [PROC], 1, "none", Countable((), {}))


KBENCH = """\
#!/bin/sh
[ "$1" = selfcheck ] && exit 0
n=20
[ "$3" = --operations ] && n=$4
i=0
while [ $i -lt $n ]; do /bin/true; i=$((i + 1)); done
echo "case=$2 operations=$n elapsed_ns=1 check=${CHECK:-ok}"
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A suite's program that starts programs, each of which has page faults."""
    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin/kbench"
    path.write_text(KBENCH)
    path.chmod(0o755)
    return tmp_path


@pytest.mark.skipif(
    shutil.which("perf") is None, reason="perf is not installed: apt-get install linux-perf"
)
def test_real_perf_counts_the_work_alone(programs: Path) -> None:
    faults = Event("user_instructions", "software/config=2,name=faults/u", "faults")
    bench = Bench(LocalShell(), Cores((0,)), str(programs), str(programs))
    made = measure_running(bench, [PROC], 1, "software", Countable(((faults,),), {}))
    assert made.boot is not None
    counted = made.boot.cases[0].counted
    assert counted is not None and counted.operations == 10
    # Each started program has dozens of page faults; those of the shell are not counted.
    assert 20 < counted.figures["user_instructions"] / counted.operations < 200


def test_a_case_that_fails_while_counted_is_an_error(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECK", "failed")
    bench = Bench(LocalShell(), Cores((0,)), str(programs), str(programs))
    with pytest.raises(WorkError, match="the case proc printed no valid result line"):
        measure_running(bench, [PROC], 1, "software", Countable((), {}))
