"""From a checked program to a plan: which steps each statement stands for.

The compiler reads nothing but its arguments. Steps that two statements share (a source, an
instrumented build, the baseline) are in the plan once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.g4.ast import Adap, Eval, Merge, Opt, Profile, Program, Recomp, Set, Word
from mepof.g4.diagnostics import Diagnostic
from mepof.g4.formatter import format_word
from mepof.g4.names import PLAIN, Bindings, HostPath, Made, Plain, Reference, Role, bind
from mepof.g4.settings import SETTINGS, weight
from mepof.plan.model import HostInput, Input, Json, Plan, Result, Step, StepInput

_OPTIMISATION_LEVELS = {"O2", "O3", "Os"}
# What a profile from outside is taken for whose name does not tell.
_FOREIGN_ALGORITHM = "pgo"


@dataclass(frozen=True)
class Settings:
    """What ``set`` changes, and the values before the first ``set``."""

    arch: str = "x86-64"
    config: tuple[str, ...] = ("slim",)
    toolchain: str = "clang"
    device: str = "qemu"
    core: str | None = None
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
    """A kernel that a statement names, with the settings that held there."""

    path: str
    settings: Settings
    algorithm: str


class Rounds(Protocol):
    """What a plan depends on of an algorithm."""

    #: How many profile-and-rebuild rounds it has.
    rounds: int
    #: Its profiles fit the very build alone that they were made from.
    same_build: bool
    #: A device records branches for it.
    records_branches: bool
    profile_names: tuple[str, ...]


class Needs(Protocol):
    """What a plan depends on of a device."""

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        """The artifacts that it needs to observe something, by their names."""


def compile_program(
    program: Program,
    text: str,
    algorithms: Mapping[str, Rounds],
    devices: Mapping[str, Needs],
    perf_data: tuple[str, ...] = (),
    guest_additions: Mapping[str, tuple[str, ...]] | None = None,
) -> Plan:
    """The plan of a program that the checker has passed.

    Args:
        text: the program's source, for the record.
        algorithms: every algorithm by its name.
        devices: every device by its name.
        perf_data: recordings of branches, as if the program began with ``set perf-data``.
        guest_additions: for a metric the suites whose programs the guest needs beside its own.
    """
    settings = Settings(perf_data=perf_data)
    if perf_data:
        # The record alone is to do it again.
        text = f"set perf-data {format_word(','.join(perf_data))}.\n{text}"
    additions = guest_additions or {}
    return _Compiler(bind(program), text, algorithms, devices, additions, settings).compile()


@dataclass
class _Compiler:
    bindings: Bindings
    text: str
    known: Mapping[str, Rounds]
    devices: Mapping[str, Needs]
    guest_additions: Mapping[str, tuple[str, ...]]
    settings: Settings = field(default_factory=Settings)
    seed: int | None = None
    steps: list[Step] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    kernels: dict[int, _Kernel] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    algorithms: dict[str, str] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)

    def compile(self) -> Plan:
        for index, statement in enumerate(self.bindings.program.statements):
            match statement:
                case Set():
                    self._set(statement)
                case Opt(path=path) | Adap(url=path):
                    self._opt(index, path.text, statement)
                case Profile():
                    self._profile(index, statement)
                case Merge():
                    self._merge(index, statement)
                case Recomp():
                    self._recomp(index, statement)
                case Eval():
                    self._eval(index, statement)
        seed = Settings().seed if self.seed is None else self.seed
        return Plan(self.text, seed, tuple(self.steps), tuple(self.results))

    # -- statements

    def _set(self, statement: Set) -> None:
        key, value = statement.key.text, statement.value.text
        if key == "name":
            return  # the bindings have it
        read: Any = SETTINGS[key].read(value)
        if key == "config" and isinstance(read, str):
            read = (read,)
        self.settings = replace(self.settings, **{key.replace("-", "_"): read})
        if key == "seed" and self.seed is None:
            self.seed = read

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
        weights = [str(weight(word.text)) for word in statement.weights] or ["1"] * len(given)
        foreign = self._foreign(statement.profiles[0].text)
        algorithm = next((known for _, known in given if known), foreign)
        merged = self._add(
            f"{name}/merge",
            "profile-merge",
            {
                "weights": list(weights),
                "algorithm": algorithm,
                "toolchain": self.settings.toolchain,
            },
            {f"profile{number}": profile for number, (profile, _) in enumerate(given)},
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

    def _eval(self, index: int, statement: Eval) -> None:
        settings = self.settings
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
        inputs: dict[str, Input] = {"evaluation": self._measured(statement, kernels)}
        inputs |= {f"build{n}": k for n, k in enumerate(kernels) if isinstance(k, StepInput)}
        profiles = [r for r in self.results if r.kind == "profile"]
        inputs |= {f"profile{n}": StepInput(r.step) for n, r in enumerate(profiles)}
        trained: dict[str, Json] = {}
        collections: list[str] = []
        for name, kernel in zip(names, kernels, strict=True):
            ran = self._collections(kernel)
            if ran is not None:
                collections += [step for step in ran if step not in collections]
                trained[name] = [collections.index(step) for step in ran]
        inputs |= {f"collection{n}": StepInput(step) for n, step in enumerate(collections)}
        told: dict[str, Json] = {
            "images": [*names],
            "profiles": [r.name for r in profiles],
            "program": self.text,
            "seed": settings.seed,
            "trained": trained,
        }
        self._result(report, "report", self._add(report, "report", told, inputs))

    def _measured(self, statement: Eval, kernels: list[Input]) -> StepInput:
        """The step that boots all images in turns, and their controls."""
        settings = self.settings
        fewest, most = settings.repetitions
        params: dict[str, Json] = {
            "arch": settings.arch,
            "device": settings.device,
            "metrics": [metric.text for metric in statement.metrics],
            "seed": settings.seed,
            "fewest": fewest,
            "most": most,
            "precision": settings.precision,
        }
        if settings.budget is not None:
            params["budget"] = settings.budget
        inputs: dict[str, Input] = {"guest": StepInput(self._guest(settings))}
        inputs |= self._artifacts(settings, Measure(settings.core))
        if settings.core is not None:
            params["core"] = settings.core
        inputs |= self._suites(settings, statement)
        inputs |= {f"kernel{n}": kernel for n, kernel in enumerate(kernels)}
        if isinstance(kernels[0], StepInput) and len(kernels) > 1:
            baseline = self._step(kernels[0].step)
            for number in range(settings.relinked):
                # A linker takes the seed 0 for none.
                again: dict[str, Json] = {**baseline.params, "layout_seed": number + 1}
                name = f"{baseline.id.rpartition('/')[0]}/relinked{number + 1}"
                step = self._add(name, "kernel-build", again, dict(baseline.inputs))
                inputs[f"relinked{number}"] = StepInput(step)
        return StepInput(self._add("measure", "measure", params, inputs))

    def _collections(self, kernel: Input) -> list[str] | None:
        """The steps in which the profile that a kernel is built with was collected.

        None if there is no profile, or part of it comes from outside.
        """
        if not isinstance(kernel, StepInput) or "profile" not in self._step(kernel.step).inputs:
            return None
        found: list[str] = []
        pending = [self._step(kernel.step).inputs["profile"]]
        while pending:
            given = pending.pop()
            if not isinstance(given, StepInput):
                return None
            step = self._step(given.step)
            if step.kind == "profile-collect":
                found += [step.id] if step.id not in found else []
            else:
                # The kernel that was profiled is no part of what it was made to do.
                pending += [each for name, each in step.inputs.items() if name != "kernel"]
        return sorted(found)

    def _step(self, identifier: str) -> Step:
        return next(step for step in self.steps if step.id == identifier)

    # -- parts of statements

    def _name(self, index: int) -> str:
        return self.bindings.by_statement[index].name

    def _kernel(self, index: int, path: str, algorithm: str) -> _Kernel:
        self.kernels[index] = _Kernel(path, self.settings, algorithm)
        return self.kernels[index]

    def _profiled(
        self,
        name: str,
        kernel: _Kernel,
        statement: Opt | Adap | Profile,
        options: list[str],
    ) -> str:
        """The steps up to a finished profile, of every algorithm of a stack.

        Link-time options wait for the last build, unless a profile fits no other.
        """
        names = kernel.algorithm.split("+")
        level = [option for option in options if option in _OPTIMISATION_LEVELS]
        profile: str | None = None
        finished: list[str] = []
        total = 0
        recordings = iter(kernel.settings.perf_data)
        for algorithm in names:
            part = self.known[algorithm]
            for _ in range(part.rounds):
                total += 1
                suffix = str(total) if total > 1 else ""
                build = self._build(
                    f"{name}/instrument{suffix}",
                    kernel,
                    options if part.same_build else level,
                    finished,
                    profile,
                    collects=algorithm,
                )
                recorded = next(recordings, None) if part.records_branches else None
                raw: Input = (
                    self._collected(f"{name}/collect{suffix}", kernel, statement, algorithm, build)
                    if recorded is None
                    else HostInput(recorded)
                )
                params: dict[str, Json] = {
                    "algorithm": algorithm,
                    "toolchain": kernel.settings.toolchain,
                }
                inputs: dict[str, Input] = {"raw": raw, "kernel": StepInput(build)}
                if finished:
                    params["below"] = [*finished]
                if profile is not None:
                    inputs["profile"] = StepInput(profile)
                profile = self._add(f"{name}/profile{suffix}", "profile-convert", params, inputs)
            finished = [*finished, algorithm]
        assert profile is not None
        return profile

    def _collected(
        self,
        identifier: str,
        kernel: _Kernel,
        statement: Opt | Adap | Profile,
        algorithm: str,
        build: str,
    ) -> Input:
        """The raw profile that a device collects."""
        settings = kernel.settings
        apps, scripts = self._apps(statement.apps)
        params: dict[str, Json] = {
            "algorithm": algorithm,
            "scenario": statement.click.text,
            "apps": apps,
            "actions": settings.actions,
            "arch": settings.arch,
            "device": settings.device,
            "seed": settings.seed,
        }
        if settings.without:
            params["without"] = [*settings.without]
        if self.known[algorithm].records_branches:
            params["depth"] = settings.depth
            if settings.period is not None:
                params["period"] = settings.period
        inputs: dict[str, Input] = {
            "kernel": StepInput(build),
            "guest": StepInput(self._guest(settings)),
            **scripts,
        }
        if self.known[algorithm].records_branches:
            inputs |= self._artifacts(settings, Branches(settings.period, settings.depth))
        return StepInput(self._add(identifier, "profile-collect", params, inputs))

    @staticmethod
    def _apps(words: tuple[Word, ...]) -> tuple[list[Json], dict[str, Input]]:
        """App names, and the script files behind their colons as inputs ``script0``…"""
        apps: list[Json] = []
        scripts: dict[str, Input] = {}
        for number, word in enumerate(words):
            app, _, argument = word.text.partition(":")
            apps.append(app)
            if argument:
                scripts[f"script{number}"] = HostInput(argument)
        return apps, scripts

    def _build(
        self,
        identifier: str,
        kernel: _Kernel,
        options: list[str],
        uses: list[str],
        profile: str | Input | None = None,
        collects: str | None = None,
        boots: bool = False,
    ) -> str:
        settings = kernel.settings
        inputs: dict[str, Input] = {"source": StepInput(self._source(kernel.path))}
        configs: list[Json] = []
        for position, part in enumerate(settings.config):
            if "/" in part:
                inputs[f"config{position}"] = HostInput(part)
            configs.append("file" if "/" in part else part)
        params: dict[str, Json] = {
            "arch": settings.arch,
            "config": configs,
            "toolchain": settings.toolchain,
            "options": [*sorted(options)],
            "uses": [*uses],
        }
        if collects is not None:
            params["collects"] = collects
        if profile is not None:
            inputs["profile"] = StepInput(profile) if isinstance(profile, str) else profile
        if boots:
            params |= {"device": settings.device, "seed": settings.seed}
            inputs["guest"] = StepInput(self._guest(settings))
        return self._add(identifier, "kernel-build", params, inputs)

    def _used(self, name: str, kernel: _Kernel, options: list[str], profile: str | Input) -> str:
        """The last build, which is not done before it boots."""
        uses = kernel.algorithm.split("+")
        return self._build(f"{name}/build", kernel, options, uses, profile, boots=True)

    def _source(self, path: str) -> str:
        if path.startswith("debian:"):
            return self._add("source", "kernel-source", {"debian": path}, {})
        return self._add("source", "kernel-source", {}, {"origin": HostInput(path)})

    def _guest(self, settings: Settings) -> str:
        return self._add("guest", "guest", {"arch": settings.arch}, {})

    def _suites(self, settings: Settings, statement: Eval) -> dict[str, Input]:
        """The programs of suites that an evaluation's metrics need, as inputs ``suite-NAME``."""
        metrics = [word.text for word in statement.metrics]
        names = {name for metric in metrics for name in self.guest_additions.get(metric, ())}
        return {
            f"suite-{name}": StepInput(
                self._add(
                    f"suite/{name}", "suite-programs", {"arch": settings.arch, "suite": name}, {}
                )
            )
            for name in sorted(names)
        }

    def _artifacts(self, settings: Settings, observed: Measure | Branches) -> dict[str, Input]:
        """What the device needs to observe something, as inputs of its names."""
        needs = self.devices[settings.device].needs(settings.arch, observed)
        return {
            name: StepInput(self._add(name, need.kind, dict(need.params), {}))
            for name, need in needs.items()
        }

    def _image(self, name: str, build: str) -> None:
        self.images[name] = build
        self._result(name, "image", build)

    def _profile_result(self, name: str, profile: str, algorithm: str) -> None:
        self.profiles[name] = profile
        self.algorithms[name] = algorithm
        self._result(name, "profile", profile)

    def _foreign(self, path: str) -> str:
        """The algorithm that a profile from outside is of, by its name's end."""
        for name, known in self.known.items():
            if known.profile_names[0].rpartition(".")[2] == path.rpartition(".")[2]:
                return name
        return _FOREIGN_ALGORITHM

    # -- references

    def _resolve(self, word: Word, role: Role, index: int) -> Reference:
        found = self.bindings.resolve(word, role, index)
        assert not isinstance(found, Diagnostic), found
        return found

    def _profile_input(self, word: Word, index: int) -> tuple[Input, str | None]:
        """A profile, and the algorithm that it is of, if this program made it."""
        found = self._resolve(word, "profile", index)
        if isinstance(found, Made):
            return StepInput(self.profiles[found.name]), self.algorithms[found.name]
        assert isinstance(found, HostPath)
        return HostInput(found.path), None

    def _image_input(self, word: Word, index: int) -> tuple[Input, str]:
        match self._resolve(word, "image", index):
            case HostPath(path):
                return HostInput(path), path.rpartition("/")[2].removesuffix(".img")
            case Plain(statement):
                kernel = self.kernels[statement]
                build = self._build("plain/build", kernel, [], [])
                return StepInput(build), self._plain_result(build)
            case Made(name=name):
                return StepInput(self.images[name]), name

    def _plain_result(self, build: str) -> str:
        """The name of an unoptimised image: each kernel's is a file of its own."""
        for result in self.results:
            if result.step == build:
                return result.name
        taken = {made.name for made in self.bindings.results} | {r.name for r in self.results}
        name, number = PLAIN, 1
        while name in taken:
            number += 1
            name = f"{PLAIN}{number}"
        self._result(name, "image", build)
        return name

    def _result(self, name: str, kind: Any, step: str) -> None:
        self.results.append(Result(name, kind, step))

    def _add(
        self,
        identifier: str,
        kind: str,
        params: dict[str, Json],
        inputs: dict[str, Input],
    ) -> str:
        """Add a step, or find the one that does the same; its id."""
        for step in self.steps:
            if (step.kind, step.params, step.inputs) == (kind, params, inputs):
                return step.id
        unique, number = identifier, 1
        while unique in self._ids:
            number += 1
            unique = f"{identifier}-{number}"
        self._ids.add(unique)
        self.steps.append(Step(unique, kind, params, inputs))
        return unique
