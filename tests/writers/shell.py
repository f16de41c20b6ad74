"""The command line, called in this process as a user would; and steps that end at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mepof.cli import g4cc
from mepof.cli.main import main
from mepof.errors import EnvironmentLack
from mepof.executor import local, programs
from mepof.gate.verdict import CheckVerdict, GateVerdict, ImageVerdict, Regression
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.report.files import NAMES
from mepof.steps import BODIES


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str


class Shell:
    """Calls commands as a user would, in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *words: str | Path, command: str = "mepof") -> Answer:
        self._monkeypatch.setattr("sys.argv", [command, *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            (g4cc.main if command == "g4cc" else main)()
        out, err = self._capsys.readouterr()
        status = ended.value.code
        assert isinstance(status, int)
        return Answer(status, out, err)


class Instant:
    """A body that makes the files that any result has, at once; or fails."""

    phase: Phase = "other"

    def __init__(self, kind: str, error: Exception | None) -> None:
        self.kind = kind
        self._error = error

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        if isinstance(self._error, EnvironmentLack):
            raise self._error
        return {}

    def run(self, context: StepContext) -> None:
        if self._error is not None:
            raise self._error
        if self.kind == "report":
            report = json.loads(GOLDEN.read_text())
            report["images"] = [i for i in report["images"] if i["self_check"] == "passed"]
            report["goals"] = [g for g in report["goals"] if g["image"] in GOALS_OF]
            (context.output / "report.json").write_text(json.dumps(report))
            for name in {*NAMES} - {"report.json"}:
                (context.output / name).touch()
        if self.kind == "check":
            lost = Regression(test="futex:wait", status="crash", reason="died", failed=1, boots=3)
            image = ImageVerdict(image="recomp", regressions=(lost,))
            gate = GateVerdict(
                gate="kselftest",
                boots=3,
                tests=9,
                passing=7,
                skipped=0,
                flaky=(),
                failing=("mm:cow",),
                unbuilt=(),
                notes=(),
                images=(image,),
            )
            CheckVerdict(baseline="plain", images=("recomp",), gates=(gate,)).write(context.output)
        (context.output / "kernel").write_text("an image")


#: The images whose goals the report has; each meets some and misses some.
GOALS_OF: set[str] = set()
GOLDEN = Path(__file__).parents[1] / "unit/report/golden/report.json"


def instant(monkeypatch: pytest.MonkeyPatch, **errors: Exception) -> None:
    """Replace the step bodies; some of them fail."""
    bodies = {k: Instant(k, errors.get(k.replace("-", "_"))) for k in BODIES.all()}
    for module in (local, programs):
        monkeypatch.setattr(module, "BODIES", SimpleNamespace(all=lambda: bodies))


def program(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "p.g4"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "old.profdata"
    path.write_text("profile")
    return path


def assert_refused(answer: Answer, what: str, status: int = 2) -> None:
    assert answer.status == status
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert "bug" not in answer.err
    assert what in answer.err


def one_document(answer: Answer) -> Any:
    assert answer.status == 0, answer.err
    return json.loads(answer.out)
