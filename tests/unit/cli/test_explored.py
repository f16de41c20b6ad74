"""``mepof explored`` shows what a strategy has learned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mepof.cli import explored as command
from mepof.errors import InputError
from mepof.scenario.graph import Graph, Memory
from mepof.scenario.screen import Offer


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    graph = Graph()
    graph.see("1", "Inbox", (Offer("tap row", ("tap row",), "tap 1 1"), Offer("b", ("key",), "b")))
    graph.ended("1", "tap row", "2", new=True)
    graph.see("2", "A letter", ())
    Memory(apps={"org.example.mail": graph}).write(tmp_path)
    return tmp_path / Memory.file


def test_states_and_kinds_of_actions_are_listed(
    memory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command.explored(memory)
    shown = capsys.readouterr().out
    assert "org.example.mail: 2 states, 1 of 2 actions tried" in shown
    assert "     1         1 of 2           1  Inbox" in shown
    assert "      1           1  tap row" in shown


def test_json_is_what_the_file_has(memory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command.explored(memory, as_json=True)
    assert json.loads(capsys.readouterr().out) == json.loads(memory.read_text())


@pytest.mark.parametrize("content", [b"{}x", b"\xff"])
def test_what_is_no_memory_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "memory.json"
    with pytest.raises(InputError, match=r"cannot be read: No such file or directory \(name "):
        command.explored(file)
    file.write_bytes(content)
    with pytest.raises(
        InputError, match=r"/memory\.json is not the memory\.json of a run|it is not UTF-8"
    ):
        command.explored(file)
