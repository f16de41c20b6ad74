"""How the step ``report`` finds out which cases are trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.traced_kernel import link_kernel

from mepof.algorithm.protocol import ALGORITHMS
from mepof.errors import EnvironmentLack
from mepof.events import StepNote
from mepof.kernel.objects import OBJECTS
from mepof.measure.executed import CaseFunctions, ExecutedFunctions
from mepof.plan.body import StepContext
from mepof.pmu.locations import CaseLocations, FunctionEvents, Heatmap, Locations, functions_of
from mepof.report.likeness import Likeness
from mepof.spec.report import Report, ReportedImage
from mepof.steps import report

from .room import Room, register

DEFINED = json.dumps({"a.o": ["hot", "warm", "start_kernel"]})
EXECUTED = ExecutedFunctions(
    cases=(
        CaseFunctions(suite="mepof", case="syscall", functions={"hot": 95, "warm": 5}),
        CaseFunctions(suite="unixbench", case="syscall-1", functions={"hot": 70, "warm": 30}),
    )
)
PERCENT = {("mepof", "syscall"): 95.0, ("unixbench", "syscall-1"): 70.0}
COLLECTION = {
    "scenario": "trav",
    "apps": ["kbench"],
    "actions": ["syscall"],
    "coverage": {"actions": 1, "ran": 1, "never": []},
    "seed": 9,
    "release": "6.12.1",
}


class Counting:
    """An algorithm whose profile says which functions ran, or nothing of them."""

    profile_names = ("kernel.profdata",)

    def __init__(self) -> None:
        self.counted: frozenset[str] | None = frozenset({"kernel/a.c;hot"})
        self.read: list[Path] = []

    def executed(self, profile: Path, tools: object) -> frozenset[str] | None:
        self.read.append(profile)
        return self.counted


@pytest.fixture
def algorithm(monkeypatch: pytest.MonkeyPatch) -> Counting:
    made = Counting()
    register(monkeypatch, ALGORITHMS, made)
    monkeypatch.setattr(report, "select", lambda name: name)
    return made


@pytest.fixture
def context(room: Room) -> StepContext:
    return room.context("report", {})


@pytest.fixture
def asked(room: Room) -> Report[Path]:
    """A plain kernel, and one with a profile of a training that ran `syscall`."""
    build = room.directory("build", **{OBJECTS: DEFINED})
    profile = room.directory("profile", kernel_profdata="x", collection_json=json.dumps(COLLECTION))
    executed = room.directory("executed")
    EXECUTED.write(executed)
    return Report[Path](
        program="",
        seed=1,
        evaluation=room.directory("measured"),
        images=(
            ReportedImage[Path](name="plain", build=build),
            ReportedImage[Path](
                name="opt",
                build=build,
                trained=(0,),
                profile=profile,
                uses=("pgo",),
                toolchain="clang",
            ),
        ),
        profiles=(),
        collections=(profile,),
        executed=executed,
    )


def with_opt(asked: Report[Path], **changes: object) -> Report[Path]:
    plain, opt = asked.images
    return asked.model_copy(update={"images": (plain, opt.model_copy(update=changes))})


NAMES = frozenset({("mepof", "syscall")})


def test_a_case_is_like_the_training_by_the_functions_that_the_profile_counts(
    asked: Report[Path], context: StepContext, algorithm: Counting
) -> None:
    (known,) = report._likeness(asked, context).items()
    assert known == ("opt", Likeness(NAMES, PERCENT))
    assert algorithm.read == [asked.images[1].profile]


def test_a_foreign_profile_has_counts_but_no_training(
    asked: Report[Path], context: StepContext, algorithm: Counting, tmp_path: Path
) -> None:
    (tmp_path / "old.profdata").write_text("x")
    foreign = with_opt(asked, trained=None, profile=tmp_path / "old.profdata")
    assert report._likeness(foreign, context) == {"opt": Likeness(None, PERCENT)}
    assert algorithm.read[0] == next(context.work.glob("profile-*"))


def test_a_layout_alone_leaves_the_names(
    asked: Report[Path], context: StepContext, algorithm: Counting
) -> None:
    algorithm.counted = None
    assert report._likeness(asked, context) == {"opt": Likeness(NAMES, {})}


def test_without_its_toolchain_a_profile_leaves_the_names(
    asked: Report[Path],
    context: StepContext,
    algorithm: Counting,
    room: Room,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> None:
        raise EnvironmentLack(f"{name} is not installed", "apt-get install clang")

    monkeypatch.setattr(report, "select", missing)
    assert report._likeness(asked, context) == {"opt": Likeness(NAMES, {})}
    (note,) = (event.text for event in room.events if isinstance(event, StepNote))
    assert "what the profile of opt counts: clang is not installed" in note


@pytest.mark.parametrize("cases", [None, ()])
def test_names_are_left_where_nothing_says_what_the_cases_execute(
    asked: Report[Path], context: StepContext, algorithm: Counting, cases: tuple[()] | None
) -> None:
    if cases is None:
        asked = asked.model_copy(update={"executed": None})
    else:
        assert asked.executed is not None
        ExecutedFunctions(cases=cases).write(asked.executed)
    assert report._likeness(asked, context) == {"opt": Likeness(NAMES, {})}


def test_images_without_a_profile_have_no_training(
    asked: Report[Path], context: StepContext, algorithm: Counting
) -> None:
    none = with_opt(asked, trained=None, profile=None, uses=())
    assert report._likeness(none, context) == {}


def test_a_modelled_core_tells_what_the_cases_execute(
    asked: Report[Path], context: StepContext, algorithm: Counting
) -> None:
    build = asked.images[0].build
    assert build is not None
    link_kernel(build)
    functions = tuple(
        FunctionEvents(name=f.name, address=f.address, instructions=n, cycles=1, events={})
        for f in functions_of(build)
        if (n := {"hot": 95, "warm": 5}.get(f.name))
    )
    heatmap = Heatmap(page_bytes=4096, pages=(), rows=())
    case = CaseLocations(suite="mepof", case="syscall", functions=functions, heatmap=heatmap)
    text = Locations(core="zen4", cases=(case,)).to_json()
    (asked.evaluation / "places0.json").write_text(text)
    located = asked.model_copy(update={"executed": None})
    known = report._likeness(located, context)["opt"]
    assert known.percent == {("mepof", "syscall"): 95.0}
    bare = located.images[0].model_copy(update={"build": None})
    image = located.model_copy(update={"images": (bare, located.images[1])})
    assert report._likeness(image, context)["opt"].percent == {}
