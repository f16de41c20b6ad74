"""``profile-renew``: what a profile of two rounds says about itself, with real profiles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mepof import _engine
from mepof.algorithm.protocol import ALGORITHMS
from mepof.errors import InputError
from mepof.events import StepNote
from mepof.kernel.description import Origin
from mepof.plan.model import HostInput, Input, Json, Step, StepInput
from mepof.process import run
from mepof.profile.artifact import ProfileDescription
from mepof.profile.counts import read_counts
from mepof.profile.quality import Quality
from mepof.scenario.collection import Collection
from mepof.steps import profile_renew
from mepof.toolchain.named import select

from .room import ORIGIN, Room, describe

EXACT = Quality(2, 2, 100.0, "good", exact=True)
PARAMS: dict[str, Json] = {"algorithm": "autofdo", "toolchain": "clang", "decay": "1/2"}


def profile(
    room: Room, name: str, text: str, build: Origin | None = ORIGIN, quality: Quality = EXACT
) -> Path:
    directory = room.directory(name)
    source = room.root / f"{name}.txt"
    source.write_text(text)
    _engine.merge([(source, 1)], directory / "kernel.afdo", "autofdo")
    (directory / "kernel.afdo.provenance.json").unlink()
    describe(directory, "autofdo", quality, build)
    return directory


def renewed(room: Room, new: Path, old: Path) -> tuple[str, ProfileDescription]:
    """The renewed profile as text, and what is known about it."""
    context = room.context("profile-renew", PARAMS, new=new, old=old)
    profile_renew.BODY.run(context)
    text = room.root / "out.txt"
    _engine.merge([(context.output / "kernel.afdo", 1)], text, "autofdo-text")
    return text.read_text(), ProfileDescription.read(context.output)


def test_a_round_counts_fully_and_what_was_known_by_its_decay(room: Room, toolchain: None) -> None:
    new = profile(room, "new", "f:800:8\n 1: 8\n 2: 0\n")
    old = profile(room, "old", "f:100:10\n 1: 10\n 3: 7\ngone:100:10\n 1: 10\n")
    other_build = ORIGIN.model_copy(update={"flags": "other"})
    describe(old, "autofdo", EXACT, other_build)
    text, known = renewed(room, new, old)
    # Half of 800 is twice the old total of 200. Line 3 has no instruction any more: it keeps 7/10
    # of line 1, which is 5, beside its old count.
    assert text == "f:1000:28\n 1: 28\n 2: 0\n 3: 19\ngone:200:20\n 1: 20\n"
    # It is as exact as its rounds, and used as a profile of the newer build.
    assert (known.algorithm, known.build, known.quality.exact) == ("autofdo", ORIGIN, True)


def test_a_sampled_round_makes_a_sampled_profile(room: Room, toolchain: None) -> None:
    sampled = replace(EXACT, exact=False)
    new = profile(room, "new", "f:8:8\n 1: 8\n", quality=sampled)
    _, known = renewed(room, new, profile(room, "old", "f:8:8\n 1: 8\n"))
    assert not known.quality.exact


@pytest.mark.parametrize("other", [None, ORIGIN.model_copy(update={"source": "linux-2"})])
def test_lines_of_another_source_are_replaced(
    room: Room, toolchain: None, other: Origin | None
) -> None:
    new = profile(room, "new", "f:100:8\n 1: 8\n")
    old = profile(room, "old", "f:100:10\n 9: 10\ngone:100:10\n 1: 10\n", other)
    text, known = renewed(room, new, old)
    assert text == "f:100:8\n 1: 8\ngone:25:2\n 1: 2\n"
    # The compiler matches it with the source that it builds.
    assert known.build is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"config": "other"}, "in another configuration"),
        ({"compiler": "21", "config": "other"}, "by another compiler"),
        ({"source": "linux-2", "config": "other"}, None),
        ({"flags": "other"}, None),
    ],
)
def test_a_base_of_another_configuration_is_marked(
    room: Room, toolchain: None, changed: dict[str, str], said: str | None
) -> None:
    new = profile(room, "new", "f:8:8\n 1: 8\n")
    old = profile(room, "old", "f:8:8\n 1: 8\n", ORIGIN.model_copy(update=changed))
    context = room.context("profile-renew", PARAMS, new=new, old=old)
    profile_renew.BODY.run(context)
    notes = [event.text for event in room.events if isinstance(event, StepNote)]
    marks = [text for text in notes if "compare the image" in text]
    expected = f"the old profile is of a build {said}: compare the image with `plain`"
    assert marks == ([expected] if said else [])


def test_the_training_of_the_new_round_is_kept(room: Room, toolchain: None) -> None:
    new = profile(room, "new", "f:8:8\n 1: 8\n")
    collection = Collection.of("trav", [], [], 1, "6.12.7")
    collection.write(new)
    context = room.context(
        "profile-renew", PARAMS, new=new, old=profile(room, "old", "f:8:8\n 1: 8\n")
    )
    profile_renew.BODY.run(context)
    assert Collection.read(context.output) == collection


def test_a_file_of_the_user_is_an_old_profile_of_an_unknown_build(
    room: Room, toolchain: None
) -> None:
    new = profile(room, "new", "f:100:8\n 1: 8\n")
    file = profile(room, "old", "f:100:10\n 9: 10\n") / "kernel.afdo"
    text, known = renewed(room, new, file)
    assert (text, known.build) == ("f:100:8\n 1: 8\n", None)


def counts(room: Room, name: str, **functions: tuple[int, int]) -> Path:
    """A profile of counters: a hash and a count for each function."""
    text = "".join(f"{f}\n{flow}\n1\n{count}\n\n" for f, (flow, count) in functions.items())
    directory = room.directory(name)
    (room.root / "text").write_text(f":ir\n{text}")
    merger = select("clang").tool("profile-merger")
    run([merger, "merge", room.root / "text", "-o", directory / "kernel.profdata"])
    describe(directory, "pgo", EXACT, ORIGIN.model_copy(update={"source": name}))
    return directory


def test_a_kernel_that_was_instrumented_in_part_keeps_the_other_counts(room: Room) -> None:
    same = [f"same{number}" for number in range(10)]
    old = counts(room, "old", **dict.fromkeys(same, (7, 100)), changed=(1, 50), other=(3, 30))
    new = counts(room, "new", **dict.fromkeys(same, (7, 200)), changed=(2, 10))
    params: dict[str, Json] = {**PARAMS, "algorithm": "pgo", "decay": "0", "part": True}
    context = room.context("profile-renew", params, new=new, old=old)
    profile_renew.BODY.run(context)
    found = {
        (f.name, int(f.hash, 16)): f.total for f in read_counts(context.output / "kernel.profdata")
    }
    again = {(name, 7): 200 for name in same}
    assert found == {**again, ("changed", 2): 10, ("other", 3): 60}
    # It is of two sources: a build says what of it still matches.
    known = ProfileDescription.read(context.output)
    assert known.build is None and known.quality.functions == 12


@pytest.mark.parametrize(
    ("algorithm", "content", "what"),
    [
        ("autofdo", b"\xfflprofi\x81", "kernel.old"),
        ("autofdo", b"opt /src pgo rand kbench.", "kernel.old"),
        ("pgo", b"f:8:8\n 1: 8\n", "is not an instrumentation profile .*llvm-profdata merge"),
        ("pgo", b"\x81rforpl\xff", "is a raw or text profile"),
        ("pgo", b"\xfflprofi\x81", "cannot read the profile"),
    ],
)
def test_a_base_of_another_kind_is_refused_before_anything_is_built(
    tmp_path: Path, algorithm: str, content: bytes, what: str
) -> None:
    given = tmp_path / "kernel.old"
    given.write_bytes(content)
    inputs: dict[str, Input] = {"new": StepInput("opt/profile"), "old": HostInput(str(given))}
    step = Step("x", "profile-renew", {**PARAMS, "algorithm": algorithm}, inputs)
    with pytest.raises(InputError, match=what):
        profile_renew.BODY.check(step)


def test_a_layout_cannot_be_renewed(room: Room, toolchain: None) -> None:
    given = room.directory("given")
    for name in ALGORITHMS.get("propeller").profile_names:
        (given / name).write_text("v1\n")
    params = {**PARAMS, "algorithm": "propeller"}
    with pytest.raises(InputError, match="cannot be merged"):
        profile_renew.BODY.run(room.context("profile-renew", params, new=given, old=given))


def test_lines_are_not_probes(tmp_path: Path) -> None:
    given = tmp_path / "kernel.old"
    inputs: dict[str, Input] = {"new": StepInput("opt/profile"), "old": HostInput(str(given))}
    texts = {"autofdo": "f:8:8\n 1: 8\n", "autofdo-probe": "f:8:8\n 1: 8\n !CFGChecksum: 7\n"}
    for algorithm, text in texts.items():
        given.write_text(text)
        for asked in texts:
            step = Step("x", "profile-renew", {**PARAMS, "algorithm": asked}, inputs)
            if asked == algorithm:
                profile_renew.BODY.check(step)
            else:
                with pytest.raises(InputError) as caught:
                    profile_renew.BODY.check(step)
                assert caught.value.remedy == f"it is one of `{algorithm}`"
