"""``profile-convert`` and ``profile-merge``, with scripted algorithms."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mepof.algorithm.protocol import ALGORITHMS, Conversion
from mepof.errors import InputError, WorkError
from mepof.kernel.description import Origin
from mepof.kernel.objects import OBJECTS
from mepof.kernel.selection import SelectedObject, Selection
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.profile.artifact import ProfileDescription, profile_files
from mepof.profile.quality import Quality
from mepof.scenario.collection import Collection
from mepof.steps import profile_convert, profile_merge
from mepof.toolchain.protocol import Tools

from .room import BUILD, ORIGIN, Room, describe, register

COLLECTION = Collection.of("trav", [], [], 1, "6.12.7")


class FakeAlgorithm:
    profile_names = ("kernel.profdata",)
    same_build = False

    def __init__(self, quality: Quality) -> None:
        self.quality = quality
        self.conversions: list[Conversion] = []
        self.weighted: list[Any] = []

    def convert(self, conversion: Conversion) -> Quality:
        self.conversions.append(conversion)
        (conversion.output / self.profile_names[0]).write_text("converted")
        return self.quality

    def executed(self, profile: Path, tools: Tools) -> frozenset[str]:
        assert (profile / self.profile_names[0]).read_text() == "converted"
        return frozenset({"../init/a.c;hidden", "stop", "absent"})

    def merge(self, weighted: list[Any], output: Path, *rest: object) -> Quality:
        self.weighted = weighted
        (output / self.profile_names[0]).write_text("merged")
        return self.quality


DEFINED = {"kernel/b.o": ["stop"], "kernel/c.o": ["never"], "init/a.o": ["start"]}
GOOD = Quality(1000, 500, 50.0, "good")
POOR = Quality(1000, 5, 0.5, "poor", ("only 5 functions ran",))
#: As `perf script -F ip,brstack` prints them.
BRANCHES = "ffffffff81000010 0xffffffff81000023/0xffffffff81000010/P/-/-/0\n"
TOOLS: dict[str, Json] = {"algorithm": "pgo", "toolchain": "clang"}


def known(directory: Path) -> tuple[str, Quality, Origin | None]:
    found = ProfileDescription.read(directory)
    return found.algorithm, found.quality, found.build


def merged_by(weights: Iterable[str]) -> dict[str, Json]:
    """The parameters of a merge with these weights."""
    return {**TOOLS, "profiles": [{"weight": weight} for weight in weights]}


@pytest.fixture
def algorithm(monkeypatch: pytest.MonkeyPatch, toolchain: None) -> FakeAlgorithm:
    made = FakeAlgorithm(GOOD)
    register(monkeypatch, ALGORITHMS, made)
    return made


def test_a_converted_profile_keeps_the_description_of_its_run_and_build(
    room: Room, algorithm: FakeAlgorithm
) -> None:
    raw = room.directory("raw", raw1="y", raw0="x")
    COLLECTION.write(raw)
    build = room.directory("kernel", **{OBJECTS: json.dumps(DEFINED)})
    BUILD.write(build)
    context = room.context("profile-convert", TOOLS, raw=raw, kernel=build)
    profile_convert.BODY.run(context)
    assert known(context.output) == ("pgo", GOOD, ORIGIN)
    found = ProfileDescription.read(context.output).executed_objects
    assert found == ("init/a.o", "kernel/b.o")
    assert Collection.read(context.output) == COLLECTION
    assert profile_files(context.output) == (context.output / "kernel.profdata",)
    (conversion,) = algorithm.conversions
    assert conversion.raw == (raw / "raw0", raw / "raw1")
    assert conversion.build == build


def test_functions_of_files_that_were_not_instrumented_count_as_functions_that_never_ran(
    room: Room, algorithm: FakeAlgorithm
) -> None:
    algorithm.quality = Quality(2, 1, 50.0, "good")
    listed = {"kernel.executed_objects": "kernel/b.o\n", OBJECTS: json.dumps(DEFINED)}
    build = room.root / "kernel"
    build.mkdir()
    for name, text in listed.items():
        (build / name).write_text(text)
    BUILD.write(build)
    context = room.context("profile-convert", TOOLS, raw=room.directory("raw"), kernel=build)
    profile_convert.BODY.run(context)
    assert known(context.output)[1] == Quality(3, 1, 33.33, "good")


def test_a_profile_of_a_part_that_was_chosen_is_rated_by_that_part(
    room: Room, algorithm: FakeAlgorithm
) -> None:
    algorithm.quality = Quality(2, 1, 50.0, "good")
    build = room.directory("kernel", **{OBJECTS: json.dumps(DEFINED)})
    (build / "kernel.executed_objects").write_text("kernel/b.o\n")
    BUILD.write(build)
    chosen = Selection(
        objects=(SelectedObject(name="kernel/b.o", text=5, weight=9),),
        files=3,
        text=50,
        weight=10,
        plain_image=100,
        image=110,
    )
    chosen.write(build)
    context = room.context("profile-convert", TOOLS, raw=room.directory("raw"), kernel=build)
    profile_convert.BODY.run(context)
    assert known(context.output)[1] == algorithm.quality
    # For the report.
    assert Selection.read(context.output) == chosen
    assert profile_files(context.output) == (context.output / "kernel.profdata",)


@pytest.mark.parametrize("several", [False, True])
def test_given_branch_traces_are_used_unchanged(
    room: Room, algorithm: FakeAlgorithm, several: bool
) -> None:
    trace = room.root / "perf.data"
    hosts = room.directory("hosts", a="PERFILE2", b="PERFILE2")
    trace.write_text("PERFILE2")
    build = room.directory("kernel", **{OBJECTS: json.dumps(DEFINED)})
    BUILD.write(build)
    given = hosts if several else trace
    context = room.context("profile-convert", TOOLS, raw=given, kernel=build)
    made: dict[str, Input] = {"raw": HostInput(str(given)), "kernel": StepInput("build")}
    context = replace(context, step=replace(context.step, inputs=made))
    profile_convert.BODY.run(context)
    assert algorithm.conversions[0].raw == ((hosts / "a", hosts / "b") if several else (trace,))
    assert Collection.find(context.output) is None


def test_a_given_branch_trace_may_be_compressed(
    room: Room, algorithm: FakeAlgorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = room.root / "perf.data.gz"
    trace.write_bytes(gzip.compress(b"PERFILE2"))
    build = room.directory("kernel", **{OBJECTS: json.dumps(DEFINED)})
    BUILD.write(build)
    context = room.context("profile-convert", TOOLS, raw=trace, kernel=build)
    made: dict[str, Input] = {"raw": HostInput(str(trace)), "kernel": StepInput("build")}
    context = replace(context, step=replace(context.step, inputs=made))
    read: list[bytes] = []
    convert = algorithm.convert

    def reading(conversion: Conversion) -> Quality:
        read.extend(path.read_bytes() for path in conversion.raw)
        return convert(conversion)

    monkeypatch.setattr(algorithm, "convert", reading)
    profile_convert.BODY.run(context)
    assert read == [b"PERFILE2"]


@pytest.mark.parametrize("same_build", [False, True])
def test_a_profile_of_a_stack_includes_the_profiles_below(
    room: Room, algorithm: FakeAlgorithm, same_build: bool
) -> None:
    below = room.directory("below", kernel_profdata="below")
    describe(below, "pgo", replace(GOOD, exact=True))
    raw = room.directory("raw", raw0="x")
    build = room.directory("kernel", **{OBJECTS: json.dumps(DEFINED)})
    BUILD.write(build)
    seen: list[str] = []

    class Upper(FakeAlgorithm):
        profile_names = ("kernel.upper",)

        def convert(self, conversion: Conversion) -> Quality:
            seen.extend(path.name for path in conversion.output.iterdir())
            return super().convert(conversion)

    upper = Upper(GOOD)
    upper.same_build = same_build
    with pytest.MonkeyPatch.context() as patch:
        stack = {"pgo": algorithm, "propeller": upper}
        get = type(ALGORITHMS).get
        patch.setattr(
            type(ALGORITHMS),
            "get",
            lambda self, name: stack[name] if self is ALGORITHMS else get(self, name),
        )
        params: dict[str, Json] = {**TOOLS, "algorithm": "propeller", "below": ["pgo"]}
        context = room.context("profile-convert", params, raw=raw, kernel=build, profile=below)
        profile_convert.BODY.run(context)
    assert seen == ["kernel.profdata"]
    assert (context.output / "kernel.profdata").read_text() == "below"
    assert (context.output / "kernel.upper").read_text() == "converted"
    # A sampled layout on top leaves the flags of the build that was profiled as they were.
    assert known(context.output) == ("pgo+propeller", replace(GOOD, exact=same_build), ORIGIN)


def test_a_poor_profile_is_refused(room: Room, algorithm: FakeAlgorithm) -> None:
    algorithm.quality = POOR
    raw = room.directory("raw", raw0="x")
    build = room.directory("kernel", **{OBJECTS: json.dumps(DEFINED)})
    BUILD.write(build)
    context = room.context("profile-convert", TOOLS, raw=raw, kernel=build)
    with pytest.raises(WorkError, match="the profile is poor: only 5 functions ran") as raised:
        profile_convert.BODY.run(context)
    assert "more actions" in (raised.value.remedy or "")


def test_given_branches_have_to_be_of_the_kernel_that_the_program_builds(
    room: Room, algorithm: FakeAlgorithm
) -> None:
    algorithm.quality = POOR
    build = room.directory("kernel", **{OBJECTS: json.dumps(DEFINED)})
    BUILD.write(build)
    trace = room.root / "perf.data"
    trace.write_text("PERFILE2")
    context = room.context("profile-convert", TOOLS, raw=trace, kernel=build)
    made: dict[str, Input] = {"raw": HostInput(str(trace)), "kernel": StepInput("build")}
    context = replace(context, step=replace(context.step, inputs=made))
    with pytest.raises(WorkError, match="the profile is poor") as raised:
        profile_convert.BODY.run(context)
    remedy = raised.value.remedy or ""
    assert str(build) in remedy and "set scout off" in remedy


def test_the_engine_is_part_of_the_identity_of_a_conversion(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Input] = {"raw": StepInput("collect"), "kernel": StepInput("build")}
    identity = profile_convert.BODY.identity(Step("x", "profile-convert", TOOLS, made))
    assert len(identity["engine"]) == 64
    assert "clang" in identity


def test_a_merge_pairs_profiles_with_their_weights(room: Room, algorithm: FakeAlgorithm) -> None:
    given = {f"profiles__{n}__profile": room.root / f"{n}.profdata" for n in range(12)}
    for number, path in enumerate(given.values()):
        path.write_text(f"profile{number}")
    context = room.context("profile-merge", merged_by(f"{n + 1}/2" for n in range(12)), **given)
    profile_merge.BODY.run(context)
    merged = [
        ((directory / "kernel.profdata").read_text(), str(2 * weight))
        for directory, weight in algorithm.weighted
    ]
    assert merged == [(f"profile{n}", str(n + 1)) for n in range(12)]
    assert known(context.output) == ("pgo", GOOD, None)


def test_a_merged_profile_belongs_to_a_build_only_if_all_profiles_do(
    room: Room, algorithm: FakeAlgorithm
) -> None:
    given = [room.directory(f"given{n}", kernel_profdata="x") for n in range(2)]
    other = ORIGIN.model_copy(update={"source": "other"})
    for second, build in ((ORIGIN, ORIGIN), (other, None)):
        describe(given[0], "pgo", GOOD, ORIGIN)
        describe(given[1], "pgo", GOOD, second)
        inputs = {f"profiles__{n}__profile": path for n, path in enumerate(given)}
        context = room.context("profile-merge", merged_by("11"), **inputs)
        profile_merge.BODY.run(context)
        assert known(context.output)[2] == build


@pytest.mark.parametrize("exact", [(True,), (True, True), (True, False), (True, None)])
def test_a_merged_profile_is_exact_if_all_profiles_are(
    room: Room, algorithm: FakeAlgorithm, exact: tuple[bool | None, ...]
) -> None:
    inputs = {}
    for number, one in enumerate(exact):
        given = room.directory(f"given{number}", kernel_profdata="x")
        if one is not None:
            describe(given, "pgo", replace(GOOD, exact=one), ORIGIN)
        inputs[f"profiles__{number}__profile"] = given
    context = room.context("profile-merge", merged_by("1" * len(exact)), **inputs)
    profile_merge.BODY.run(context)
    assert known(context.output)[1].exact == all(exact)


@pytest.mark.parametrize("algorithm_name", ["autofdo+propeller", "propeller"])
def test_profiles_of_a_layout_are_not_merged(
    room: Room, toolchain: None, algorithm_name: str
) -> None:
    given = room.directory("given")
    for name in ALGORITHMS.get("propeller").profile_names:
        (given / name).write_text("v1\n")
    params = {**merged_by("1"), "algorithm": algorithm_name}
    with pytest.raises(InputError, match="cannot be merged"):
        profile_merge.BODY.run(room.context("profile-merge", params, profiles__0__profile=given))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "does not exist"),
        (b"", "this is empty"),
        (b"opt /src autofdo rand kbench.\n", "not a branch trace"),
        (b"\x7fELF\x02\x01\x01\0", "not a branch trace"),
    ],
)
def test_a_file_that_is_not_a_branch_trace_is_refused_before_anything_is_built(
    tmp_path: Path, content: bytes | None, what: str
) -> None:
    given = tmp_path / "mine.data"
    if content is not None:
        given.write_bytes(content)
    made: dict[str, Input] = {"raw": HostInput(str(given)), "kernel": StepInput("build")}
    step = Step("x", "profile-convert", {**TOOLS, "algorithm": "autofdo"}, made)
    with pytest.raises(InputError) as caught:
        profile_convert.BODY.check(step)
    assert what in str(caught.value)
    given.write_text(BRANCHES)
    profile_convert.BODY.check(step)


def test_the_traces_of_several_machines_are_a_directory(tmp_path: Path) -> None:
    given = tmp_path / "hosts"
    made: dict[str, Input] = {"raw": HostInput(str(given)), "kernel": StepInput("build")}
    step = Step("x", "profile-convert", {**TOOLS, "algorithm": "autofdo"}, made)
    given.mkdir()
    with pytest.raises(InputError, match="hosts is empty"):
        profile_convert.BODY.check(step)
    for name in ("a.txt", "b.txt"):
        (given / name).write_text(BRANCHES)
    profile_convert.BODY.check(step)
    (given / "notes").write_text("about the hosts")
    with pytest.raises(InputError, match="notes: not a branch trace"):
        profile_convert.BODY.check(step)
