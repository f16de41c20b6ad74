"""Compiles a checked program to a plan.

The compiler reads only its arguments. Steps that two statements share (a source, an
instrumented build, the baseline) are in the plan once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from mepof.device.observation import Measure
from mepof.g4 import ast
from mepof.g4.ast import Adap, Build, Check, Eval, Flash, Merge, Opt, Profile, Program, Recomp, Set
from mepof.g4.checks import gates_of
from mepof.g4.draft import config_of
from mepof.g4.formatter import format_word
from mepof.g4.goals import metrics_of, quantity_of
from mepof.g4.names import bind, is_path
from mepof.g4.pairs import named, way_of
from mepof.g4.settings import NO_PROFILE, SETTINGS, Settings, signed_percent, weight
from mepof.g4.tested import Tested
from mepof.g4.variants import Variants
from mepof.measure.case_pairs import CasePair
from mepof.measure.goal import Goal
from mepof.plan.model import HostInput, Input, Plan, StepInput
from mepof.spec import measure as spec
from mepof.spec.check import Check as CheckStep
from mepof.spec.check import CheckedGate
from mepof.spec.executed_functions import ExecutedFunctions
from mepof.spec.flash import Flash as FlashStep
from mepof.spec.kernel_build import KernelBuild
from mepof.spec.profile_collect import ProfileCollect
from mepof.spec.profile_convert import ProfileConvert
from mepof.spec.profile_merge import ProfileMerge, WeightedProfile
from mepof.spec.profile_renew import ProfileRenew
from mepof.spec.report import OwnGroup, Report, ReportedImage, ReportedProfile


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
class _Compiler(Tested):
    #: By quantity, group and metric: a later one takes the place of an earlier one.
    goals: dict[tuple[str, str | None, str | None], Goal] = field(default_factory=dict)
    checks: list[Input] = field(default_factory=list)
    #: By cases, way and event: a later one takes the place of an earlier one.
    pairs: dict[tuple[str, ...], CasePair] = field(default_factory=dict)

    def compile(self) -> Plan:
        for index, statement in enumerate(self.bindings.program.statements):
            match statement:
                case Set():
                    self._set(index, statement)
                case ast.Goal():
                    self._goal(statement)
                case ast.Compare():
                    self._compare(statement)
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
                case Check():
                    self._check(index, statement)
                case Flash():
                    self._flash(index, statement)
        seed = Settings().seed if self.seed is None else self.seed
        return Plan(self.text, seed, tuple(self.steps), tuple(self.results))

    # -- statements

    def _set(self, index: int, statement: Set) -> None:
        key, value = statement.key.text, statement.value.text
        if key == "name":
            return  # already in the bindings
        read: Any = SETTINGS[key].read(value)
        if key == "config" and isinstance(read, str):
            read = (read,)
        if (none := NO_PROFILE.get(key)) is not None:
            read = None if value == none else self._profile_input(statement.value, index)[0]
        self.settings = replace(self.settings, **{key.replace("-", "_"): read})
        if key == "seed" and self.seed is None:
            self.seed = read

    def _goal(self, statement: ast.Goal) -> None:
        quantity, group = quantity_of(statement)
        bound = signed_percent(statement.bound.text)
        for metric in metrics_of(statement):
            self.goals[quantity, group, metric] = Goal.model_validate(
                {"quantity": quantity, "bound": bound, "metric": metric, "group": group}
            )

    def _compare(self, statement: ast.Compare) -> None:
        way, event = way_of(statement)
        first, second = (
            named(word.text, self.variants.cases)[0] for word in (statement.first, statement.second)
        )
        self.pairs[first, second, statement.way.text] = CasePair.model_validate(
            {
                "title": f"{statement.first.text} against {statement.second.text}",
                "first": tuple(first.split("/")),
                "second": tuple(second.split("/")),
                "by": way,
                "event": event,
                "metrics": tuple(word.text for word in statement.metrics),
            }
        )

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
        wanted = {(kernel.settings.arch, config_of(kernel.settings))}
        profiled = {(build.arch, build.config) for build in self._profiled_builds(given)}
        used = self._used(name, kernel, options, given, other_kernel=not profiled <= wanted)
        self._image(name, used)

    def _plain(self, index: int, statement: Build) -> None:
        name = self._name(index)
        kernel = self._kernel(index, statement.path.text)
        options = [word.text for word in statement.options]
        self._image(name, self._build(f"{name}/build", kernel, options, suffix=self._suffix(name)))

    def _eval(self, index: int, statement: Eval) -> None:
        names, kernels = self._images(statement, index)
        report = self._numbered("report")
        evaluation = self._measured(statement, kernels)
        collections: list[Input] = []
        images: list[ReportedImage[Input]] = []
        for name, kernel in zip(names, kernels, strict=True):
            ran = self._collections(kernel)
            collections += [step for step in ran or () if step not in collections]
            build = self._model(kernel)
            used = build if isinstance(build, KernelBuild) and build.profile else None
            images.append(
                ReportedImage[Input](
                    name=name,
                    build=kernel if isinstance(kernel, StepInput) else None,
                    trained=None if ran is None else tuple(map(collections.index, ran)),
                    profile=used.profile if used else None,
                    uses=used.uses if used else (),
                    toolchain=used.toolchain if used else "",
                )
            )
        # There is nothing to hold one image alone against.
        goals = tuple(self.goals.values()) if len(images) > 1 else ()
        groups = dict.fromkeys(g.group for g in goals if g.group and is_path(g.group))
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
            goals=goals,
            own_groups=tuple(OwnGroup[Input](path=p, file=HostInput(p)) for p in groups),
            checks=tuple(self.checks),
            executed=self._executed(evaluation, images),
            pairs=tuple(self.pairs.values()),
        )
        self._result(report, "report", self._add(report, made))

    def _check(self, index: int, statement: Check) -> None:
        names, kernels = self._images(statement, index)
        gates = tuple(
            CheckedGate[Input](gate=gate, results=tuple(self._tests(gate, parts, names, kernels)))
            for gate, parts in gates_of(statement).items()
        )
        name = self._numbered("check")
        made = self._add(name, CheckStep[Input](images=tuple(names), gates=gates))
        self.checks.append(made)
        self._result(name, "check", made)

    def _flash(self, index: int, statement: Flash) -> None:
        kernel, image = self._image_input(statement.image, index)
        settings = self.settings
        made = FlashStep[Input](
            image=image,
            arch=settings.arch,
            device=settings.device,
            seed=settings.seed,
            kernel=kernel,
            guest=self._guest(settings),
            # What the program finds out about images comes first.
            after=tuple(StepInput(r.step) for r in self.results if r.kind in ("report", "check")),
        )
        name = self._numbered("flash")
        self._result(name, "flash", self._add(name, made))

    def _images(self, statement: Eval | Check, index: int) -> tuple[list[str], list[Input]]:
        """The distinct names of a statement's images, and the images."""
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
        return names, kernels

    def _numbered(self, kind: Literal["report", "check", "flash"]) -> str:
        """The name of a result that programs do not name: ``report``, ``report2``."""
        number = sum(1 for r in self.results if r.kind == kind)
        return f"{kind}{number + 1}" if number else kind

    def _measured(self, statement: Eval, kernels: list[Input]) -> StepInput:
        """The step that boots all images and their controls in turn."""
        settings = self.settings
        words = [metric.text for metric in statement.metrics]
        min_boots, max_boots = settings.repetitions
        core = settings.core
        measured = spec.Measure[Input](
            arch=settings.arch,
            device=settings.device,
            metrics=tuple(name for name in words if not is_path(name)),
            apps=tuple(self._measured_app(name, settings) for name in words if is_path(name)),
            seed=settings.seed,
            min_boots=min_boots,
            max_boots=max_boots,
            precision=settings.precision,
            budget=settings.budget,
            core=HostInput(core) if core is not None and is_path(core) else core,
            cpus=settings.cpus,
            images=tuple(kernels),
            relinked=tuple(self._relinked(kernels)),
            guest=self._guest(settings),
            suites=self._suites(settings, self.variants.guest_additions, words),
            artifacts=self._artifacts(settings, Measure(core)),
        )
        return self._add("measure", measured)

    def _executed(
        self, evaluation: StepInput, images: list[ReportedImage[Input]]
    ) -> StepInput | None:
        """The step that finds out what the cases execute on the baseline, if a profile can be
        compared with that and the measurement does not tell."""
        measured, build = self.models[evaluation.step], images[0].build
        assert isinstance(measured, spec.Measure)
        used = (self.variants.algorithms[name] for image in images for name in image.uses)
        named = any(algorithm.names_functions for algorithm in used)
        told = measured.core is not None or measured.device not in self.variants.locators
        if build is None or not named or told:
            return None
        return self._add(
            "executed",
            ExecutedFunctions[Input](
                arch=measured.arch,
                device=measured.device,
                metrics=measured.metrics,
                seed=measured.seed,
                kernel=build,
                guest=measured.guest,
                cpus=measured.cpus,
                apps=measured.apps,
                suites=measured.suites,
                artifacts=self._artifacts(self.settings, Measure(locations=True)),
            ),
        )

    def _measured_app(self, name: str, settings: Settings) -> spec.MeasuredApp[Input]:
        """An app of the user's, and what it adds to the guest."""
        file = HostInput(name)
        return spec.MeasuredApp[Input](file=file, programs=self._app_programs(file, settings))

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

    def _profiled_builds(self, profile: Input) -> Iterator[KernelBuild[Input]]:
        """The builds of this program that a profile is of."""
        pending = [profile]
        while pending:
            given = pending.pop()
            match self._model(given):
                case ProfileConvert(kernel=kernel):
                    if isinstance(build := self._model(kernel), KernelBuild):
                        yield build
                case ProfileMerge(profiles=profiles):
                    pending += [each.profile for each in profiles]
                case ProfileRenew(new=new, old=old):
                    pending += [new, old]

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
                case ProfileRenew(new=new, old=old):
                    pending += [new, old]
        return [StepInput(step) for step in sorted(found)]
