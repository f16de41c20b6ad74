"""Cleaning the store of this machine."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mepof.plan.action import Action, Artifact
from mepof.plan.fingerprint import Ingredients
from mepof.plan.prune import Pruned, prune
from mepof.plan.store import Store, remove_tree

INGREDIENTS = Ingredients("toy", None, {"n": 1}, {}, {})
DAY, WEEK = timedelta(days=1), timedelta(days=7)
NOW = datetime.now(UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.open()
    return made


def artifact(store: Store, text: str) -> Artifact:
    with store.scratch() as tree:
        (tree / "file").write_text(text)
        return store.commit(tree)


def recorded(store: Store, text: str, name: str) -> Action:
    action = Action(name * 64, "a/b", INGREDIENTS, artifact(store, text), 1.5, NOW.isoformat())
    store.record(action)
    return action


def age(path: Path, days: int) -> None:
    then = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (then, then))


def age_action(store: Store, action: Action, days: int) -> None:
    age(store.root / "actions" / f"{action.fingerprint}.json", days)


def test_what_no_run_used_is_removed_and_its_action_stays(store: Store) -> None:
    old, new = recorded(store, "12345", "a"), recorded(store, "new", "b")
    age_action(store, old, 8)
    wanted = Pruned(artifacts=1, unfinished=0, size=5, kept=1)
    assert prune(store, WEEK, NOW, dry_run=True) == wanted
    assert store.object(old.artifact.digest).is_dir()
    assert prune(store, WEEK, NOW) == wanted
    assert (store.find(old.fingerprint), store.action(old.fingerprint)) == (None, old)
    assert store.find(new.fingerprint) == new


def test_a_run_that_finds_an_artifact_uses_it(store: Store) -> None:
    action = recorded(store, "x", "a")
    age_action(store, action, 8)
    # Looking at what a run would do is no use of it.
    Store(store.root).find(action.fingerprint)
    assert prune(store, WEEK, NOW, dry_run=True).artifacts == 1
    store.find(action.fingerprint)
    assert prune(store, WEEK, NOW).artifacts == 0


def test_an_artifact_of_several_steps_is_as_old_as_its_last_use(store: Store) -> None:
    old = recorded(store, "same", "a")
    recorded(store, "same", "b")
    age_action(store, old, 8)
    assert prune(store, WEEK, NOW) == Pruned(0, 0, 0, 1)


def test_an_artifact_without_an_action_goes_by_its_own_age(store: Store) -> None:
    fresh, left = artifact(store, "fresh"), artifact(store, "left")
    age(store.object(left.digest), 8)
    assert prune(store, WEEK, NOW).artifacts == 1
    assert store.object(fresh.digest).is_dir()


def test_what_was_used_within_a_day_stays_in_any_case(store: Store) -> None:
    recorded(store, "x", "a")
    assert prune(store, timedelta(0), NOW + timedelta(hours=23)).artifacts == 0
    assert prune(store, timedelta(0), NOW + timedelta(hours=25)).artifacts == 1


def test_what_another_process_has_just_removed_is_no_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, stray = recorded(store, "12345", "a"), artifact(store, "stray")
    work, _ = store.take_work("old")
    age_action(store, old, 8)
    age(work, 8)
    listed = {path: [*path.iterdir()] for path in (store.root / "objects", store.root / "work")}
    for path in (work, store.object(old.artifact.digest), store.object(stray.digest)):
        remove_tree(path)
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(listed.get(path, ())))
    assert prune(store, WEEK, NOW) == Pruned(artifacts=1, unfinished=0, size=0, kept=1)


def test_what_unfinished_steps_left_is_dropped_unless_one_works_in_it(store: Store) -> None:
    for name in ("old", "busy", "new"):
        work, _ = store.take_work(name)
        (work / "build").mkdir()
        (work / "build" / "part").write_bytes(bytes(100))
        if name != "new":
            age(work / "build", 8)
            age(work, 8)
    (store.root / "work" / "stray").touch()
    with store.lock("busy", lambda: None, threading.Event()):
        assert prune(store, DAY, NOW) == Pruned(0, 1, 100, 0)
    assert sorted(p.name for p in (store.root / "work").iterdir()) == ["busy", "new", "stray"]
