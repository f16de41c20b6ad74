from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.plan.explain import Explanation, explain
from mepof.plan.model import HostInput, Plan, Step
from mepof.plan.store import Store, remove_tree

from .toy_bodies import DIAMOND, Toy, plan_of, run, toy


def explained(root: Path, plan: Plan, *bodies: Toy) -> dict[str, Explanation]:
    found = explain(plan, Store(root / "store"), {body.kind: body for body in bodies})
    assert [e.step for e in found] == [step.id for step in plan.steps]
    return {e.step: e for e in found}


def states(root: Path, plan: Plan, *bodies: Toy) -> dict[str, str]:
    return {name: e.state for name, e in explained(root, plan, *bodies).items()}


def test_a_new_program_runs_its_first_step_and_the_rest_depends(tmp_path: Path) -> None:
    found = explained(tmp_path, DIAMOND, Toy())
    assert found["first"].state == "runs"
    assert found["first"].reasons == ("never made in this store",)
    assert found["last"].state == "depends"
    assert found["last"].reasons == ("left will run", "right will run")
    assert found["last"].fingerprint is None


def test_it_runs_nothing_and_writes_nothing(tmp_path: Path) -> None:
    body = Toy()
    (tmp_path / "file").write_text("x")
    plan = plan_of(Step("one", "toy", {}, {"file": HostInput(str(tmp_path / "file"))}))
    explained(tmp_path, plan, body)
    assert body.ran == []
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_finished_program_is_cached_with_the_fingerprints_of_its_run(tmp_path: Path) -> None:
    result = run(tmp_path, DIAMOND, Toy())
    found = explained(tmp_path, DIAMOND, Toy())
    assert {n: e.fingerprint for n, e in found.items()} == {
        n: s.fingerprint for n, s in result.steps.items()
    }
    assert {e.state for e in found.values()} == {"cached"}
    assert all(e.reasons == () for e in found.values())


def changed(plan: Plan, identifier: str, **params: int) -> Plan:
    steps = tuple(replace(s, params=params) if s.id == identifier else s for s in plan.steps)
    return replace(plan, steps=steps)


def test_only_what_comes_after_a_change_runs(tmp_path: Path) -> None:
    run(tmp_path, DIAMOND, Toy())
    plan = changed(DIAMOND, "left", n=5)
    assert states(tmp_path, plan, Toy()) == {
        "first": "cached",
        "left": "runs",
        "right": "cached",
        "last": "depends",
    }
    assert explained(tmp_path, plan, Toy())["left"].reasons == ("param n from 1 to 5",)


def test_every_change_is_named(tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_text("one")
    step = Step("one", "toy", {"O": "2", "gone": 1}, {"config": HostInput(str(source))})
    run(tmp_path, plan_of(step), Toy(tools={"clang": "19", "lld": "19"}))
    source.write_text("two")
    step = replace(step, params={"O": "3", "new": ["x"]})
    body = Toy(tools={"clang": "22", "lld": "19"}, version=2)
    assert explained(tmp_path, plan_of(step), body)["one"].reasons == (
        "version of toy from None to 2",
        "param O from 2 to 3",
        "param gone is gone (was 1)",
        'param new is new (["x"])',
        "tool clang from 19 to 22",
        "input config changed",
    )


def test_it_is_the_latest_run_that_a_change_is_told_against(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        run(tmp_path, plan_of(toy("one", n=number)), Toy())
    found = explained(tmp_path, plan_of(toy("one", n=4)), Toy())
    assert found["one"].reasons == ("param n from 3 to 4",)


def test_a_lost_artifact_is_named(tmp_path: Path) -> None:
    made = run(tmp_path, DIAMOND, Toy()).steps["first"]
    remove_tree(made.path)
    found = explained(tmp_path, DIAMOND, Toy())
    assert found["first"].reasons == ("its result in the store is gone or damaged",)
    assert found["left"].state == "depends"


def test_a_volatile_step_always_runs(tmp_path: Path) -> None:
    plan = plan_of(toy("a"), toy("report", "a", kind="report"))
    bodies = Toy(), Toy(kind="report", volatile=True)
    run(tmp_path, plan, *bodies)
    found = explained(tmp_path, plan, *bodies)
    assert (found["a"].state, found["report"].state) == ("cached", "runs")
    assert found["report"].reasons == ("it runs every time",)


def test_a_missing_input_is_the_users_error(tmp_path: Path) -> None:
    plan = plan_of(Step("one", "toy", {}, {"file": HostInput(str(tmp_path / "none"))}))
    with pytest.raises(InputError, match="does not exist"):
        explained(tmp_path, plan, Toy())
