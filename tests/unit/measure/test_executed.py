"""The functions that measured cases execute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.traced_kernel import SOURCE as TRACED
from writers.traced_kernel import link_kernel

from mepof.errors import WorkError
from mepof.kernel.objects import OBJECTS
from mepof.measure.executed import CaseFunctions, executed_functions, located_functions
from mepof.pmu.locations import (
    CaseLocations,
    Function,
    FunctionEvents,
    Heatmap,
    Locations,
    RawLocations,
    _Line,
    functions_of,
)

SOURCE = f"""{TRACED}
__attribute__((section(".noinstr.text"))) int entered(int n) {{ return n + 3; }}
int assembled(int n) {{ return n + 4; }}
"""


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A kernel of which one function must not be instrumented, and one is not of C."""
    link_kernel(tmp_path, source=SOURCE)
    entered = named(tmp_path, "entered")
    limits = {"start": entered.address, "end": entered.address + entered.size}
    symbols = [f"-Wl,--defsym=__noinstr_text_{end}={at:#x}" for end, at in limits.items()]
    link_kernel(tmp_path, *symbols, source=SOURCE)
    defined = {"a.o": ["hot", "warm", "entered", "start_kernel"]}
    (tmp_path / OBJECTS).write_text(json.dumps(defined))
    return tmp_path


def named(build: Path, name: str) -> Function:
    (found,) = (each for each in functions_of(build) if each.name == name)
    return found


def raw(build: Path, **executions: int) -> RawLocations:
    """Blocks of two instructions at the starts of functions, and one in a module."""
    starts = {name: named(build, name).address for name in executions}
    sites = [(at, at + 4, 2, executions[name]) for name, at in starts.items()]
    return RawLocations((), (_Line(sites=((1 << 63, (1 << 63) + 4, 9, 9), *sites), slices=()),))


def test_only_code_that_a_profile_can_count_is_kept(build: Path) -> None:
    found = executed_functions(
        [("s", "c")], raw(build, hot=3, warm=1, entered=50, assembled=70), build
    )
    assert found == (CaseFunctions(suite="s", case="c", functions={"hot": 6, "warm": 2}),)


def test_a_function_that_lto_renames_is_kept(build: Path) -> None:
    renamed = 'int warm(int n) __asm__("warm.llvm.45");'
    link_kernel(build, source=f"{renamed}{SOURCE}")
    found = executed_functions([("s", "c")], raw(build, **{"warm.llvm.45": 4}), build)
    assert found[0].functions == {"warm.llvm.45": 8}


def test_cases_and_intervals_must_agree(build: Path) -> None:
    with pytest.raises(WorkError, match="2 cases ran but the executed code of 1 is known"):
        executed_functions([("s", "c"), ("s", "d")], raw(build, hot=1), build)


def test_a_modelled_core_tells_the_same(build: Path) -> None:
    events = [
        FunctionEvents(
            name=name, address=named(build, name).address, instructions=n, cycles=1, events={}
        )
        for name, n in (("hot", 5), ("entered", 7), ("assembled", 9))
    ]
    located = Locations(
        core="zen4",
        cases=(
            CaseLocations(
                suite="s",
                case="c",
                functions=tuple(events),
                heatmap=Heatmap(page_bytes=4096, pages=(), rows=()),
            ),
        ),
    )
    (found,) = located_functions(located, build)
    assert found.functions == {"hot": 5}
