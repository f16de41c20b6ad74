"""Suites and their cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof import arch
from mepof.described import read_described
from mepof.errors import InputError
from mepof.kernel import kconfig
from mepof.suite.cases import (
    Case,
    Suite,
    cases_digest,
    cases_of,
    guest_additions,
    load_suite,
    metric_names,
    suite_names,
    suites_of,
)


def test_the_default_suite_has_the_five_metrics_in_eight_cases() -> None:
    assert {case.metric for case in cases_of(())} == {
        "file",
        "overhead",
        "pipe",
        "proc",
        "syscall",
    }
    assert len(cases_of(())) == 8
    assert [case.name for case in cases_of(["proc", "syscall"])] == ["syscall", "proc"]
    with pytest.raises(InputError, match="unknown suite `none`"):
        load_suite("none")


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_has_cases_a_config_and_metrics_that_no_other_has(name: str) -> None:
    suite = load_suite(name)
    assert suite.config in kconfig.names()
    assert set(suite.architectures) <= set(arch.names())
    assert len({case.name for case in suite.cases}) == len(suite.cases) > 0
    others = {case.metric for other in suite_names() if other != name for case in cases(other)}
    assert not others & {case.metric for case in suite.cases}
    assert all(case.baseline is None or case.baseline > 0 for case in suite.cases)


def cases(name: str) -> tuple[Case, ...]:
    return load_suite(name).cases


def test_a_metric_adds_the_programs_of_its_suite() -> None:
    added = guest_additions()
    assert set(added) == set(metric_names())
    assert (added["pipe"], added["ipc"]) == ((), ("ipc",))
    assert [suite.name for suite in suites_of(cases_of(["ipc", "pipe"]))] == ["ipc", "mepof"]


def test_a_digest_depends_on_what_runs_alone() -> None:
    case = Case(suite="s", name="c", metric="m", argv=("/bin/true",))
    digest = cases_digest([case])
    for same in ({"control": True}, {"baseline": 3.0}, {"prints": ("latency",)}):
        assert cases_digest([case.model_copy(update=same)]) == digest
    for other in ({"suite": "t"}, {"name": "d"}, {"metric": "n"}, {"argv": ("/bin/false",)}):
        assert cases_digest([case.model_copy(update=other)]) != digest
    assert cases_digest([case, case]) != digest


def test_a_suite_knows_its_name_and_its_cases_know_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "mine"\n[[case]]\nname = "a"\nmetric = "m"\nargv = ["/a"]\n')
    suite = read_described(path, Suite, "suite", {"name": "mine"})
    assert suite.cases == (Case(suite="mine", name="a", metric="m", argv=("/a",)),)
    assert (suite.memory, suite.config, suite.programs) == (512, "slim", None)


def test_two_cases_cannot_have_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    case = '[[case]]\nname = "a"\nmetric = "m"\nargv = ["/a"]\n'
    path.write_text(f'title = "mine"\n{case}{case}')
    with pytest.raises(InputError, match=":2: `case`: `a` occurs twice"):
        read_described(path, Suite, "suite", {"name": "mine"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("memory = 0", "2: `memory` must be greater than 0"),
        ('[[case]]\nname = "a b"', "3: `case[0].name` must consist of lower case letters"),
        ("[[case]]\nargv = []", "3: `case[0].argv` must have at least 1 item"),
    ],
)
def test_a_wrong_value_is_an_error_with_its_line(tmp_path: Path, wrong: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    rest = {"name": '"a"', "metric": '"m"', "argv": '["/a"]'}
    case = "".join(f"{k} = {v}\n" for k, v in rest.items() if f"\n{k} = " not in wrong)
    head = "" if "[[case]]" in wrong else "[[case]]\n"
    path.write_text(f'title = "mine"\n{wrong}\n{head}{case}')
    with pytest.raises(InputError) as raised:
        read_described(path, Suite, "suite", {"name": "mine"})
    assert str(raised.value).startswith(f"{path}:{message}")


COMPARISON = """[[comparison]]
title = "a against b"
cases = ["a", "b"]
by = "ratio"
metrics = ["cycles"]
"""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (('"a", "b"', '"a", "c"'), "`a against b` compares `c`, which is not a case"),
        (('"a", "b"', '"a", "a"'), "`a` occurs twice"),
        (('"a", "b"', '"a"'), "`comparison[0].cases"),
        (("ratio", "quotient"), "`comparison[0].by` must be 'ratio', 'difference' or 'per-event'"),
        (('["cycles"]', "[]"), "`comparison[0].metrics` must have at least 1 item"),
        (('"cycles"', '"kernel_cycles"'), "`comparison[0].metrics[0]` must be 'instructions'"),
        (('"ratio"', '"per-event"'), "`comparison[0]`: `event` belongs to `per-event`"),
        (('"ratio"', '"ratio"\nevent = "cycles"'), "`comparison[0]`: `event` belongs to"),
        (('"ratio"', '"per-event"\nevent = "cycles"'), "`comparison[0]`: `cycles` costs one of"),
    ],
)
def test_a_wrong_comparison_is_an_error_with_its_line(
    tmp_path: Path, wrong: tuple[str, str], message: str
) -> None:
    path = tmp_path / "mine.toml"
    cases = "".join(f'[[case]]\nname = "{n}"\nmetric = "m"\nargv = ["/a"]\n' for n in "ab")
    path.write_text(f'title = "mine"\n{cases}{COMPARISON}')
    (found,) = read_described(path, Suite, "suite", {"name": "mine"}).comparisons
    assert (found.cases, found.by, found.metrics) == (("a", "b"), "ratio", ("cycles",))
    path.write_text(f'title = "mine"\n{cases}{COMPARISON.replace(*wrong)}')
    with pytest.raises(InputError) as raised:
        read_described(path, Suite, "suite", {"name": "mine"})
    where, _, what = str(raised.value).partition(": ")
    assert int(where.rpartition(":")[2]) >= 10
    assert message in what
