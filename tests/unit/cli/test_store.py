"""``mepof store``."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from plan.toy_bodies import Toy, plan_of, run, toy

from mepof.cli import store as command
from mepof.errors import InputError, WorkError
from mepof.plan.action import Action
from mepof.plan.fingerprint import Ingredients
from mepof.plan.store import Store

pytest.importorskip("fsspec")
pytest.importorskip("zstandard")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two finished steps, and one whose artifact is gone."""
    made = Store(tmp_path / "store")
    made.open()
    for number in range(3):
        with made.scratch() as tree:
            (tree / "file").write_text(str(number))
            artifact = made.commit(tree)
        ingredients = Ingredients("toy", None, {"n": number}, {}, {})
        made.record(
            Action(
                ingredients.fingerprint(),
                f"step{number}",
                ingredients,
                artifact,
                1.0,
                "2025-01-01T00:00:00+00:00",
            )
        )
    made.object(artifact.digest).rename(tmp_path / "gone")
    return made.root


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_a_store_is_pushed_checked_and_cleaned(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = str(tmp_path / "shared")
    command.push(store, shared, True)
    assert printed(capsys) == {"pushed": 2, "known": 0}
    command.push(store, shared, True)
    assert printed(capsys) == {"pushed": 0, "known": 2}
    command.verify(shared, False, True)
    assert printed(capsys) == {"artifacts": 2, "wrong": [], "removed": False}
    wrong = next((tmp_path / "shared" / "objects").iterdir())
    wrong.write_bytes(b"x")
    with pytest.raises(WorkError, match="1 of 2 artifacts"):
        command.verify(shared)
    capsys.readouterr()
    command.verify(shared, True, True)
    assert printed(capsys)["wrong"] == [f"objects/{wrong.name}"]
    command.push(store, shared, True)
    assert printed(capsys) == {"pushed": 1, "known": 1}
    command.clean(shared_store=shared, keep="8w", as_json=True)
    assert printed(capsys)["kept"] == 2
    command.clean(shared_store=shared, keep="8w")
    assert "0 artifacts removed (0.0 MiB), 2 kept, 3 leases hold" in capsys.readouterr().out


def test_what_cannot_be_pushed_is_said_once(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("mepof.plan.remote._FIRST_PAUSE_SECONDS", 0.0)
    (tmp_path / "file").touch()
    with pytest.raises(WorkError, match="file/mepof"):
        command.push(store, str(tmp_path / "file" / "mepof"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_removed_from_what_is_not_a_store(tmp_path: Path, there: bool) -> None:
    repository = tmp_path / "linux.git"
    if there:
        (repository / "objects/pack").mkdir(parents=True)
        (repository / "objects/pack/pack-1.pack").write_text("everything")
    for name in (command.clean, partial(command.verify, remove=True)):
        with pytest.raises(InputError, match=r"linux\.git has no store"):
            name(shared_store=str(repository))
    with pytest.raises(InputError, match="is not a store"):
        command.clean(repository)
    with pytest.raises(InputError, match="is not a store"):
        command.push(repository, str(tmp_path / "shared"))
    assert (repository / "objects/pack/pack-1.pack").exists() == there


def test_the_store_of_this_machine_is_cleaned_if_no_other_is_named(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("MEPOF_SHARED_STORE", raising=False)
    monkeypatch.setenv("MEPOF_STORE", str(store))
    command.clean(dry_run=True)
    said = "0 artifacts would be removed (0.0 MiB), 2 kept, 0 unfinished steps would be dropped\n"
    assert capsys.readouterr().out == said
    monkeypatch.setenv("MEPOF_SHARED_STORE", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nowhere"):
        command.clean()
    command.clean(store, as_json=True)
    assert printed(capsys) == {"artifacts": 0, "unfinished": 0, "size": 0, "kept": 2}
    with pytest.raises(InputError, match="two stores"):
        command.clean(store, str(tmp_path))


def test_no_shared_store_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEPOF_SHARED_STORE", raising=False)
    with pytest.raises(InputError, match="MEPOF_SHARED_STORE"):
        command.verify(None)


def test_a_file_is_not_the_directory_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "p.g4").touch()
    with pytest.raises(InputError, match="no run has made anything in"):
        command.path_of(tmp_path / "p.g4")


def test_times_have_a_unit() -> None:
    assert command.duration("12h") == timedelta(hours=12)
    assert command.duration("8w") == timedelta(weeks=8)
    for wrong in ("30", "d", "-1d", "1.5d", "", "99999d"):
        with pytest.raises(InputError, match="invalid time"):
            command.duration(wrong)


def test_where_a_step_left_its_result_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, plan_of(toy("plain/build", n="1"), toy("opt/build", n="2")), Toy())
    out = tmp_path / "out"
    # A run that was interrupted leaves no plan, and one without space a part of it.
    command.path_of(out, "opt/build", as_json=False)
    assert "/objects/" in capsys.readouterr().out
    (out / "plan.json").write_text("{")
    command.path_of(out, "opt/build", as_json=False)
    built = Path(capsys.readouterr().out.removesuffix("\n"))
    assert (built.parent.name, built.is_dir()) == ("objects", True)
    command.path_of(out, "opt/build", as_json=True)
    assert printed(capsys) == {"opt/build": str(built)}
    command.path_of(out)
    plain, opt = capsys.readouterr().out.splitlines()
    assert plain.startswith("plain/build  /")
    assert opt == f"opt/build    {built}"
    command.path_of(out, as_json=True)
    assert printed(capsys).keys() == {"plain/build", "opt/build"}
    with pytest.raises(InputError, match="no result of the step `opt`") as wrong:
        command.path_of(out, "opt")
    assert wrong.value.remedy == "give one of these: plain/build, opt/build"
    with pytest.raises(InputError, match="no run has made anything in"):
        command.path_of(tmp_path / "none")
    built.rename(tmp_path / "elsewhere")
    with pytest.raises(WorkError, match="the store no longer has what opt/build made"):
        command.path_of(out, "opt/build")
