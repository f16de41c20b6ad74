"""Programs that name what the user's own files describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.executor.programs import WrongProgram, compiled
from mepof.g4 import Source
from mepof.plan.model import HostInput, Input, Plan
from mepof.spec.report import Report

SHOP = """
title = "My shop"
[[action]]
name = "import"
argv = ["/bin/kbench"]
seconds = 5
[[action]]
name = "two"
argv = ["/bin/kbench"]
seconds = 5
"""
OPT = "opt debian:linux-source-6.12 pgo rand kbench;./shop/app.toml O2.\n"


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    path = tmp_path / "shop/app.toml"
    path.write_text(SHOP)
    return path


def plan(text: str) -> Plan:
    return compiled(Source("p.g4", text))


def refused(text: str) -> str:
    with pytest.raises(WrongProgram) as caught:
        plan(text)
    return caught.value.message


@pytest.mark.parametrize("name", ["import", "my-shop/import", "my-shop"])
def test_training_can_leave_out_actions_of_the_users(name: str) -> None:
    assert plan(f"set without {name}.\n{OPT}").step("opt/collect").params["without"] == [name]


def test_training_can_leave_out_an_app_of_the_users_with_its_files() -> None:
    made = plan(f"set without ./shop/app.toml.\n{OPT}")
    assert HostInput("./shop/app.toml") in plan(OPT).step("opt/collect").inputs.values()
    for name in ("opt/scout", "opt/collect"):
        assert made.step(name).params["apps"] == [{"name": "kbench"}]


@pytest.mark.parametrize("other", ["shop/app.toml", "./shop/./app.toml", ".//shop/app.toml"])
def test_an_app_is_the_same_however_its_path_is_written(other: str) -> None:
    # Each statement in turn has the other spelling; the plan has the first one throughout.
    text = [
        "set without ./shop/app.toml,pipe128.",
        OPT.strip(),
        "goal geomean:./shop/app.toml 5.",
        "eval plain;opt ./shop/app.toml;pipe.",
    ]
    expected = plan("\n".join(text))
    for number in range(1, len(text)):
        changed = [*text]
        changed[number] = text[number].replace("./shop/app.toml", other)
        made = plan("\n".join(changed))
        assert made.steps[:-1] == expected.steps[:-1]
        report, same = made.step("report"), expected.step("report")
        assert report.inputs == same.inputs
        assert report.params == {**same.params, "program": "\n".join(changed)}
    changed = [text[0].replace("./shop/app.toml", other), *text[1:]]
    assert plan("\n".join(changed)).step("opt/collect").params["apps"] == [{"name": "kbench"}]
    message = refused(f"{OPT}eval plain;opt ./shop/app.toml;{other}.")
    assert "`./shop/app.toml` is given twice" in message


def test_an_unknown_action_is_reported_with_the_users_own_words() -> None:
    message = refused(f"set without imports.\n{OPT}")
    assert "p.g4:1:13: error: unknown app, case or action `imports`" in message
    assert "help: did you mean `import`?" in message


def test_a_wrong_description_is_reported_beside_the_words_that_it_lacks(shop: Path) -> None:
    shop.write_text(SHOP.replace("seconds", "second"))
    message = refused(f"set without import.\n{OPT}")
    assert "p.g4:1:13: error: unknown app, case or action `import`" in message
    assert "p.g4:2:46: error: shop/app.toml:6: unknown key `second`" in message


def test_no_description_is_read_where_all_words_are_known(shop: Path) -> None:
    shop.unlink()
    assert plan(f"set without pipe128.\n{OPT}eval plain;opt ./shop/app.toml.").results


@pytest.mark.parametrize("first", ["import", "my-shop/import"])
def test_actions_of_the_users_are_compared_as_cases(first: str) -> None:
    made = plan(f"{OPT}compare {first} two ratio.\neval plain;opt ./shop/app.toml.")
    step = made.step("report")
    (pair,) = Report[Input].of(step, step.inputs).pairs
    assert (pair.first, pair.second) == (("my-shop", "import"), ("my-shop", "two"))


def test_a_comparison_of_actions_that_nothing_measures_names_their_description() -> None:
    message = refused(f"{OPT}compare import pipe-4 ratio.\neval plain;opt ipc.")
    assert "an `eval` below does not name `./shop/app.toml`" in message
    message = refused(f"{OPT}compare imports two ratio.\neval plain;opt ./shop/app.toml.")
    assert "p.g4:2:9: error: unknown case `imports`" in message
    assert "help: did you mean `import`?" in message


def test_an_action_that_is_called_as_a_case_of_a_suite_is_named_with_its_app(shop: Path) -> None:
    shop.write_text(SHOP.replace('"two"', '"pipe-4"'))
    program = f"{OPT}compare my-shop/import {{}} ratio.\neval plain;opt ./shop/app.toml;ipc."
    message = refused(program.format("pipe-4"))
    assert "`pipe-4` is a case of `ipc` and `my-shop`" in message
    plan(program.format("my-shop/pipe-4"))
