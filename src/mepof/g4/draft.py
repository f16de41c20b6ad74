"""A plan under construction: the steps and results of the statements so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mepof.device.observation import Branches, Measure
from mepof.g4.ast import Word
from mepof.g4.diagnostics import Diagnostic
from mepof.g4.names import PLAIN, Bindings, HostPath, Made, Plain, Reference, Role, is_path
from mepof.g4.settings import NO_PACKAGE, Settings, weight
from mepof.g4.variants import Argument, Variants
from mepof.plan.model import HostInput, Input, Result, ResultKind, Step, StepInput
from mepof.plan.typed import StepModel
from mepof.source.protocol import source_of
from mepof.spec.app_programs import AppPrograms
from mepof.spec.guest import Guest
from mepof.spec.kernel_build import BootCheck, Instrumented, KernelBuild
from mepof.spec.kernel_package import KernelPackage
from mepof.spec.kernel_source import KernelSource
from mepof.spec.profile_collect import TrainingApp
from mepof.spec.suite_programs import SuitePrograms


@dataclass(frozen=True)
class Kernel:
    """A kernel that a statement names, with the settings in force there.

    Attributes:
        algorithm: a stack of them, or nothing.
    """

    path: str
    settings: Settings
    algorithm: str


def config_of(settings: Settings) -> tuple[str | Input, ...]:
    """The configuration of a kernel: names of ours, and the user's own files."""
    return tuple(HostInput(part) if "/" in part else part for part in settings.config)


@dataclass
class Draft:
    """Adds the steps that statements have in common, each once."""

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
    kernels: dict[int, Kernel] = field(default_factory=dict)
    images: dict[str, StepInput] = field(default_factory=dict)
    profiles: dict[str, StepInput] = field(default_factory=dict)
    algorithms: dict[str, str] = field(default_factory=dict)
    #: The names of unoptimised images, by their steps.
    plain_names: dict[str, str] = field(default_factory=dict)

    def _name(self, index: int) -> str:
        return self.bindings.by_statement[index].name

    def _kernel(self, index: int, path: str, algorithm: str = "") -> Kernel:
        self.kernels[index] = Kernel(path, self.settings, algorithm)
        return self.kernels[index]

    def _build(
        self,
        identifier: str,
        kernel: Kernel,
        options: list[str],
        uses: tuple[str, ...] = (),
        profile: Input | None = None,
        instrumented: Instrumented[Input] | None = None,
        *,
        suffix: str = "",
        boots: bool = False,
        other_kernel: bool = False,
    ) -> StepInput:
        settings = kernel.settings
        source = self._source(kernel.path)
        boot = None
        if boots:
            boot = BootCheck[Input](
                device=settings.device, seed=settings.seed, guest=self._guest(settings)
            )
        # A kernel in which nothing is counted and no profile used is the same with exclusions.
        counts = instrumented is not None and not (
            self.variants.algorithms[instrumented.algorithm].records_branches
        )
        build = KernelBuild[Input](
            arch=settings.arch,
            toolchain=settings.toolchain,
            config=config_of(settings),
            options=tuple(sorted(options)),
            source=source,
            uses=uses,
            profile=profile,
            instrumented=instrumented,
            boot=boot,
            exclude=settings.exclude if counts or uses else (),
            share=settings.share,
            suffix=suffix,
            installed=bool(suffix),
            other_kernel=other_kernel,
            note_dropped=settings.dropped,
        )
        return self._add(identifier, build)

    def _used(
        self,
        name: str,
        kernel: Kernel,
        options: list[str],
        profile: Input,
        *,
        other_kernel: bool = False,
    ) -> StepInput:
        """The last build, which must also boot to succeed.

        Args:
            other_kernel: the profile is of one with another configuration or architecture.
        """
        return self._build(
            f"{name}/build",
            kernel,
            options,
            tuple(kernel.algorithm.split("+")),
            profile,
            suffix=self._suffix(name),
            boots=True,
            other_kernel=other_kernel,
        )

    def _suffix(self, name: str) -> str:
        """What tells the release of a packaged kernel from those that it is installed beside."""
        return f"-mepof-{name}" if self.settings.package[0] in self.variants.beside else ""

    def _source(self, address: str) -> StepInput:
        path = source_of(address).host(address)
        origin = None if path is None else HostInput(path)
        made = KernelSource[Input](address=None if path == address else address, origin=origin)
        return self._add("source", made)

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
        programs = self._app_programs(file, settings)
        return TrainingApp[Input](file=file, programs=programs, weight=by, script=script)

    def _app_programs(self, file: HostInput, settings: Settings) -> StepInput:
        """What an app of the user's adds to the guest."""
        return self._add("app", AppPrograms[Input](arch=settings.arch, app=file))

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
        settings = self.settings
        chosen, file = settings.package
        if chosen != NO_PACKAGE:
            made = KernelPackage[Input](
                format=chosen,
                arch=settings.arch,
                toolchain=settings.toolchain,
                kernel=build,
                revision=settings.revision,
                given=None if file is None else HostInput(file),
                built=self._built(build) if chosen in self.variants.of_source else None,
            )
            self._result(name, "package", self._add(f"{name}/package", made))

    def _built(self, build: StepInput) -> KernelBuild[Input]:
        made = self.models[build.step]
        assert isinstance(made, KernelBuild)
        return made

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
