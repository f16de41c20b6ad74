from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, InputError
from mepof.plan.changes import changes
from mepof.plan.explain import Explanation, explain
from mepof.plan.fingerprint import Ingredients
from mepof.plan.model import HostInput, Json, Plan, Step, StepInput
from mepof.plan.store import Store, remove_tree

from .toy_bodies import DIAMOND, Toy, plan_of, run, toy


def explained(root: Path, plan: Plan, *bodies: Toy) -> dict[str, Explanation]:
    found = explain(plan, Store(root / "store"), {body.kind: body for body in bodies})
    assert [e.step for e in found] == [step.id for step in plan.steps]
    return {e.step: e for e in found}


def states(root: Path, plan: Plan, *bodies: Toy) -> dict[str, str]:
    return {name: e.state for name, e in explained(root, plan, *bodies).items()}


def test_in_a_new_program_the_first_step_runs_and_the_others_depend_on_it(tmp_path: Path) -> None:
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
    assert explained(tmp_path, plan, Toy())["left"].reasons == ("n from 1 to 5",)


def test_every_change_is_named(tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_text("one")
    step = Step("one", "toy", {"O": "2", "gone": 1}, {"config": HostInput(str(source))})
    run(tmp_path, plan_of(step), Toy(tools={"clang": "19", "lld": "19"}))
    source.write_text("two")
    step = replace(step, params={"O": "3", "new": ["x"]})
    body = Toy(tools={"clang": "22", "lld": "19"}, version=2)
    found = explained(tmp_path, plan_of(step), body)["one"]
    assert found.reasons == (
        "this version of mepof does it differently",
        "O from 2 to 3",
        "gone removed (was 1)",
        "new added: x",
        "clang from 19 to 22",
        f"{source} changed",
    )
    assert found.details[:-1] == (
        "version of toy from none to 2",
        "O from 2 to 3",
        "gone removed (was 1)",
        'new added: ["x"]',
        "clang from 19 to 22",
    )
    assert re.fullmatch(
        rf"{re.escape(str(source))} from \w*:?[0-9a-f]{{64}} to \w*:?[0-9a-f]{{64}}",
        found.details[-1],
    )


def test_changes_are_relative_to_the_latest_run(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        run(tmp_path, plan_of(toy("one", n=number)), Toy())
    found = explained(tmp_path, plan_of(toy("one", n=4)), Toy())
    assert found["one"].reasons == ("n from 3 to 4",)


BEFORE = Ingredients("toy", None, {}, {}, {})


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({"metrics": ["file"]}, {"metrics": ["pages", "file", "threads"]}, "added: pages, threads"),
        ({"metrics": ["file", "pipe"]}, {"metrics": ["pipe"]}, "removed: file"),
        ({"metrics": ["file"]}, {"metrics": ["pipe"]}, "metrics added: pipe; removed: file"),
        ({"metrics": ["a", "b"]}, {"metrics": ["b", "a"]}, "metrics in another order"),
        ({"seed": 1}, {"seed": 2}, "seed from 1 to 2"),
        ({"core": None}, {"core": "skylake"}, "core from none to skylake"),
        ({}, {"core": "skylake"}, "core added: skylake"),
        ({"record": {"depth": 16}}, {"record": {"depth": 32}}, "record depth from 16 to 32"),
        ({"instrumented": {"algorithm": "pgo"}}, {}, "removed (was algorithm pgo)"),
        ({"uses": []}, {"uses": ["pgo"]}, "uses added: pgo"),
        ({"uses": []}, {}, "uses removed (was none)"),
        ({"pin": {"sha256": "a" * 64, "version": "6"}}, {}, "pin removed (was version 6)"),
        ({"cases": "0" * 64}, {"cases": "1" * 64}, "cases changed"),
        ({"cases": "0" * 64}, {}, "cases removed"),
        ({"apps": ["0" * 64]}, {"apps": ["1" * 64]}, "apps added; removed"),
        ({"program": "x" * 99}, {"program": "y" * 99}, "program changed"),
    ],
)
def test_a_change_is_reported_in_the_users_terms(
    old: dict[str, Json], new: dict[str, Json], text: str
) -> None:
    (change,) = changes(replace(BEFORE, params=old), replace(BEFORE, params=new))
    assert change.text.endswith(text)
    assert "0" * 64 not in change.text


def test_versions_of_tools_are_shown_and_digests_are_not() -> None:
    old = {"clang": "22.1.7", "overlays": "0" * 64, "flags": "0" * 64, "lld": "22"}
    new = {"clang": "22.1.8", "overlays": "1" * 64, "native": "2" * 64, "lld": "22"}
    versions, ours = changes(replace(BEFORE, tools=old), replace(BEFORE, tools=new))
    assert versions.text == versions.detail == "clang from 22.1.7 to 22.1.8"
    assert ours.text == "flags, native, overlays changed"
    assert f"overlays from {'0' * 64} to {'1' * 64}" in ours.detail


def test_a_path_is_named_as_it_is_and_a_key_in_words() -> None:
    path = "/lib/x86_64-linux-gnu/libc.so.6"
    old, new = ({path: digit * 64, "guest_tools": digit * 64} for digit in "01")
    (change,) = changes(replace(BEFORE, tools=old), replace(BEFORE, tools=new))
    assert change.text == f"{path}, guest tools changed"


def test_directories_and_links_are_named_together_with_files() -> None:
    old = {"/etc/shop": "directory 755 0:0", "/srv/page": f"file 644 0:0 {'0' * 64}"}
    new = {"/bin/sh": "link dash", "/srv/page": f"file 644 0:0 {'1' * 64}", "package dash": "0.5"}
    package, files = changes(replace(BEFORE, tools=old), replace(BEFORE, tools=new))
    assert package.text == "package dash added: 0.5"
    assert files.text == "/bin/sh, /etc/shop, /srv/page changed"
    assert "/etc/shop removed (was directory 755 0:0)" in files.detail


def test_of_many_changes_the_first_are_named_and_the_rest_counted() -> None:
    files = {f"/usr/lib/{number:04}": str(number) * 64 for number in range(1, 1000)}
    packages = {f"package-{number}": "1.0" for number in range(20)}
    found = changes(BEFORE, replace(BEFORE, tools={**files, **packages}))
    assert max(len(change.text) for change in found) < 200
    *named, rest = found
    assert named[0].text == "package-0 added: 1.0"
    assert rest.text == "15 more changes"
    assert "/usr/lib/0999" in rest.detail
    (digests,) = changes(BEFORE, replace(BEFORE, tools=files))
    assert digests.text.endswith("and 993 more changed")


def test_inputs_are_named_by_path_or_step() -> None:
    old, new = (replace(BEFORE, inputs={"source": digest * 64}) for digest in "ab")
    (change,) = changes(old, new, {"source": StepInput("opt/build")})
    assert change.text == "the result of opt/build changed"
    assert "a" * 64 in change.detail and "b" * 64 in change.detail
    (change,) = changes(BEFORE, new, {"source": HostInput("/linux")})
    assert change.text == "/linux added"
    (change,) = changes(old, BEFORE)
    assert change.text == "input source removed"


def test_the_estimate_is_how_long_the_step_took_before(tmp_path: Path) -> None:
    new = explained(tmp_path, DIAMOND, Toy())
    assert [e.seconds for e in new.values()] == [None] * 4
    result = run(tmp_path, DIAMOND, Toy())
    plan = changed(DIAMOND, "left", n=5)
    found = explained(tmp_path, plan, Toy())
    assert found["first"].seconds == 0
    assert found["left"].seconds == result.steps["left"].seconds
    assert found["last"].seconds == result.steps["last"].seconds


def test_a_new_step_is_estimated_from_the_latest_of_its_kind(tmp_path: Path) -> None:
    made = run(tmp_path, plan_of(toy("one"), toy("two", "one", n=2)), Toy()).steps
    found = explained(tmp_path, plan_of(toy("other", n=9)), Toy())
    assert found["other"].seconds == made["two"].seconds


def test_a_missing_artifact_is_a_reason(tmp_path: Path) -> None:
    made = run(tmp_path, DIAMOND, Toy()).steps["first"]
    remove_tree(made.path)
    found = explained(tmp_path, DIAMOND, Toy())
    assert found["first"].reasons == ("its result in the store is missing or damaged",)
    assert found["left"].state == "depends"


def test_a_volatile_step_always_runs(tmp_path: Path) -> None:
    plan = plan_of(toy("a"), toy("report", "a", kind="report"))
    bodies = Toy(), Toy(kind="report", volatile=True)
    run(tmp_path, plan, *bodies)
    found = explained(tmp_path, plan, *bodies)
    assert (found["a"].state, found["report"].state) == ("cached", "runs")
    assert found["report"].reasons == ("it runs every time",)


def test_a_tool_that_only_a_later_step_needs_is_missed(tmp_path: Path) -> None:
    class Without(Toy):
        def identity(self, step: Step) -> Mapping[str, str]:
            raise EnvironmentLack("lz4 is not installed", "apt-get install lz4")

    plan = plan_of(toy("first"), toy("later", "first", kind="without"))
    with pytest.raises(EnvironmentLack, match="lz4 is not installed"):
        explained(tmp_path, plan, Toy(), Without(kind="without"))


def test_a_missing_input_is_an_input_error(tmp_path: Path) -> None:
    plan = plan_of(Step("one", "toy", {}, {"file": HostInput(str(tmp_path / "none"))}))
    with pytest.raises(InputError, match="does not exist"):
        explained(tmp_path, plan, Toy())
