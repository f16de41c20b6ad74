"""``measure``: runs the cases of the metrics on all images of an ``eval``, in turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mepof.device import agent, module_archive, modules, observation
from mepof.device.protocol import (
    DEVICES,
    INITRAMFS,
    Outcome,
    Session,
    check_cpus,
    counter_source,
)
from mepof.errors import InputError
from mepof.kernel.description import BuildDescription
from mepof.kernel.image import read_image
from mepof.measure.boots import KeptBoots
from mepof.measure.comparison import Build, rows_of, totals_of
from mepof.measure.measurement import (
    PASSED,
    Device,
    Evaluation,
    Measurement,
    MemoryBytes,
    SizeBytes,
)
from mepof.measure.runner import (
    CONTROL_SEEDS,
    Design,
    ImageBoots,
    Images,
    OneBoot,
    Turn,
    measure_boot,
    measure_images,
    measure_memory,
    requests_of,
)
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import HostInput, Input, Step
from mepof.plan.typed import In
from mepof.pmu.core import load_core
from mepof.pmu.locations import Locations, functions_of, locations_of, read_raw
from mepof.pmu.settings import core_digest, settings_of
from mepof.spec.measure import Measure
from mepof.statistics import Comparison, enough
from mepof.suite.cases import Case, cases_digest, cases_of, memory_of


class MeasureBody:
    """Makes ``evaluation.json``, and with a core ``places0.json``…: the locations of the events in
    the first boot of each image."""

    kind = Measure.kind
    phase: Phase = "run"
    version = 4

    def check(self, step: Step) -> None:
        """Refuse a core or an image of another architecture."""
        asked = Measure[Input].of(step, step.inputs)
        _core(asked)
        check_cpus(DEVICES.get(asked.device), asked.arch, asked.cpus)
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
        # All cores: what is timed on this machine must not compete with a build.
        claimed = DEVICES.get(asked.device).claim(asked.arch)
        return Resources(cores=64, device=claimed, needs=frozenset({asked.arch}))

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = Measure[Input].of(step, step.inputs)
        # A device that cannot count is refused before a kernel for it is built.
        device = counter_source(asked.device)
        device.counter(asked.arch)
        cases = cases_of(asked.metrics)
        core = _core(asked)
        return {
            **device.identity(asked.arch),
            "cases": cases_digest(cases),
            "memory": str(memory_of(cases)),
            **({} if core is None else {"core": core_digest(core)}),
        }

    def run(self, context: StepContext) -> None:
        asked = Measure[Path].of(context.step, context.inputs)
        targets = _targets(asked)
        seed, precision, budget = asked.seed, asked.precision, asked.budget
        design = Design(asked.min_boots, asked.max_boots)
        laboratory = _Laboratory(context, asked, targets, design)
        started = time.monotonic()
        laboratory.read_memory()
        images, ended = measure_images(
            [seed + CONTROL_SEEDS if t.role == "same build" else seed for t in targets],
            design,
            laboratory.round_of,
            lambda images: _enough(laboratory.evaluation(images, precision, "")),
            lambda: budget is not None and time.monotonic() - started >= budget,
        )
        text = laboratory.evaluation(images, precision, ended).model_dump_json(indent=1)
        (context.output / "evaluation.json").write_text(text + "\n", encoding="utf-8")
        for name, locations in laboratory.locations().items():
            (context.output / f"{name}.json").write_text(locations.to_json(), encoding="utf-8")


@dataclass(frozen=True)
class _Target:
    """Something to boot: an image, or the baseline again as a control."""

    role: str
    given: Path
    kernel: Path
    digest: str


def _targets(asked: Measure[Path]) -> list[_Target]:
    found: list[_Target] = []
    for role, builds in (("kernel", asked.images), ("relinked", asked.relinked)):
        for given in builds:
            kernel = given / "kernel" if given.is_dir() else given
            if not kernel.is_file():
                raise InputError(f"{given} does not contain a kernel image")
            found.append(_Target(role, given, kernel, file_digest(kernel)))
    if sum(1 for target in found if target.role == "kernel") > 1:
        # A single image is not compared with anything.
        baseline = found[0]
        found.append(_Target("same build", baseline.given, baseline.kernel, baseline.digest))
    return found


class _Laboratory:
    """Boots targets and keeps the results."""

    def __init__(
        self,
        context: StepContext,
        asked: Measure[Path],
        targets: Sequence[_Target],
        design: Design,
    ) -> None:
        self._context = context
        self._targets = targets
        self._design = design
        self._arch = asked.arch
        self._seed = asked.seed
        self._device = DEVICES.get(asked.device)
        self._description = self._device.describe(self._arch)
        self._cases: Sequence[Case] = cases_of(asked.metrics)
        self._memory = memory_of(self._cases)
        self._machine_bytes = self._memory << 20
        self._core = _core(asked)
        settings = () if self._core is None else settings_of(load_core(self._core))
        self._measure = observation.Measure(self._core, settings)
        self._artifacts = asked.artifacts
        self._cpus = asked.cpus
        self._initramfs = asked.guest / INITRAMFS
        self._archives = tuple(path / "archive.cpio" for _, path in sorted(asked.suites.items()))
        needs = self._device.needs(self._arch, self._measure)
        repeats = self._description.repeats
        self._threads = context.cores if repeats else 1
        directory = (context.cache if repeats else context.work) / "boots"
        decided = (
            self._arch,
            sorted(self._device.identity(self._arch).items()),
            file_digest(self._initramfs),
            *(file_digest(self._artifacts[n] / f) for n, need in needs.items() for f in need.files),
            settings,
            *(file_digest(archive) for archive in self._archives),
            cases_digest(self._cases),
            requests_of(self._cases),
            self._memory,
            *((f"{self._cpus} CPUs",) if self._cpus > 1 else ()),
        )
        loaded = [module_archive.archive_of(target.given) for target in targets]
        self._kept = [
            # If boots are not repeatable, a control needs boots of its own.
            KeptBoots(
                directory,
                (
                    *decided,
                    t.digest,
                    "" if repeats else number,
                    *(() if archive is None else (file_digest(archive),)),
                ),
            )
            for number, (t, archive) in enumerate(zip(targets, loaded, strict=True))
        ]
        self._lock = threading.Lock()
        self._finished = 0

    def round_of(self, turns: Sequence[Turn]) -> list[OneBoot]:
        """Boot targets: in this order, or in parallel if boots are repeatable."""
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(self._boot, turns))

    def evaluation(self, images: Images, precision: float, ended: str) -> Evaluation:
        """The evaluation of the boots so far."""
        by_role: dict[str, list[Measurement]] = {}
        for target, boots, kept in zip(self._targets, images, self._kept, strict=True):
            memory = kept.memory() if target.role == "kernel" else None
            by_role.setdefault(target.role, []).append(self._measurement(target, boots, memory))
        return Evaluation(
            images=tuple(by_role["kernel"]),
            same_build=next(iter(by_role.get("same build", [])), None),
            relinked=tuple(by_role.get("relinked", [])),
            precision_percent=precision,
            ended=ended,
        )

    def locations(self) -> dict[str, Locations]:
        """The locations of events in each image's first boot, by file name (``places0``…)."""
        found: dict[str, Locations] = {}
        for number, target in enumerate(self._targets):
            path = self._kept[number].locations(self._seed)
            boot = self._kept[number].find(self._seed)
            if self._core is not None and target.role == "kernel" and boot and path.is_file():
                ran = [(case.suite, case.case) for case in boot.cases]
                raw, functions = read_raw(path), functions_of(target.given)
                found[f"places{number}"] = locations_of(self._core, ran, raw, functions)
        return found

    def _reports_locations(self, turn: Turn) -> bool:
        number, seed = turn
        first = self._targets[number].role == "kernel" and seed == self._seed
        return self._core is not None and first

    def _boot(self, turn: Turn) -> OneBoot:
        number, seed = turn
        located = self._reports_locations(turn)
        kept = self._kept[number].find(seed)
        if kept is not None and (not located or self._kept[number].locations(seed).is_file()):
            made = OneBoot(True, PASSED, kept)
        else:
            made = measure_boot(
                self._cases,
                seed,
                lambda s, r: self._session(number, s, r),
                self._core,
                self._machine_bytes,
            )
            if made.boot is not None:
                self._kept[number].keep(made.boot)
        with self._lock:
            self._finished += 1
            self._progress(f"seed {seed}")
        return made

    def read_memory(self) -> None:
        """Read each image's memory before anything runs, in a boot of its own.

        In a boot with cases it would change what they count.
        """
        images = [n for n, target in enumerate(self._targets) if target.role == "kernel"]
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(self._read_memory, images))

    def _read_memory(self, number: int) -> None:
        kept = self._kept[number]
        if kept.memory() is None:
            directory = self._context.work / f"memory-{number}"
            found = measure_memory(
                lambda requests: modules.boot(
                    self._device,
                    replace(self._booted(number, self._seed, requests), measure=None),
                    self._targets[number].given,
                    directory,
                    self._context.run,
                    lambda count: None,
                ),
                self._machine_bytes,
            )
            if found is not None:
                kept.keep_memory(found)

    def _booted(self, number: int, seed: int, requests: tuple[agent.Request, ...]) -> Session:
        return Session(
            arch=self._arch,
            kernel=self._targets[number].kernel,
            initramfs=self._initramfs,
            requests=requests,
            seed=seed,
            measure=replace(self._measure, locations=self._reports_locations((number, seed))),
            artifacts=self._artifacts,
            archives=self._archives,
            memory=self._memory,
            cpus=self._cpus,
        )

    def _session(self, number: int, seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        session = self._booted(number, seed, requests)

        def replied(count: int) -> None:
            name = self._cases[count - 1].name if 0 < count <= len(self._cases) else "booting"
            with self._lock:
                self._progress(f"image {number}, seed {seed}: {name}")

        outcome = modules.boot(
            self._device,
            session,
            self._targets[number].given,
            self._context.work / f"boot-{number}-{seed}",
            self._context.run,
            replied,
        )
        if outcome.locations is not None:
            self._kept[number].keep_locations(seed, outcome.locations)
        return outcome

    def _progress(self, text: str) -> None:
        # Measuring may stop before the maximum.
        total = len(self._targets) * self._design.most
        self._context.progress(self._finished, total, "boots", text)

    def _measurement(
        self, target: _Target, boots: ImageBoots, memory: MemoryBytes | None
    ) -> Measurement:
        sections, size = _sizes(target.given, target.kernel)
        return Measurement(
            image="image",  # the report names it: one build may have two names
            digest=target.digest,
            device=Device(**asdict(self._description)),
            booted=boots.booted,
            self_check=boots.self_check,
            size_bytes=size,
            sections=sections,
            boots=boots.boots,
            memory=memory,
        )


def _enough(evaluation: Evaluation) -> bool:
    """Whether every comparison is precise enough; a single image is not compared."""
    baseline, *others = evaluation.images
    if not baseline.sound or not others:
        return True
    same = (evaluation.same_build,) if evaluation.same_build else ()
    builds = (Build((baseline, *same)), *(Build((m,)) for m in evaluation.relinked if m.sound))
    comparisons: list[Comparison | None] = []
    for image in others:
        rows = rows_of(builds, [Build((image,))])
        # Modelled events only explain a difference; too many are too rare to wait for. So are
        # percentiles of latencies.
        rows = [row for row in rows if not (row.metric.may_be_none or row.metric.printed)]
        comparisons += [row.comparison for row in rows]
        comparisons += [total.comparison for total in totals_of(rows)]
    return enough(comparisons, evaluation.precision_percent)


def _core(asked: Measure[In]) -> str | None:
    """The core to model, if any.

    Raises:
        InputError: it is of another architecture.
    """
    name = asked.core
    if name is not None and (arch := load_core(name).arch) != asked.arch:
        raise InputError(
            f"the core {name} executes {arch}, not {asked.arch}",
            "choose another with `set core`",
        )
    return name


def _sizes(given: Path, kernel: Path) -> tuple[dict[str, int], SizeBytes]:
    """The sizes of a build's sections; for a bare image, only the size of the file."""
    image = kernel.stat().st_size
    build = BuildDescription.find(given) if given.is_dir() else None
    if build is None:
        return {}, SizeBytes(text=None, image=image)
    return build.sections, SizeBytes(text=build.size_bytes.text, image=image)


BODY = MeasureBody()
