"""Releases appear on real servers, and are published or held back without a hand.

Everything is as in a watcher at work, except that nobody compiles: see ``world.py``.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from source.conftest import (
    Handler,
    Server,
    Signer,
    git,
    repository,
    server,
    signer,
    status,
    stranger,
)
from source.test_debian import PACKAGE, add_package, apt
from source.test_debian import publish as publish_suite
from source.test_git import daemon
from writers.kills import calls_of, killed_at

from mepof.adapter import attempt
from mepof.adapter.watch import Watcher
from mepof.executor.local import LocalExecutor
from mepof.executor.pins import PINS, read_pins
from mepof.plan.model import Plan
from mepof.process import Completed
from mepof.source import download

from .world import PROGRAM, Builder, Sources, Trees, events, lay, reason, states, watcher_of

__all__ = ["apt", "daemon", "repository", "server", "signer", "stranger"]  # fixtures


@dataclass
class Site:
    """A directory with a watch file, and a clock that the test moves."""

    root: Path
    builder: Builder = field(default_factory=Builder)
    said: list[str] = field(default_factory=list)
    clock: float = 1_000_000.0

    def file(self, table: str, lines: str = "") -> None:
        (self.root / "update.g4").write_text(PROGRAM)
        text = f'program = "update.g4"\npublish = "out"\n{lines}\n[[follow]]\nname = "f"\n{table}\n'
        (self.root / "watch.toml").write_text(text)

    def watcher(self) -> Watcher:
        executor = Sources(LocalExecutor(self.root / "store", 1), Trees(root=self.root))
        return watcher_of(self.root, executor, self.builder, lambda: self.clock, self.said)

    def round(self) -> None:
        self.clock += 2 * 24 * 3600.0
        self.watcher().round()

    def states(self) -> dict[str, str]:
        return states(self.root)

    def published(self) -> list[str]:
        """What is published, as the index and the directories say."""
        published = self.root / "out/published"
        index = json.loads((published / "index.json").read_text())["releases"]
        whole = sorted(path.parent.name for path in published.glob("[!.]*/provenance.json"))
        assert sorted(each["directory"] for each in index) == whole
        return [name.removeprefix("f-") for name in whole]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    nothing = SimpleNamespace(reasons=(), config=(), algorithms=())
    monkeypatch.setattr(attempt, "check_fit", lambda *given, **named: nothing)
    monkeypatch.setattr(
        attempt, "select", lambda name: SimpleNamespace(name=name, version_for=lambda arch: "22.1")
    )
    monkeypatch.setattr(download, "_FIRST_WAIT", 0.001)
    root = tmp_path / "site"
    root.mkdir()
    yield Site(root)
    subprocess.run(["chmod", "-R", "u+w", root], check=True)  # artifacts are read-only


# kernel.org's list of releases


@dataclass
class Kernels:
    """A mirror of kernel.org."""

    server: Server
    signer: Signer
    work: Path
    releases: list[dict[str, str]] = field(default_factory=list)

    def add(self, version: str, by: Signer | None = None, write: str = "return 1;") -> Path:
        """A release appears: its tarball, the signature of it, and its entry in the list."""
        tree = lay(self.work / f"linux-{version}", int(version.rpartition(".")[2]), write)
        plain = self.server.root / f"linux-{version}.tar"
        subprocess.run(["tar", "-cf", plain, "-C", tree.parent, tree.name], check=True)
        (by or self.signer).sign(plain, plain.with_suffix(".tar.sign"))
        subprocess.run(["xz", "-0", plain], check=True)
        source = f"/linux-{version}.tar.xz"
        self.releases.insert(0, {"moniker": "stable", "version": version, "source": source})
        path = self.server.root / "releases.json"
        path.write_text(json.dumps({"releases": self.releases}))
        return plain.with_suffix(".tar.xz")

    def fetched(self, version: str) -> int:
        return sum(path == f"/linux-{version}.tar.xz" for _, path, _ in self.server.asked)


@pytest.fixture
def kernels(server: Server, signer: Signer, tmp_path: Path, site: Site) -> Kernels:
    site.file(
        f'feed = "kernel-org"\nurl = "{server.url}/releases.json"\n'
        f'signed-by = "{signer.keyring}"\nmatch = "6.12.*"'
    )
    made = Kernels(server, signer, tmp_path)
    made.add("6.12.1")
    return made


def test_a_release_in_the_list_is_published_and_each_other_has_a_reason(
    site: Site,
    kernels: Kernels,
    stranger: Signer,
) -> None:
    site.round()
    assert site.published() == ["6.12.1"]
    kernels.add("6.12.2", write="return 2;")
    kernels.add("6.12.3", by=stranger)
    kernels.add("6.12.4")
    kernels.add("6.12.5")
    kernels.add("6.12.6")
    kernels.add("7.1.1")
    site.builder.outcomes["6.12.4"] = (1, "mepof: build: kernel/fork.c:1:2: error: expected ;")
    site.builder.speeds["6.12.5"] = 90
    site.round()
    site.round()
    assert site.states() == {
        "6.12.1": "published",
        "6.12.2": "published",
        "6.12.3": "held",
        "6.12.4": "held",
        "6.12.5": "held",
        "6.12.6": "published",
    }
    assert site.published() == ["6.12.1", "6.12.2", "6.12.6"]
    assert "is not signed by" in reason(site.root, "6.12.3")
    assert "kernel/fork.c:1:2: error" in reason(site.root, "6.12.4")
    last = "worse than the last good image, 6.12.2: goal missed"
    assert reason(site.root, "6.12.5").startswith(last)
    # Each good one was made once, with the old profile; what failed so was run in full.
    good = [run for run in site.builder.ran if run.startswith(("6.12.2/", "6.12.6/"))]
    assert good == [f"6.12.{n}/reuse{c}" for n in (2, 6) for c in ("", "/last-good")]
    assert "6.12.4/reuse" in site.builder.ran and "6.12.4/full" in site.builder.ran
    assert [name for name, _ in events(site.root, "6.12.2")] == [
        *("found", "begun", "decided", "built", "compared", "published")
    ]


@pytest.mark.parametrize("late", [".xz", ".sign"])
@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_release_that_a_mirror_does_not_have_yet_is_tried_again(
    site: Site, kernels: Kernels, late: str, code: int
) -> None:
    (site.root / "store").mkdir()
    answers = [lambda handler: False] * (1 if late == ".xz" else 2)
    kernels.server.script = [*answers, status(code)]
    site.round()
    assert site.states() == {"6.12.1": "retry"}
    assert f"linux-6.12.1.tar{late}" in reason(site.root, "6.12.1")
    site.round()
    assert site.published() == ["6.12.1"]
    assert kernels.fetched("6.12.1") == (2 if late == ".xz" else 1)


def test_an_old_release_under_the_name_of_a_new_one_is_held_back(
    site: Site, kernels: Kernels
) -> None:
    site.round()
    new = kernels.add("6.12.2")
    for ending in (".xz", ".sign"):
        old = kernels.server.root / f"linux-6.12.1.tar{ending}"
        shutil.copyfile(old, new.with_suffix(ending))
    site.round()
    assert site.states()["6.12.2"] == "held"
    assert reason(site.root, "6.12.2") == "what is signed is Linux 6.12.1, not 6.12.2"


@pytest.mark.parametrize("code", [429, 503])
def test_a_busy_server_delays_a_release_and_loses_none(
    site: Site, kernels: Kernels, code: int
) -> None:
    kernels.server.script = [status(code)] * download.MAX_ATTEMPTS
    site.round()
    assert site.states() == {}
    assert f"HTTP status {code}" in site.said[-1]
    site.round()
    assert site.published() == ["6.12.1"]
    kernels.add("6.12.2")
    # The list is there, and then nothing is for a while.
    kernels.server.script = [lambda handler: False, *[status(code)] * download.MAX_ATTEMPTS]
    site.round()
    assert site.states()["6.12.2"] == "retry"
    assert f"HTTP status {code}" in reason(site.root, "6.12.2")
    site.round()
    assert site.published() == ["6.12.1", "6.12.2"]


def test_half_a_tarball_is_continued(site: Site, kernels: Kernels) -> None:
    half = kernels.server.root / "linux-6.12.1.tar.xz"

    def cut(handler: Handler) -> bool:
        handler.give(half.read_bytes(), cut=half.stat().st_size // 2)
        return True

    kernels.server.script = [lambda handler: False, cut]
    site.round()
    assert site.published() == ["6.12.1"]
    ranges = [given for _, path, given in kernels.server.asked if path == f"/{half.name}"]
    assert ranges == [None, f"bytes={half.stat().st_size // 2}-"]


def test_a_redirect_loop_holds_back(site: Site, kernels: Kernels) -> None:
    loop = status(302, Location="/linux-6.12.1.tar.xz")
    kernels.server.script = [lambda handler: False, *[loop] * 40]
    site.round()
    assert site.states() == {"6.12.1": "held"}
    assert "redirects more than 5 times" in reason(site.root, "6.12.1")
    assert len(kernels.server.asked) < 10


def test_a_list_that_has_not_changed_is_not_sent_again(site: Site, kernels: Kernels) -> None:
    wanted = []

    def conditional(handler: Handler) -> bool:
        wanted.append(handler.headers["If-None-Match"])
        return status(304)(handler)

    site.round()
    kernels.server.script = [conditional]
    site.round()
    assert wanted[0] is not None and site.published() == ["6.12.1"]


def test_a_release_that_was_held_back_is_taken_from_another_mirror(
    site: Site, kernels: Kernels
) -> None:
    lists = kernels.server.root / "releases.json"
    listed = lists.read_text()
    lists.write_text(listed.replace("/linux-", "/empty/linux-"))
    kernels.server.script = [lambda handler: False, status(400)]
    site.round()
    assert site.states() == {"6.12.1": "held"}
    other = lists.with_name("other.json")
    other.write_text(listed)
    text = (site.root / "watch.toml").read_text()
    (site.root / "watch.toml").write_text(text.replace("releases.json", "other.json"))
    site.watcher().task.history().again("6.12.1", "now")
    site.round()
    assert site.published() == ["6.12.1"]


# Debian's index


def test_a_version_in_debians_index_is_published(
    site: Site,
    apt: Server,
    signer: Signer,
) -> None:
    site.file(f'feed = "debian"\npackage = "{PACKAGE}"')
    site.round()
    assert site.states() == {"6.12.94-1": "earlier", "6.12.95-1": "published"}
    add_package(apt.root, "6.12.96-1", 96)
    publish_suite(apt.root, "stable", signer)
    site.round()
    assert site.published() == ["6.12.95-1", "6.12.96-1"]


# Tags of a repository


@pytest.fixture
def tags(daemon: str, repository: Path, site: Site) -> Callable[..., None]:
    """Makes a tag in a repository that a git daemon serves and the site follows."""
    site.file(f'feed = "git"\nurl = "{daemon}"\nmatch = "v6.12.*"')

    def add(name: str, write: str = "return 1;") -> None:
        lay(repository, int(name.rpartition(".")[2]), write)
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--allow-empty", "--message", name)
        git(repository, "tag", name)

    return add


def test_what_was_checked_is_what_is_built_even_if_the_tag_moves(
    site: Site, tags: Callable[..., None], repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags("v6.12.3")
    site.round()
    tags("v6.12.4")
    checked = git(repository, "rev-parse", "v6.12.4")
    built: list[object] = []
    pins: list[object] = []

    def builds(plan: Plan, out: Path, sink: object) -> Any:
        built.extend(step.params["pin"] for step in plan.steps if step.kind == "kernel-source")
        return Trees(root=site.root).run(plan, out, sink)

    def runs(program: Path, out: Path) -> Completed:
        if program.with_name(PINS).exists():
            pins.extend(read_pins(program.with_name(PINS)).values())
        return site.builder(program, out)

    def moves(*given: object, **named: object) -> Any:
        git(repository, "tag", "--force", "v6.12.4", "v6.12.2")
        return SimpleNamespace(reasons=(), config=(), algorithms=())

    monkeypatch.setattr(attempt, "check_fit", moves)
    site.clock += 3600.0
    real = Sources(LocalExecutor(site.root / "store", 1), SimpleNamespace(run=builds))
    watcher_of(site.root, real, runs, lambda: site.clock, site.said).round()
    assert site.published() == ["v6.12.3", "v6.12.4"]
    pin = {"commit": checked, "ref": "refs/tags/v6.12.4"}
    assert built == [pin] and pins == [pin], "the old profile was used, and nothing was resolved"
    assert not list(site.root.glob(f"out/published/**/{PINS}"))


def test_two_watchers_at_once_publish_each_release_once(
    site: Site, tags: Callable[..., None]
) -> None:
    tags("v6.12.3")
    site.round()
    tags("v6.12.4")
    tags("v6.12.5")
    ran = site.root / "ran"
    children = []
    for _ in range(2):
        if (child := os.fork()) == 0:
            site.round()
            with ran.open("a") as file:
                file.writelines(f"{run}\n" for run in site.builder.ran[1:])
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert site.published() == ["v6.12.3", "v6.12.4", "v6.12.5"]
    runs = ran.read_text().split()
    assert sorted(runs) == sorted(set(runs)) and len(runs) == 4


@pytest.mark.parametrize("kills", [8, pytest.param(100, marks=pytest.mark.patient)])
def test_kill_9_at_random_moments_leaves_each_release_done_once(
    site: Site, tags: Callable[..., None], kills: int
) -> None:
    # A first round that dies before it has seen the releases makes a later one the first. It also
    # loads modules, whose calls would be among those of a round.
    site.round()
    tags("v6.12.3", write="return 0;")
    calls = _calls_of_a_round(site)
    chosen = random.Random(23)
    good = ["v6.12.2", "v6.12.3"]
    bad: list[str] = []
    killed = survived = 0
    busy = True
    while killed < kills:
        if not busy:
            number = 3 + survived
            (bad if number % 3 == 2 else good).append(f"v6.12.{number}")
            tags(f"v6.12.{number}", write=f"return {number};")
        site.builder.outcomes = dict.fromkeys(bad, (1, "mepof: it does not boot"))
        site.clock += 3600.0
        busy = killed_at(site.round, chosen.randrange(1, calls))
        killed += busy
        survived += not busy
        assert survived < 10 + 2 * kills, "hardly any round was killed"
    site.round()
    expected = dict.fromkeys(good, "published") | dict.fromkeys(bad, "held")
    assert site.states() == {"v6.12.1": "earlier"} | expected
    assert site.published() == sorted(good)
    for name in good:
        ends = [what for what, _ in events(site.root, name) if what in ("published", "held")]
        assert ends == ["published"], name
    for name in bad:
        assert reason(site.root, name) == "it does not boot"
    assert list((site.root / "out/published").glob(".*/")) == []


def _calls_of_a_round(site: Site) -> int:
    """How many functions a round calls that publishes a release, in a copy of the site."""
    copy = Site(site.root.with_name("copy"))
    shutil.copytree(site.root, copy.root, symlinks=True)
    calls = calls_of(copy.round)
    assert copy.published() == ["v6.12.2", "v6.12.3"]
    subprocess.run(["chmod", "-R", "u+w", copy.root], check=True)
    return calls


# Full disks


def test_a_file_that_cannot_be_written_is_tried_again(
    site: Site, tags: Callable[..., None]
) -> None:
    tags("v6.12.3")
    site.builder.size = 1 << 20
    if (child := os.fork()) == 0:
        try:
            (site.root / "store").mkdir()
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, resource.RLIM_INFINITY))
            site.round()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert site.states()["v6.12.3"] == "retry"
    assert "File too large" in reason(site.root, "v6.12.3")
    assert not (site.root / "out/published/f-v6.12.3").exists()
    site.clock += 24 * 3600.0  # the child's clock was its own
    site.round()
    assert site.published() == ["v6.12.3"]


@pytest.fixture
def small_disk(site: Site) -> Iterator[Path]:
    """A file system of 2 MiB at what is published."""
    disk = site.root / "out/published"
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_is_tried_again_and_leaves_nothing_behind(
    site: Site, tags: Callable[..., None], small_disk: Path
) -> None:
    tags("v6.12.3")
    site.builder.size = 1 << 20
    filler = small_disk / "filler"
    filler.write_bytes(bytes(3 << 19))
    site.round()
    assert site.states()["v6.12.3"] == "retry"
    assert "No space left on device" in reason(site.root, "v6.12.3")
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
    filler.unlink()
    site.round()
    assert site.published() == ["v6.12.3"]
