"""``boot-check``: an image boots and its kernel passes the guest's self-check, or the run
stops."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from mepof.device import agent
from mepof.device.protocol import DEVICES, Guest, Session
from mepof.evaluate.suite import load_suite
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step

_SECONDS = 120.0


class BootCheck:
    """Params: ``arch``, ``device``, ``seed``. Inputs: ``kernel``, ``guest``."""

    kind = "boot-check"
    phase: Phase = "boot"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        device = DEVICES.get(str(step.params["device"]))
        check = load_suite("mepof").selfcheck
        return {**device.identity(str(step.params["arch"])), "self-check": " ".join(check)}

    def run(self, context: StepContext) -> None:
        params = context.params
        check = agent.Exec(load_suite("mepof").selfcheck, _SECONDS)
        session = Session(
            arch=str(params["arch"]),
            kernel=context.inputs["kernel"] / "kernel",
            guest=Guest.of(context.inputs["guest"]),
            requests=(check,),
            seed=cast(int, params["seed"]),
        )
        outcome = DEVICES.get(str(params["device"])).boot(
            session, context.work / "boot", context.run, lambda count: None
        )
        agent.expect_success(check, outcome.replies[0])
        result = {"booted": True, "self_check": "passed", "release": outcome.release}
        (context.output / "check.json").write_text(json.dumps(result, indent=1) + "\n")
        context.note(f"Linux {outcome.release} booted and passed its self-check")


BODY = BootCheck()
