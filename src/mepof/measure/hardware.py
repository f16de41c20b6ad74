"""Measuring the kernel that runs on a machine: cases are timed, and counted by ``perf stat``.

perf counts a whole program. So each case is counted twice, with all of its work and with half of
it, and the difference of the counts is divided by the difference of the operations: what surrounds
the work is in both runs and cancels. Programs need no support for perf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mepof.device.preparation import Cores
from mepof.device.shell import NOT_FOUND, Ran, Shell
from mepof.errors import EnvironmentLack
from mepof.measure.measurement import PASSED, Boot, CaseMeasurement, Counted, Unsupported
from mepof.measure.result_line import SKIPPED, Result, result_of, unsupported_of
from mepof.measure.runner import OneBoot
from mepof.pmu.counter import Countable, Event
from mepof.pmu.perf_stat import command, counts_of, figures_of
from mepof.suite.cases import Case, load_suite, selfcheck

_CASE_SECONDS = 600.0


@dataclass(frozen=True)
class Bench:
    """A machine, and how cases run on it.

    Attributes:
        cores: those that cases run on.
        programs: directory below which the suites' programs have their paths.
        scratch: directory that cases run in and may write to.
        progress: called with the name of what runs.
    """

    shell: Shell
    cores: Cores
    programs: str
    scratch: str
    progress: Callable[[str], None] = field(default=lambda text: None)

    def run(self, argv: Sequence[str], events: Sequence[Event] = ()) -> Ran:
        """Run a suite's program.

        Args:
            argv: the program's path in a guest, and its arguments.
            events: to count meanwhile.

        Raises:
            EnvironmentLack: the program does not exist.
        """
        own = (f"{self.programs.rstrip('/')}{argv[0]}", *argv[1:])
        counted = command(events, own) if events else own
        # Cases make files in the current directory, and a shell over adb starts in another one.
        within = ("sh", "-c", 'cd "$0" && exec "$@"', self.scratch, *counted)
        ran = self.shell.run(self.cores.command(within), _CASE_SECONDS)
        if ran.status == NOT_FOUND and not events:
            said = ran.output.strip().rpartition("\n")[2]
            raise EnvironmentLack(
                f"{own[0]} cannot be run on {self.shell.name}: {said}",
                "copy the suites' programs there and name their directory",
            )
        return ran


def measure_running(
    bench: Bench, cases: Sequence[Case], seed: int, counters: str, countable: Countable
) -> OneBoot:
    """Check the kernel that runs, and run the cases on it.

    A kernel that fails its checks is a result, not an error.

    Args:
        seed: number of this measurement among several.
        counters: name of the core's counters.
        countable: events to count.
    """
    check = selfcheck()
    bench.progress("self-check")
    checked = bench.run(check)
    if checked.status != 0:
        return OneBoot(True, f"`{' '.join(check)}` failed: {checked.last}")
    measured: list[CaseMeasurement] = []
    unsupported: list[Unsupported] = []
    for case in cases:
        bench.progress(case.name)
        timed = bench.run(case.argv)
        if timed.status == SKIPPED:
            unsupported.append(unsupported_of(case, timed.output))
            continue
        if timed.status != 0:
            return OneBoot(True, f"`{' '.join(case.argv)}` failed: {timed.last}")
        result = result_of(case, timed.output)
        counted = count(bench, case, result, counters, countable) if countable.runs else None
        measured.append(_measurement(case, result, counted))
    boot = Boot(seed=seed, cases=tuple(measured), unsupported=tuple(unsupported))
    return OneBoot(True, PASSED, boot)


def count(
    bench: Bench, case: Case, result: Result, counters: str, countable: Countable
) -> Counted | None:
    """Count the events of a case's work.

    Args:
        result: of a run without counting.

    Returns:
        None if a run of half the work does as many operations.

    Raises:
        EnvironmentLack: perf is missing, is not permitted to count, or counts nothing.
        WorkError: a run was not sound.
    """
    half = result.operations // 2
    shorter = tuple(
        word.replace("{operations}", str(half)) for word in load_suite(case.suite).shorter
    )
    figures: dict[str, int] = {}
    lacking = dict(countable.lacking)
    operations = result.operations
    for events in countable.runs:
        done, found, faults = _counted(bench, case, case.argv, events)
        lacking |= faults
        if shorter:
            less, fewer, faults = _counted(bench, case, (*case.argv, *shorter), events)
            lacking |= faults
            operations = done - less
            if operations <= 0:
                return None
            # Rare events may happen more often in less work: the difference then counts as 0.
            found = {n: max(0, value - fewer[n]) for n, value in found.items() if n in fewer}
        for name, value in found.items():
            figures[name] = figures.get(name, 0) + value
    figures = {name: value for name, value in figures.items() if name not in lacking}
    if not figures:
        raise EnvironmentLack(
            f"perf cannot count any metric: {next(iter(lacking.values()))}",
            "pass the host's PMU through to a virtual machine, or evaluate on the device qemu",
        )
    return Counted(
        counters=counters,
        operations=operations,
        whole_program=not shorter,
        figures=figures,
        lacking=lacking,
    )


def _counted(
    bench: Bench, case: Case, argv: tuple[str, ...], events: Sequence[Event]
) -> tuple[int, dict[str, int], dict[str, str]]:
    counts, said = counts_of(bench.run(argv, events), events)
    figures, lacking = figures_of(counts)
    return result_of(case, said).operations, figures, lacking


def _measurement(case: Case, result: Result, counted: Counted | None) -> CaseMeasurement:
    return CaseMeasurement(
        suite=case.suite,
        case=case.name,
        metric_group=case.metric,
        operations=result.operations,
        check=result.check,
        kernel_instructions=None,
        user_instructions=None,
        kernel_taken_branches=None,
        user_taken_branches=None,
        guest_nanoseconds=result.nanoseconds,
        figures=dict(result.figures),
        counted=counted,
    )
