from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from report.samples import ICOUNT, KVM, OPERATIONS, measurement

from mepof.errors import InputError
from mepof.measure.measurement import (
    Boot,
    Evaluation,
    Measurement,
    Modelled,
    ModelledSide,
    read_evaluation,
)
from mepof.measure.metrics import METRICS
from mepof.pmu.events import EVENTS


def test_an_evaluation_can_be_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.json"
    made = Evaluation(
        images=(measurement(),),
        same_build=measurement(seed=9),
        relinked=(measurement("again"),),
        precision_percent=0.5,
        ended="the budget was spent",
    )
    path.write_text(made.model_dump_json())
    assert read_evaluation(path) == made


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("", "is not an evaluation"), ("[1]", "is not an evaluation"), ("{}", "images")],
)
def test_a_file_that_is_not_an_evaluation_is_one_line(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(content)
    with pytest.raises(InputError, match=complaint) as raised:
        read_evaluation(path)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_evaluation(tmp_path / "none.json")


def test_two_boots_cannot_have_the_same_seed() -> None:
    data = measurement().model_dump()
    data["boots"] = [data["boots"][0]] * 2
    with pytest.raises(ValidationError, match="same seed"):
        Measurement.model_validate(data)


def test_a_case_is_measured_once_in_a_boot() -> None:
    case = measurement().boots[0].cases[0]
    with pytest.raises(ValidationError, match="measured twice"):
        Boot(seed=1, cases=(case, case))


def test_costs_are_per_operation() -> None:
    case = measurement(costs={"syscall": 300.0}).boots[0].cases[0]
    assert case.operations == OPERATIONS
    costs = {m.name: m.cost(case) for m in METRICS}
    assert {name: cost for name, cost in costs.items() if cost is not None} == {
        "kernel_instructions": 300.0,
        "kernel_taken_branches": 37.5,
        "user_instructions": 40.0,
        "guest_time": 340.0,
    }


def test_time_is_modelled_under_icount_and_counts_never_are() -> None:
    kinds = {m.name: (m.kind(ICOUNT), m.kind(KVM)) for m in METRICS}
    assert kinds["guest_time"] == ("modelled", "timed")
    assert kinds["kernel_instructions"] == kinds["user_instructions"] == ("counted", "counted")
    # On hardware a PMU counts what an emulator models.
    assert kinds["kernel_cycles"] == kinds["kernel_l1i_misses"] == ("modelled", "counted")


def test_modelled_costs_are_sums_per_operation() -> None:
    events = dict.fromkeys(EVENTS, 0) | {"l2_code_misses": OPERATIONS, "dtlb_walks": 5}
    events["l2_data_misses"] = 2 * OPERATIONS
    side = ModelledSide(events=events, cycles={"instructions": 3.0 * OPERATIONS, "l2": 0.5})
    case = measurement().boots[0].cases[0]
    assert all(metric.cost(case) is None for metric in METRICS if metric.may_be_none)
    with_core = case.model_copy(update={"modelled": Modelled(core="x", kernel=side, user=side)})
    costs = {m.name: m.cost(with_core) for m in METRICS}
    assert costs["kernel_l2_misses"] == 3.0
    assert costs["kernel_cycles"] == pytest.approx(3.0 + 0.5 / OPERATIONS)
    assert costs["kernel_tlb_walks"] == 5 / OPERATIONS
    assert costs["kernel_btb_misses"] == 0
