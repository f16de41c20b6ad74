from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from mepof.errors import InputError
from mepof.plan import digest
from mepof.plan.digest import HostDigests, file_digest, listing_digest, tree_digest, walk

AN_HOUR_NS = 3600 * 10**9


def digest_of(root: Path) -> str:
    entries = walk(root)
    return tree_digest(
        root, entries, {r: file_digest(root / r) for r, kind, _ in entries if "e" in kind[-3:]}
    )


def make(root: Path) -> Path:
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "b").write_text("b")
    (root / "a").write_text("a")
    (root / "link").symlink_to("sub/b")
    return root


def change_content(root: Path) -> None:
    (root / "a").write_text("x")


def change_name(root: Path) -> None:
    (root / "a").rename(root / "c")


def change_executable(root: Path) -> None:
    (root / "a").chmod(0o755)


def change_link(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("a")


def add_empty_directory(root: Path) -> None:
    (root / "empty").mkdir()


@pytest.mark.parametrize(
    "change", [change_content, change_name, change_executable, change_link, add_empty_directory]
)
def test_every_part_of_a_tree_counts(tmp_path: Path, change: object) -> None:
    assert callable(change)
    root = make(tmp_path / "one")
    before = digest_of(root)
    change(root)
    assert digest_of(root) != before


def test_times_and_other_mode_bits_do_not_count(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    os.utime(two / "a", (1, 1))
    (two / "a").chmod(0o400)
    assert digest_of(one) == digest_of(two)
    assert listing_digest(walk(one)) == listing_digest(walk(two))


def test_names_that_are_not_utf8_are_digested(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\n")).write_text("x")
    (tmp_path / "plain").mkdir()
    host = HostDigests(tmp_path.parent / "memory", now_ns=lambda: time.time_ns() + AN_HOUR_NS)
    assert host.digest(tmp_path) == digest_of(tmp_path) == host.digest(tmp_path)


def test_an_empty_directory_is_not_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    host = HostDigests(tmp_path / "memory")
    assert host.digest(tmp_path / "directory") != host.digest(tmp_path / "file")


def test_a_host_file_has_its_plain_sha256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    found = HostDigests(tmp_path / "memory").digest(tmp_path / "file")
    assert found == hashlib.sha256(b"content").hexdigest()


def test_known_files_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "tree")
    read: list[str] = []

    def reading(path: Path | str) -> str:
        read.append(Path(path).name)
        return file_digest(path)

    monkeypatch.setattr(digest, "file_digest", reading)
    host = HostDigests(tmp_path / "memory", now_ns=lambda: time.time_ns() + AN_HOUR_NS)
    first = host.digest(root)
    assert sorted(read) == ["a", "b"]
    read.clear()
    assert host.digest(root) == first
    assert read == []
    (root / "a").write_text("other")
    assert host.digest(root) != first
    assert read == ["a"]


def test_a_file_that_changed_just_now_is_not_remembered(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    changed = file.stat().st_ctime_ns
    host = HostDigests(tmp_path / "memory", now_ns=lambda: changed)
    host.digest(file)
    assert not (tmp_path / "memory").exists()


def test_a_damaged_memory_only_costs_time(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    (tmp_path / "memory").write_text("this is not a database, and long enough to be looked at")
    host = HostDigests(tmp_path / "memory", now_ns=lambda: time.time_ns() + AN_HOUR_NS)
    assert host.digest(root) == digest_of(root)
    assert host.digest(root) == digest_of(root)


def test_the_git_directory_does_not_count_in_host_trees(tmp_path: Path) -> None:
    root = make(tmp_path / "tree")
    host = HostDigests(tmp_path / "memory")
    before = host.digest(root)
    (root / ".git").mkdir()
    (root / ".git" / "index").write_text("x")
    assert host.digest(root) == before


def test_missing_and_special_files_are_input_errors(tmp_path: Path) -> None:
    host = HostDigests(tmp_path / "memory")
    with pytest.raises(InputError, match="does not exist"):
        host.digest(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="neither a file nor a directory"):
        host.digest(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="cannot be read"):
        host.digest(tmp_path / "loop")
