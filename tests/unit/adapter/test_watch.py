"""Following releases: each is processed exactly once, and published or held back."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import threading
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from mepof.adapter import attempt, watch
from mepof.adapter.feed.protocol import branch_of, version_key
from mepof.adapter.fit import Fit, Reason
from mepof.adapter.history import History
from mepof.adapter.repository.protocol import REPOSITORIES
from mepof.adapter.results import artifacts, described
from mepof.adapter.watched import read_task
from mepof.cli import watch as command
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.kernel.source import KernelVersion
from mepof.package.protocol import FORMATS
from mepof.plan.store import Store
from mepof.process import Completed, run
from mepof.source import keyring
from mepof.source.download import Busy

from .conftest import Mepof
from .world import FILE, PROGRAM, Trees, World, finish, reason


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
    (world.root / "update.g4").write_text(f"set config {above}{own}.\n{PROGRAM}")

    def checked(
        tree: Path, arch: object, toolchain: object, config: list[str], names: object
    ) -> Fit:
        assert config == [*above.split("+")[:-1], str(own)]
        return Fit(KernelVersion(6, 12, 3), "", None, (), (Reason("no such option"),), (), {})

    monkeypatch.setattr(attempt, "check_fit", checked)
    world.add("v6.12.3")
    world.round()
    assert reason(world.root, "v6.12.3") == "it does not fit: no such option"


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


def test_a_history_that_cannot_be_used_is_one_error(world: World) -> None:
    (world.root / "out").mkdir()
    (world.root / "out/history.sqlite").write_text("not a database" * 99)
    with pytest.raises(InputError, match="cannot be used: file is not a database") as caught:
        world.round()
    assert caught.value.message.count("cannot be used") == 1


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


def test_two_watchers_share_the_work(world: World) -> None:
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


@pytest.fixture
def elsewhere(world: World, mepof: Mepof, monkeypatch: pytest.MonkeyPatch) -> Mepof:
    """The command line in another directory than the watch file, whose program names a file."""
    (world.root / "my.config").write_text("CONFIG_NET=y\n")
    (world.root / "update.g4").write_text(f"set config slim+./my.config.\n{PROGRAM}")
    (world.root / "elsewhere").mkdir()
    monkeypatch.chdir(world.root / "elsewhere")

    def local(store: Path, cores: int | None, shared: str | None) -> Trees:
        assert store == world.root / "elsewhere/store"
        return world.executor

    monkeypatch.setattr(command, "local", local)
    monkeypatch.setattr(command, "_runner", lambda *given: world.builder)
    return mepof


def test_paths_of_a_program_are_relative_to_the_file(world: World, elsewhere: Mepof) -> None:
    world.add("v6.12.3")
    answer = elsewhere("watch", "../watch.toml", "--once", "--store", "store")
    assert (answer.status, world.states()["v6.12.3"]) == (0, "published")


def test_runs_have_the_options_of_the_watcher(
    world: World, mepof: Mepof, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def call(argv: list[str | Path], **how: object) -> Completed:
        ran.append([str(word) for word in argv[3:]])
        # Not on the command line, since its URL may have a password.
        assert how["env"] == {"MEPOF_SHARED_STORE": f"{world.root}/shared"}
        return world.builder(Path(argv[4]), Path(argv[6]))

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


@pytest.mark.parametrize("lost", ["my.config", "keys.gpg"])
def test_a_file_that_is_missing_is_an_error_before_there_is_a_release(
    world: World, elsewhere: Mepof, lost: str
) -> None:
    (world.root / "watch.toml").write_text(f'{FILE}signed-by = "./keys.gpg"\n')
    (world.root / "keys.gpg").touch()
    (world.root / lost).unlink()
    (world.root / "elsewhere" / lost).touch()
    answer = elsewhere("watch", "../watch.toml", "--once", "--store", "store")
    assert answer.status == 2
    assert f"./{lost} does not exist" in answer.err.replace("`", "")
    assert f"paths are relative to {world.root}" in answer.err
    assert not (world.root / "out").exists()


@pytest.mark.parametrize("how", ["--once", "--history"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('minisign = "nokey"', "there is no minisign key "),
        ('sign = "0xDEAD"', "GnuPG has no secret key `0xDEAD`"),
        ('notify = ["/nope"]', "watch.toml: `notify`: there is no program `/nope`"),
        ('notify = ["./told", "x"]', "watch.toml: `notify`: there is no program `./told`"),
    ],
)
def test_a_key_and_the_command_of_notify_must_be_there(
    world: World,
    elsewhere: Mepof,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    line: str,
    message: str,
) -> None:
    (world.root / "watch.toml").write_text(f"{line}\n{FILE}")
    for name in ("minisign", "elsewhere/told"):
        (world.root / name).touch(0o755)
    monkeypatch.setenv("PATH", str(world.root), prepend=os.pathsep)
    monkeypatch.setenv("GNUPGHOME", str(world.root))
    answer = elsewhere("watch", "../watch.toml", how, "--store", "store")
    assert answer.status == 2
    assert message in answer.err
    assert not (world.root / "out").exists()


def test_the_command_of_notify_is_found_beside_the_file(world: World, elsewhere: Mepof) -> None:
    (world.root / "watch.toml").write_text(f'notify = ["./told"]\n{FILE}')
    (world.root / "told").touch(0o755)
    assert elsewhere("watch", "../watch.toml", "--history").status == 0


def test_the_keyring_that_a_feed_implies_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "watch.toml").write_text(
        f'{FILE[: FILE.index("[[")]}[[follow]]\nname = "k"\nfeed = "kernel-org"\n'
    )
    (tmp_path / "update.g4").write_text(PROGRAM)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(keyring, "_SYSTEM", tmp_path)
    task = read_task(tmp_path / "watch.toml")
    with pytest.raises(EnvironmentLack, match=r"no keyring `kernel\.org` on this machine"):
        task.check()
    (tmp_path / "kernel.org.gpg").touch()
    task.check()


@pytest.mark.parametrize(
    ("form", "program", "package"),
    [
        ("rpm", "createrepo_c", "createrepo-c"),
        ("rpm", "rpmbuild", "rpm"),
        ("pkg", "repo-add", "pacman-package-manager"),
        ("pkg", "zstd", "zstd"),
    ],
)
def test_what_writes_packages_and_the_repository_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, program: str, package: str
) -> None:
    (tmp_path / "watch.toml").write_text(FILE)
    (tmp_path / "update.g4").write_text(f"set package {form}.\n{PROGRAM}")
    task = read_task(tmp_path / "watch.toml")
    for name, _ in (*FORMATS.get(form).programs, *REPOSITORIES.get(form).programs):
        (tmp_path / name).touch(0o755)
    (tmp_path / program).unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLack, match=f"{program} is not installed") as caught:
        task.check()
    assert caught.value.remedy == f"apt-get install {package}"
    # What only other formats need is not asked for.
    (tmp_path / "update.g4").write_text(f"set package deb.\n{PROGRAM}")
    read_task(tmp_path / "watch.toml").check()


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("index.json", ""),
        ("indexes", ""),
        ("rpm", ""),
        ("index.json.asc", 'sign = "key"\n'),
        ("index.json.minisig", 'minisign = "key"\n'),
    ],
)
def test_a_file_where_something_will_be_published_is_refused_before_anything_is_built(
    tmp_path: Path, name: str, sign: str
) -> None:
    (tmp_path / "watch.toml").write_text(sign + FILE)
    (tmp_path / "update.g4").write_text(f"set package rpm.\n{PROGRAM}")
    (tmp_path / "out/published").mkdir(parents=True)
    (tmp_path / "out/published/dists").mkdir()  # of no format of the program
    (tmp_path / "out/published/index.json.sig").touch()  # of no way to sign
    (tmp_path / "out/published" / name).touch()
    with pytest.raises(InputError, match=f"/{name} is not of mepof.*as `publish`"):
        read_task(tmp_path / "watch.toml").check()


def test_releases_are_ordered_as_people_read_them() -> None:
    names = ["v6.13", "v6.12.10", "v6.13-rc2", "v6.12.9", "v6.12"]
    assert sorted(names, key=version_key) == ["v6.12", "v6.12.9", "v6.12.10", "v6.13-rc2", "v6.13"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[[follow]]", "[judge]\nreuse = 101\n[[follow]]"), "less than or equal to 100"),
        (("[[follow]]", "[judge]\nreuse = 50\n[[follow]]"), "must not be below"),
        (("[[follow]]", "worse = -1\n[[follow]]"), "greater than or equal to 0"),
        (("[[follow]]", 'sign = "a"\nminisign = "b"\n[[follow]]'), "not by both"),
        (
            ("[[follow]]", '[[webhook]]\nurl = "ftp://x"\nsecret = "k"\n[[follow]]'),
            "write an http",
        ),
        (
            ("[[follow]]", '[[webhook]]\nurl = "http://x"\nsecret = "k"\n[[follow]]'),
            "cannot be read",
        ),
        (('feed = "git"', 'feed = "gti"'), "unknown feed `gti`"),
        (('url = "https://example.org/linux.git"', ""), "follows git and has no `url`"),
        (("https://example.org", "ext::sh"), "is not a URL that mepof lets git read"),
        (
            ("https://example.org", "/tmp"),
            r"/watch\.toml: `stable`: `url`: `/tmp/linux\.git` is not a URL .*file:///PATH",
        ),
        (
            ("linux.git", "linux.git#v6.12"),
            r"`stable`: `url`: `\S+#v6\.12` names a tag or a branch",
        ),
        (("https://example.org", "https://"), "^(?!.*v1).*`https:///linux.git` names no host"),
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


def test_a_program_with_errors_is_refused_before_there_is_a_release(tmp_path: Path) -> None:
    (tmp_path / "update.g4").write_text("adap {source} pgo rand kbench.\neval plain;opt.\n")
    (tmp_path / "watch.toml").write_text(FILE)
    with pytest.raises(InputError, match=r"update\.g4:2:12: error: unknown image `opt`"):
        read_task(tmp_path / "watch.toml")


def test_a_program_that_flashes_is_refused_before_there_is_a_release(tmp_path: Path) -> None:
    text = "set device phone.\nbuild {source}.\nflash build.img.\n"
    (tmp_path / "update.g4").write_text(text)
    (tmp_path / "watch.toml").write_text(FILE)
    with pytest.raises(InputError, match=r"update\.g4 flashes a phone"):
        read_task(tmp_path / "watch.toml")


def test_a_program_without_a_place_for_the_release_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "update.g4").write_text("opt /src pgo rand kbench.\n")
    (tmp_path / "watch.toml").write_text(FILE)
    with pytest.raises(InputError, match="does not say where the release goes"):
        read_task(tmp_path / "watch.toml")
