"""Every step that boots a device claims it, so that no two drive one phone at the same time."""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from mepof.device.protocol import DEVICES
from mepof.plan.body import Phase, Resources, StepBody, StepContext
from mepof.plan.engine import Engine
from mepof.plan.model import Json, Plan, Step
from mepof.plan.store import Store
from mepof.registry import Registry
from mepof.steps import BODIES

ON_DEVICE: Mapping[str, Json] = {"arch": "x86-64", "device": "board", "seed": 1}
#: A step of each kind that boots a device.
STEPS = {
    "kernel-build": Step("opt/build", "kernel-build", ON_DEVICE),
    "measure": Step("measure", "measure", ON_DEVICE),
    "profile-collect": Step("opt/collect", "profile-collect", ON_DEVICE),
}


@dataclass
class Board:
    """A device with a claim, whose boots do not repeat."""

    claimed: str | None

    def claim(self, arch: str) -> str | None:
        return self.claimed

    def describe(self, arch: str) -> object:
        return SimpleNamespace(repeats=False)


def boots_a_device(body: StepBody) -> bool:
    """Whether the body's module boots anything."""
    tree = ast.parse(inspect.getsource(sys.modules[type(body).__module__]))
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "boot"
        for node in ast.walk(tree)
    )


def connect(monkeypatch: pytest.MonkeyPatch, board: Board) -> None:
    """Have every device name be that of the board."""
    get = Registry.get
    monkeypatch.setattr(
        Registry, "get", lambda self, name: board if self is DEVICES else get(self, name)
    )


def test_the_steps_that_boot_a_device_are_known() -> None:
    assert {kind for kind, body in BODIES.all().items() if boots_a_device(body)} == set(STEPS)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("claim", ["adb-0123", None])
def test_a_step_that_boots_a_device_claims_what_the_device_says(
    monkeypatch: pytest.MonkeyPatch, kind: str, claim: str | None
) -> None:
    connect(monkeypatch, Board(claim))
    assert BODIES.get(kind).resources(STEPS[kind]).device == claim


def test_a_build_that_is_not_booted_claims_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, Board("adb-0123"))
    plain = Step("plain/build", "kernel-build", {"arch": "x86-64"})
    assert BODIES.get("kernel-build").resources(plain).device is None


@dataclass
class Meeting:
    """A body that claims what the real one does, and waits for the others to run beside it."""

    kind: str
    real: StepBody
    meeting: threading.Barrier
    met: list[str]
    phase: Phase = "run"

    def resources(self, step: Step) -> Resources:
        # How many cores it can use is not the question here.
        return Resources(device=self.real.resources(step).device)

    def identity(self, step: Step) -> Mapping[str, str]:
        return {}

    def run(self, context: StepContext) -> None:
        with suppress(threading.BrokenBarrierError):
            self.meeting.wait()
            self.met.append(self.kind)
        (context.output / "done").write_text(context.step.id)


@pytest.mark.parametrize(
    ("claim", "seconds", "at_once"), [("adb-0123", 0.2, set()), (None, 30, set(STEPS))]
)
def test_steps_that_claim_one_device_run_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    claim: str | None,
    seconds: float,
    at_once: set[str],
) -> None:
    connect(monkeypatch, Board(claim))
    # Two would meet if the engine let them.
    parties = max(2, len(at_once))
    meeting, met = threading.Barrier(parties, timeout=seconds), list[str]()
    bodies = {kind: Meeting(kind, BODIES.get(kind), meeting, met) for kind in STEPS}
    engine = Engine(Store(tmp_path / "store"), bodies, 8, lambda event: None)
    engine.run(Plan("a program.", 1, tuple(STEPS.values()), ()), tmp_path / "out")
    assert set(met) == at_once
