"""``measure``: run the cases of some metrics on an image, and count."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from mepof.device import agent
from mepof.device.protocol import DEVICES, Guest, Outcome, Session
from mepof.errors import InputError
from mepof.evaluate.measurement import Device, Measurement, SizeBytes
from mepof.evaluate.runner import measure_image
from mepof.evaluate.suite import Case, cases_digest, cases_of, suites_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import Step


class Measure:
    """Params: ``arch``, ``device``, ``metrics``, ``seeds``, ``budget`` (seconds).
    Inputs: ``kernel`` (a build or an image file), ``guest``, and ``suite-NAME`` of each suite
    that adds programs to the guest. Makes ``measurement.json``."""

    kind = "measure"
    phase: Phase = "run"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        device = DEVICES.get(str(step.params["device"]))
        cases = cases_of(cast(list[str], step.params["metrics"]))
        memory = _memory(cases)
        return {
            **device.identity(str(step.params["arch"])),
            "cases": cases_digest(cases),
            **({"memory": str(memory)} if memory != Session.memory else {}),
        }

    def run(self, context: StepContext) -> None:
        params = context.params
        given = context.inputs["kernel"]
        kernel = given / "kernel" if given.is_dir() else given
        if not kernel.is_file():
            raise InputError(f"{given} holds no kernel image")
        arch = str(params["arch"])
        device = DEVICES.get(str(params["device"]))
        cases = cases_of(cast(list[str], params["metrics"]))
        seeds = cast(list[int], params["seeds"])
        archives = tuple(
            path / "archive.cpio"
            for name, path in sorted(context.inputs.items())
            if name.startswith("suite-")
        )
        finished = 0

        def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
            nonlocal finished
            session = Session(
                arch=arch,
                kernel=kernel,
                guest=Guest.of(context.inputs["guest"]),
                requests=requests,
                seed=seed,
                count=True,
                archives=archives,
                memory=_memory(cases),
            )

            def replied(count: int) -> None:
                done = finished * len(cases) + min(max(0, count - 1), len(cases))
                name = cases[count - 1].name if 0 < count <= len(cases) else "booting"
                context.progress(done, len(cases) * len(seeds), "cases", f"seed {seed}: {name}")

            outcome = device.boot(session, context.work / f"boot-{seed}", context.run, replied)
            finished += 1
            return outcome

        budget = cast(float | None, params.get("budget"))
        started = time.monotonic()
        found = measure_image(
            cases,
            seeds,
            boot,
            lambda: budget is not None and time.monotonic() - started >= budget,
        )
        sections, size = _sizes(given, kernel)
        measurement = Measurement(
            image="image",  # whoever reports names it: one measurement may serve two names
            digest=file_digest(kernel),
            device=Device(**asdict(device.describe(arch))),
            booted=found.booted,
            self_check=found.self_check,
            size_bytes=size,
            sections=sections,
            boots=found.boots,
        )
        text = measurement.model_dump_json(indent=1)
        (context.output / "measurement.json").write_text(text + "\n", encoding="utf-8")


def _memory(cases: Sequence[Case]) -> int:
    """MiB that the guest needs for the hungriest of their suites."""
    return max(suite.memory for suite in suites_of(cases))


def _sizes(given: Path, kernel: Path) -> tuple[dict[str, int], SizeBytes]:
    """Section sizes of a build of ours; of a bare image only the file's size is known."""
    image = kernel.stat().st_size
    description = given / "build.json"
    if not description.is_file():
        return {}, SizeBytes(text=0, image=image)
    build = json.loads(description.read_text(encoding="utf-8"))
    return build["sections"], SizeBytes(text=build["size_bytes"]["text"], image=image)


BODY = Measure()
