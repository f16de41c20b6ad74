"""The boots of a measurement: made here or on other machines, and kept."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from mepof import arch
from mepof.app.android import load_described
from mepof.app.measured import check_distinct_suites
from mepof.app.own import OwnApp, check_distinct_apps
from mepof.app.service_logs import keep
from mepof.device import agent, module_archive, modules, observation
from mepof.device.protocol import DEVICES, INITRAMFS, Outcome, Session, quiet_seconds
from mepof.errors import InputError
from mepof.kernel.description import BuildDescription
from mepof.measure.boots import KeptBoots
from mepof.measure.measurement import (
    PASSED,
    Boot,
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
    measure_memory,
    requests_of,
)
from mepof.measure.work import Work, memory_of, work_of
from mepof.plan.body import StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import HostInput, Input
from mepof.plan.typed import In
from mepof.pmu.core import label_of, load_core
from mepof.pmu.locations import Locations, functions_of, locations_of, read_raw
from mepof.pmu.settings import modelling, price_digest
from mepof.spec.measure import Measure, MeasuredApp
from mepof.steps.app_programs import archives
from mepof.suite.cases import Case, cases_digest


@dataclass(frozen=True)
class Made:
    """What a boot on another machine gave.

    Attributes:
        boot: its measurements, if the image is sound.
        memory: of a boot that reads it.
        locations: of the events, if the boot reported them.
        service_logs: as of :class:`OneBoot`.
    """

    booted: bool = True
    self_check: str = PASSED
    boot: Boot | None = None
    service_logs: Mapping[str, str] = field(default_factory=dict)
    memory: MemoryBytes | None = None
    locations: str | None = None

    def to_bytes(self) -> bytes:
        """It as JSON."""
        return _MADE.dump_json(self)

    @staticmethod
    def of(data: bytes) -> Made:
        """What :meth:`to_bytes` wrote."""
        return _MADE.validate_json(data)


_MADE = TypeAdapter(Made)


@dataclass(frozen=True)
class Target:
    """Something to boot: an image, or the baseline again as a control."""

    role: str
    given: Path
    kernel: Path
    digest: str


def targets_of(asked: Measure[Path]) -> list[Target]:
    found: list[Target] = []
    for role, builds in (("kernel", asked.images), ("relinked", asked.relinked)):
        for given in builds:
            kernel = given / "kernel" if given.is_dir() else given
            if not kernel.is_file():
                raise InputError(f"{given} does not contain a kernel image")
            found.append(Target(role, given, kernel, file_digest(kernel)))
    if sum(1 for target in found if target.role == "kernel") > 1:
        # A single image is not compared with anything.
        baseline = found[0]
        found.append(Target("same build", baseline.given, baseline.kernel, baseline.digest))
    return found


class Laboratory:
    """Boots targets and keeps the results.

    On other machines, boots of later rounds begin before the results of earlier ones are known.
    They are read in the order of a single machine, and those of rounds that turn out not to be
    needed never, so the evaluation is the same.
    """

    def __init__(
        self,
        context: StepContext,
        asked: Measure[Path],
        targets: Sequence[Target],
        design: Design,
    ) -> None:
        self._context = context
        self._targets = targets
        self._design = design
        self._arch = asked.arch
        self._seed = asked.seed
        self._device = DEVICES.get(asked.device)
        self._description = self._device.describe(self._arch)
        self._work = work_of(asked.metrics, apps_in(app.file for app in asked.apps))
        self._cases = cases_in(self._work)
        self._names = [name for each in self._work for name in each.names]
        self._memory = memory_of(self._work)
        own = (request for each in self._work if each.is_own for request in each.commands)
        self._quiet_seconds = quiet_seconds(own)
        self._machine_bytes = self._memory << 20
        self._core = core_of(asked)
        self._measure = observation.Measure() if self._core is None else modelling(self._core)
        self._price = priced_by(asked)
        label = self._core and label_of(self._core)
        self._artifacts = asked.artifacts
        self._cpus = asked.cpus
        self._initramfs = asked.guest / INITRAMFS
        self._archives = archives(asked.suites, [app.programs for app in asked.apps])
        needs = self._device.needs(self._arch, self._measure)
        repeats = self._description.repeats
        self._parts = context.parts if repeats else None
        self._threads = context.cores if repeats else 1
        if self._parts is not None:
            self._threads = self._parts.width
        self.first_seeds = [
            asked.seed + CONTROL_SEEDS if t.role == "same build" else asked.seed for t in targets
        ]
        directory = (context.cache if repeats else context.work) / "boots"
        decided = (
            self._arch,
            sorted(self._device.identity(self._arch).items()),
            file_digest(self._initramfs),
            *(file_digest(self._artifacts[n] / f) for n, need in needs.items() for f in need.files),
            self._measure.cpu,
            self._measure.settings,
            self._price and price_digest(self._price),
            # Kept boots have it in their results.
            *((label,) if label != self._core else ()),
            *(file_digest(archive) for archive in self._archives),
            cases_digest(self._cases),
            requests_of(self._work),
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
        self._pool = ThreadPoolExecutor(self._threads)
        self._begun: dict[Turn, Future[OneBoot]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # What runs elsewhere ends with the step.
        self._pool.shutdown(wait=self._parts is None, cancel_futures=True)

    def round_of(self, turns: Sequence[Turn]) -> list[OneBoot]:
        """Boot targets: in this order, or in parallel if boots are repeatable."""
        early = 0 if self._parts is None else -(-(self._threads - 1) // len(turns))
        for later in range(early + 1):
            for number, seed in turns:
                turn = number, seed + later
                last = self.first_seeds[number] + self._design.most - 1
                if turn[1] <= last and turn not in self._begun:
                    self._begun[turn] = self._pool.submit(self._boot, turn)
        return [self._with_logs(self._begun[turn].result(), turn) for turn in turns]

    def _with_logs(self, made: OneBoot, turn: Turn) -> OneBoot:
        """A boot whose services' logs are kept here, if something failed, and which says where: in
        the store, since results do not depend on where that is."""
        kept = keep(made.service_logs, self._context.log, f".image{turn[0]}")
        for name, path in kept.items():
            self._context.note(f"the whole log of the service {name}: {path}")
        told = "".join(
            f"\n  whole log: {p.parent.name}/{p.name} in the store" for p in kept.values()
        )
        return replace(made, self_check=made.self_check + told)

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
                found[f"places{number}"] = locations_of(label_of(self._core), ran, raw, functions)
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
        elif self._parts is not None:
            told = Made.of(self._parts.call(f"boot {number} {seed}"))
            made = OneBoot(told.booted, told.self_check, told.boot, told.service_logs)
            if told.locations is not None:
                self._kept[number].keep_locations(seed, told.locations.encode())
        else:
            made = measure_boot(
                self._work,
                seed,
                lambda s, r: self._session(number, s, r),
                self._core,
                self._machine_bytes,
                self._price,
            )
        if made.boot is not None and kept is None:
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
        list(self._pool.map(self._read_memory, images))

    def part(self, name: str) -> Made:
        """Make the boot of that name for another machine."""
        what, *numbers = name.split()
        if what == "memory":
            (number,) = map(int, numbers)
            self._read_memory(number)
            return Made(memory=self._kept[number].memory())
        number, seed = map(int, numbers)
        boot = self._boot((number, seed))
        locations = self._kept[number].locations(seed)
        text = locations.read_text() if self._reports_locations((number, seed)) else None
        logs = boot.service_logs
        return Made(boot.booted, boot.self_check, boot.boot, logs, locations=text)

    def _read_memory(self, number: int) -> None:
        kept = self._kept[number]
        if kept.memory() is not None:
            return
        if self._parts is not None:
            found = Made.of(self._parts.call(f"memory {number}")).memory
        else:
            found = self._memory_of_boot(number)
        if found is not None:
            kept.keep_memory(found)

    def _memory_of_boot(self, number: int) -> MemoryBytes | None:
        return measure_memory(
            lambda requests: modules.boot(
                self._device,
                replace(self._booted(number, self._seed, requests), measure=None),
                self._targets[number].given,
                self._context.work / f"memory-{number}",
                self._context.run,
                lambda count: None,
            ),
            self._machine_bytes,
        )

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
            quiet_seconds=self._quiet_seconds,
            cpus=self._cpus,
        )

    def _session(self, number: int, seed: int, requests: tuple[agent.Request, ...]) -> Outcome:
        session = self._booted(number, seed, requests)

        def replied(count: int) -> None:
            name = self._names[count - 1] if 0 < count <= len(self._names) else "booting"
            with self._lock:
                self._progress(f"image {number}, seed {seed}: {name}")

        # A guest that unpacks an image of hundreds of MB is silent for minutes.
        replied(0)
        outcome = modules.boot(
            self._device,
            session,
            self._targets[number].given,
            self._context.work / f"boot-{number}-{seed}",
            self._context.run,
            replied,
        )
        if outcome.locations is not None:
            self._kept[number].keep_locations(seed, outcome.locations.read_bytes())
        return outcome

    def _progress(self, text: str) -> None:
        # Measuring may stop before the maximum.
        total = len(self._targets) * self._design.most
        self._context.progress(self._finished, total, "boots", text)

    def _measured_on(self) -> Device:
        cpu = self._measure.cpu or self._description.cpu
        return Device(**{**asdict(self._description), "cpu": cpu})

    def _measurement(
        self, target: Target, boots: ImageBoots, memory: MemoryBytes | None
    ) -> Measurement:
        sections, size = _sizes(target.given, target.kernel)
        return Measurement(
            image="image",  # the report names it: one build may have two names
            digest=target.digest,
            device=self._measured_on(),
            booted=boots.booted,
            self_check=boots.self_check,
            size_bytes=size,
            sections=sections,
            boots=boots.boots,
            memory=memory,
        )


def files_of(apps: Iterable[MeasuredApp[Input]]) -> list[Path]:
    """The files that describe apps."""
    return [Path(app.file.path) for app in apps if isinstance(app.file, HostInput)]


def planned_work(metrics: Sequence[str], apps: Iterable[MeasuredApp[Input]]) -> tuple[Work, ...]:
    """The work of a step that has not begun.

    Raises:
        InputError: as of :func:`apps_in`.
    """
    return work_of(metrics, apps_in(files_of(apps)))


def apps_in(files: Iterable[Path]) -> list[OwnApp]:
    """The apps that files describe, as far as they can be measured.

    Raises:
        InputError: a description is wrong, or a report could not keep them apart.
    """
    apps = []
    for file in files:
        app = load_described(file)
        if not isinstance(app, OwnApp):
            raise InputError(
                f"{file} lists apps of a phone, which are not measured",
                "measure a suite, or a program of your own",
            )
        apps.append(app)
    check_distinct_apps(apps)
    check_distinct_suites(apps)
    return apps


def cases_in(work: Sequence[Work]) -> tuple[Case, ...]:
    """All cases of a measurement."""
    return tuple(case for each in work for case in each.cases)


def core_of(asked: Measure[In]) -> str | None:
    """The name of the core to model or the path of its description, if any.

    Raises:
        InputError: it is of another architecture.
    """
    given = asked.core
    if given is None:
        return None
    name = given.path if isinstance(given, HostInput) else str(given)
    if (executed := load_core(name).arch) != asked.arch:
        raise InputError(
            f"the core {name} executes {executed}, not {asked.arch}",
            "choose another with `set core`",
        )
    return name


def priced_by(asked: Measure[In]) -> str | None:
    """The core by whose costs REP string instructions are priced; None where there are none."""
    machine = arch.get(asked.arch).machine
    if machine is None or machine.repeat_core is None:
        return None
    return core_of(asked) or machine.repeat_core


def _sizes(given: Path, kernel: Path) -> tuple[dict[str, int], SizeBytes]:
    """The sizes of a build's sections; for a bare image, only the size of the file."""
    image = kernel.stat().st_size
    build = BuildDescription.find(given) if given.is_dir() else None
    if build is None:
        return {}, SizeBytes(text=None, image=image)
    return build.sections, SizeBytes(text=build.size_bytes.text, image=image)
