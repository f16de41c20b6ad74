"""Following releases: each is processed exactly once, and published or held back."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from mepof.adapter import attempt, watch
from mepof.adapter.feed.protocol import branch_of, version_key
from mepof.adapter.fit import Fit, Reason
from mepof.adapter.history import History
from mepof.adapter.results import artifacts, described
from mepof.cli import watch as command
from mepof.errors import InputError, WorkError
from mepof.executor.pins import PINS, write_pins
from mepof.kernel.source import KernelVersion
from mepof.plan.store import Store
from mepof.process import Completed, run
from mepof.source.download import Busy

from .conftest import Mepof
from .world import FILE, PROGRAM, World, finish, reason, watcher_of


def test_of_what_is_there_only_the_newest_is_made_and_then_each_new_one_once(
    world: World,
) -> None:
    world.round()
    assert world.states() == {"v6.12.1": "earlier", "v6.12.2": "published"}
    world.round()
    assert world.builder.ran == ["v6.12.2/full"]
    world.tags.append("v6.12.3")
    world.round()
    world.round()
    assert world.builder.ran == ["v6.12.2/full", "v6.12.3/full", "v6.12.3/full/last-good"]
    assert world.published() == ["stable-v6.12.2", "stable-v6.12.3"]
    assert world.index() == ["v6.12.2", "v6.12.3"]
    made = world.provenance("v6.12.3")
    assert made["address"] == "git+https://example.org/linux.git#tag=v6.12.3"
    files = {"adap.img", "adap.afdo", "program.g4", "last-good/program.g4"}
    assert set(made["sha256"]) == files
    assert made["sha256"]["adap.img"] == sha256(b"100").hexdigest()


@pytest.mark.parametrize("above", ["", "slim+"])
def test_a_release_is_checked_with_the_users_own_configuration(
    world: World, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    own = world.root / "my.config"
    own.write_text("CONFIG_NO_SUCH_THING=y\n")
    (world.root / "update.g4").write_text(f"set config {above}{own}.\nset dropped note.\n{PROGRAM}")

    def checked(
        tree: Path,
        arch: object,
        toolchain: object,
        config: list[str],
        names: object,
        note_dropped: bool,
    ) -> Fit:
        assert config == [*above.split("+")[:-1], str(own)]
        assert note_dropped
        return Fit(KernelVersion(6, 12, 3), "", None, (), (Reason("no such option"),), (), {}, ())

    monkeypatch.setattr(attempt, "check_fit", checked)
    world.add("v6.12.3")
    world.round()
    assert reason(world.root, "v6.12.3") == "it does not fit: no such option"


def test_the_mark_may_be_in_quotes(world: World) -> None:
    (world.root / "update.g4").write_text(PROGRAM.replace("{source}", '"{source}"'))
    world.round()
    assert world.published() == ["stable-v6.12.2"]
    assert (
        '"git+https://example.org/linux.git#tag=v6.12.2" ' in world.builder.programs["v6.12.2/full"]
    )


def test_what_fails_is_held_back_with_its_reason(world: World) -> None:
    world.builder.outcomes["v6.12.2"] = (1, "noise\nmepof: goal missed: opt, geomean: 1.0 of 8")
    world.round()
    world.round()
    assert world.builder.ran == ["v6.12.2/full"] and world.published() == []
    assert world.states()["v6.12.2"] == "held"
    assert reason(world.root, "v6.12.2") == "goal missed: opt, geomean: 1.0 of 8"
    assert any("v6.12.2 held: goal missed" in line for line in world.said)


def test_a_wrong_signature_holds_back_and_a_silent_server_is_asked_again(world: World) -> None:
    world.executor.error = InputError("it is not signed by `kernel.org`")
    world.round()
    assert world.states()["v6.12.2"] == "held"
    world.executor.error = WorkError("HTTP status 503, 6 times")
    world.tags.append("v6.12.3")
    for number in range(watch.MAX_ATTEMPTS):
        assert world.states().get("v6.12.3", "retry") == "retry", number
        world.round()
        world.round()  # not before its time
        world.clock += 2 * 24 * 3600
    assert world.states()["v6.12.3"] == "held"
    assert world.builder.ran == []


def test_a_release_that_becomes_reachable_is_published(world: World) -> None:
    world.executor.error = WorkError("HTTP status 503, 6 times")
    world.round()
    world.executor.error = None
    world.round()
    assert world.builder.ran == []
    world.clock += 3600
    world.round()
    assert world.published() == ["stable-v6.12.2"]


def test_a_full_disk_is_tried_again(world: World) -> None:
    world.builder.outcomes["v6.12.2"] = (1, f"mepof: build: {os.strerror(28)}")
    world.round()
    assert world.states()["v6.12.2"] == "retry"


@pytest.mark.parametrize("run", ["full", "full/last-good"])
def test_a_run_that_is_killed_is_tried_again(world: World, run: str) -> None:
    world.add("v6.12.3")
    world.round()
    world.configure("[judge]\nreuse = 0\nrefresh = 0\n")
    world.add("v6.12.4", write="return 2;")
    real = world.builder

    def killed(program: Path, out: Path) -> Completed:
        done = real(program, out)
        return Completed((), -9, "") if real.ran[-1] == f"v6.12.4/{run}" else done

    watcher_of(world.root, world.executor, killed, lambda: world.clock, world.said).round()
    assert world.states()["v6.12.4"] == "retry"
    assert reason(world.root, "v6.12.4") == "mepof run was killed by SIGKILL"


def test_what_is_settled_is_given_to_the_run(
    world: World, mepof: Mepof, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def call(argv: list[str | Path], **how: object) -> Completed:
        ran.extend(str(word) for word in argv)
        return Completed((), 0, "")

    runs = command._runner(call, {}, None)
    program = world.root / "program.g4"
    program.write_text("build git+file:///gone/linux#tag=v6.12.3.\n")
    pins = {"git+file:///gone/linux#tag=v6.12.3": {"commit": "0123456789" * 4}}
    runs(program, world.root)
    assert not any(word.startswith("--pins") for word in ran)
    write_pins(pins, world.root / PINS)
    runs(program, world.root)
    assert ran[-1] == f"--pins={world.root / PINS}"
    monkeypatch.setenv("MEPOF_STORE", str(world.root / "store"))
    assert mepof("run", "program.g4", "--dry-run", ran[-1]).status == 0
    assert mepof("run", "program.g4", "--dry-run").status == 1, "no server has it"


@pytest.mark.parametrize("moment", ["before publishing", "before noting"])
def test_what_a_killed_watcher_was_at_is_published_once(
    world: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Killed(BaseException):
        pass

    def die(*args: object) -> None:
        raise Killed

    where, name = (attempt, "publish") if moment == "before publishing" else (watch, "write_index")
    with monkeypatch.context() as patched:
        patched.setattr(where, name, die)
        with pytest.raises(Killed):
            world.round()
    assert world.states()["v6.12.2"] == "running"
    world.round()
    world.round()
    assert world.states()["v6.12.2"] == "published"
    assert world.published() == ["stable-v6.12.2"] and world.index() == ["v6.12.2"]
    assert len(world.builder.ran) == (2 if moment == "before publishing" else 1)


def test_two_watchers_share_the_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each goes to the directory of its file and back, which two processes can do at the same time.
    monkeypatch.chdir(world.root)
    first, second = (threading.Thread(target=world.round) for _ in range(2))
    first.start()
    second.start()
    first.join()
    second.join()
    assert world.builder.ran == ["v6.12.2/full"]
    assert world.published() == ["stable-v6.12.2"]


def test_a_release_whose_image_is_worse_than_the_last_good_one_is_held_back(world: World) -> None:
    world.add("v6.12.3")
    world.round()
    world.builder.speeds |= {"v6.12.4": 97, "v6.12.5": 98}
    world.add("v6.12.4")
    world.round()
    assert world.states()["v6.12.4"] == "held"
    assert reason(world.root, "v6.12.4") == (
        "worse than the last good image, v6.12.3: goal missed: adap, geomean: -3.0 of -2.0"
    )
    # The next one is compared with the last that was good, and may be 2 % worse.
    world.add("v6.12.5")
    world.round()
    assert world.states()["v6.12.5"] == "published"
    assert world.provenance("v6.12.5")["compared_with"] == "v6.12.3"
    world.configure("worse = 0")
    world.builder.speeds["v6.12.6"] = 97
    world.add("v6.12.6")
    world.round()
    assert world.states()["v6.12.6"] == "held"


def test_branches_of_one_follow_are_apart(world: World) -> None:
    world.tags = []
    for tag in ("v6.6.117", "v6.6.118", "v6.12.60", "v6.12.61"):
        world.add(tag)
    world.builder.speeds |= {"v6.6.118": 100, "v6.12.61": 80}
    world.round()
    assert world.states() == {
        "v6.6.117": "earlier",
        "v6.6.118": "published",
        "v6.12.60": "earlier",
        "v6.12.61": "published",
    }
    world.add("v6.6.119")
    world.add("v6.18.1")
    world.round()
    assert world.provenance("v6.6.119")["compared_with"] == "v6.6.118"
    assert world.provenance("v6.6.119")["profiles"]["adap"]["release"] == "v6.6.118"
    assert world.provenance("v6.18.1")["profile"] == "full"
    assert world.provenance("v6.18.1")["compared_with"] is None


@pytest.mark.parametrize("packaged", [True, False])
def test_a_repository_of_several_branches_is_warned_of(world: World, packaged: bool) -> None:
    if packaged:
        (world.root / "update.g4").write_text(f"set package deb.\n{PROGRAM}")
    # What a run would make has no packages.
    world.executor.error = WorkError("HTTP status 503")
    world.round()
    world.add("v6.12.3")
    world.round()
    assert not any("branch" in line for line in world.said)
    world.add("v6.6.118")
    world.round()
    warning = "stable: v6.12.3, v6.6.118 are of different branches, and its repository has one"
    assert sum(line.startswith(warning) for line in world.said) == packaged
    world.watcher().warn()
    assert sum(line.startswith(warning) for line in world.said) == 2 * packaged


@pytest.mark.parametrize(
    ("name", "branch"),
    [
        ("6.12.95", "6.12"),
        ("v6.12.95", "6.12"),
        ("6.12.94-1~bpo12+1", "6.12"),
        ("v6.6.118-rc1", "6.6"),
        ("v6.12", ""),
        ("6.19-rc3", ""),
        ("android15-6.6-2026-01_r1", ""),
    ],
)
def test_a_point_release_continues_the_branch_of_its_version(name: str, branch: str) -> None:
    assert branch_of(name) == branch


def test_releases_whose_names_would_be_equal_are_both_made(world: World) -> None:
    longer = FILE.replace("stable", "stable-rt")
    (world.root / "watch.toml").write_text(longer)
    world.tags = ["rt-v6.12.2"]
    world.add("v6.12.2")
    world.round()
    table = FILE[FILE.index("[[follow]]") :]
    (world.root / "watch.toml").write_text(longer + table)
    world.round()
    world.add("v6.12.3")
    world.round()
    made = {}
    for path in world.root.glob("out/published/[!.]*/provenance.json"):
        provenance = json.loads(path.read_text())
        made[provenance["follow"], provenance["release"]] = path.parent.name
        if provenance["release"] == "v6.12.3":
            assert provenance["compared_with"] == "v6.12.2"
    releases = ("rt-v6.12.2", "v6.12.2", "v6.12.3")
    assert made.keys() == {(f, r) for f in ("stable", "stable-rt") for r in releases}
    # What was published keeps its name.
    assert made["stable-rt", "v6.12.2"] == "stable-rt-v6.12.2"
    assert made["stable", "v6.12.2"] == "stable-v6.12.2"
    assert re.fullmatch("stable-rt-v6.12.2-[0-9a-f]{8}", made["stable", "rt-v6.12.2"])
    assert re.fullmatch("stable-rt-v6.12.3-[0-9a-f]{8}", made["stable-rt", "v6.12.3"])


def test_a_release_that_was_held_back_is_processed_again_by_hand(world: World) -> None:
    world.builder.outcomes["v6.12.2"] = (1, "mepof: it does not boot")
    world.round()
    world.builder.outcomes.clear()
    # What this attempt made may be of another program than that which is run now.
    (world.root / "out/runs/stable-v6.12.2/full/old.img").write_text("100")
    history = History(world.root / "out/history.sqlite")
    assert history.again("v6.12.2", "now") == 1
    assert history.again("v6.12.7", "now") == 0
    world.round()
    assert world.states()["v6.12.2"] == "published"
    made = world.root / "out/published/stable-v6.12.2"
    assert (made / "adap.img").exists() and not (made / "old.img").exists()
    assert history.again("v6.12.2", "now") == 0


@pytest.mark.parametrize("state", ["retry", "held"])
@pytest.mark.parametrize("line", ['signed-by = "./keys.gpg"\n', ""])
def test_a_release_is_fetched_and_verified_as_the_file_says_now(
    world: World, state: str, line: str
) -> None:
    world.executor.error = (WorkError if state == "retry" else InputError)("not there")
    world.round()
    assert world.states()["v6.12.2"] == state
    world.executor.error = None
    (world.root / "watch.toml").write_text(FILE.replace("example", "mirror.example") + line)
    if state == "held":
        History(world.root / "out/history.sqlite").again("v6.12.2", "now")
    world.clock += 3600
    world.round()
    address = "git+https://mirror.example.org/linux.git#tag=v6.12.2"
    made = world.provenance("v6.12.2")
    assert made["address"] == address + ("&signed-by=./keys.gpg" if line else "")
    entries = History(world.root / "out/history.sqlite").entries()
    assert entries[-1].address == made["address"]


def test_a_feed_that_asks_to_wait_is_not_asked_before(world: World) -> None:
    world.feed_error = Busy("HTTP status 503", "later", 5 * 24 * 3600.0)
    world.round()
    world.clock += 4.9 * 24 * 3600
    world.round()
    assert world.asked == 1
    world.clock += 1.5 * 24 * 3600
    world.round()
    assert world.asked == 2


def test_configurations_and_descriptions_are_published(world: World) -> None:
    store = Store(world.root / "store")
    for digest, files in {
        "a" * 64: {"config": "CONFIG_SMP=y\n", "build.json": "{}", "kernel": "image"},
        "b" * 64: {"kernel.afdo": "profile"},
    }.items():
        store.object(digest).mkdir(parents=True)
        for name, text in files.items():
            (store.object(digest) / name).write_text(text)
    out = world.root / "run"
    out.mkdir()
    finish(out, store, {"adap/build": "a" * 64, "adap/profile": "b" * 64})
    results = [
        {"name": "adap", "kind": "image", "step": "adap/build"},
        {"name": "adap", "kind": "profile", "step": "adap/profile"},
        {"name": "report", "kind": "report", "step": "report"},
    ]
    (out / "plan.json").write_text(json.dumps({"results": results}))
    assert dict(described(artifacts(out))) == {
        "adap.config": store.object("a" * 64) / "config",
        "adap.build.json": store.object("a" * 64) / "build.json",
    }
    assert artifacts(world.root) == {}


def test_paths_of_a_program_are_relative_to_the_file(world: World, elsewhere: Mepof) -> None:
    world.add("v6.12.3")
    answer = elsewhere("watch", "../watch.toml", "--once", "--store", "store")
    assert (answer.status, world.states()["v6.12.3"]) == (0, "published")


def test_runs_have_the_options_of_the_watcher(
    world: World, mepof: Mepof, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def call(argv: list[str | Path], **how: object) -> Completed:
        words = [str(word) for word in argv]
        # Not what is beside the watched file.
        assert words[1] == "-P"
        ran.append(words[words.index("run") :])
        # Not on the command line, since its URL may have a password.
        assert how["env"] == {"MEPOF_SHARED_STORE": f"{world.root}/shared"}
        return world.builder(Path(ran[-1][1]), Path(ran[-1][3]))

    monkeypatch.setattr(command, "local", lambda *given: world.executor)
    monkeypatch.setattr(command, "run", call)
    words = ("--executor", "dask", "--store", "store", "--shared-store", "shared", "--cores", "3")
    assert mepof("watch", "watch.toml", "--once", *words).status == 0
    out = world.root / "out/runs/stable-v6.12.2/full"
    here = world.root
    given = ("--executor=dask", f"--store={here}/store")
    assert ran == [["run", f"{out}/program.g4", "--out", str(out), *given, "--cores=3"]]
    answer = mepof("watch", "watch.toml", "--once", "--store", "store", "--executor", "dsak")
    assert answer.status == 2 and "unknown executor `dsak`" in answer.err


def test_the_history_lists_releases_and_what_became_of_each(world: World, mepof: Mepof) -> None:
    empty = mepof("watch", "watch.toml", "--history")
    assert (empty.status, empty.out, empty.err) == (0, "", "no release has been seen yet\n")
    world.round()
    listed = mepof("watch", "watch.toml", "--history")
    assert [line.split()[1:4] for line in listed.out.splitlines()] == [
        ["stable", "v6.12.1", "earlier"],
        ["stable", "v6.12.2", "published"],
    ]
    one = mepof("watch", "watch.toml", "--history", "--release", "v6.12.2")
    assert "published" in one.out and "v6.12.1" not in one.out.split("\n")[0]
    assert len(one.out.splitlines()) > 2
    data = json.loads(mepof("watch", "watch.toml", "--history", "--json").out)
    assert [each["state"] for each in data["releases"]] == ["earlier", "published"]
    unknown = mepof("watch", "watch.toml", "--history", "--release", "v7")
    assert unknown.status == 2 and "the history has no release `v7`" in unknown.err


def test_a_run_ends_with_a_watcher_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "update.g4"
    os.mkfifo(program)
    if (watcher := os.fork()) == 0:
        try:
            command._runner(run, {"store": tmp_path}, None)(program, tmp_path / "out")
        finally:
            os._exit(0)
    with program.open("wb", buffering=0) as file:  # waits until the run reads it
        os.kill(watcher, signal.SIGKILL)
        os.waitpid(watcher, 0)
        poll = select.poll()
        poll.register(file, 0)
        assert poll.poll(60_000), "the run still reads it"


def test_apps_of_the_program_are_found_beside_the_file(world: World, elsewhere: Mepof) -> None:
    actions = "".join(
        f'[[action]]\nname = "{name}"\nargv = ["/bin/busybox", "true"]\nseconds = 1\n'
        for name in ("buy", "sell")
    )
    (world.root / "shop.toml").write_text(f'title = "Shop"\n{actions}')
    program = PROGRAM.replace("kbench", "./shop.toml")
    (world.root / "update.g4").write_text(f"set without sell.\n{program}")
    assert elsewhere("watch", "../watch.toml", "--history").status == 0


def test_releases_are_ordered_as_people_read_them() -> None:
    names = [
        *("v6.12", "v6.12.9", "v6.12.9-rt4", "v6.12.10"),
        *("v6.13-rc3", "v6.13-rc3-rt1", "v6.13-rc4", "v6.13-rc10", "v6.13", "v6.13-rt1", "v6.13.1"),
    ]
    assert sorted(sorted(names), key=version_key) == names
