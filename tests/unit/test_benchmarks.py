"""What the benchmarks rest on."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mepof.executor.programs import compiled
from mepof.profile.counts import FunctionCounts

BENCH = Path(__file__).parents[2] / "bench"
TEST_SET = BENCH / "model_debian"


def test_every_program_of_the_test_set_says_what_it_is_made_of() -> None:
    described = tomllib.loads((TEST_SET / "programs.toml").read_text())["programs"]
    assert set(described) == {path.stem for path in TEST_SET.glob("*.c")}
    assert len(described) >= 20
    assert all((TEST_SET / one["own"]).is_dir() for one in described.values() if "own" in one)


@pytest.fixture(scope="module")
def overlap() -> Any:
    """The module, which is not on the path of tests."""
    spec = importlib.util.spec_from_file_location("overlap", BENCH / "measure" / "overlap.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["overlap"] = module
    spec.loader.exec_module(module)
    return module


READ, WRITE = {"entry": 10, "read": 90}, {"entry": 20, "write": 180}


@pytest.mark.parametrize(
    ("case", "percent", "nearest", "nearest_percent"),
    [
        # The same work under another name, and more of it.
        ({"entry": 1000, "read": 9000}, 100, "read", 100),
        # What two actions do: each alone has half of it.
        ({"entry": 10, "read": 45, "write": 45}, 100, "read", 55),
        # Shared code alone, of which no action has as large a share.
        ({"entry": 50, "map": 50}, 10, "read", 10),
        ({"map": 7}, 0, "read", 0),
        ({}, 0, "read", 0),
    ],
)
def test_overlap_counts_code_as_far_as_an_action_works_there(
    overlap: Any, case: dict[str, int], percent: float, nearest: str, nearest_percent: float
) -> None:
    found = overlap.likeness(case, {"read": READ, "write": WRITE})
    assert found.percent == pytest.approx(percent)
    assert (found.nearest, found.nearest_percent) == (nearest, pytest.approx(nearest_percent))


def test_work_is_trained_near_or_far_by_its_overlap(overlap: Any) -> None:
    kinds = [overlap.kind_of(percent) for percent in (0.0, 59.9, 60.0, 97.9, 98.0, 100.0)]
    assert kinds == ["far", "far", "near", "near", "trained", "trained"]


@pytest.fixture
def transfer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """bench/transfer.py, which compiles its programs without the tools that they need."""
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("transfer")
    monkeypatch.setattr(module, "plan_of", compiled)
    return module


def test_every_profile_that_is_transferred_is_apart_from_the_kernels_own(transfer: Any) -> None:
    cells = transfer.cells(transfer.CHOICES)
    assert len({cell.name for cell in cells}) == len(cells) > 0
    for cell in cells:
        assert cell.origin != cell.target
        made = transfer.Made(transfer.plan_for(cell), {})
        profiles = {made.step("profile", name).id for name in ("origin", "own")}
        images = {made.step("image", name).id for name in ("plain", "own", "foreign")}
        assert (len(profiles), len(images)) == (2, 3), cell.name
        used = made.step("image", "foreign").inputs["profile"]
        assert used.step == made.step("profile", "origin").id


def test_a_profile_of_another_core_is_recorded_on_its_processor(transfer: Any) -> None:
    (cell,) = (cell for cell in transfer.cells(transfer.CHOICES) if cell.row == "core")
    steps = {step.id: step.params for step in transfer.plan_for(cell).steps}
    assert steps["origin/collect"]["record"]["cpu"] == "Skylake-Client"
    assert steps["own/collect"]["record"]["cpu"] == "EPYC-Genoa"


def test_counts_match_where_the_control_flow_is_the_same(transfer: Any) -> None:
    same, changed, gone = (FunctionCounts(name, "0x1", (30, 10)) for name in ("a", "b", "c"))
    known = [same, FunctionCounts("b", "0x2", (30, 10)), FunctionCounts("d", "0x1", (1,))]
    assert transfer.same_flow_percent([same, changed, gone], known) == pytest.approx(100 / 3)


def test_the_page_of_transferred_profiles_has_each_case_under_its_name(transfer: Any) -> None:
    cell = transfer.cells(transfer.CHOICES)[0]
    kernel = {"kernel": "6.12", "compiler": "22", "arch": "x86-64", "config": "slim"}
    names = ["syscall", "overhead", "pipe128", "pipe512", "proc", "file512", "file1024", "file8k"]
    left = {
        image: {
            metric: {case: 100 - gain - names.index(case) for case in sorted(names)}
            for metric in ("kernel_instructions", "kernel_taken_branches")
        }
        for image, gain in (("own", 20), ("foreign", 10))
    }
    outcome = {
        "from": kernel,
        "to": kernel,
        "changed_percent": 1.5,
        "matched_percent": 98.5,
        "left_percent": left,
    }
    lines = transfer.page([cell], {cell.name: outcome}).splitlines()
    head = lines.index("| cell | " + " | ".join(names) + " |")
    values = " | ".join(f"{20 + n}.00 / {10 + n}.00" for n in range(len(names)))
    assert lines[head + 2] == f"| `{cell.name}` | {values} |"
    assert any("| 1.5 | 98.5 | 23.53 | 13.53 | 57 |" in line for line in lines)


@pytest.mark.parametrize("earlier", [False, True])
def test_gains_of_the_earlier_default_say_so(
    monkeypatch: pytest.MonkeyPatch, earlier: bool
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("leave_one_out")
    result = json.loads(module.RESULT.with_suffix(".json").read_text())
    result.pop("unexecuted", None)
    page = module.page(result if earlier else {**result, "unexecuted": "unknown"})
    assert ("counted as cold" in page) is earlier


def test_the_page_of_times_states_the_share_of_a_point_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("run_time")
    cold = module.Cost(wall=600.0, cpu=900.0, compiled=400, path=590.0, steps={})
    plain = module.Cost(wall=200.0, cpu=300.0, compiled=1000, path=200.0, steps={})
    again = module.Cost(wall=400.0, cpu=800.0, compiled=1190, path=390.0, steps={})
    machine = {"cores": 2, "processor": "a processor"}
    timed = {"plain": plain, "quickstart": cold + plain, "release": again}
    results = {name: module.summary(cost, plain) for name, cost in timed.items()}
    page = " ".join(module.page({"machine": machine, "runs": results}).split())
    assert "takes 50 % of the seconds" in page
    assert "67 % of its CPU seconds and 85 % of its compiled files" in page
    del results["release"]
    assert "Another point release" not in module.page({"machine": machine, "runs": results})


def test_no_native_figure_below_the_movement_of_the_control_is_a_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("measure.native_page")
    found = json.loads((BENCH.parent / "docs" / "benchmarks" / "native.json").read_text())
    found = {"profiles": found["profiles"]}
    rows = found["profiles"]["images"]["own"]["cases"]
    cases = rows.keys() - {"checksum"}
    for case in cases:
        rows[case].update(percent=1.3, low=1.2, high=1.4, verdict="fewer")
    assert f"{len(cases)} of {len(cases)} cases take fewer" in " ".join(module.page(found).split())
    rows["checksum"].update(percent=-1.5, low=-1.6, high=-1.4, verdict="more")
    page = " ".join(module.page(found).split())
    assert "it moves by up to 1.5 %" in page
    assert f"0 of {len(cases)} cases take fewer" in page


def test_native_cycles_of_samples_have_a_table_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("measure.native_page")
    found = json.loads((BENCH.parent / "docs" / "benchmarks" / "native.json").read_text())
    images = found["profiles"]["images"]
    sampled = {**found["profiles"], "images": {"own": images["own"], "sampled": images["other"]}}
    page = module.page({"profiles": found["profiles"], "sampled": sampled})
    assert "| profile of the load | profile of kbench | same, %" in page
    assert "| profile of the load | samples of the load | same, %" in page.partition("AutoFDO")[2]


def test_goals_of_suites_are_judged_by_the_stored_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    suites = importlib.import_module("suites")
    result: dict[str, Any] = {
        "suites": {
            "mepof": {
                "proc": {"kernel_instructions": 25.0},
                "syscall": {"kernel_instructions": 0.0},
                "pipe128": {"guest_time": -50.0},
            }
        }
    }

    def judged() -> list[tuple[str, str, bool]]:
        found = suites.judged("bench/suites/general.g4", result)
        return [(goal.title, goal.found, goal.met) for goal in found]

    assert judged() == [("geomean 8", "10.56", True), ("worst -1", "0.00, `mepof/syscall`", True)]
    result["suites"]["mepof"]["syscall"]["kernel_instructions"] = -20.0
    assert judged() == [
        ("geomean 8", "0.00", False),
        ("worst -1", "-25.00, `mepof/syscall`", False),
    ]


@pytest.mark.parametrize(
    ("status", "goals", "ends"),
    [
        (0, [], None),
        (1, [{"met": True, "value": 9.0}, {"met": False, "value": -2.5}], None),
        (1, [{"met": False, "value": None}], 1),  # the image did not boot
        (1, [], 1),
        (1, None, 1),
        (2, [{"met": False, "value": -2.5}], 2),
    ],
)
def test_a_run_that_misses_a_goal_keeps_its_report(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    status: int,
    goals: list[dict[str, Any]] | None,
    ends: int | None,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    program = importlib.import_module("measure.program")
    written = None if goals is None else {"goals": goals}
    (tmp_path / "report.json").write_text('{"goals": [{"met": false, "value": 1}]}')  # an old one

    def run(command: list[str | Path], check: bool) -> subprocess.CompletedProcess[bytes]:
        if written is not None:
            (tmp_path / "report.json").write_text(json.dumps(written))
        return subprocess.CompletedProcess(command, status)

    monkeypatch.setattr(subprocess, "run", run)
    if ends is None:
        assert program.ran(Path("p.g4"), tmp_path, None) == written
    else:
        with pytest.raises(SystemExit) as ended:
            program.ran(Path("p.g4"), tmp_path, None)
        assert ended.value.code == ends


@pytest.mark.parametrize(
    ("program", "tools", "expected"),
    [
        ("build /src.", {"clang": "clang version 22.1.8", "gcc": "gcc (Debian) 12.2.0"}, "22.1.8"),
        ("set toolchain gcc-12.", {"gcc": "gcc (Debian) 13.1.0, gcc-12 (Debian) 12.2.0"}, "12.2.0"),
        ("set toolchain gcc:./gcc.", {"gcc": "gcc (GCC) 14.1.0"}, "14.1.0"),
    ],
)
def test_a_table_names_the_compiler_of_its_program(
    monkeypatch: pytest.MonkeyPatch, program: str, tools: dict[str, str], expected: str
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    published = importlib.import_module("published")
    name = "unixbench-1"
    table = published.TABLES[name]
    row = {"image": "pgo", "metric": table.metric, "case": "pipe-1"}
    report = {
        "provenance": {"kernel": "Linux 6.12", "program": program, "tools": tools},
        "images": [{"name": n, "size_bytes": {"text": 10}} for n in ("plain", "pgo")],
        "baseline": "plain",
        "cases": [{**row, "value": 9, "baseline": 10}],
    }
    result = published.summary(report, table)
    assert result["compiler"].endswith(expected)
    assert f"Linux 6.12, {result['compiler']};" in published.page({name: result})


@pytest.mark.parametrize("name", ["algorithms", "by_hand", "published", "selective"])
def test_a_page_is_what_its_results_say(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    made = importlib.import_module(name)
    results = json.loads(made.RESULT.with_suffix(".json").read_text())
    assert made.page(results) == made.RESULT.with_suffix(".md").read_text()


LISTING = """
ffffffff81000000 <memset>:
ffffffff81000000:      \trep\t\tstosb\t%al, %es:(%rdi)
ffffffff81000002:      \tretq

ffffffff81000010 <first>:
ffffffff81000010:      \ttestq\t%rdi, %rdi
ffffffff81000013:      \tje\t0xffffffff8100001a <first+0xa>
ffffffff81000015:      \tcallq\t0xffffffff81000000 <memset>
ffffffff8100001a:      \tretq

ffffffff81000020 <both>:
ffffffff81000020:      \tcallq\t0xffffffff81000000 <memset>
ffffffff81000025:      \ttestq\t%rdi, %rdi
ffffffff81000028:      \tjne\t0xffffffff81000030 <both+0x10>
ffffffff8100002a:      \tretq
ffffffff81000030:      \tjmp\t0xffffffff81000010 <first>

ffffffff81000040 <dies>:
ffffffff81000040:      \tje\t0xffffffff81000048 <dies+0x8>
ffffffff81000042:      \trep\t\tstosq\t%rax, %es:(%rdi)
ffffffff81000045:      \tretq
ffffffff81000048:      \tcallq\t0xffffffff81000060 <__stack_chk_fail>

ffffffff81000050 <loops>:
ffffffff81000050:      \tjmp\t0xffffffff81000050 <loops>
ffffffff81000052:      \trep\t\tstosq\t%rax, %es:(%rdi)

ffffffff81000060 <tail>:
ffffffff81000060:      \tjmpq\t*0x8(%rdi)

ffffffff81000070 <twice>:
ffffffff81000070:      \tretq

ffffffff81000080 <twice>:
ffffffff81000080:      \tretq
"""


def test_a_function_clears_before_its_exits_if_no_path_avoids_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    zeroing = importlib.import_module("zeroing")
    functions = zeroing.functions_in(LISTING)
    assert {name: zeroing.clears(code) for name, code in functions.items()} == {
        "memset": True,
        "first": False,
        "both": True,
        "dies": True,
        "loops": False,
        "tail": False,
    }
    assert zeroing.functions_in("") == {}
