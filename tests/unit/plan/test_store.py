from __future__ import annotations

import tempfile
import threading
from pathlib import Path

import pytest

from mepof.errors import InputError, Interrupted
from mepof.plan.action import Action, Artifact
from mepof.plan.fingerprint import Ingredients
from mepof.plan.store import Store, remove_tree

INGREDIENTS = Ingredients("toy", None, {"n": 1}, {}, {"clang": "19"})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.open()
    return made


def commit(store: Store, text: str = "content") -> Artifact:
    with store.scratch() as tree:
        (tree / "sub").mkdir()
        (tree / "sub" / "file").write_text(text)
        return store.commit(tree)


def record(store: Store, artifact: Artifact) -> Action:
    action = Action("f" * 64, "a/b", INGREDIENTS, artifact, 1.5, "2025-01-01T00:00:00+00:00")
    store.record(action)
    return action


def test_an_artifact_is_found_by_the_fingerprint_of_its_step(store: Store) -> None:
    artifact = commit(store)
    action = record(store, artifact)
    assert store.find("f" * 64) == action
    assert (store.object(artifact.digest) / "sub" / "file").read_text() == "content"


def test_an_artifact_is_read_only(store: Store) -> None:
    path = store.object(commit(store).digest)
    for made in (path, path / "sub", path / "sub" / "file"):
        assert made.stat().st_mode & 0o222 == 0


def test_the_same_artifact_is_kept_once(store: Store, tmp_path: Path) -> None:
    first = commit(store)
    inode = store.object(first.digest).stat().st_ino
    assert commit(store) == first
    assert store.object(first.digest).stat().st_ino == inode


@pytest.mark.parametrize("damage", ["file gone", "file cut", "object gone", "more files"])
def test_a_damaged_artifact_does_not_count_and_is_replaced(store: Store, damage: str) -> None:
    artifact = commit(store)
    record(store, artifact)
    path = store.object(artifact.digest)
    file = path / "sub" / "file"
    for made in (path, path / "sub"):
        made.chmod(0o755)
    file.chmod(0o644)
    match damage:
        case "file gone":
            file.unlink()
        case "file cut":
            file.write_text("cont")
        case "object gone":
            remove_tree(path)
        case _:
            (path / "more").touch()
    assert store.find("f" * 64) is None
    assert commit(store) == artifact
    assert store.find("f" * 64) is not None
    assert file.read_text() == "content"
    assert not (path / "more").exists()


def test_a_damaged_action_does_not_count(store: Store) -> None:
    record(store, commit(store))
    path = store.root / "actions" / f"{'f' * 64}.json"
    for text in ("", "{", "[]", path.read_text().replace("digest", "tsegid")):
        path.write_text(text)
        assert store.find("f" * 64) is None
        assert list(store.actions()) == []


def test_leftovers_of_dead_processes_are_removed_and_live_sessions_are_kept(
    store: Store,
) -> None:
    left = store.root / "tmp" / "123-dead" / "half"
    left.mkdir(parents=True)
    (left / "file").write_text("half")
    (store.root / "tmp" / "stray").write_text("a file")
    with store.scratch() as tree:
        Store(store.root).open()
        assert tree.is_dir()
        assert not left.exists()


def test_reading_writes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.find("f" * 64) is None
    assert list(store.actions()) == []
    assert not store.root.exists()


def test_waiting_for_a_lock_can_be_cancelled(store: Store) -> None:
    other = Store(store.root)
    cancel = threading.Event()
    with (
        store.lock("x", lambda: pytest.fail("nobody has it"), cancel),
        pytest.raises(Interrupted),
        other.lock("x", cancel.set, cancel),
    ):
        pytest.fail("two have the lock")


def test_an_impossible_store_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be used.*--store or MEPOF_STORE"):
        Store(tmp_path / "file").open()
    with pytest.raises(InputError, match="cannot be used"):
        Store(Path("/proc/nonesuch")).open()


def test_a_store_on_two_file_systems_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        (tmp_path / "store").mkdir()
        (tmp_path / "store/objects").symlink_to(elsewhere)
        with pytest.raises(InputError, match="is on two file systems: objects and tmp"):
            Store(tmp_path / "store").open()


def test_a_copy_of_a_read_only_tree_can_be_moved_by_a_user_who_is_not_root(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[int] = []
    rename = Path.rename

    def watched(self: Path, target: Path) -> Path:
        moved.append(self.stat().st_mode & 0o200)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    with store.scratch() as tree:
        (tree / "file").write_text("content")
        tree.chmod(0o555)
        artifact = store.commit(tree)
    assert moved == [0o200]
    assert store.object(artifact.digest).stat().st_mode & 0o222 == 0


def test_many_files_are_committed_like_few(store: Store) -> None:
    with store.scratch() as tree:
        for number in range(300):
            (tree / str(number)).write_text(str(number))
        artifact = store.commit(tree)
    record(store, artifact)
    assert store.find("f" * 64) is not None
