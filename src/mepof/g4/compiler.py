"""Compiles a checked program to a plan.

The compiler reads only its arguments. Steps that two statements share (a source, an
instrumented build, the baseline) are in the plan once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, Protocol

from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.g4 import ast
from mepof.g4.ast import Adap, Build, Eval, Merge, Opt, Profile, Program, Recomp, Set, Word
from mepof.g4.diagnostics import Diagnostic
from mepof.g4.formatter import format_word
from mepof.g4.goals import metrics_of
from mepof.g4.names import PLAIN, Bindings, HostPath, Made, Plain, Reference, Role, bind, is_path
from mepof.g4.settings import SETTINGS, signed_percent, weight
from mepof.measure.goal import Goal
from mepof.plan.model import HostInput, Input, Plan, Result, ResultKind, Step, StepInput
from mepof.plan.typed import StepModel
from mepof.spec import measure as spec
from mepof.spec.app_programs import AppPrograms
from mepof.spec.guest import Guest
from mepof.spec.kernel_build import BootCheck, Instrumented, KernelBuild
from mepof.spec.kernel_source import KernelSource
from mepof.spec.profile_collect import ProfileCollect, TrainingApp
from mepof.spec.profile_convert import ProfileConvert
from mepof.spec.profile_merge import ProfileMerge, WeightedProfile
from mepof.spec.report import Report, ReportedImage, ReportedProfile
from mepof.spec.suite_programs import SuitePrograms


@dataclass(frozen=True)
class Settings:
    """The settings that ``set`` changes, with their defaults."""

    arch: str = "x86-64"
    config: tuple[str, ...] = ("slim",)
    toolchain: str = "clang"
    device: str = "qemu"
    core: str | None = None
    cpus: int = 1
    seed: int = 1
    repetitions: tuple[int, int] = (5, 12)
    precision: float = 1.0
    relinked: int = 0
    actions: int = 24
    budget: int | None = None
    period: int | None = None
    depth: int = 32
    perf_data: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Kernel:
    """A kernel that a statement names, with the settings in force there.

    Attributes:
        algorithm: a stack of them, or nothing.
    """

    path: str
    settings: Settings
    algorithm: str


Argument = Literal["none", "weight", "script"]


class Rounds(Protocol):
    """The properties of an algorithm that a plan depends on."""

    #: The number of its profile-and-rebuild rounds.
    rounds: int
    #: Its profiles fit only the exact build that was profiled.
    same_build: bool
    #: It needs a device to record branches.
    records_branches: bool
    profile_names: tuple[str, ...]


class Needs(Protocol):
    """The properties of a device that a plan depends on."""

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        """The artifacts that it needs for an observation, by name."""


@dataclass(frozen=True)
class Variants:
    """The properties of the installed variants that a plan depends on.

    Attributes:
        algorithms: all algorithms, by name.
        default_algorithm: the one assumed for external profiles with an unknown suffix.
        devices: all devices, by name.
        levels: the options that also apply to builds before the last one of a statement.
        guest_additions: for each metric, the suites whose programs are added to the guest.
        app_additions: the same for each app.
        arguments: for each scenario, what may follow an app and a colon.
    """

    algorithms: Mapping[str, Rounds]
    default_algorithm: str
    devices: Mapping[str, Needs]
    levels: frozenset[str]
    guest_additions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    app_additions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    arguments: Mapping[str, Argument] = field(default_factory=dict)


def compile_program(
    program: Program, text: str, variants: Variants, perf_data: tuple[str, ...] = ()
) -> Plan:
    """The plan of a program that passed the checker.

    Args:
        text: the program's source, which the plan keeps.
        perf_data: branch traces, as if the program began with ``set perf-data``.
    """
    settings = Settings(perf_data=perf_data)
    if perf_data:
        # The text that the plan keeps must be enough to repeat the run.
        text = f"set perf-data {format_word(','.join(perf_data))}.\n{text}"
    return _Compiler(bind(program), text, variants, settings).compile()


@dataclass
class _Compiler:
    bindings: Bindings
    text: str
    variants: Variants
    settings: Settings = field(default_factory=Settings)
    seed: int | None = None
    #: In topological order: a step comes after its inputs.
    steps: list[Step] = field(default_factory=list)
    #: The models of the typed steps, by id.
    models: dict[str, StepModel[Input]] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    kernels: dict[int, _Kernel] = field(default_factory=dict)
    images: dict[str, StepInput] = field(default_factory=dict)
    profiles: dict[str, StepInput] = field(default_factory=dict)
    algorithms: dict[str, str] = field(default_factory=dict)
    #: The names of unoptimised images, by their steps.
    plain_names: dict[str, str] = field(default_factory=dict)
    #: By their quantities and metrics: a later one takes the place of an earlier one.
    goals: dict[tuple[str, str | None], Goal] = field(default_factory=dict)

    def compile(self) -> Plan:
        for index, statement in enumerate(self.bindings.program.statements):
            match statement:
                case Set():
                    self._set(statement)
                case ast.Goal():
                    self._goal(statement)
                case Opt(path=path) | Adap(url=path):
                    self._opt(index, path.text, statement)
                case Profile():
                    self._profile(index, statement)
                case Merge():
                    self._merge(index, statement)
                case Recomp():
                    self._recomp(index, statement)
                case Build():
                    self._plain(index, statement)
                case Eval():
                    self._eval(index, statement)
        seed = Settings().seed if self.seed is None else self.seed
        return Plan(self.text, seed, tuple(self.steps), tuple(self.results))

    # -- statements

    def _set(self, statement: Set) -> None:
        key, value = statement.key.text, statement.value.text
        if key == "name":
            return  # already in the bindings
        read: Any = SETTINGS[key].read(value)
        if key == "config" and isinstance(read, str):
            read = (read,)
        self.settings = replace(self.settings, **{key.replace("-", "_"): read})
        if key == "seed" and self.seed is None:
            self.seed = read

    def _goal(self, statement: ast.Goal) -> None:
        quantity, bound = statement.quantity.text, signed_percent(statement.bound.text)
        for metric in metrics_of(statement):
            content = {"quantity": quantity, "bound": bound, "metric": metric}
            self.goals[quantity, metric] = Goal.model_validate(content)

    def _opt(self, index: int, path: str, statement: Opt | Adap) -> None:
        name = self._name(index)
        options = [word.text for word in statement.options]
        algorithm = statement.algorithm.text
        kernel = self._kernel(index, path, algorithm)
        profile = self._profiled(name, kernel, statement, options)
        self._image(name, self._used(name, kernel, options, profile))
        self._profile_result(name, profile, algorithm)

    def _profile(self, index: int, statement: Profile) -> None:
        name = self._name(index)
        algorithm = statement.algorithm.text
        kernel = self._kernel(index, statement.path.text, algorithm)
        self._profile_result(name, self._profiled(name, kernel, statement, []), algorithm)

    def _merge(self, index: int, statement: Merge) -> None:
        name = self._name(index)
        given = [self._profile_input(word, index) for word in statement.profiles]
        weights = [weight(word.text) for word in statement.weights] or [Fraction(1)] * len(given)
        foreign = self._foreign(statement.profiles[0].text)
        algorithm = next((known for _, known in given if known), foreign)
        merged = self._add(
            f"{name}/merge",
            ProfileMerge[Input](
                algorithm=algorithm,
                toolchain=self.settings.toolchain,
                profiles=tuple(
                    WeightedProfile[Input](profile=profile, weight=by)
                    for (profile, _), by in zip(given, weights, strict=True)
                ),
            ),
        )
        self._profile_result(name, merged, algorithm)

    def _recomp(self, index: int, statement: Recomp) -> None:
        name = self._name(index)
        given, algorithm = self._profile_input(statement.profile, index)
        kernel = self._kernel(
            index, statement.path.text, algorithm or self._foreign(statement.profile.text)
        )
        options = [word.text for word in statement.options]
        self._image(name, self._used(name, kernel, options, given))

    def _plain(self, index: int, statement: Build) -> None:
        name = self._name(index)
        kernel = self._kernel(index, statement.path.text)
        options = [word.text for word in statement.options]
        self._image(name, self._build(f"{name}/build", kernel, options))

    def _eval(self, index: int, statement: Eval) -> None:
        names: list[str] = []
        kernels: list[Input] = []
        for word in statement.images:
            kernel, name = self._image_input(word, index)
            plain_name, again = name, 1
            while name in names:
                again += 1
                name = f"{plain_name}#{again}"
            names.append(name)
            kernels.append(kernel)
        number = sum(1 for r in self.results if r.kind == "report")
        report = f"report{number + 1}" if number else "report"
        evaluation = self._measured(statement, kernels)
        collections: list[Input] = []
        images: list[ReportedImage[Input]] = []
        for name, kernel in zip(names, kernels, strict=True):
            ran = self._collections(kernel)
            collections += [step for step in ran or () if step not in collections]
            images.append(
                ReportedImage[Input](
                    name=name,
                    build=kernel if isinstance(kernel, StepInput) else None,
                    trained=None if ran is None else tuple(map(collections.index, ran)),
                )
            )
        made = Report[Input](
            program=self.text,
            seed=self.settings.seed,
            evaluation=evaluation,
            images=tuple(images),
            profiles=tuple(
                ReportedProfile[Input](name=r.name, profile=StepInput(r.step))
                for r in self.results
                if r.kind == "profile"
            ),
            collections=tuple(collections),
            # There is nothing to hold one image alone against.
            goals=tuple(self.goals.values()) if len(images) > 1 else (),
        )
        self._result(report, "report", self._add(report, made))

    def _measured(self, statement: Eval, kernels: list[Input]) -> StepInput:
        """The step that boots all images and their controls in turn."""
        settings = self.settings
        min_boots, max_boots = settings.repetitions
        measured = spec.Measure[Input](
            arch=settings.arch,
            device=settings.device,
            metrics=tuple(metric.text for metric in statement.metrics),
            seed=settings.seed,
            min_boots=min_boots,
            max_boots=max_boots,
            precision=settings.precision,
            budget=settings.budget,
            core=settings.core,
            cpus=settings.cpus,
            images=tuple(kernels),
            relinked=tuple(self._relinked(kernels)),
            guest=self._guest(settings),
            suites=self._suites(
                settings, self.variants.guest_additions, [m.text for m in statement.metrics]
            ),
            artifacts=self._artifacts(settings, Measure(settings.core)),
        )
        return self._add("measure", measured)

    def _relinked(self, kernels: list[Input]) -> Iterator[StepInput]:
        """The baseline in other layouts."""
        first = kernels[0]
        if not isinstance(first, StepInput) or len(kernels) < 2:
            return
        baseline = self.models[first.step]
        for number in range(self.settings.relinked):
            # Linkers read the seed 0 as no seed.
            again = baseline.model_copy(update={"layout_seed": number + 1})
            yield self._add(f"{first.step.rpartition('/')[0]}/relinked{number + 1}", again)

    def _collections(self, kernel: Input) -> list[StepInput] | None:
        """The steps that collected the profile that a kernel is built with.

        None if there is no profile, or if part of it is external.
        """
        build = self._model(kernel)
        if not isinstance(build, KernelBuild) or build.profile is None:
            return None
        found: set[str] = set()
        pending: list[Input] = [build.profile]
        while pending:
            given = pending.pop()
            if not isinstance(given, StepInput):
                return None
            match self._model(given):
                case ProfileCollect():
                    found.add(given.step)
                case ProfileConvert(raw=raw, profile=profile):
                    # The profiled kernel is not part of the training.
                    pending += [raw] if profile is None else [raw, profile]
                case ProfileMerge(profiles=profiles):
                    pending += [each.profile for each in profiles]
        return [StepInput(step) for step in sorted(found)]

    def _model(self, given: Input) -> StepModel[Input] | None:
        """The model of the step that makes an input; None for a host file."""
        return self.models.get(given.step) if isinstance(given, StepInput) else None

    # -- parts of statements

    def _name(self, index: int) -> str:
        return self.bindings.by_statement[index].name

    def _kernel(self, index: int, path: str, algorithm: str = "") -> _Kernel:
        self.kernels[index] = _Kernel(path, self.settings, algorithm)
        return self.kernels[index]

    def _profiled(
        self,
        name: str,
        kernel: _Kernel,
        statement: Opt | Adap | Profile,
        options: list[str],
    ) -> StepInput:
        """Add the steps that make a profile with every algorithm of a stack.

        Link-time options apply only to the last build, unless a profile fits no other build.
        """
        level = [option for option in options if option in self.variants.levels]
        profile: StepInput | None = None
        below: tuple[str, ...] = ()
        total = 0
        traces = iter(kernel.settings.perf_data)
        for algorithm in kernel.algorithm.split("+"):
            part = self.variants.algorithms[algorithm]
            for number in range(1, part.rounds + 1):
                total += 1
                suffix = str(total) if total > 1 else ""
                build = self._build(
                    f"{name}/instrument{suffix}",
                    kernel,
                    options if part.same_build else level,
                    below,
                    profile,
                    Instrumented[Input](algorithm=algorithm, round=number),
                )
                trace = next(traces, None) if part.records_branches else None
                raw: Input = (
                    self._collected(
                        f"{name}/collect{suffix}", kernel, statement, algorithm, number, build
                    )
                    if trace is None
                    else HostInput(trace)
                )
                converted = ProfileConvert[Input](
                    algorithm=algorithm,
                    round=number,
                    toolchain=kernel.settings.toolchain,
                    raw=raw,
                    kernel=build,
                    below=below,
                    profile=profile,
                )
                profile = self._add(f"{name}/profile{suffix}", converted)
            below = (*below, algorithm)
        assert profile is not None
        return profile

    def _collected(
        self,
        identifier: str,
        kernel: _Kernel,
        statement: Opt | Adap | Profile,
        algorithm: str,
        number: int,
        build: StepInput,
    ) -> StepInput:
        """The step that collects the raw profile of a round on a device."""
        settings = kernel.settings
        guest = self._guest(settings)
        record, artifacts = None, {}
        if self.variants.algorithms[algorithm].records_branches:
            record = Branches(settings.period, settings.depth)
            artifacts = self._artifacts(settings, record)
        argument = self.variants.arguments.get(statement.click.text, "script")
        apps = tuple(self._app(word, argument, settings) for word in statement.apps)
        collect = ProfileCollect[Input](
            algorithm=algorithm,
            round=number,
            scenario=statement.click.text,
            apps=apps,
            actions=settings.actions,
            arch=settings.arch,
            device=settings.device,
            cpus=settings.cpus,
            seed=settings.seed,
            without=settings.without,
            kernel=build,
            guest=guest,
            record=record,
            suites=self._suites(
                settings, self.variants.app_additions, [a.name for a in apps if a.name]
            ),
            artifacts=artifacts,
        )
        return self._add(identifier, collect)

    def _build(
        self,
        identifier: str,
        kernel: _Kernel,
        options: list[str],
        uses: tuple[str, ...] = (),
        profile: Input | None = None,
        instrumented: Instrumented[Input] | None = None,
        *,
        boots: bool = False,
    ) -> StepInput:
        settings = kernel.settings
        source = self._source(kernel.path)
        boot = None
        if boots:
            boot = BootCheck[Input](
                device=settings.device, seed=settings.seed, guest=self._guest(settings)
            )
        build = KernelBuild[Input](
            arch=settings.arch,
            toolchain=settings.toolchain,
            config=tuple(HostInput(part) if "/" in part else part for part in settings.config),
            options=tuple(sorted(options)),
            source=source,
            uses=uses,
            profile=profile,
            instrumented=instrumented,
            boot=boot,
        )
        return self._add(identifier, build)

    def _used(self, name: str, kernel: _Kernel, options: list[str], profile: Input) -> StepInput:
        """The last build, which must also boot to succeed."""
        uses = tuple(kernel.algorithm.split("+"))
        return self._build(f"{name}/build", kernel, options, uses, profile, boots=True)

    def _source(self, path: str) -> StepInput:
        if path.startswith("debian:"):
            return self._add("source", KernelSource[Input](debian=path))
        return self._add("source", KernelSource[Input](origin=HostInput(path)))

    def _guest(self, settings: Settings) -> StepInput:
        return self._add("guest", Guest[Input](arch=settings.arch))

    def _app(self, word: Word, argument: Argument, settings: Settings) -> TrainingApp[Input]:
        """An app, and the weight or the script file after its colon."""
        name, _, text = word.text.partition(":")
        by = weight(text) if text and argument == "weight" else None
        script = HostInput(text) if text and argument != "weight" else None
        if not is_path(name):
            return TrainingApp[Input](name=name, weight=by, script=script)
        file = HostInput(name)
        programs = self._add("app", AppPrograms[Input](arch=settings.arch, app=file))
        return TrainingApp[Input](file=file, programs=programs, weight=by, script=script)

    def _suites(
        self, settings: Settings, additions: Mapping[str, tuple[str, ...]], words: list[str]
    ) -> dict[str, Input]:
        """The suite programs that metrics or apps need, by suite."""
        names = {name for word in words for name in additions.get(word, ())}
        return {
            name: self._add(f"suite/{name}", SuitePrograms[Input](arch=settings.arch, suite=name))
            for name in sorted(names)
        }

    def _artifacts(self, settings: Settings, observed: Measure | Branches) -> dict[str, Input]:
        """The artifacts that the device needs for an observation, by the device's names."""
        needs = self.variants.devices[settings.device].needs(settings.arch, observed)
        return {
            name: self._made(name, Step(name, need.kind, dict(need.params)))
            for name, need in needs.items()
        }

    def _image(self, name: str, build: StepInput) -> None:
        self.images[name] = build
        self._result(name, "image", build)

    def _profile_result(self, name: str, profile: StepInput, algorithm: str) -> None:
        self.profiles[name] = profile
        self.algorithms[name] = algorithm
        self._result(name, "profile", profile)

    def _foreign(self, path: str) -> str:
        """The algorithm of an external profile, from its suffix."""
        for name, known in self.variants.algorithms.items():
            if known.profile_names[0].rpartition(".")[2] == path.rpartition(".")[2]:
                return name
        return self.variants.default_algorithm

    # -- references

    def _resolve(self, word: Word, role: Role, index: int) -> Reference:
        found = self.bindings.resolve(word, role, index)
        assert not isinstance(found, Diagnostic), found
        return found

    def _profile_input(self, word: Word, index: int) -> tuple[Input, str | None]:
        """A profile, and its algorithm if this program made it."""
        found = self._resolve(word, "profile", index)
        if isinstance(found, Made):
            return self.profiles[found.name], self.algorithms[found.name]
        assert isinstance(found, HostPath)
        return HostInput(found.path), None

    def _image_input(self, word: Word, index: int) -> tuple[Input, str]:
        match self._resolve(word, "image", index):
            case HostPath(path):
                return HostInput(path), path.rpartition("/")[2].removesuffix(".img")
            case Plain(statement):
                kernel = self.kernels[statement]
                build = self._build("plain/build", kernel, [])
                return build, self._plain_result(build)
            case Made(name=name):
                return self.images[name], name

    def _plain_result(self, build: StepInput) -> str:
        """The name of an unoptimised image; every kernel has one of its own."""
        if build.step in self.plain_names:
            return self.plain_names[build.step]
        taken = {made.name for made in self.bindings.results} | {r.name for r in self.results}
        name, number = PLAIN, 1
        while name in taken:
            number += 1
            name = f"{PLAIN}{number}"
        self.plain_names[build.step] = name
        self._result(name, "image", build)
        return name

    def _result(self, name: str, kind: ResultKind, step: StepInput) -> None:
        self.results.append(Result(name, kind, step.step))

    def _add(self, identifier: str, model: StepModel[Input]) -> StepInput:
        """Add a step unless the plan has an equal one."""
        made = self._made(identifier, model.step(identifier))
        self.models[made.step] = model
        return made

    def _made(self, identifier: str, step: Step) -> StepInput:
        content = (step.kind, step.params, step.inputs)
        for known in self.steps:
            if (known.kind, known.params, known.inputs) == content:
                return StepInput(known.id)
        taken = {known.id for known in self.steps}
        unique, number = identifier, 1
        while unique in taken:
            number += 1
            unique = f"{identifier}-{number}"
        self.steps.append(replace(step, id=unique))
        return StepInput(unique)
