"""Every step that boots a device claims it, so that no two drive one phone at the same time."""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest

from mepof import spec
from mepof.device.protocol import DEVICES
from mepof.plan.body import Claim, Phase, Resources, StepBody, StepContext
from mepof.plan.engine import Engine
from mepof.plan.model import HostInput, Input, Plan, Step
from mepof.plan.store import Store
from mepof.plan.typed import Part, StepModel
from mepof.registry import Registry
from mepof.spec.executed_functions import ExecutedFunctions
from mepof.spec.flash import Flash
from mepof.spec.kernel_build import BootCheck, KernelBuild
from mepof.spec.kernel_tests import KernelTests
from mepof.spec.measure import Measure
from mepof.spec.profile_collect import ProfileCollect
from mepof.steps import BODIES

#: Something that exists; nobody reads it.
MADE: Input = HostInput(__file__)
BUILD = KernelBuild[Input](
    arch="x86-64", toolchain="clang", config=("slim",), options=(), source=MADE
)
#: A step of each kind that boots a device.
STEPS = {
    step.kind: step
    for step in (
        BUILD.model_copy(
            update={"boot": BootCheck[Input](device="board", seed=1, guest=MADE)}
        ).step("opt/build"),
        Measure[Input](
            arch="x86-64",
            device="board",
            metrics=("proc",),
            seed=1,
            min_boots=2,
            max_boots=2,
            precision=1.0,
            images=(MADE,),
            guest=MADE,
        ).step("measure"),
        ExecutedFunctions[Input](
            arch="x86-64", device="board", metrics=("proc",), seed=1, kernel=MADE, guest=MADE
        ).step("executed"),
        ProfileCollect[Input](
            algorithm="pgo",
            scenario="rand",
            apps=(),
            actions=1,
            arch="x86-64",
            device="board",
            seed=1,
            kernel=MADE,
            guest=MADE,
        ).step("opt/collect"),
        KernelTests[Input](
            gate="kunit", arch="x86-64", device="board", seed=1, boots=1, kernel=MADE, guest=MADE
        ).step("opt/tests/kunit"),
        Flash[Input](
            image="opt", arch="x86-64", device="board", seed=1, kernel=MADE, guest=MADE
        ).step("flash"),
    )
}


@dataclass
class Board:
    """A device with a claim, whose boots do not repeat."""

    claimed: str | None

    def claim(self, arch: str) -> Claim | None:
        return None if self.claimed is None else Claim(self.claimed)

    def describe(self, arch: str) -> object:
        return SimpleNamespace(repeats=False)


def kinds_with_a_device() -> set[str]:
    """The kinds of step whose model, or a part of it, has a field ``device``."""
    found: set[str] = set()
    for info in iter_modules(spec.__path__):
        module = import_module(f"{spec.__name__}.{info.name}")
        types = [each for each in vars(module).values() if isinstance(each, type)]
        if any("device" in each.model_fields for each in types if issubclass(each, Part)):
            found |= {e.kind for e in types if issubclass(e, StepModel) and e is not StepModel}
    return found


def boots_a_device(body: StepBody) -> bool:
    """Whether the body's module, or one that it takes from the same room, boots anything."""
    module = type(body).__module__
    used = {getattr(each, "__module__", "") for each in vars(sys.modules[module]).values()}
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("boot", "flash")
        for name in {module, *(each for each in used if each.startswith("mepof.steps."))}
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[name])))
    )


def connect(monkeypatch: pytest.MonkeyPatch, board: Board) -> None:
    """Have every device name be that of the board."""
    get = Registry.get
    monkeypatch.setattr(
        Registry, "get", lambda self, name: board if self is DEVICES else get(self, name)
    )


def test_the_steps_that_boot_a_device_are_known() -> None:
    bodies = BODIES.all()
    assert {kind for kind, body in bodies.items() if boots_a_device(body)} == set(STEPS)
    assert kinds_with_a_device() == set(STEPS)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("claim", ["adb-0123", None])
def test_a_step_that_boots_a_device_claims_what_the_device_says(
    monkeypatch: pytest.MonkeyPatch, kind: str, claim: str | None
) -> None:
    connect(monkeypatch, Board(claim))
    assert BODIES.get(kind).resources(STEPS[kind]).device == (claim and Claim(claim))


def test_a_build_that_is_not_booted_claims_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, Board("adb-0123"))
    assert BODIES.get("kernel-build").resources(BUILD.step("plain/build")).device is None


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
