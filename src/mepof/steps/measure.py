"""``measure``: run the cases of some metrics on an image, and count."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import cast

from mepof.device import agent
from mepof.device.protocol import DEVICES, Guest, Outcome, Pmu, Session
from mepof.errors import InputError
from mepof.evaluate.core import core_digest, load_core
from mepof.evaluate.measurement import Device, Measurement, SizeBytes
from mepof.evaluate.places import functions_of, places_of, read_places
from mepof.evaluate.runner import measure_image
from mepof.evaluate.suite import cases_digest, cases_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import Json, Step


class Measure:
    """Params: ``arch``, ``device``, ``metrics``, ``seeds``, ``budget`` (seconds), ``core``.
    Inputs: ``kernel`` (a build or an image file), ``guest``, and with a core ``pmu``. Makes
    ``measurement.json``, and with a core ``places.json``: where the events of the first boot
    are."""

    kind = "measure"
    phase: Phase = "run"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        device = DEVICES.get(str(step.params["device"]))
        arch = str(step.params["arch"])
        cases = cases_of(cast(list[str], step.params["metrics"]))
        core = _core(step.params)
        modelled = {} if core is None else {"core": core_digest(core)}
        return {**device.identity(arch), "cases": cases_digest(cases), **modelled}

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
        core = _core(params)
        finished = 0
        places: Path | None = None

        def boot(seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
            nonlocal finished, places
            session = Session(
                arch=arch,
                kernel=kernel,
                guest=Guest.of(context.inputs["guest"]),
                requests=requests,
                seed=seed,
                count=True,
                pmu=None if core is None else _pmu(core, context.inputs["pmu"], finished == 0),
            )

            def replied(count: int) -> None:
                done = finished * len(cases) + min(max(0, count - 1), len(cases))
                name = cases[count - 1].name if 0 < count <= len(cases) else "booting"
                context.progress(done, len(cases) * len(seeds), "cases", f"seed {seed}: {name}")

            outcome = device.boot(session, context.work / f"boot-{seed}", context.run, replied)
            finished += 1
            places = outcome.places or places
            return outcome

        budget = cast(float | None, params.get("budget"))
        started = time.monotonic()
        found = measure_image(
            cases,
            seeds,
            boot,
            lambda: budget is not None and time.monotonic() - started >= budget,
            core,
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
        if core is not None and places is not None and found.boots:
            told = places_of(core, cases, read_places(places), functions_of(given))
            (context.output / "places.json").write_text(told.to_json(), encoding="utf-8")


def _core(params: Mapping[str, Json]) -> str | None:
    """The core to model, if there is one.

    Raises:
        InputError: it does not execute what the kernel is made of.
    """
    name = cast(str | None, params.get("core"))
    if name is not None and (arch := load_core(name).arch) != params["arch"]:
        raise InputError(
            f"the core {name} executes {arch}, not {params['arch']}",
            "choose another by `set core`",
        )
    return name


def _pmu(core: str, made: Path, places: bool) -> Pmu:
    return Pmu(made / "pmu.so", load_core(core).arguments(), places)


def _sizes(given: Path, kernel: Path) -> tuple[dict[str, int], SizeBytes]:
    """Section sizes of a build of ours; of a bare image only the file's size is known."""
    image = kernel.stat().st_size
    description = given / "build.json"
    if not description.is_file():
        return {}, SizeBytes(text=0, image=image)
    build = json.loads(description.read_text(encoding="utf-8"))
    return build["sections"], SizeBytes(text=build["size_bytes"]["text"], image=image)


BODY = Measure()
