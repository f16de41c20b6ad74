"""``mepof doctor``: problems first, then one line for each goal, the rest on request."""

from __future__ import annotations

import json

import pytest

from mepof.cli import doctor as command
from mepof.cli.main import main
from mepof.errors import EnvironmentLack
from mepof.toolchain.probe import COUNTERS, EXTRAS, KERNELS, PHONES, SUITES, Finding

FINE = Finding("make", "kernel builds", "4.3", "≥ 4.0", "ok", required=True)
SLOW = Finding("ccache", "speed", None, "any", "missing", False, "apt-get install ccache", EXTRAS)
LACK = Finding("bc", "kernel builds", None, "any", "missing", True, "apt-get install bc")
OLD = Finding("qemu", "boots kernels", "7.2", "≥ 10.0", "too old", True, "apt-get install qemu")
FULL = Finding("disk", "artifacts", "1.0 GiB", "≥ 5 GiB", "too little", True, "free some")
PERF = Finding("perf", "counts", None, "any", "missing", False, "apt-get install perf", COUNTERS)
PHONE = Finding("adb", "phones", "1.0", "any", "ok", False, None, PHONES)
NAMES = [f"program-number-{n}" for n in range(9)]
MANY = [Finding(name, "suites", None, "any", "missing", False, "x", SUITES) for name in NAMES]


def found(monkeypatch: pytest.MonkeyPatch, *findings: Finding, words: str = "") -> None:
    """Let the machine be one with these findings."""
    monkeypatch.setattr(command, "findings", lambda store: list(findings))
    monkeypatch.setattr("sys.argv", ["mepof", "doctor", *words.split()])
    monkeypatch.setenv("COLUMNS", "80")


def test_a_machine_with_all_that_is_needed_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, FINE, SLOW)
    command.doctor(verbose=True)
    shown = capsys.readouterr().out
    assert "4.3" in shown
    assert "apt-get install ccache" in shown
    assert "\nextras\n  missing  ccache" in shown


def test_problems_come_first_then_a_line_for_each_goal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, SLOW, FINE, LACK, OLD, FULL, PERF, PHONE)
    with pytest.raises(EnvironmentLack) as lack:
        command.doctor()
    assert lack.value.message == (
        "mepof cannot run here: missing: bc; too old: qemu; too little: disk"
    )
    assert lack.value.remedy == "run `make setup`"
    assert capsys.readouterr().out.splitlines() == [
        "bc is missing: kernel builds",
        "  apt-get install bc",
        "qemu is too old: boots kernels",
        "  found 7.2, needed ≥ 10.0",
        "  apt-get install qemu",
        "disk is too little: artifacts",
        "  found 1.0 GiB, needed ≥ 5 GiB",
        "  free some",
        "",
        f"{KERNELS}  missing: bc; too old: qemu; too little: disk",
        f"{COUNTERS:{len(KERNELS)}}  missing: perf",
        f"{PHONES:{len(KERNELS)}}  ready",
        f"{EXTRAS:{len(KERNELS)}}  missing: ccache",
        "",
        "`mepof doctor --verbose` lists every tool, and how to install it.",
    ]


def test_what_nothing_installs_has_a_remedy_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found(monkeypatch, FINE, SLOW, FULL)
    with pytest.raises(EnvironmentLack) as lack:
        command.doctor()
    assert lack.value.remedy == "free some"


@pytest.mark.parametrize("words", ["", "--verbose"])
def test_lines_break_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    found(monkeypatch, FINE, *MANY, words=words)
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    goals = shown.partition("\n\n")[0]
    assert max(map(len, goals.splitlines())) <= 80
    assert all(name in goals for name in NAMES)


def test_the_purpose_stays_in_its_column_beside_a_long_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packages = "linux-source-6.1, linux-source-6.12"
    source = Finding("kernel source", "debian:linux-source-…", packages, "any", "ok", False)
    found(monkeypatch, FINE, source)
    command.doctor(verbose=True)
    *_, make, versions, purpose = capsys.readouterr().out.splitlines()
    assert versions == f"  ok       kernel source  {packages}"
    assert purpose.strip() == source.purpose
    assert purpose.index(source.purpose) == make.index(FINE.purpose)


def test_a_missing_tool_is_reported_with_its_remedy_and_status_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, FINE, LACK)
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3
    said = capsys.readouterr()
    assert "apt-get install bc" in said.out
    assert "mepof cannot run here: missing: bc" in said.err
    assert "Traceback" not in said.err


def test_json_is_one_document_even_when_something_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found(monkeypatch, FINE, SLOW, LACK)
    with pytest.raises(EnvironmentLack):
        command.doctor(as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert [finding["name"] for finding in document["findings"]] == ["make", "ccache", "bc"]
    assert document["findings"][2]["remedy"] == "apt-get install bc"
