"""``measure``: runs the cases of the metrics on all images of an ``eval``, in turn."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from mepof.app.own import OwnApp
from mepof.app.own_files import check_distinct_files
from mepof.device.protocol import DEVICES, EMULATOR_MEMORY, check_cpus, counter_source
from mepof.errors import InputError
from mepof.kernel.image import read_image
from mepof.measure.comparison import precise
from mepof.measure.runner import Design, measure_images
from mepof.measure.work import memory_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.pmu.settings import core_digest, price_digest
from mepof.spec.measure import Measure
from mepof.steps.measured_boots import (
    Laboratory,
    apps_in,
    cases_in,
    core_of,
    files_of,
    planned_work,
    priced_by,
    targets_of,
)
from mepof.suite.cases import cases_digest


class MeasureBody:
    """Makes ``evaluation.json``, and with a core ``places0.json``…: the locations of the events in
    the first boot of each image."""

    kind = Measure.kind
    phase: Phase = "run"
    version = 4

    def check(self, step: Step) -> None:
        """Refuse a device that does not count, and a core or an image of another architecture."""
        asked = Measure[Input].of(step, step.inputs)
        device = counter_source(asked.device)
        device.counter(asked.arch)
        device.check(asked.arch)
        core_of(asked)
        check_cpus(device, asked.arch, asked.cpus)
        check_distinct_files(_own_apps(asked))
        for image in asked.images:
            if isinstance(image, HostInput):
                found = read_image(Path(image.path))
                if found.arch != asked.arch:
                    raise InputError(
                        f"{image.path} is an image for {found.arch}, not for {asked.arch}",
                        f"write `set arch {found.arch}` before `eval`",
                    )

    def resources(self, step: Step) -> Resources:
        asked = Measure[Input].of(step, step.inputs)
        device = DEVICES.get(asked.device)
        claimed = device.claim(asked.arch)
        needs = frozenset({asked.arch})
        # Boots that are the same wherever they are made need not be made here.
        spreads = claimed is None and device.describe(asked.arch).repeats
        memory = memory_of(planned_work(asked.metrics, asked.apps)) + EMULATOR_MEMORY
        part = Resources(needs=needs, memory=memory) if spreads else None
        # All cores: what is timed on this machine must not compete with a build.
        return Resources(cores=64, device=claimed, needs=needs, part=part)

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = Measure[Input].of(step, step.inputs)
        device = DEVICES.get(asked.device)
        work = planned_work(asked.metrics, asked.apps)
        core, price = core_of(asked), priced_by(asked)
        check_distinct_files(_own_apps(asked), asked.arch)
        return {
            **device.identity(asked.arch),
            "cases": cases_digest(cases_in(work)),
            "memory": str(memory_of(work)),
            **({} if core is None else {"core": core_digest(core)}),
            **({} if price is None else {"REP": price_digest(price)}),
        }

    def run(self, context: StepContext) -> None:
        asked = Measure[Path].of(context.step, context.inputs)
        targets = targets_of(asked)
        precision, budget = asked.precision, asked.budget
        design = Design(asked.min_boots, asked.max_boots)
        started = time.monotonic()
        with Laboratory(context, asked, targets, design) as laboratory:
            laboratory.read_memory()
            images, ended = measure_images(
                laboratory.first_seeds,
                design,
                laboratory.round_of,
                lambda images: precise(laboratory.evaluation(images, precision, "")),
                lambda: budget is not None and time.monotonic() - started >= budget,
            )
        text = laboratory.evaluation(images, precision, ended).model_dump_json(indent=1)
        (context.output / "evaluation.json").write_text(text + "\n", encoding="utf-8")
        for name, locations in laboratory.locations().items():
            (context.output / f"{name}.json").write_text(locations.to_json(), encoding="utf-8")

    def part(self, context: StepContext, name: str) -> bytes:
        """Make one boot: ``memory IMAGE`` or ``boot IMAGE SEED``."""
        asked = Measure[Path].of(context.step, context.inputs)
        design = Design(asked.min_boots, asked.max_boots)
        with Laboratory(context, asked, targets_of(asked), design) as laboratory:
            return laboratory.part(name).to_bytes()


def _own_apps(asked: Measure[Input]) -> list[tuple[OwnApp, Path]]:
    """The user's apps, each with its description."""
    files = files_of(asked.apps)
    return list(zip(apps_in(files), files, strict=True))


BODY = MeasureBody()
