from __future__ import annotations

import json

import pytest

from mepof.cli import doctor as command
from mepof.cli.main import main
from mepof.errors import EnvironmentLack
from mepof.toolchain.probe import Finding

FINE = Finding("make", "kernel builds", "4.3", "≥ 4.0", "ok", required=True)
SLOW = Finding("ccache", "speed", None, "any", "missing", False, "apt-get install ccache")
LACK = Finding("bc", "kernel builds", None, "any", "missing", True, "apt-get install bc")


def found(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    """Let the machine be one with these findings."""
    monkeypatch.setattr(command, "findings", lambda store: list(findings))
    monkeypatch.setattr("sys.argv", ["mepof", "doctor"])


def test_a_machine_with_all_that_is_needed_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, FINE, SLOW)
    command.doctor()
    shown = capsys.readouterr().out
    assert "4.3" in shown
    assert "apt-get install ccache" in shown
    assert "missing (optional)" in shown


def test_a_lack_is_told_with_its_remedy_and_status_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, FINE, LACK)
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3
    said = capsys.readouterr()
    assert "apt-get install bc" in said.out
    assert "this machine lacks bc" in said.err
    assert "Traceback" not in said.err


def test_json_is_one_document_even_when_something_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, FINE, SLOW, LACK)
    with pytest.raises(EnvironmentLack):
        command.doctor(as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert [finding["name"] for finding in document["findings"]] == ["make", "ccache", "bc"]
    assert document["findings"][2]["remedy"] == "apt-get install bc"
