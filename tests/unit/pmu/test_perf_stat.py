"""Parsing perf's output; the samples are from perf 6.1 of Debian, unless they name a release."""

from __future__ import annotations

import shutil

import pytest

from mepof.device.shell import LocalShell, Ran
from mepof.errors import EnvironmentLack, WorkError
from mepof.pmu.counter import Event
from mepof.pmu.perf_stat import command, counts_of, figures_of

INSTRUCTIONS = Event("kernel_instructions", "instructions:k", "instructions")
USER = Event("user_instructions", "instructions:u", "instructions")
L1I = Event("kernel_l1i_misses", "L1-icache-load-misses:k", "L1-icache-load-misses")
NAMED = Event(
    "kernel_l1d_misses", "cpu/event=0x43,umask=0xff,name=kernel_l1d_misses/k", "kernel_l1d_misses"
)
BOTH = (INSTRUCTIONS, USER)

NEEDS_PERF = pytest.mark.skipif(
    shutil.which("perf") is None, reason="perf is not installed: apt-get install linux-perf"
)


def test_each_event_is_an_argument_of_its_own() -> None:
    assert command((INSTRUCTIONS, NAMED), ("prog", "-e", "x")) == (
        *("env", "LC_ALL=C", "perf", "stat", "-x", ";"),
        *("-e", "instructions:k", "-e", NAMED.text, "--", "prog", "-e", "x"),
    )


def test_counts_are_separated_from_the_output_of_the_program() -> None:
    output = (
        "case=proc operations=200 elapsed_ns=5 check=ok\n"
        "a;line;of;its;own;\n"
        "150334;;instructions:k;703012;100.00;0.62;insn per cycle\n"
        "98123;;instructions:u;703012;100.00;;\n"
    )
    counts, said = counts_of(Ran(0, output), BOTH)
    assert figures_of(counts) == ({"kernel_instructions": 150334, "user_instructions": 98123}, {})
    assert said.splitlines() == output.splitlines()[:2]


def test_given_names_and_names_without_modifiers_are_recognised() -> None:
    # perf leaves the modifier out of an event that is not supported.
    output = "<not supported>;;L1-icache-load-misses;0;100.00;;\n77;;kernel_l1d_misses;9;100.00;;\n"
    counts, _ = counts_of(Ran(0, output), (L1I, NAMED))
    figures, lacking = figures_of(counts)
    assert figures == {"kernel_l1d_misses": 77}
    assert lacking == {"kernel_l1i_misses": "L1-icache-load-misses:k is not supported"}


def test_prefix_of_a_pmu_and_its_modifier_are_part_of_the_name() -> None:
    slash = Event("kernel_cycles", "armv8_cortex_a57/cpu_cycles/k", "armv8_cortex_a57/cpu_cycles")
    counts, _ = counts_of(Ran(0, "5;;armv8_cortex_a57/cpu_cycles/k;9;100.00;;\n"), (slash,))
    assert counts[0].value == 5


def test_an_event_of_one_kind_of_core_is_parsed() -> None:
    """As perf prints it on Intel's hybrid processors (Linux, tools/perf/Documentation)."""
    core = Event("kernel_cycles", "cpu_core/cycles/k", "cpu_core/cycles")
    counts, _ = counts_of(Ran(0, "604097080;;cpu_core/cycles/k;9;99.57;;\n"), (core,))
    assert figures_of(counts) == ({"kernel_cycles": 604097080}, {})
    elsewhere, _ = counts_of(Ran(0, "160444092;;cpu_core/cycles/k;9;0.47;;\n"), (core,))
    assert "only 0.47 % of the time" in figures_of(elsewhere)[1]["kernel_cycles"]


def test_the_same_event_of_another_pmu_is_not_the_next_event() -> None:
    """perf may count an event once for each kind of core, and print each under the same name."""
    output = "5;;instructions:k;9;100.00;;\n<not counted>;;instructions:k;0;0.00;;\n"
    counts, _ = counts_of(Ran(0, f"{output}7;;instructions:u;9;100.00;;\n"), BOTH)
    assert figures_of(counts) == ({"kernel_instructions": 5, "user_instructions": 7}, {})


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("<not counted>;;instructions:k;0;0.00;;", "instructions:k is not counted"),
        (
            "4000;;instructions:k;351506;50.00;;",
            "instructions:k was counted for only 50 % of the time",
        ),
        ("4000;;instructions:k;351506;99.50;;", None),
    ],
)
def test_a_multiplexed_event_is_not_a_count(line: str, fault: str | None) -> None:
    output = f"{line}\n1;;instructions:u;703012;100.00;;\n"
    figures, lacking = figures_of(counts_of(Ran(0, output), BOTH)[0])
    assert lacking.get("kernel_instructions") == fault
    assert ("kernel_instructions" in figures) is (fault is None)
    assert figures["user_instructions"] == 1


def test_events_of_one_metric_add_up_or_the_metric_has_no_count() -> None:
    pair = (NAMED, NAMED)
    both = "3;;kernel_l1d_misses;9;100.00;;\n4;;kernel_l1d_misses;9;100.00;;\n"
    assert figures_of(counts_of(Ran(0, both), pair)[0]) == ({"kernel_l1d_misses": 7}, {})
    one = "3;;kernel_l1d_misses;9;100.00;;\n<not counted>;;kernel_l1d_misses;0;0.00;;\n"
    figures, lacking = figures_of(counts_of(Ran(0, one), pair)[0])
    assert not figures and "kernel_l1d_misses" in lacking


# perf 6.1 in a QEMU guest (virt, Cortex-A57, icount, Debian's kernel 6.1), whose PMU counts
# instructions and cycles; the program is a loop in BusyBox's shell, here by its rounds.
PMUV3 = {
    200: """\
case=loop operations=200 elapsed_ns=1 check=ok
2616175;;kernel_instructions;6292608;100.00;;
3670382;;user_instructions;6292608;100.00;;
2616175;;kernel_cycles;6292608;100.00;;
""",
    400: """\
case=loop operations=400 elapsed_ns=1 check=ok
4852827;;kernel_instructions;12149984;100.00;;
7284782;;user_instructions;12149984;100.00;;
4852827;;kernel_cycles;12149984;100.00;;
""",
}
UNLISTED = r"""event syntax error: 'armv8_pmuv3/nosuch,name=x/k'
                                 \___ unknown term 'nosuch' for pmu 'armv8_pmuv3'

valid terms: event,long,rdpmc,config,config1,config2,name,period,percore,metric-id
Run 'perf list' for a list of valid events
"""


def test_the_output_for_an_arm_pmu_is_parsed() -> None:
    events = tuple(
        Event(name, f"armv8_pmuv3/{event},name={name}/{side}", name)
        for name, event, side in (
            ("kernel_instructions", "inst_retired", "k"),
            ("user_instructions", "inst_retired", "u"),
            ("kernel_cycles", "cpu_cycles", "k"),
        )
    )
    more, less = (figures_of(counts_of(Ran(0, PMUV3[n]), events)[0])[0] for n in (400, 200))
    # In user space every round of the loop costs the same.
    assert (more["user_instructions"] - less["user_instructions"]) / 200 == 18072
    assert 11_000 < (more["kernel_instructions"] - less["kernel_instructions"]) / 200 < 11_300


PARANOID = """Error:
Access to performance monitoring and observability operations is limited.
Consider adjusting /proc/sys/kernel/perf_event_paranoid setting to open
access to performance monitoring and observability operations for processes
without CAP_PERFMON, CAP_SYS_PTRACE or CAP_SYS_ADMIN Linux capability.
perf_event_paranoid setting is 2:
  -1: Allow use of (almost) all events by all users
"""
WRAPPER = """\
WARNING: perf not found for kernel 6.12.117

  You may need to install the following packages for this specific kernel:
    linux-tools-6.12.117-mepof
    linux-cloud-tools-6.12.117-mepof
"""
NO_SUCH_PMU = r"""event syntax error: 'cpu/event=0x43..'
                     \___ Cannot find PMU `cpu'. Missing kernel support?
Run 'perf list' for a list of valid events
"""
NO_SUCH_EVENT = r"""event syntax error: 'nosuch'
                     \___ parser error
Run 'perf list' for a list of valid events
"""


@pytest.mark.parametrize(
    ("ran", "kind", "message"),
    [
        (Ran(127, "env: 'perf': No such file or directory"), EnvironmentLack, "is not installed"),
        (Ran(2, WRAPPER), EnvironmentLack, r"none for kernel 6\.12\.117 .*one first on PATH"),
        (Ran(255, PARANOID), EnvironmentLack, "perf_event_paranoid is 2 .*sysctl kernel"),
        (Ran(255, PARANOID), EnvironmentLack, "in a container: `--cap-add PERFMON` and a seccomp"),
        (Ran(129, NO_SUCH_PMU), EnvironmentLack, "perf does not know cpu in "),
        (Ran(129, UNLISTED), EnvironmentLack, "perf does not know nosuch in "),
        (Ran(129, NO_SUCH_EVENT), EnvironmentLack, "perf does not know an event in "),
        (
            Ran(255, "Workload failed: No such file or directory\n"),
            WorkError,
            "perf cannot start the program: Workload failed: No such file",
        ),
        (Ran(0, "1;;instructions:k;9;100.00;;\n"), WorkError, "perf counted nothing"),
        (Ran(0, "x;;instructions:k;9;100.00;;\n" * 2), WorkError, "printed no value"),
        (Ran(0, "1;;instructions:k;9;x;;\n" * 2), WorkError, "printed no percentage"),
        (Ran(1, ""), WorkError, "perf counted nothing: status 1"),
    ],
)
def test_output_without_counts_is_one_error(ran: Ran, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        counts_of(ran, BOTH)


@NEEDS_PERF
def test_installed_perf_counts_by_given_names() -> None:
    """Software events of the kernel replace those of a PMU; page faults are in user space here."""
    events = (
        Event("user_faults", "software/config=2,name=user_faults/u", "user_faults"),
        Event("kernel_switches", "software/config=3,name=kernel_switches/k", "kernel_switches"),
    )
    shell = LocalShell()
    ran = shell.run(command(events, ("sh", "-c", "echo said; echo more >&2")), 60)
    counts, said = counts_of(ran, events)
    assert counts[0].value is not None and counts[0].value > 10
    assert counts[1].value is not None and counts[1].percent == 100
    assert said == "said\nmore"


@NEEDS_PERF
def test_installed_perf_reports_unknown_events() -> None:
    unknown = (Event("kernel_x", "no-such-event:k", "no-such-event"),)
    with pytest.raises(EnvironmentLack, match="perf does not know"):
        counts_of(LocalShell().run(command(unknown, ("true",)), 60), unknown)


@NEEDS_PERF
def test_installed_perf_reports_what_it_cannot_start() -> None:
    event = (Event("user_faults", "software/config=2,name=user_faults/u", "user_faults"),)
    with pytest.raises(WorkError, match="cannot start the program"):
        counts_of(LocalShell().run(command(event, ("/no/such",)), 60), event)
