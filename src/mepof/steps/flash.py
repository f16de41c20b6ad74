"""``flash``: writes an image to a phone, which must pass its self-check from memory and after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mepof.device import agent
from mepof.device.flashing import check_permission
from mepof.device.protocol import DEVICES, INITRAMFS, Outcome, Session, flashable
from mepof.errors import InputError, WorkError
from mepof.gate.verdict import CheckVerdict
from mepof.kernel.image import read_image
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.spec.flash import Flash
from mepof.suite.cases import selfcheck

_SECONDS = 120.0


class FlashBody:
    """Makes ``flash.json``."""

    kind = Flash.kind
    phase: Phase = "run"
    # The store does not know what a phone has.
    volatile = True

    def check(self, step: Step) -> None:
        """Refuse an image of another architecture, and one that the device does not boot."""
        asked = Flash[Input].of(step, step.inputs)
        flashable(asked.device).check(asked.arch)
        if isinstance(asked.kernel, HostInput):
            found = read_image(Path(asked.kernel.path))
            if found.arch != asked.arch:
                raise InputError(
                    f"{asked.kernel.path} is an image for {found.arch}, not for {asked.arch}",
                    f"write `set arch {found.arch}` before `flash`",
                )

    def resources(self, step: Step) -> Resources:
        asked = Flash[Input].of(step, step.inputs)
        return Resources(device=DEVICES.get(asked.device).claim(asked.arch))

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = Flash[Input].of(step, step.inputs)
        return DEVICES.get(asked.device).identity(asked.arch)

    def run(self, context: StepContext) -> None:
        asked = Flash[Path].of(context.step, context.inputs)
        check_permission()
        _refuse_failed(asked)
        kernel = asked.kernel / "kernel" if asked.kernel.is_dir() else asked.kernel
        request = agent.Exec(selfcheck(), _SECONDS)
        session = Session(
            arch=asked.arch,
            kernel=kernel,
            initramfs=asked.guest / INITRAMFS,
            requests=(request,),
            seed=asked.seed,
        )

        def sound(outcome: Outcome) -> None:
            agent.expect_success(request, outcome.replies[0])

        done = flashable(asked.device).flash(session, context.work, sound, context.note)
        document = {"schema": "mepof-flash/1", "image": asked.image, **done}
        text = json.dumps(document, indent=1) + "\n"
        (context.output / "flash.json").write_text(text, encoding="utf-8")


def _refuse_failed(asked: Flash[Path]) -> None:
    for directory in asked.after:
        if not (directory / CheckVerdict.file).is_file():
            continue
        for gate in CheckVerdict.read(directory).gates:
            for image in gate.images:
                if image.image == asked.image and (image.failure or image.regressions):
                    raise WorkError(
                        f"{asked.image} is not flashed: it does not pass {gate.gate}",
                        f"see {directory / CheckVerdict.file}",
                    )


BODY = FlashBody()
