"""What a watcher does with the profiles of the release before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mepof.adapter import attempt
from mepof.kernel.selection import SelectedObject, Selection
from mepof.plan.store import Store
from mepof.process import Completed, run
from mepof.toolchain.named import select as toolchain

from .world import PROGRAM, World, events, finish


def test_a_release_that_changed_little_is_built_with_the_profile_of_the_one_before(
    world: World,
) -> None:
    world.add("v6.12.3")
    world.round()
    world.add("v6.12.4", write="return 2;")
    world.add("v6.12.5", write="return 2;")
    world.round()
    reuse = [f"v6.12.{n}/reuse{compared}" for n in (4, 5) for compared in ("", "/last-good")]
    assert world.builder.ran == ["v6.12.3/full", *reuse]
    assert list(dict.fromkeys(world.executor.built)) == ["v6.12.4", "v6.12.5"]
    program = world.builder.programs["v6.12.4/reuse"]
    profile = world.root / "out/published/stable-v6.12.3/adap.afdo"
    assert f"#tag=v6.12.4 {profile}." in program and "eval plain;adap syscall." in program
    # Drift adds up: the profile is judged against the release that was trained.
    made = world.provenance("v6.12.5")
    assert made["profile"] == "reuse" and made["changed"] == {"adap": 5.0}
    assert made["profiles"]["adap"]["release"] == "v6.12.3"
    assert made["compared_with"] == "v6.12.4"
    said = "of the profile of v6.12.3, 5.0 % of samples are in 1 functions that changed"
    assert said in made["reason"]
    published = world.root / "out/published/stable-v6.12.5/adap.afdo"
    assert published.read_text() == profile.read_text()
    what = [name for name, _ in events(world.root, "v6.12.5")]
    assert what == ["found", "begun", "decided", "built", "compared", "published"]


@pytest.mark.parametrize(
    ("share", "kind"), [(10, "reuse"), (11, "refresh"), (40, "refresh"), (41, "full")]
)
def test_the_share_of_samples_in_changed_functions_decides(
    world: World, share: int, kind: str
) -> None:
    (world.root / "update.g4").write_text(f"set scout off.\n{PROGRAM}")
    world.builder.changed = share
    world.add("v6.12.3")
    world.round()
    world.add("v6.12.4", write="return 2;")
    world.round()
    assert world.builder.ran[1] == f"v6.12.4/{kind}"
    assert world.provenance("v6.12.4")["profile"] == kind
    assert ("set scout off." in world.builder.programs[f"v6.12.4/{kind}"]) == (kind != "refresh")


def test_a_program_that_scouts_has_nothing_to_refresh(world: World) -> None:
    world.builder.changed = 20
    world.add("v6.12.3")
    world.round()
    world.add("v6.12.4", write="return 2;")
    world.round()
    made = world.provenance("v6.12.4")
    assert made["profile"] == "full" and made["changed"] == {"adap": 20.0}
    assert made["reason"].endswith("; the program scouts already")


COUNTS = ":ir\nvfs_read\n1\n1\n80\n\n../fs/write.c;vfs_write\n1\n1\n20\n"


@pytest.fixture
def counted(world: World) -> World:
    """A program whose kernel counts by itself, and a published profile of it."""
    (world.root / "update.g4").write_text(PROGRAM.replace("autofdo", "pgo"))
    text, made = world.root / "counts", world.root / "counts.profdata"
    text.write_text(COUNTS)
    run([toolchain("clang").tool("profile-merger"), "merge", text, "-o", made])
    world.builder.counts = made.read_bytes()
    world.add("v6.12.3")
    world.round()
    edit_origin(world, "v6.12.3", objects=["fs/read.o", "fs/write.o"])
    return world


def edit_origin(world: World, name: str, **what: object) -> None:
    """Change what a published release says of its profile."""
    path = world.root / f"out/published/stable-{name}/provenance.json"
    made = json.loads(path.read_text())
    made["profiles"]["adap"] |= what
    path.write_text(json.dumps(made))


def test_what_changed_is_counted_again_and_the_rest_is_kept(counted: World) -> None:
    counted.add("v6.12.4", write="return 2;")
    counted.round()
    assert counted.builder.ran[1:] == ["v6.12.4/refresh", "v6.12.4/refresh/last-good"]
    program = counted.builder.programs["v6.12.4/refresh"]
    old = counted.root / "out/published/stable-v6.12.3/adap.profdata"
    assert f"set base {old}.\n" in program and "set instrument fs/write.c.\n" in program
    assert " pgo rand kbench" in program
    made = counted.provenance("v6.12.4")
    assert made["profile"] == "refresh" and made["changed"] == {"adap": 20.0}
    assert made["reason"].endswith("; counted again: 1 files with 20.0 % of the samples")
    # From now on, the profile is of this release.
    origin = made["profiles"]["adap"]
    assert origin["release"] == "v6.12.4" and "v6.12.4" in str(origin["source"])
    assert origin["refreshed"] == {
        "files": ["fs/write.c"],
        "percent": 20.0,
        "total_percent": 20.0,
        "trained": "v6.12.3",
    }
    assert events(counted.root, "v6.12.4")[-2:] == [
        ("refreshed", "adap: 1 files with 20.0 % of the samples: fs/write.c"),
        ("published", ""),
    ]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("fails", "refresh was given up: it does not boot"),
        ("unmatched", "refresh was given up: 61.0 % of samples match"),
        ("unknown", "the files of functions with 20.0 % are unknown"),
        ("often", "50.0 % have been counted again since v6.12.1"),
    ],
)
def test_what_cannot_be_counted_again_in_part_is_trained_in_full(
    counted: World, why: str, reason: str
) -> None:
    match why:
        case "fails":
            counted.builder.outcomes["v6.12.4/refresh"] = (1, "mepof: it does not boot")
        case "unmatched":
            counted.executor.matched["v6.12.4"] = 61.0
        case "unknown":
            edit_origin(counted, "v6.12.3", objects=None)
        case "often":
            before = {"files": [], "percent": 30.0, "total_percent": 30.0, "trained": "v6.12.1"}
            edit_origin(counted, "v6.12.3", refreshed=before)
    counted.add("v6.12.4", write="return 2;")
    counted.round()
    assert "v6.12.4/full" in counted.builder.ran
    provenance = counted.provenance("v6.12.4")
    assert provenance["profile"] == "full" and reason in provenance["reason"]
    assert provenance["profiles"]["adap"]["refreshed"] is None


@pytest.mark.parametrize("missing", [False, True])
def test_what_was_not_instrumented_is_not_taken_for_counted_again(
    counted: World, missing: bool
) -> None:
    store = Store(counted.root / "store")
    artifact = store.object("c" * 64)
    artifact.mkdir(parents=True)
    names = ["fs/idle.o", *([] if missing else ["fs/write.o"])]
    chosen = tuple(SelectedObject(name=name, text=1) for name in names)
    Selection(objects=chosen, files=2, text=9, weight=None, plain_image=1).write(artifact)
    (artifact / "kernel.profdata").touch()
    ran = counted.watcher().run

    def leave(program: Path, out: Path) -> Completed:
        done = ran(program, out)
        if out.name == "refresh":
            finish(out, store, {"adap/profile": "c" * 64, "adap/renew": "d" * 64})
            store.object("d" * 64).mkdir()
            renew = {"new": {"step": "adap/profile"}, "old": {"host": "old.profdata"}}
            steps = [{"id": "adap/renew", "kind": "profile-renew", "inputs": renew}]
            results = [{"name": "adap", "kind": "profile", "step": "adap/renew"}]
            (out / "plan.json").write_text(json.dumps({"steps": steps, "results": results}))
        return done

    counted.add("v6.12.4", write="return 2;")
    replace(counted.watcher(), run=leave).round()
    provenance = counted.provenance("v6.12.4")
    refreshed = provenance["profiles"]["adap"]["refreshed"]
    if missing:
        why = "refresh was given up: fs/write.c should be counted again, and was not"
        assert provenance["profile"] == "full" and why in provenance["reason"]
        assert refreshed is None
    else:
        assert refreshed["files"] == ["fs/idle.c", "fs/write.c"]
        text = "adap: 2 files with 20.0 % of the samples: fs/idle.c, fs/write.c"
        assert ("refreshed", text) in events(counted.root, "v6.12.4")


def test_the_shares_of_refreshed_profiles_add_up_until_all_is_counted_again(
    counted: World,
) -> None:
    counted.add("v6.12.4", write="return 2;")
    counted.round()
    edit_origin(counted, "v6.12.4", objects=["fs/read.o", "fs/write.o"])
    counted.add("v6.12.5", write="return 3;")
    counted.round()
    refreshed = counted.provenance("v6.12.5")["profiles"]["adap"]["refreshed"]
    assert (refreshed["total_percent"], refreshed["trained"]) == (40.0, "v6.12.3")
    # A release that changes nothing more takes the profile as it is, with where it is from.
    counted.add("v6.12.6", write="return 3;")
    counted.round()
    made = counted.provenance("v6.12.6")
    assert made["profile"] == "reuse"
    assert made["profiles"]["adap"]["refreshed"] == refreshed


def test_the_rule_is_in_the_file(world: World) -> None:
    world.configure("[judge]\nreuse = 1\nrefresh = 2\n")
    world.add("v6.12.3")
    world.round()
    world.add("v6.12.4", write="return 2;")
    world.round()
    assert world.provenance("v6.12.4")["profile"] == "full"


def test_a_profile_that_the_first_build_does_not_match_is_given_up(world: World) -> None:
    world.add("v6.12.3")
    world.round()
    world.executor.matched["v6.12.4"] = 61.0
    world.add("v6.12.4", write="return 2;")
    world.round()
    assert world.builder.ran[1:] == ["v6.12.4/full", "v6.12.4/full/last-good"]
    made = world.provenance("v6.12.4")
    assert made["profile"] == "full"
    why = "reuse was given up: 61.0 % of samples match the new kernel, and 80 % are needed"
    assert made["reason"].endswith(why)
    assert ("given up", why) in events(world.root, "v6.12.4")


def test_what_an_old_profile_breaks_is_trained_again(world: World) -> None:
    world.add("v6.12.3")
    world.round()
    world.add("v6.12.4")
    world.builder.outcomes["v6.12.4/reuse"] = (1, "mepof: goal missed: adap, geomean: 1 of 8")
    world.round()
    assert world.builder.ran[1:4] == [
        "v6.12.4/reuse",
        "v6.12.4/full",
        "v6.12.4/full/last-good",
    ]
    assert world.states()["v6.12.4"] == "published"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("program", "the program is not the one of v6.12.3"),
        ("compiler", "the compiler is not the one of v6.12.3"),
        ("profile", "the profile cannot be judged"),
        ("source", "the profile cannot be judged: linux-source-6.12 has no version v6.12.3"),
        ("lost", "there is no earlier release"),
        ("stack", "a profile of the program cannot be used alone"),
    ],
)
def test_what_is_not_comparable_is_trained_in_full(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str, why: str
) -> None:
    if change == "stack":
        text = PROGRAM.replace("autofdo", "autofdo+propeller")
        (world.root / "update.g4").write_text(text)
    world.add("v6.12.3")
    world.round()
    published = world.root / "out/published/stable-v6.12.3"
    match change:
        case "program":
            (world.root / "update.g4").write_text(PROGRAM.replace("kbench", "kbench O2"))
        case "compiler":
            newer = SimpleNamespace(name="clang", version_for=lambda arch: "23.1")
            monkeypatch.setattr(attempt, "select", lambda name: newer)
        case "profile":
            (published / "adap.afdo").write_text("garbage")
        case "source":
            world.executor.gone.add("v6.12.3")
        case "lost":
            (published / "provenance.json").unlink()
    world.add("v6.12.4")
    world.round()
    assert "v6.12.4/full" in world.builder.ran
    assert why in world.provenance("v6.12.4")["reason"]
    # With whichever profile it was built, an image is compared with the last good one.
    assert ("v6.12.4/full/last-good" in world.builder.ran) == (change != "lost")
