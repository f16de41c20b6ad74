from __future__ import annotations

from pathlib import Path

import pytest

from mepof.device.shell import LocalShell
from mepof.errors import EnvironmentLack, InputError
from mepof.measure.metrics import METRICS
from mepof.pmu.counter import Counter, Counters, countable, counters_names, load_counters

PMUS = "sys/bus/event_source/devices"
CPUINFO = """\
processor\t: 0
vendor_id\t: {}
cpu family\t: {}
model\t\t: {}
model name\t: a model

processor\t: 1
"""


def machine(root: Path, pmus: dict[str, tuple[str, ...]], cpus: dict[str, str]) -> LocalShell:
    for name, events in pmus.items():
        (root / PMUS / name / "events").mkdir(parents=True)
        for event in events:
            (root / PMUS / name / "events" / event).write_text("event=0x1\n")
        if name in cpus:
            (root / PMUS / name / "cpus").write_text(cpus[name])
    return LocalShell(root)


@pytest.mark.parametrize("name", counters_names())
def test_counters_count_known_metrics(name: str) -> None:
    counters = load_counters(name)
    assert {c.metric for c in counters.counter} <= {metric.name for metric in METRICS}
    assert {"kernel_instructions", "user_instructions", "kernel_cycles"} <= {
        counter.metric for counter in counters.counter
    }


def test_generic_events_need_no_pmu_by_name(tmp_path: Path) -> None:
    able = countable(LocalShell(tmp_path), load_counters("generic"), (0,))
    assert [[event.text for event in run] for run in able.runs] == [
        ["instructions:k", "instructions:u", "cycles:k", "branch-misses:k"],
        [
            "L1-icache-load-misses:k",
            "L1-dcache-load-misses:k",
            "iTLB-load-misses:k",
            "dTLB-load-misses:k",
        ],
    ]
    assert not able.lacking


def test_generic_events_are_those_of_the_cores_in_use(tmp_path: Path) -> None:
    shell = machine(
        tmp_path, {"cpu_atom": (), "cpu_core": ()}, {"cpu_core": "0-15\n", "cpu_atom": "16-23\n"}
    )
    able = countable(shell, load_counters("generic"), (0, 2))
    assert [(event.text, event.name) for event in able.runs[0][:2]] == [
        ("cpu_core/instructions/k", "cpu_core/instructions"),
        ("cpu_core/instructions/u", "cpu_core/instructions"),
    ]
    with pytest.raises(EnvironmentLack, match=r"no PMU cpu_\* of local covers"):
        countable(shell, load_counters("generic"), (15, 16))


def test_generic_events_are_those_of_the_arm_cores_in_use(tmp_path: Path) -> None:
    """perf 6.12 knows these names for a PMU of Arm; 6.1 says that it does not."""
    cpus = {"armv8_cortex_a55": "0-5\n", "armv8_cortex_a76": "6-7\n"}
    shell = machine(tmp_path, {"armv8_cortex_a55": (), "armv8_cortex_a76": ()}, cpus)
    able = countable(shell, load_counters("generic"), (6, 7))
    assert [event.text for event in able.runs[0][:2]] == [
        "armv8_cortex_a76/instructions/k",
        "armv8_cortex_a76/instructions/u",
    ]
    with pytest.raises(EnvironmentLack, match=r"no PMU armv\[89\]_\* of local covers"):
        countable(shell, load_counters("generic"), (5, 6))


def test_generic_events_of_one_kind_of_arm_core_need_no_pmu(tmp_path: Path) -> None:
    shell = machine(tmp_path, {"armv8_pmuv3": ()}, {"armv8_pmuv3": "0-3\n"})
    able = countable(shell, load_counters("generic"), (0, 1))
    assert able.runs[0][0].text == "instructions:k"


def processor(root: Path, vendor: str, family: int, model: int) -> LocalShell:
    (root / "proc").mkdir()
    (root / "proc" / "cpuinfo").write_text(CPUINFO.format(vendor, family, model))
    return machine(root, {"cpu": ()}, {})


def test_events_by_number_are_named_for_their_metric(tmp_path: Path) -> None:
    shell = processor(tmp_path, "AuthenticAMD", 25, 17)
    able = countable(shell, load_counters("zen4"), (0, 1))
    texts = [event.text for run in able.runs for event in run]
    assert "cpu/event=0x64,umask=0x09,name=kernel_l2_misses/k" in texts
    assert "cpu/event=0xc0,name=user_instructions/u" in texts
    assert all(len(run) <= 4 for run in able.runs)


@pytest.mark.parametrize("name", counters_names())
def test_events_by_number_are_those_of_named_processors(name: str) -> None:
    counters = load_counters(name)
    by_number = any("=" in counter.event for counter in counters.counter)
    assert by_number == (counters.processor is not None)


@pytest.mark.parametrize(
    ("vendor", "family", "model", "counters"),
    [
        ("AuthenticAMD", 25, 16, "zen4"),
        ("AuthenticAMD", 25, 175, "zen4"),
        ("AuthenticAMD", 25, 33, ""),
        ("AuthenticAMD", 26, 17, ""),
        ("GenuineIntel", 6, 85, "skylake"),
        ("GenuineIntel", 6, 106, ""),
        ("AuthenticAMD", 6, 85, ""),
    ],
)
def test_events_by_number_are_counted_on_their_processor_alone(
    tmp_path: Path, vendor: str, family: int, model: int, counters: str
) -> None:
    shell = processor(tmp_path, vendor, family, model)
    for name in ("zen4", "skylake"):
        if name == counters:
            assert countable(shell, load_counters(name), (0,)).runs
            continue
        said = f"on local, a processor {vendor} of family {family}, model {model} "
        with pytest.raises(EnvironmentLack, match=said):
            countable(shell, load_counters(name), (0,))


def test_a_processor_that_is_not_known_is_another_one(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLack, match=r"a processor \? of family \?, model \?"):
        countable(machine(tmp_path, {"cpu": ()}, {}), load_counters("zen4"), (0,))


def test_the_pmu_covers_the_cores_in_use(tmp_path: Path) -> None:
    little = ("inst_retired", "cpu_cycles", "pc_write_retired")
    big = ("inst_retired", "cpu_cycles", "itlb_walk")
    shell = machine(
        tmp_path,
        {"armv8_cortex_a53": little, "armv8_cortex_a76": big},
        {"armv8_cortex_a53": "0-3\n", "armv8_cortex_a76": "4-5\n"},
    )
    arm = load_counters("armv8")
    able = countable(shell, arm, (4, 5))
    assert [event.text for event in able.runs[0]] == [
        "armv8_cortex_a76/inst_retired,name=kernel_instructions/k",
        "armv8_cortex_a76/inst_retired,name=user_instructions/u",
        "armv8_cortex_a76/cpu_cycles,name=kernel_cycles/k",
    ]
    assert able.lacking["kernel_taken_branches"] == (
        "the PMU armv8_cortex_a76 has no event pc_write_retired"
    )
    # One of the two events of a sum is not a figure.
    assert able.lacking["kernel_tlb_walks"].endswith("dtlb_walk")
    with pytest.raises(EnvironmentLack, match="covers all of the cores"):
        countable(shell, arm, (3, 4))


def test_a_machine_without_the_pmu_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLack, match="local has no PMU cpu, which the counters of AMD"):
        countable(LocalShell(tmp_path), load_counters("zen4"), (0,))


@pytest.mark.parametrize("event", ["a b", "x/y", "a;b", "", "name='x'"])
def test_an_event_cannot_break_out_of_its_argument(event: str) -> None:
    with pytest.raises(ValueError, match="event"):
        Counter(metric="kernel_cycles", event=event)


def test_counters_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "mine"\nsource = "a manual"\nat_once = 2\ncounter = []\n')
    assert load_counters(str(path)) == Counters(
        title="mine", source="a manual", at_once=2, counter=()
    )
    path.write_text("at_once = 0\n")
    with pytest.raises(InputError, match=r"mine\.toml:1: `title` is missing from the counters"):
        load_counters(str(path))
    with pytest.raises(InputError, match=r"unknown counters `zen`.*known: armv8"):
        load_counters("zen")
