"""An instrumented kernel that does not boot: from the failed training to its report.

The kernel is the miniature one, really built by real steps; the device reads from the image which
objects are instrumented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from writers.mini_kernel import SUFFIX, write_tree

from mepof.algorithm.pgo import Pgo
from mepof.algorithm.protocol import ALGORITHMS, BuildAddition, Round
from mepof.device import agent
from mepof.device.protocol import BootFailure, KernelHang, KernelPanic, Outcome, Session
from mepof.errors import Interrupted, WorkError
from mepof.events import Event, StepFailed, StepNote
from mepof.executor.programs import compiled
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription, Safety
from mepof.plan.body import Phase, Resources, StepBody, StepContext
from mepof.plan.engine import Engine, RunResult
from mepof.plan.explain import explain
from mepof.plan.model import Plan, Step, StepInput
from mepof.plan.store import Store
from mepof.scenario.collection import Collection
from mepof.steps import kernel_build, kernel_source, profile_collect
from mepof.toolchain.protocol import Toolchain

from .room import FakeDevice, register

PROGRAM = f"""
set toolchain clang{SUFFIX}.
set config {{root}}/mini.config.
set seed 1.
set scout off.
profile {{root}}/tree pgo rand kbench.
"""
AGAIN = PROGRAM + "profile {root}/tree pgo trav kbench.\n"


class Counting(Pgo):
    """Counts without a runtime, for which the miniature tree has no room."""

    def instrument(self, toolchain: Toolchain, round: Round) -> BuildAddition:
        added = super().instrument(toolchain, round)
        return replace(added, overlays=(), module_overlays=(), config_lines=())


class Made:
    """Makes what no test here looks at."""

    phase: Phase = "other"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {}

    def run(self, context: StepContext) -> None:
        (context.output / "initramfs.cpio").write_text("guest")


@dataclass
class Machine:
    """Runs programs on a device on which kernels fail as ``fails`` says of a set of objects that
    are instrumented."""

    root: Path
    device: FakeDevice
    fails: Callable[[frozenset[str]], Exception | None] = lambda instrumented: None
    boots: list[frozenset[str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def boot(self, session: Session, *rest: object) -> Outcome:
        image = session.kernel.read_text(errors="replace")
        compiled = re.findall(r"(-fdebug-compilation-dir.*) (\S+)\.c$", image, re.M)
        instrumented = frozenset(
            f"{source}.o"
            for flags, source in compiled
            if re.findall(r"-fprofile-instrument=(\w+)", flags)[-1:] == ["llvm"]
        )
        self.boots.append(instrumented)
        self.device.error = self.fails(instrumented)
        return FakeDevice.boot(self.device, session, *rest)  # type: ignore[arg-type]

    def plan(self, text: str = PROGRAM) -> Plan:
        return compiled(Source("p.g4", text.format(root=self.root)))

    def bodies(self) -> dict[str, StepBody]:
        bodies: list[StepBody] = [
            *(kernel_source.BODY, kernel_build.BODY, profile_collect.BODY),
            *(Made("guest"), Made("profile-convert")),
        ]
        return {body.kind: body for body in bodies}

    def run(self, text: str = PROGRAM) -> RunResult:
        self.boots.clear()
        self.events.clear()
        engine = Engine(Store(self.root / "store"), self.bodies(), 2, self.events.append)
        return engine.run(self.plan(text), self.root / "out")

    def notes(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, StepNote)]


@pytest.fixture
def machine(
    tmp_path: Path, device: FakeDevice, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    write_tree(tmp_path / "tree")
    (tmp_path / "mini.config").write_text("# base: allnoconfig\n")
    made = Machine(tmp_path, device)
    monkeypatch.setattr(device, "boot", made.boot)
    register(monkeypatch, ALGORITHMS, Counting("kernel.profdata"))
    return made


def hangs_with(file: str) -> Callable[[frozenset[str]], Exception | None]:
    return lambda used: KernelHang("the guest did not come up for 120 s") if file in used else None


def test_a_kernel_that_boots_is_built_and_booted_as_ever(machine: Machine) -> None:
    result = machine.run()
    assert result.plan == machine.plan()
    assert machine.boots == [frozenset({"init/a.o", "kernel/b.o"})]
    assert not (result.steps["profile/instrument"].path / "safety.json").exists()
    collected = (result.steps["profile/collect"].path / "collection.json").read_text()
    assert "not_instrumented" not in collected


def test_the_file_that_hangs_the_boot_is_found_and_everything_after_it_goes_on(
    machine: Machine,
) -> None:
    machine.fails = hangs_with("kernel/b.o")
    result = machine.run()
    built = result.steps["profile/instrument/bootable"].path
    safety = Safety.read(built)
    assert safety.opt_out.files == ("kernel/b.o",)
    assert safety.failure == "the guest did not come up for 120 s"
    # The training, then all files, without arch/, none, the first, and what was found.
    assert safety.trials == len(machine.boots) - 2
    # The kernel that was profiled is the one that was found.
    assert machine.boots[-1] == frozenset({"init/a.o"})
    known = Collection.read(result.steps["profile/collect"].path).not_instrumented
    assert known is not None
    assert known.files == ("kernel/b.o",)
    assert "`set exclude kernel/b.o.` makes it permanent" in str(known)
    assert str(known) in machine.notes()
    (failed,) = (event for event in machine.events if isinstance(event, StepFailed))
    assert failed.retried
    assert result.steps["profile/profile"].path.is_dir()
    # The conversion reads the kernel that ran.
    reads = result.plan.step("profile/profile").inputs.values()
    assert StepInput("profile/instrument/bootable") in reads


def test_the_kernel_is_the_one_with_that_exclusion(machine: Machine) -> None:
    machine.fails = hangs_with("kernel/b.o")
    found = machine.run().steps["profile/instrument/bootable"].path
    made = machine.run("set exclude kernel/b.o.\n" + PROGRAM).steps["profile/instrument"].path
    assert (made / "kernel").read_bytes() == (found / "kernel").read_bytes()
    assert BuildDescription.read(made) == BuildDescription.read(found)


def test_a_second_run_boots_nothing_and_a_dry_run_says_so(machine: Machine) -> None:
    machine.fails = hangs_with("init/a.o")
    machine.run()
    explained = explain(machine.plan(), Store(machine.root / "store"), machine.bodies())
    assert {each.state for each in explained} == {"cached"}
    assert "profile/instrument/bootable" in [each.step for each in explained]
    machine.run()
    assert machine.boots == []


def test_another_training_on_the_same_kernel_needs_no_search(machine: Machine) -> None:
    machine.fails = hangs_with("init/a.o")
    machine.run()
    result = machine.run(AGAIN)
    assert machine.boots == [frozenset({"kernel/b.o"})]
    assert Collection.read(result.steps["profile2/collect"].path).not_instrumented is not None


def test_a_search_that_is_killed_continues_where_it_was(machine: Machine) -> None:
    machine.fails = hangs_with("kernel/b.o")
    machine.run()
    whole = len(machine.boots)
    for killed_at in range(2, whole - 1):
        machine.root = machine.root.parent / f"killed{killed_at}"
        write_tree(machine.root / "tree")
        (machine.root / "mini.config").write_text("# base: allnoconfig\n")

        def fails(instrumented: frozenset[str], at: int = killed_at) -> Exception | None:
            if len(machine.boots) == at:
                return Interrupted("killed")
            return hangs_with("kernel/b.o")(instrumented)

        machine.fails = fails
        with pytest.raises(Interrupted):
            machine.run()
        machine.fails = hangs_with("kernel/b.o")
        result = machine.run()
        safety = Safety.read(result.steps["profile/instrument/bootable"].path)
        assert safety.opt_out.files == ("kernel/b.o",)
        assert safety.trials == whole - 2
        # The first training fails again; the trials that were done are not repeated.
        assert len(machine.boots) == whole - killed_at + 2


def test_a_kernel_that_boots_on_a_second_try_is_profiled_whole(machine: Machine) -> None:
    machine.fails = lambda used: KernelHang("too slow") if len(machine.boots) == 1 else None
    result = machine.run()
    safety = Safety.read(result.steps["profile/instrument/bootable"].path)
    assert (safety.opt_out.files, safety.failure) == ((), None)
    assert Collection.read(result.steps["profile/collect"].path).not_instrumented is None


def test_a_kernel_that_fails_while_it_is_trained_is_not_searched(machine: Machine) -> None:
    failure = KernelPanic("the kernel went down: in sys_pipe+0x1/0x2")
    failure.replies = (agent.PutResult(0), agent.ExecResult(0, 1, b"", False))
    machine.fails = lambda used: failure
    with pytest.raises(KernelPanic):
        machine.run()
    assert len(machine.boots) == 1


def test_a_device_that_fails_is_not_searched(machine: Machine) -> None:
    machine.fails = lambda used: BootFailure("qemu ended with status 1: no memory")
    with pytest.raises(BootFailure, match="no memory"):
        machine.run()
    assert len(machine.boots) == 1


def test_a_kernel_that_does_not_boot_without_instrumentation_either_is_reported(
    machine: Machine,
) -> None:
    machine.fails = lambda used: KernelPanic("the kernel went down: no root")
    with pytest.raises(WorkError, match="not boot without instrumentation either: the kernel went"):
        machine.run()


def test_a_kernel_that_fails_only_under_training_fails_with_that_error(machine: Machine) -> None:
    # The training, its kernel as the check sees it, the kernel to keep, and the training again.
    machine.fails = lambda used: KernelHang("hangs") if len(machine.boots) in (1, 4) else None
    with pytest.raises(KernelHang, match="hangs"):
        machine.run()
    assert len(machine.boots) == 4


def test_a_kernel_that_is_searched_says_how_far_it_came(machine: Machine) -> None:
    machine.fails = hangs_with("kernel/b.o")
    machine.run()
    talkative = [s for s in machine.device.sessions if "initcall_debug" in s.parameters]
    assert len(talkative) == 1
    assert "earlyprintk=serial,ttyS0" in talkative[0].parameters
