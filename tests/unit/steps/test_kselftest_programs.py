"""The step ``kselftest-programs``."""

from __future__ import annotations

from pathlib import Path

import pytest

from mepof.errors import EnvironmentLack, InputError
from mepof.plan.model import HostInput, Json, Step
from mepof.steps import kselftest_programs
from mepof.steps.kselftest_programs import BODY

from .room import Room

PARAMS: dict[str, Json] = {"arch": "x86-64", "collections": ["size"]}


def test_a_tree_without_selftests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    room = Room(tmp_path)
    context = room.context("kselftest-programs", PARAMS, source=tmp_path / "tree")
    with pytest.raises(InputError, match=r"has no tools/testing/selftests/lib\.mk") as raised:
        BODY.run(context)
    assert "leave `kselftest` out" in str(raised.value.remedy)


def test_the_view_of_a_tree_can_be_written_and_the_tree_stays(tmp_path: Path) -> None:
    tree, view = tmp_path / "tree", tmp_path / "view"
    size = tree / "tools/testing/selftests/size"
    size.mkdir(parents=True)
    (size.parent / "lib.mk").write_text("")
    (size / "get_size.c").write_text("int main;")
    (size / "get_size.c").chmod(0o444)
    (tree / "Makefile").write_text("")
    (tree / "tools/lib/bpf").mkdir(parents=True)
    assert kselftest_programs._view(tree, view) == view
    copied = view / "tools/testing/selftests/size/get_size.c"
    assert copied.stat().st_mode & 0o200
    copied.write_text("changed")
    assert (size / "get_size.c").read_text() == "int main;"
    # Some selftests compile the libraries beside them.
    (view / "tools/lib/bpf/libbpf.a").write_text("made")
    assert not list((tree / "tools/lib/bpf").iterdir())
    assert (view / "Makefile").is_symlink()


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLack, match="gcc is not installed"):
        BODY.identity(Step("x", BODY.kind, {"arch": "x86-64"}, {"source": HostInput("/src")}))
