"""``profile-convert`` and ``profile-merge``, with algorithms that do as the test says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mepof.algorithm.protocol import ALGORITHMS, Conversion
from mepof.errors import InputError, WorkError
from mepof.plan.model import Json, Step
from mepof.profile.artifact import build_of, collection, describe, description, profile_files
from mepof.profile.quality import Quality
from mepof.steps import profile_convert, profile_merge

from .room import Room, register

ORIGIN = {"source": "linux", "config": "c", "compiler": "22.1.8", "flags": "f"}
BUILD_JSON = json.dumps({"origin": ORIGIN})


class FakeAlgorithm:
    profile_names = ("kernel.profdata",)

    def __init__(self, quality: Quality) -> None:
        self.quality = quality
        self.conversions: list[Conversion] = []
        self.weighted: list[Any] = []

    def convert(self, conversion: Conversion) -> Quality:
        self.conversions.append(conversion)
        (conversion.output / self.profile_names[0]).write_text("converted")
        return self.quality

    def merge(self, weighted: list[Any], output: Path, *rest: object) -> Quality:
        self.weighted = weighted
        (output / self.profile_names[0]).write_text("merged")
        return self.quality


GOOD = Quality(1000, 500, 50.0, "good")
POOR = Quality(1000, 5, 0.5, "poor", ("only 5 functions ran",))
TOOLS: dict[str, Json] = {"algorithm": "pgo", "toolchain": "clang"}


@pytest.fixture
def algorithm(monkeypatch: pytest.MonkeyPatch, toolchain: None) -> FakeAlgorithm:
    made = FakeAlgorithm(GOOD)
    register(monkeypatch, ALGORITHMS, made)
    return made


def test_a_converted_profile_keeps_what_is_known_of_its_run_and_its_build(
    room: Room, algorithm: FakeAlgorithm
) -> None:
    raw = room.directory("raw", raw1="y", raw0="x", collection_json='{"scenario": "trav"}')
    build = room.directory("kernel", build_json=BUILD_JSON)
    context = room.context("profile-convert", TOOLS, raw=raw, kernel=build)
    profile_convert.BODY.run(context)
    assert description(context.output) == ("pgo", GOOD)
    assert build_of(context.output) == ORIGIN
    assert collection(context.output) == {"scenario": "trav"}
    assert profile_files(context.output) == (context.output / "kernel.profdata",)
    (conversion,) = algorithm.conversions
    assert conversion.raw == (raw / "raw0", raw / "raw1")
    assert conversion.build == build


def test_a_recording_of_the_users_is_taken_as_it_is(room: Room, algorithm: FakeAlgorithm) -> None:
    recording = room.root / "perf.data"
    recording.write_text("PERFILE2")
    build = room.directory("kernel", build_json=BUILD_JSON)
    context = room.context("profile-convert", TOOLS, raw=recording, kernel=build)
    profile_convert.BODY.run(context)
    assert algorithm.conversions[0].raw == (recording,)
    assert collection(context.output) is None


def test_a_profile_of_a_stack_has_those_below_with_it(room: Room, algorithm: FakeAlgorithm) -> None:
    below = room.directory("below", kernel_profdata="below")
    describe(below, "pgo", replace(GOOD, exact=True))
    raw = room.directory("raw", raw0="x")
    build = room.directory("kernel", build_json=BUILD_JSON)
    seen: list[str] = []

    class Upper(FakeAlgorithm):
        profile_names = ("kernel.upper",)

        def convert(self, conversion: Conversion) -> Quality:
            seen.extend(path.name for path in conversion.output.iterdir())
            return super().convert(conversion)

    upper = Upper(GOOD)
    with pytest.MonkeyPatch.context() as patch:
        known = {"pgo": algorithm, "propeller": upper}
        get = type(ALGORITHMS).get
        patch.setattr(
            type(ALGORITHMS),
            "get",
            lambda self, name: known[name] if self is ALGORITHMS else get(self, name),
        )
        params: dict[str, Json] = {**TOOLS, "algorithm": "propeller", "below": ["pgo"]}
        context = room.context("profile-convert", params, raw=raw, kernel=build, profile=below)
        profile_convert.BODY.run(context)
    assert seen == ["kernel.profdata"]
    assert (context.output / "kernel.profdata").read_text() == "below"
    assert (context.output / "kernel.upper").read_text() == "converted"
    assert description(context.output) == ("pgo+propeller", GOOD)


def test_a_poor_profile_is_refused(room: Room, algorithm: FakeAlgorithm) -> None:
    algorithm.quality = POOR
    raw = room.directory("raw", raw0="x", collection_json="{}")
    build = room.directory("kernel", build_json=BUILD_JSON)
    with pytest.raises(WorkError, match="the profile is poor: only 5 functions ran"):
        profile_convert.BODY.run(room.context("profile-convert", TOOLS, raw=raw, kernel=build))


def test_a_conversion_knows_the_engine_that_makes_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = profile_convert.BODY.identity(Step("x", "profile-convert", TOOLS))
    assert len(identity["engine"]) == 64
    assert "clang" in identity


def test_a_merge_pairs_profiles_with_their_weights(room: Room, algorithm: FakeAlgorithm) -> None:
    given = {f"profile{n}": room.root / f"{n}.profdata" for n in range(12)}
    for name, path in given.items():
        path.write_text(name)
    weights: list[Json] = [f"{n + 1}/2" for n in range(12)]
    context = room.context("profile-merge", {**TOOLS, "weights": weights}, **given)
    profile_merge.BODY.run(context)
    merged = [
        ((directory / "kernel.profdata").read_text(), str(2 * weight))
        for directory, weight in algorithm.weighted
    ]
    assert merged == [(f"profile{n}", str(n + 1)) for n in range(12)]
    assert description(context.output) == ("pgo", GOOD)
    assert build_of(context.output) is None


def test_a_merged_profile_is_of_a_build_only_if_all_are(
    room: Room, algorithm: FakeAlgorithm
) -> None:
    given = [room.directory(f"given{n}", kernel_profdata="x") for n in range(2)]
    params: dict[str, Json] = {**TOOLS, "weights": ["1", "1"]}
    for second, build in ((ORIGIN, ORIGIN), ({**ORIGIN, "source": "other"}, None)):
        describe(given[0], "pgo", GOOD, ORIGIN)
        describe(given[1], "pgo", GOOD, second)
        context = room.context("profile-merge", params, profile0=given[0], profile1=given[1])
        profile_merge.BODY.run(context)
        assert build_of(context.output) == build


@pytest.mark.parametrize("algorithm_name", ["autofdo+propeller", "propeller"])
def test_profiles_of_a_layout_are_not_merged(
    room: Room, toolchain: None, algorithm_name: str
) -> None:
    given = room.directory("given")
    for name in ALGORITHMS.get("propeller").profile_names:
        (given / name).write_text("v1\n")
    params: dict[str, Json] = {**TOOLS, "algorithm": algorithm_name, "weights": ["1"]}
    with pytest.raises(InputError, match="cannot be merged"):
        profile_merge.BODY.run(room.context("profile-merge", params, profile0=given))
