"""A store behind the store: what one machine made is not made again by another."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from mepof.errors import EnvironmentLack, InputError, Interrupted, WorkError
from mepof.events import Event, StepNote
from mepof.plan.archive import NotAnArchive, pack, unpack
from mepof.plan.body import StepContext
from mepof.plan.clean import clean
from mepof.plan.engine import Engine, RunResult
from mepof.plan.execute import execute
from mepof.plan.explain import explain
from mepof.plan.model import Plan, Result
from mepof.plan.remote import Remote, RemoteSilent, hidden
from mepof.plan.shared import SharedStore
from mepof.plan.store import Store

from .toy_bodies import DIAMOND, Toy, plan_of, toy, write_all

pytest.importorskip("fsspec")
zstandard = pytest.importorskip("zstandard")

WANTED = Plan("a program.", 7, DIAMOND.steps, (Result("r", "report", "last"),))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mepof.plan.remote._FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("mepof.plan.lease._GATHER_SECONDS", 0.0)


@dataclass
class Machine:
    """A machine with a store of its own."""

    root: Path
    url: str
    notes: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    store: SharedStore | None = None

    def run(self, plan: Plan = WANTED, do: Callable[[StepContext], None] = write_all) -> RunResult:
        body = Toy(do)
        self.store = SharedStore(self.root / "store", Remote(self.url), self.notes.append)
        with closing(self.store):
            try:
                return Engine(self.store, {"toy": body}, 2, self._hear).run(plan, self.root / "out")
            finally:
                self.ran = body.ran

    def _hear(self, event: Event) -> None:
        if isinstance(event, StepNote):
            self.notes.append(f"{event.step}: {event.text}")

    def objects(self) -> list[str]:
        return [path.name for path in (self.root / "store" / "objects").iterdir()]


@dataclass
class Team:
    shared: Path
    first: Machine
    second: Machine

    def archives(self) -> list[Path]:
        return sorted((self.shared / "objects").iterdir())


@pytest.fixture
def team(tmp_path: Path) -> Team:
    shared = tmp_path / "shared"
    return Team(
        shared,
        Machine(tmp_path / "first", str(shared)),
        Machine(tmp_path / "second", str(shared)),
    )


def digests(run: RunResult) -> dict[str, str]:
    return {name: step.digest for name, step in run.steps.items()}


def test_another_machine_runs_nothing_and_fetches_only_the_result(team: Team) -> None:
    made = team.first.run()
    assert sorted(team.first.ran) == ["first", "last", "left", "right"]
    taken = team.second.run()
    assert team.second.ran == []
    assert digests(taken) == digests(made)
    assert all(step.cached for step in taken.steps.values())
    last = taken.steps["last"].path / "text"
    assert last.read_bytes() == (made.steps["last"].path / "text").read_bytes()
    assert team.second.objects() == [taken.steps["last"].digest]


def test_who_uses_a_remote_first_is_told(team: Team) -> None:
    team.first.run()
    assert team.first.notes[0] == f"{team.shared} is a new store, which nobody has used before"
    team.second.run()
    assert not any("a new store" in note for note in team.second.notes)


def test_a_step_that_runs_has_its_inputs_fetched(team: Team) -> None:
    team.first.run()
    extended = plan_of(*DIAMOND.steps, toy("more", "left", "right", n=3))
    taken = team.second.run(extended)
    assert team.second.ran == ["more"]
    assert '{"n": 2}' in (taken.steps["more"].path / "text").read_text()
    assert taken.steps["first"].digest not in team.second.objects()
    assert team.first.run(extended) and team.first.ran == []


def test_links_modes_and_empty_directories_arrive(team: Team) -> None:
    def fill(context: StepContext) -> None:
        (context.output / "empty").mkdir()
        (context.output / "sub").mkdir()
        program = context.output / "sub" / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        (context.output / "abs").symlink_to("/bin/busybox")
        (context.output / "sub" / "rel").symlink_to("../empty")

    made = team.first.run(plan_of(toy("one")), fill)
    taken = team.second.run(plan_of(toy("one")), fill)
    assert team.second.ran == [] and digests(taken) == digests(made)
    assert (taken.steps["one"].path / "abs").readlink() == Path("/bin/busybox")


def test_two_machines_write_the_same_archive(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "file").write_text("content")
        pack(tmp_path / name, tmp_path / f"{name}.archive")
    assert (tmp_path / "a.archive").read_bytes() == (tmp_path / "b.archive").read_bytes()


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "cut off": lambda archive, other: archive.write_bytes(archive.read_bytes()[:-9]),
    "empty": lambda archive, other: archive.write_bytes(b""),
    "not an archive": lambda archive, other: archive.write_bytes(b"<html>503</html>" * 50),
    "of another artifact": lambda archive, other: archive.write_bytes(other.read_bytes()),
    "gone": lambda archive, other: archive.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_wrong_bytes_are_refused_made_here_and_replaced(team: Team, damage: str) -> None:
    made = team.first.run()
    archives = team.archives()
    last = team.shared / "objects" / f"{made.steps['last'].digest}.tar.zst"
    DAMAGES[damage](last, next(each for each in archives if each != last))
    taken = team.second.run()
    assert team.second.ran == ["last"]
    assert digests(taken) == digests(made)
    assert any("last: running again" in note for note in team.second.notes)
    third = Machine(team.second.root.parent / "third", str(team.shared))
    assert digests(third.run()) == digests(made) and third.ran == []


def test_everything_wrong_is_everything_made_here(team: Team) -> None:
    made = team.first.run()
    for archive in team.archives():
        archive.write_bytes(b"x")
    taken = team.second.run()
    assert sorted(team.second.ran) == ["first", "last", "left", "right"]
    assert digests(taken) == digests(made)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 1}', "another's"])
def test_a_wrong_action_is_not_used(team: Team, text: str) -> None:
    made = team.first.run()
    actions = sorted((team.shared / "actions").iterdir())
    other = actions[0].read_text()
    for path in actions[1:]:
        path.write_text(other if text == "another's" else text)
    actions[0].write_text(other.replace(made.steps["first"].digest, "../../../etc/passwd"))
    taken = team.second.run()
    assert len(team.second.ran) >= 3
    assert digests(taken) == digests(made)
    assert any("is damaged" in note for note in team.second.notes)


def archive_with(path: Path, *entries: tarfile.TarInfo) -> Path:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    path.write_bytes(zstandard.ZstdCompressor().compress(plain.getvalue()))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> object:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, target, size
    return made


ATTACKS = {
    "above": [entry("../evil", size=1)],
    "absolute": [entry("/tmp/evil", size=1)],
    "through a link": [entry("d", tarfile.SYMTYPE, ".."), entry("d/evil", size=1)],
    "over a link": [entry("d", tarfile.SYMTYPE, "../evil"), entry("d", size=1)],
    "a hard link": [entry("h", tarfile.LNKTYPE, "/etc/passwd")],
    "a device": [entry("null", tarfile.CHRTYPE)],
    "no parent": [entry("a/b/c", size=1)],
    "dots": [entry("."), entry("..")],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_archive_writes_nothing_outside_of_its_directory(tmp_path: Path, attack: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    archive = archive_with(tmp_path / "archive", *ATTACKS[attack])  # type: ignore[arg-type]
    with pytest.raises(NotAnArchive):
        unpack(archive, tree)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "tree"]


def test_a_fetch_that_was_cut_off_continues(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(context: StepContext) -> None:
        (context.output / "big").write_bytes(bytes(range(256)) * 4000)

    made = team.first.run(plan_of(toy("one")), fill)
    archive = team.archives()[0].read_bytes()
    partial = team.second.root / "store" / "cache" / "fetch" / made.steps["one"].digest
    partial.parent.mkdir(parents=True)
    partial.write_bytes(archive[: len(archive) // 2])
    offsets: list[int] = []
    real = Remote.fetch

    def watched(self: Remote, name: str, to: Path, got: Callable[[int, int], None]) -> bool:
        offsets.append(to.stat().st_size)
        return real(self, name, to, got)

    monkeypatch.setattr(Remote, "fetch", watched)
    taken = team.second.run(plan_of(toy("one")), fill)
    assert team.second.ran == [] and digests(taken) == digests(made)
    assert offsets == [len(archive) // 2]
    assert not partial.exists()


def test_the_beginning_of_another_archive_is_dropped(team: Team) -> None:
    made = team.first.run()
    partial = team.second.root / "store" / "cache" / "fetch" / made.steps["last"].digest
    partial.parent.mkdir(parents=True)
    for left in (b"old", b"longer than the archive" * 1000):
        partial.write_bytes(left)
        taken = team.second.run()
        assert team.second.ran == [] and digests(taken) == digests(made)
        (team.second.root / "store").rename(team.second.root / f"old{len(left)}")
        partial.parent.mkdir(parents=True)


class Flaky:
    """A file system whose calls fail as told."""

    def __init__(self, inner: object, fail: Callable[[str], Exception | None]) -> None:
        self.inner, self.fail = inner, fail

    def __getattr__(self, name: str) -> object:
        value = getattr(self.inner, name)
        if not callable(value) or name.startswith("_"):
            return value

        def called(*arguments: object, **named: object) -> object:
            error = self.fail(name)
            if error is not None:
                raise error
            return value(*arguments, **named)

        return called


def flaky(monkeypatch: pytest.MonkeyPatch, fail: Callable[[str], Exception | None]) -> None:
    import mepof.plan.remote as module

    real = module._connect
    monkeypatch.setattr(module, "_connect", lambda *given: Flaky(real(*given), fail))


def test_a_server_that_fails_now_and_then_is_asked_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: dict[str, int] = {}

    def every_third(name: str) -> Exception | None:
        calls[name] = calls.get(name, 0) + 1
        transfers = name in ("put_file", "cat_file", "open")
        return None if calls[name] % 3 or not transfers else ConnectionResetError("reset by peer")

    flaky(monkeypatch, every_third)
    made = team.first.run()
    taken = team.second.run()
    assert team.second.ran == [] and digests(taken) == digests(made)
    assert len(calls) > 3


def test_a_server_that_is_down_costs_a_note_and_no_run(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def down(name: str) -> Exception:
        calls.append(name)
        return TimeoutError("timed out")

    flaky(monkeypatch, down)
    made = team.first.run()
    assert len(made.steps) == 4
    assert [note for note in team.first.notes if "continuing without it" in note]
    assert len(team.first.notes) == 1
    assert len(calls) == 3


def test_a_server_that_goes_down_before_the_artifact_arrives_makes_us_do_it(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = team.first.run()
    flaky(monkeypatch, lambda name: OSError("gone") if name == "open" else None)
    taken = team.second.run()
    assert sorted(team.second.ran) == ["first", "last", "left", "right"]
    assert digests(taken) == digests(made)


class HttpError(Exception):
    """As aiohttp's, which fsspec passes on."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}, message='no'")
        self.status = status


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(13, "Permission denied"),
        OSError(30, "Read-only file system"),
        OSError(28, "No space left on device"),
        OSError(122, "Disk quota exceeded"),
        HttpError(405),
        HttpError(501),
        HttpError(507),
    ],
    ids=str,
)
def test_a_remote_that_cannot_be_written_is_still_read(
    team: Team, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    made = team.first.run()
    flaky(monkeypatch, lambda name: error if name == "put_file" else None)
    extended = plan_of(*DIAMOND.steps, toy("more", "last", n=3))
    taken = team.second.run(extended)
    assert team.second.ran == ["more"]
    assert taken.steps["last"].digest == made.steps["last"].digest
    assert len([note for note in team.second.notes if "stays here" in note]) == 1


def test_a_full_remote_is_named(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    flaky(monkeypatch, lambda name: OSError(28, "No space left") if name == "put_file" else None)
    assert len(team.first.run().steps) == 4
    assert any("has no space left" in note for note in team.first.notes)
    assert any("clean --shared-store" in note for note in team.first.notes)
    assert list((team.shared).rglob("*.part")) == []


def test_an_interrupt_ends_the_wait_for_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mepof.plan.remote._FIRST_PAUSE_SECONDS", 1000.0)
    cancel = threading.Event()

    def fail(name: str) -> Exception:
        cancel.set()
        return OSError("down")

    flaky(monkeypatch, fail)
    with pytest.raises(Interrupted):
        Remote(str(tmp_path), cancel).read("x")


def test_a_dry_run_knows_the_remote_and_writes_nothing(team: Team) -> None:
    team.first.run()
    before = sorted(team.shared.rglob("*"))
    store = SharedStore(team.second.root / "store", Remote(str(team.shared)), pytest.fail)
    with closing(store):
        found = explain(WANTED, store, {"toy": Toy()})
    assert {each.state for each in found} == {"cached"}
    assert not (team.second.root / "store").exists()
    assert sorted(team.shared.rglob("*")) == before


def test_a_directory_of_something_else_is_refused(team: Team) -> None:
    team.shared.mkdir()
    for text in ('{"format": "mepof-store/99"}', "hello"):
        (team.shared / "store.json").write_text(text)
        with pytest.raises(InputError, match="is not a store that this version can share"):
            team.first.run()


@pytest.mark.parametrize(
    ("url", "error", "text"),
    [
        ("nonesuch://host/x", InputError, "protocol is unknown"),
        ("gs://bucket/x", EnvironmentLack, "needs a Python package"),
        ("s3:/bucket/x", InputError, "s3:/bucket/x is not the URL of a store"),
        ("farm:/srv/mepof", InputError, "farm:/srv/mepof is not the URL of a store"),
        ("memory://", InputError, "memory:// names no directory"),
    ],
)
def test_a_wrong_url_is_one_line(url: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Remote(url)


def test_a_bucket_that_is_not_there_is_to_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = FileNotFoundError("The specified bucket does not exist")
    flaky(monkeypatch, lambda name: missing if name == "rm_file" else None)
    remote = Remote("memory://x")
    monkeypatch.setattr(remote, "_missing", lambda do: do())
    with pytest.raises(RemoteSilent, match="x does not exist: The specified bucket") as caught:
        remote.remove("y")
    assert caught.value.remedy == "create it, or correct the URL"


def test_a_server_that_lists_no_sizes_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import mepof.plan.remote as module

    web = SimpleNamespace(
        invalidate_cache=lambda: None, find=lambda at, detail: {f"{at}/a": {"size": None}}
    )
    monkeypatch.setattr(module, "_connect", lambda *given: web)
    with pytest.raises(WorkError, match="does not say how large a is"):
        Remote("memory://x").sizes("objects")


def test_a_password_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hidden("sftp://me:secret@host/x") == "sftp://me:***@host/x"
    assert hidden("sftp://me:se@cret@host/x@y") == "sftp://me:***@host/x@y"
    assert hidden("s3://bucket/x") == "s3://bucket/x"
    flaky(monkeypatch, lambda name: OSError("memory://me:secret@host/x: no"))
    with pytest.raises(RemoteSilent) as caught:
        Remote("memory://me:secret@host/x").read("y")
    assert "secret" not in str(caught.value)


def test_one_protocol_is_as_good_as_another(tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}"
    made = Machine(tmp_path / "first", url).run()
    second = Machine(tmp_path / "second", url)
    assert digests(second.run()) == digests(made) and second.ran == []


NOW = datetime.now(UTC)
WEEK = timedelta(days=7)


def test_cleaning_keeps_what_was_used_within_the_time(team: Team) -> None:
    team.first.run()
    remote = Remote(str(team.shared))
    assert clean(remote, WEEK, NOW + timedelta(days=6)).artifacts == 0
    assert len(team.archives()) == 4
    found = clean(remote, WEEK, NOW + timedelta(days=8), dry_run=True)
    assert (found.actions, found.artifacts, found.kept) == (4, 4, 0)
    assert len(team.archives()) == 4
    done = clean(remote, WEEK, NOW + timedelta(days=8))
    assert done == found and done.size > 0
    assert team.archives() == [] and list((team.shared / "leases").iterdir()) == []


def test_a_use_is_a_reason_to_keep(team: Team) -> None:
    team.first.run()
    for path in (team.shared / "leases").iterdir():
        path.unlink()
    later = NOW + timedelta(days=8)
    assert team.second.run(plan_of(DIAMOND.steps[0])).steps["first"].cached
    assert team.second.store is not None
    team.second.store._lease.write(later)
    done = clean(Remote(str(team.shared)), WEEK, later + timedelta(days=1))
    assert (done.actions, done.kept) == (3, 1)
    third = Machine(team.first.root.parent / "third", str(team.shared))
    third.run()
    assert sorted(third.ran) == ["last", "left", "right"]


def test_a_lease_that_holds_keeps_what_is_being_pushed(team: Team) -> None:
    """Its artifact is there before its action."""
    team.first.run()
    assert team.first.store is not None
    later = NOW + timedelta(days=30)
    for path in (team.shared / "actions").iterdir():
        path.unlink()
    team.first.store._lease._digests.pop()
    team.first.store._lease.write(later)
    (team.shared / "objects" / "0123.tar.zst.9.part").write_text("left by a push")
    done = clean(Remote(str(team.shared)), WEEK, later)
    assert (done.artifacts, done.kept, done.held) == (2, 3, 1)


def test_an_artifact_that_was_cleaned_during_a_run_is_made_again(team: Team) -> None:
    made = team.first.run()

    def clean_first(context: StepContext) -> None:
        clean(Remote(str(team.shared)), WEEK, NOW + timedelta(days=30))
        write_all(context)

    taken = team.second.run(
        plan_of(toy("other"), *WANTED.steps, toy("more", "last", n=3)), clean_first
    )
    assert "more" in team.second.ran
    assert taken.steps["last"].digest == made.steps["last"].digest


def test_an_artifact_that_vanishes_from_a_store_alone_is_made_again(tmp_path: Path) -> None:
    from mepof.plan.store import remove_tree

    store = Store(tmp_path / "store")

    def losing(context: StepContext) -> None:
        if context.step.id == "left":
            for path in list((store.root / "objects").iterdir()):
                remove_tree(path)
        write_all(context)

    body = Toy(losing)
    chain = plan_of(toy("left"), toy("last", "left", "first"), toy("first"))
    chain = plan_of(toy("first"), toy("left", "first", n=1), toy("last", "left", "first"))
    run = Engine(store, {"toy": body}, 1, lambda event: None, execute).run(chain, tmp_path / "out")
    assert body.ran.count("first") == 2 and run.steps["last"].path.is_dir()


WRITTEN = datetime(2025, 3, 1, 12, tzinfo=UTC)
EARLIER = WRITTEN - timedelta(days=9)


def described(monkeypatch: pytest.MonkeyPatch, info: dict[str, object]) -> Remote:
    """A remote with one file, which its library describes like this."""
    spec = pytest.importorskip("fsspec.spec")

    def find(fs: object, path: str, **options: object) -> dict[str, dict[str, object]]:
        return {f"{path}/day/one": {"type": "file", "size": 4, **info}}

    kind = type("Described", (spec.AbstractFileSystem,), {"cachable": False, "find": find})
    monkeypatch.setattr("fsspec.get_filesystem_class", lambda protocol: kind)
    monkeypatch.setattr("fsspec.filesystem", lambda protocol, **options: kind())
    return Remote("az://container/fleet")


@pytest.mark.parametrize(
    ("info", "version"),
    [
        ({"LastModified": WRITTEN, "ETag": "s3"}, "s3-4"),
        ({"last_modified": WRITTEN, "etag": "azure"}, "azure-4"),
        ({"mtime": WRITTEN, "ctime": EARLIER, "etag": "google"}, "google-4"),
        ({"modified": WRITTEN, "created": EARLIER, "etag": None}, f"{WRITTEN}-4"),
        ({"modificationTime": WRITTEN.timestamp() * 1000}, f"{WRITTEN.timestamp()}-4"),
        ({"created": WRITTEN.timestamp()}, f"{WRITTEN.timestamp()}-4"),
    ],
)
def test_every_library_names_the_time_of_a_file_its_own_way(
    monkeypatch: pytest.MonkeyPatch, info: dict[str, object], version: str
) -> None:
    (entry,) = described(monkeypatch, info).entries("").values()
    assert (entry.size, entry.version, entry.modified) == (4, version, WRITTEN)


def test_a_file_of_the_first_second_has_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    known = described(monkeypatch, {"mtime": 0.0, "created": WRITTEN.timestamp()})
    assert known.entries("")["day/one"].modified == datetime.fromtimestamp(0, UTC)


def test_a_file_without_a_time_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = described(monkeypatch, {})
    with pytest.raises(WorkError, match="az://container/fleet does not say when day/one was"):
        silent.entries("")
    assert silent.sizes("") == {"day/one": 4}
