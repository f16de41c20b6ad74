"""Following releases: each is processed exactly once, and published or held back."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from mepof.adapter import watch
from mepof.adapter.feed.protocol import Follow, Release, Seen, version_key
from mepof.adapter.history import History
from mepof.adapter.watch import Watcher, read_task
from mepof.errors import InputError, WorkError
from mepof.process import Completed
from mepof.source.protocol import Workshop

FILE = """
program = "update.g4"
publish = "out"

[[follow]]
name = "stable"
feed = "git"
url = "https://example.org/linux.git"
match = "v6.12.*"
"""


@dataclass
class World:
    """A watcher whose feed and runs are given by the test, and a clock that it moves."""

    root: Path
    tags: list[str] = field(default_factory=list)
    feed_error: Exception | None = None
    outcomes: dict[str, tuple[int, str]] = field(default_factory=dict)
    fetch_error: Exception | None = None
    ran: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    asked: int = 0
    clock: float = 1_000_000.0

    def look(self, follow: Follow, memory: str, workshop: Workshop) -> Seen:
        self.asked += 1
        if self.feed_error is not None:
            raise self.feed_error
        made = [Release(tag, f"git+https://example.org/linux.git#tag={tag}") for tag in self.tags]
        return Seen(None, memory) if memory == str(self.tags) else Seen(tuple(made), str(self.tags))

    def run(self, argv: list[Any], **options: Any) -> Completed:
        out = Path(argv[argv.index("--out") + 1])
        name = out.name.removeprefix("stable-")
        self.ran.append(name)
        (out / "opt.img").write_text(f"image of {name}")
        (out / "journal.jsonl").touch()
        status, text = self.outcomes.get(name, (0, ""))
        return Completed((), status, text)

    def watcher(self) -> Watcher:
        task = read_task(self.root / "watch.toml")
        workshop = Workshop(
            self.root, self.root, self.run, self.said.append, threading.Event(), lambda *shown: None
        )

        def fetched(plan: object, out: Path, sink: object) -> object:
            if self.fetch_error is not None:
                raise self.fetch_error
            return SimpleNamespace(run=SimpleNamespace(steps={}))

        executor: Any = SimpleNamespace(run=fetched)
        return Watcher(task, workshop, executor, lambda: self.clock, self.said.append, self.root)

    def round(self) -> None:
        self.watcher().round()

    def states(self) -> dict[str, str]:
        return {e.name: e.state for e in History(self.root / "out/history.sqlite").entries()}

    def reason(self, name: str) -> str:
        entries = History(self.root / "out/history.sqlite").entries()
        return next(e.reason for e in entries if e.name == name)

    def published(self) -> list[str]:
        found = self.root.glob("out/published/[!.]*/provenance.json")
        return sorted(path.parent.name for path in found)

    def index(self) -> list[str]:
        text = (self.root / "out/published/index.json").read_text()
        return [each["release"] for each in json.loads(text)["releases"]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    (tmp_path / "watch.toml").write_text(FILE)
    (tmp_path / "update.g4").write_text("opt {source} pgo rand kbench.\n")
    made = World(tmp_path, ["v6.12.1", "v6.12.2"])
    feed = SimpleNamespace(look=made.look, check=lambda follow: None)
    monkeypatch.setattr(watch, "FEEDS", SimpleNamespace(get=lambda name: feed))
    return made


def test_of_what_is_there_only_the_newest_is_made_and_then_each_new_one_once(
    world: World,
) -> None:
    world.round()
    assert world.states() == {"v6.12.1": "earlier", "v6.12.2": "published"}
    world.round()
    assert world.ran == ["v6.12.2"]
    world.tags.append("v6.12.3")
    world.round()
    world.round()
    assert world.ran == ["v6.12.2", "v6.12.3"]
    assert world.published() == ["stable-v6.12.2", "stable-v6.12.3"]
    assert world.index() == ["v6.12.2", "v6.12.3"]
    made = json.loads((world.root / "out/published/stable-v6.12.3/provenance.json").read_text())
    assert made["address"] == "git+https://example.org/linux.git#tag=v6.12.3"
    assert set(made["sha256"]) == {"opt.img", "program.g4"}


def test_what_fails_is_held_back_with_its_reason(world: World) -> None:
    world.outcomes["v6.12.2"] = (1, "noise\nmepof: goal missed: opt, geomean: 1.0 of 8")
    world.round()
    world.round()
    assert world.ran == ["v6.12.2"] and world.published() == []
    assert world.states()["v6.12.2"] == "held"
    assert world.reason("v6.12.2") == "goal missed: opt, geomean: 1.0 of 8"
    assert any("v6.12.2 held: goal missed" in line for line in world.said)


def test_a_wrong_signature_holds_back_and_a_silent_server_is_asked_again(world: World) -> None:
    world.fetch_error = InputError("it is not signed by `kernel.org`")
    world.round()
    assert world.states()["v6.12.2"] == "held"
    world.fetch_error = WorkError("HTTP status 503, 6 times")
    world.tags.append("v6.12.3")
    for attempt in range(watch.MAX_ATTEMPTS):
        assert world.states().get("v6.12.3", "retry") == "retry", attempt
        world.round()
        world.round()  # not before its time
        world.clock += 2 * 24 * 3600
    assert world.states()["v6.12.3"] == "held"
    assert world.ran == []


def test_a_release_that_becomes_reachable_is_published(world: World) -> None:
    world.fetch_error = WorkError("HTTP status 503, 6 times")
    world.round()
    world.fetch_error = None
    world.round()
    assert world.ran == []
    world.clock += 3600
    world.round()
    assert world.published() == ["stable-v6.12.2"]


def test_a_full_disk_is_tried_again(world: World) -> None:
    world.outcomes["v6.12.2"] = (1, f"mepof: build: {os.strerror(28)}")
    world.round()
    assert world.states()["v6.12.2"] == "retry"


def test_a_feed_that_fails_is_asked_ever_more_rarely(world: World) -> None:
    world.feed_error = WorkError("HTTP status 503")
    hours = []
    for _ in range(60):
        before = world.asked
        world.round()
        hours += [world.clock / 3600] if world.asked > before else []
        world.clock += 3600
    gaps = [b - a for a, b in pairwise(hours)]
    assert len(hours) < 10 and gaps == sorted(gaps)
    world.feed_error = None
    world.clock += 10**6
    world.round()
    assert world.published() == ["stable-v6.12.2"]


@pytest.mark.parametrize("moment", ["before publishing", "before noting"])
def test_what_a_killed_watcher_was_at_is_published_once(
    world: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Killed(BaseException):
        pass

    def die(*args: object) -> None:
        raise Killed

    name = "publish" if moment == "before publishing" else "write_index"
    with monkeypatch.context() as patched:
        patched.setattr(watch, name, die)
        with pytest.raises(Killed):
            world.round()
    assert world.states()["v6.12.2"] == "running"
    world.round()
    world.round()
    assert world.states()["v6.12.2"] == "published"
    assert world.published() == ["stable-v6.12.2"] and world.index() == ["v6.12.2"]
    assert len(world.ran) == (2 if moment == "before publishing" else 1)


def test_kill_9_at_any_moment_leaves_each_release_published_once(world: World) -> None:
    world.outcomes["v6.12.4"] = (1, "mepof: it does not boot")
    world.round()
    killed = 0
    for moment in range(25):
        if moment % 8 == 4:
            world.tags.append(f"v6.12.{3 + moment // 8}")
        if (child := os.fork()) == 0:
            _die_at(world, 30 + 150 * (moment % 8))
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert killed > 10
    world.round()
    good = ["v6.12.2", "v6.12.3", "v6.12.5"]
    held = {"v6.12.1": "earlier", "v6.12.4": "held"}
    assert world.states() == {**dict.fromkeys(good, "published"), **held}
    assert world.published() == [f"stable-{name}" for name in good]
    assert world.index() == good
    assert list((world.root / "out/published").glob(".*/")) == []


def _die_at(world: World, last: int) -> NoReturn:
    """Work on a round, and end like a watcher that is killed at its n-th call of a function."""
    calls = 0

    def count(*event: object) -> None:
        nonlocal calls
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.setprofile(count)
        world.round()
    finally:
        os._exit(0)


def test_two_watchers_share_the_work(world: World) -> None:
    first, second = (threading.Thread(target=world.round) for _ in range(2))
    first.start()
    second.start()
    first.join()
    second.join()
    assert world.ran == ["v6.12.2"]
    assert world.published() == ["stable-v6.12.2"]


def test_a_notification_gets_state_release_and_reason(world: World, tmp_path: Path) -> None:
    text = FILE.replace("[[follow]]", 'notify = ["/bin/tell"]\n\n[[follow]]', 1)
    (tmp_path / "watch.toml").write_text(text)
    told: list[list[str]] = []
    run_program = world.run

    def listen(argv: list[Any], **options: Any) -> Completed:
        if argv[0] == "/bin/tell":
            told.append(argv)
            return Completed((), 0, "")
        return run_program(argv, **options)

    world.run = listen  # type: ignore[method-assign]
    world.round()
    assert [words[1:3] for words in told] == [["published", "v6.12.2"]]


def test_releases_are_ordered_as_people_read_them() -> None:
    names = ["v6.13", "v6.12.10", "v6.13-rc2", "v6.12.9", "v6.12"]
    assert sorted(names, key=version_key) == ["v6.12", "v6.12.9", "v6.12.10", "v6.13-rc2", "v6.13"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('feed = "git"', 'feed = "gti"'), "unknown feed `gti`"),
        (('url = "https://example.org/linux.git"', ""), "follows git and has no `url`"),
        (("https://example.org", "ext::sh"), "is not a URL that mepof lets git read"),
        (('publish = "out"', ""), "`publish` is missing"),
        (('publish = "out"', 'publish = "out"\ninterval = 1'), "`interval` must be"),
        (('match = "v6', 'matches = "v6'), "unknown key `matches`"),
        (('name = "stable"', 'name = "../x"'), "name"),
        ((FILE[FILE.index("[[") :], ""), "follows nothing"),
    ],
)
def test_a_file_that_is_wrong_is_an_error(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "update.g4").write_text("opt {source} pgo rand kbench.\n")
    (tmp_path / "watch.toml").write_text(FILE.replace(*change))
    with pytest.raises(InputError, match=message):
        read_task(tmp_path / "watch.toml")


def test_a_program_without_a_place_for_the_release_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "update.g4").write_text("opt /src pgo rand kbench.\n")
    (tmp_path / "watch.toml").write_text(FILE)
    with pytest.raises(InputError, match="does not say where the release goes"):
        read_task(tmp_path / "watch.toml")
