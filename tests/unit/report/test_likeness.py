"""How like its training a case is."""

from __future__ import annotations

import pytest

from mepof.report.likeness import Likeness, counted_percents
from mepof.report.model import CaseRow, TrainingRow

from .samples import golden_report

CASE = ("s", "c")


@pytest.mark.parametrize(
    ("percent", "kind"),
    [(100.0, "trained"), (90.0, "trained"), (89.9, "near"), (60.0, "near"), (59.9, "far")],
)
@pytest.mark.parametrize("ran", [None, frozenset(), frozenset({CASE})])
def test_what_a_case_executes_decides_whatever_it_is_called(
    percent: float, kind: str, ran: frozenset[tuple[str, str]] | None
) -> None:
    assert Likeness(ran, {CASE: percent}).kind(CASE) == kind


def test_names_decide_where_it_is_unknown_what_a_case_executes() -> None:
    known = Likeness(frozenset({CASE}), {("s", "other"): 10.0})
    assert known.kind(CASE) == "trained"
    assert known.kind(("s", "third")) == "untrained"
    assert Likeness().kind(CASE) is None


def test_instructions_in_functions_with_a_count_are_trained() -> None:
    executed = {
        CASE: {"ran": 60, "helper.isra.0": 15, "cold": 25},
        ("s", "far"): {"cold": 7},
        ("s", "inlined"): {"gone": 3},
        ("s", "none"): {},
    }
    counted = frozenset({"ran", "fs/a.c;helper"})
    found = counted_percents(executed, counted, {"ran", "helper", "cold.llvm.7"})
    assert found == {CASE: 75.0, ("s", "far"): 0.0}


def test_code_that_the_image_inlines_everywhere_is_left_out() -> None:
    executed = {CASE: {"ran": 50, "inlined": 50}}
    assert counted_percents(executed, {"ran"}, {"ran"}) == {CASE: 100.0}
    assert counted_percents(executed, {"ran"}, {"ran", "inlined"}) == {CASE: 50.0}


@pytest.mark.parametrize("counted", ["__x64_sys_getpid", "kernel/sys.c;__do_sys_getpid"])
def test_a_system_call_without_arguments_is_one_function_of_two_names(counted: str) -> None:
    executed = {CASE: {"__x64_sys_getpid": 9, "cold": 1}}
    defined = {"__x64_sys_getpid", "cold"}
    assert counted_percents(executed, {counted}, defined) == {CASE: 90.0}


def test_nothing_is_known_of_a_profile_with_hashes_for_names() -> None:
    assert counted_percents({CASE: {"ran": 1}}, {"6699318081062747564"}, {"ran"}) == {}


def test_earlier_reports_knew_the_names_alone() -> None:
    made = golden_report()
    case, mean = made.cases[0].model_dump(), made.by_training[0].model_dump()
    for row in (case, mean):
        del row["training"]
    del case["trained_percent"]
    for trained, kind in ((True, "trained"), (False, "untrained")):
        assert CaseRow.model_validate({**case, "trained": trained}).training == kind
        assert TrainingRow.model_validate({**mean, "trained": trained}).training == kind
    assert CaseRow.model_validate({**case, "trained": None}).training is None
