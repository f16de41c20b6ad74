"""What feeds answered: what a follow selects, and what was found before its table changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import pytest

from mepof.adapter.history import History
from mepof.errors import InputError, Interrupted, StoreFull, WorkError

from .conftest import Mepof
from .world import FILE, World, events


def test_a_pattern_that_no_release_has_is_said_once(world: World) -> None:
    world.tags = []
    world.round()
    world.round()
    assert world.said == ["stable: no release matches `v6.12.*`"]


@pytest.mark.parametrize("answered", [True, False])
def test_what_appears_after_a_first_answer_is_new_even_if_that_had_no_release(
    world: World, answered: bool
) -> None:
    world.tags = []
    if not answered:
        world.feed_error = WorkError("HTTP status 503")
    world.round()
    world.feed_error = None
    world.clock += 10**6
    world.add("v6.12.3")
    world.add("v6.12.4")
    world.round()
    first = "published" if answered else "earlier"
    assert world.states() == {"v6.12.3": first, "v6.12.4": "published"}


def select_by(world: World, match: str, tags: list[str]) -> None:
    """Change what the file selects, and what the feed gives of it."""
    (world.root / "watch.toml").write_text(FILE.replace("v6.12.*", match))
    world.tags = tags


def test_a_selection_that_is_corrected_begins_with_the_newest(world: World) -> None:
    select_by(world, "v6,12.*", [])
    world.round()
    select_by(world, "v6.12.*", ["v6.12.1", "v6.12.2"])
    world.round()
    assert world.states() == {"v6.12.1": "earlier", "v6.12.2": "published"}
    many = ["v6.12.1", "v6.12.2", "v6.18.1", "v6.18.2"]
    select_by(world, "v6.1[28].*", many)
    world.round()
    assert world.states() == dict.fromkeys(many, "earlier") | {
        "v6.12.2": "published",
        "v6.18.2": "published",
    }
    world.tags.append("v6.18.3")
    world.tags.append("v6.18.4")
    world.round()
    assert world.states()["v6.18.3"] == world.states()["v6.18.4"] == "published"
    # Of a narrower one, the newest is made, too, if it was an earlier one.
    select_by(world, "v6.18.1", ["v6.18.1"])
    world.round()
    assert world.states()["v6.18.1"] == "published"


def revisions(world: World) -> dict[str, int]:
    history = History(world.root / "out/history.sqlite")
    return {e.name: history.revision(e) for e in history.entries() if e.state == "published"}


@pytest.mark.parametrize("version", ["this", "an earlier one"])
def test_no_two_releases_of_a_follow_have_the_same_revision(world: World, version: str) -> None:
    world.round()
    world.tags.append("v6.12.3")
    world.round()
    assert revisions(world) == {"v6.12.2": 1, "v6.12.3": 2}
    path = world.root / "out/history.sqlite"
    if version != "this":
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE revisions")
        assert revisions(world) == {"v6.12.2": 1, "v6.12.3": 2}
    assert History(path).again("v6.12.1", "now") == 1
    world.round()
    world.tags.append("v6.12.4")
    world.round()
    made = {"v6.12.1": 3, "v6.12.2": 1, "v6.12.3": 2, "v6.12.4": 4}
    assert revisions(world) == made


def test_a_history_of_an_earlier_version_is_continued(world: World) -> None:
    world.round()
    with sqlite3.connect(world.root / "out/history.sqlite") as database:
        database.execute("DROP TABLE selections")
    world.tags += ["v6.12.3", "v6.12.4"]
    world.round()
    assert world.states()["v6.12.3"] == world.states()["v6.12.4"] == "published"


@pytest.mark.parametrize("begun", [False, True])
def test_what_is_not_selected_any_more_is_not_built(
    world: World, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    world.round()
    world.executor.error = Interrupted("interrupted") if begun else WorkError("HTTP status 503")
    world.tags += ["v6.12.3", "v6.12.4"]
    with pytest.raises(Interrupted) if begun else nullcontext():
        world.round()
    assert world.states()["v6.12.3"] == ("running" if begun else "retry")
    world.executor.error = None
    world.clock += 10**6
    # Nothing is built before it is known what is selected.
    select_by(world, "v6.12.[24]", ["v6.12.2", "v6.12.4"])
    world.feed_error = WorkError("HTTP status 503")
    world.round()
    assert world.published() == ["stable-v6.12.2"]
    assert world.watcher().next_at() is None
    world.feed_error = None
    world.clock += 10**6
    world.round()
    assert world.states()["v6.12.3"] == "earlier"
    assert world.published() == ["stable-v6.12.2", "stable-v6.12.4"]
    assert events(world.root, "v6.12.3")[-1] == ("left", "it is not selected any more")


def test_what_was_found_by_a_follow_that_is_gone_is_not_built(world: World, mepof: Mepof) -> None:
    world.executor.error = WorkError("HTTP status 503")
    world.round()
    world.executor.error = None
    world.clock += 10**6
    (world.root / "watch.toml").write_text(FILE.replace("stable", "other"))
    world.tags = []
    world.round()
    assert world.published() == [] and world.watcher().next_at() is None
    with sqlite3.connect(world.root / "out/history.sqlite") as database:
        database.execute("UPDATE releases SET state = 'held'")
    answer = mepof("watch", "watch.toml", "--again", "v6.12.2", "--store", "store")
    assert answer.status == 2
    assert "the [[follow]] that found `v6.12.2` is not in the file any more" in answer.err


def test_a_feed_that_failed_is_asked_at_once_after_its_table_is_corrected(world: World) -> None:
    world.feed_error = WorkError("it has no repository there")
    for _ in range(9):
        world.round()
        world.clock += 10**6
    world.round()
    world.feed_error = None
    asked = world.asked
    world.round()
    assert world.asked == asked and "not asked, since it failed" in world.said[-1]
    (world.root / "watch.toml").write_text(FILE.replace("example", "mirror.example"))
    world.round()
    assert world.asked == asked + 1 and world.published() == ["stable-v6.12.2"]
    # The doubling starts over, too.
    (world.root / "watch.toml").write_text(FILE)
    world.feed_error = WorkError("it has no repository there")
    world.round()
    assert "again in about 60 minutes" in world.said[-1]


def test_a_history_that_cannot_be_used_is_one_error(world: World) -> None:
    (world.root / "out").mkdir()
    (world.root / "out/history.sqlite").write_text("not a database" * 99)
    with pytest.raises(InputError, match="cannot be used: file is not a database") as caught:
        world.round()
    assert caught.value.message.count("cannot be used") == 1


def test_a_full_disk_is_not_the_histories_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL

    def connect(*words: object, **options: object) -> sqlite3.Connection:
        raise full

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(StoreFull, match="database or disk is full") as caught:
        History(tmp_path / "history.sqlite")
    assert caught.value.remedy == "free some space"


def test_the_history_of_what_was_never_watched_is_not_made(world: World, mepof: Mepof) -> None:
    answer = mepof("watch", "watch.toml", "--history")
    assert (answer.status, answer.err) == (0, "no release has been seen yet\n")
    assert json.loads(mepof("watch", "watch.toml", "--history", "--json").out)["releases"] == []
    answer = mepof("watch", "watch.toml", "--history", "--release", "v6.12.2")
    assert (answer.status, "has no release `v6.12.2`" in answer.err) == (2, True)
    assert not (world.root / "out").exists()
    answer = mepof("watch", "watch.toml", "--history", "--again", "v6.12.2")
    assert (answer.status, "`--history` processes nothing" in answer.err) == (2, True)


def test_a_feed_that_fails_is_asked_ever_more_rarely(world: World) -> None:
    world.feed_error = WorkError("HTTP status 503")
    hours = []
    for _ in range(60):
        before = world.asked
        assert not world.round(), "a timer sees that it failed"
        hours += [world.clock / 3600] if world.asked > before else []
        world.clock += 3600
    gaps = [b - a for a, b in pairwise(hours)]
    assert len(hours) < 10 and gaps == sorted(gaps)
    world.feed_error = None
    world.clock += 10**6
    assert world.round()
    assert world.published() == ["stable-v6.12.2"]
