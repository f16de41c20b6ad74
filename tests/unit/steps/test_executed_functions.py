"""``executed-functions``: one boot in which each case runs, and what it executed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writers.traced_kernel import link_kernel

from mepof.device import agent
from mepof.device.protocol import KernelHang, KernelPanic
from mepof.events import StepNote
from mepof.kernel.objects import OBJECTS
from mepof.measure.executed import ExecutedFunctions
from mepof.measure.result_line import SKIPPED
from mepof.plan.body import StepContext
from mepof.plan.model import HostInput, Json, Step
from mepof.pmu.locations import functions_of
from mepof.spec import executed_functions as spec
from mepof.steps import executed_functions
from mepof.suite.cases import cases_of

from .room import FakeDevice, Room, well


@pytest.fixture
def context(room: Room, device: FakeDevice) -> StepContext:
    """A kernel whose cases `pipe128` and `pipe512` execute `hot`."""
    build = room.directory("kernel", objects_json="{}")
    link_kernel(build)
    (build / OBJECTS).write_text(json.dumps({"a.o": ["hot", "warm", "start_kernel"]}))
    at = next(each.address for each in functions_of(build) if each.name == "hot")
    interval = {"sites": [[at, at + 9, 3, 5]], "slices": []}
    lines = [{"version": 1, "events": []}, interval, interval]
    device.locations = "".join(f"{json.dumps(line)}\n" for line in lines)
    texts = {case.argv: case.name for case in cases_of(["pipe"])}

    def answer(request: agent.Request) -> agent.Reply:
        if not isinstance(request, agent.Exec) or request.argv not in texts:
            return well(request)
        line = f"case={texts[request.argv]} operations=10 elapsed_ns=5 check=ok"
        return agent.ExecResult(0, 1, line.encode(), False)

    device.answer = answer
    guest = room.directory("guest", initramfs_cpio="guest")
    params: dict[str, Json] = {"arch": "x86-64", "device": "qemu", "metrics": ["pipe"], "seed": 7}
    return room.context(
        "executed-functions", {**params, "artifacts": {}}, kernel=build, guest=guest
    )


def run(context: StepContext) -> dict[tuple[str, str], dict[str, int]]:
    executed_functions.BODY.run(context)
    cases = ExecutedFunctions.read(context.output).cases
    return {(each.suite, each.case): each.functions for each in cases}


def test_each_case_has_the_instructions_of_its_functions(
    context: StepContext, device: FakeDevice
) -> None:
    assert run(context) == {("mepof", "pipe128"): {"hot": 15}, ("mepof", "pipe512"): {"hot": 15}}
    (session,) = device.sessions
    assert session.measure is not None and not session.measure.counts
    assert (session.seed, session.kernel) == (7, context.inputs["kernel"] / "kernel")


def test_a_case_that_cannot_run_is_left_out(context: StepContext, device: FakeDevice) -> None:
    answer, first = device.answer, cases_of(["pipe"])[0].argv
    device.answer = lambda request: (
        agent.ExecResult(SKIPPED, 1, b"case=pipe128 unsupported=CONFIG_PIPE", False)
        if isinstance(request, agent.Exec) and request.argv == first
        else answer(request)
    )
    device.locations = "\n".join(str(device.locations).splitlines()[:2])
    assert list(run(context)) == [("mepof", "pipe512")]


@pytest.mark.parametrize("error", [KernelPanic("BUG: it\n  | a line"), None])
def test_nothing_is_known_of_a_kernel_that_is_not_sound(
    context: StepContext, device: FakeDevice, room: Room, error: Exception | None
) -> None:
    device.error = error
    if error is None:
        device.answer = lambda request: (
            agent.ExecResult(1, 1, b"sum 3 is not 4", False)
            if isinstance(request, agent.Exec)
            else well(request)
        )
    assert run(context) == {}
    (note,) = (event.text for event in room.events if isinstance(event, StepNote))
    assert note.startswith("it remains unknown which functions the cases execute: ")
    assert "\n" not in note


def test_a_hang_fails_the_step(context: StepContext, device: FakeDevice) -> None:
    device.error = KernelHang("silent for 600 s")
    with pytest.raises(KernelHang):
        executed_functions.BODY.run(context)


def test_cases_and_device_decide_the_result(device: FakeDevice) -> None:
    def step(metric: str) -> Step:
        given = HostInput("/k")
        model = spec.ExecutedFunctions(
            arch="x86-64", device="qemu", metrics=(metric,), seed=1, kernel=given, guest=given
        )
        return model.step("executed")

    pipe = executed_functions.BODY.identity(step("pipe"))
    assert pipe["qemu"] == "fake" and pipe != executed_functions.BODY.identity(step("proc"))
    resources = executed_functions.BODY.resources(step("pipe"))
    assert "x86-64" in resources.needs and resources.memory > 512


def test_an_artifact_without_cases_can_be_read(tmp_path: Path) -> None:
    ExecutedFunctions(cases=()).write(tmp_path)
    assert ExecutedFunctions.read(tmp_path).cases == ()
