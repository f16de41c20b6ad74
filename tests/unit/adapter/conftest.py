"""The command line, called as a user calls it, a world in which releases appear, and a tree that
fits."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from writers.shell import Shell

from mepof.adapter import attempt, watch
from mepof.adapter.feed.git import FEED
from mepof.cli import watch as command
from mepof.kernel import kconfig
from mepof.toolchain.clang import Clang

from .fitting import TREE, Present
from .world import FILE, PROGRAM, Trees, World

Mepof = Shell


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clang:
    header = tmp_path / "resources/include/profile/InstrProfData.inc"
    header.parent.mkdir(parents=True)
    header.touch()
    monkeypatch.setattr(Present, "resources", tmp_path / "resources")
    return Present("-22")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "linux"
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    wanted = kconfig.merge(kconfig.paths("slim", "x86-64")).settings
    (root / "Kconfig").write_text(
        "".join(f"config {s.symbol}\n\tbool\n\n" for s in wanted) + "menuconfig DEBUG_FS\n"
    )
    return root


@pytest.fixture
def mepof(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Mepof:
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capsys)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    (tmp_path / "watch.toml").write_text(FILE)
    (tmp_path / "update.g4").write_text(PROGRAM)
    made = World(tmp_path, ["v6.12.1", "v6.12.2"])
    made.executor.root = tmp_path
    feed = SimpleNamespace(look=made.look, check=lambda follow: None, current=FEED.current)
    monkeypatch.setattr(watch, "FEEDS", SimpleNamespace(get=lambda name: feed))
    # Whether a tree fits is tested with trees that do.
    nothing = SimpleNamespace(reasons=(), config=(), algorithms=())
    monkeypatch.setattr(attempt, "check_fit", lambda *given, **named: nothing)
    monkeypatch.setattr(
        attempt, "select", lambda name: SimpleNamespace(name=name, version_for=lambda arch: "22.1")
    )
    return made


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
