"""The steps that make a profile: what is built for it, run, converted and merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from mepof.device.observation import Branches
from mepof.g4.ast import Adap, Opt, Profile
from mepof.g4.draft import Draft, Kernel
from mepof.g4.instrumentation import EVERYTHING
from mepof.g4.settings import Settings
from mepof.plan.model import HostInput, Input, StepInput
from mepof.spec.executed_objects import ExecutedObjects
from mepof.spec.instrumented_objects import InstrumentedObjects
from mepof.spec.kernel_build import Instrumented
from mepof.spec.profile_collect import EVERY_ACTION, ProfileCollect, TrainingApp
from mepof.spec.profile_convert import ProfileConvert
from mepof.spec.profile_renew import ProfileRenew


@dataclass(frozen=True)
class _Order:
    """What a statement orders to be profiled.

    Attributes:
        name: of the statement's result.
        options: of recompilation.
        traces: the user's branch traces that no round has used yet.
        suffixes: of the steps of each round.
    """

    name: str
    kernel: Kernel
    statement: Opt | Adap | Profile
    options: list[str]
    traces: Iterator[str]
    suffixes: Iterator[str]


@dataclass
class Training(Draft):
    """Adds the steps that make profiles."""

    def _profiled(
        self,
        name: str,
        kernel: Kernel,
        statement: Opt | Adap | Profile,
        options: list[str],
    ) -> StepInput:
        """Add the steps that make a profile with every algorithm of a stack.

        ``set base`` and ``set rounds`` are about the lowest algorithm: what is above it builds on
        the profile that comes out.
        """
        suffixes = (str(number) if number > 1 else "" for number in count(1))
        traces = iter(kernel.settings.perf_data)
        order = _Order(name, kernel, statement, options, traces, suffixes)
        lowest, *others = kernel.algorithm.split("+")
        profile = self._looped(order, lowest)
        below: tuple[str, ...] = (lowest,)
        for algorithm in others:
            profile, _ = self._collected_rounds(order, algorithm, below, profile)
            below = (*below, algorithm)
        return profile

    def _looped(self, order: _Order, algorithm: str) -> StepInput:
        """The profile of the lowest algorithm: after all rounds, with what is left of its base."""
        settings, part = order.kernel.settings, self.variants.algorithms[algorithm]
        known = None if part.same_build else settings.base
        in_part = not part.records_branches and settings.instrument != EVERYTHING
        made: StepInput | None = None
        for _ in range(settings.rounds if part.repeats else 1):
            recorded = known if part.repeats else None
            made, suffix = self._collected_rounds(order, algorithm, base=recorded)
            # Without weight, the base still shapes a profile that was recorded on it, and has the
            # counts of what is not instrumented.
            if known is not None and (part.repeats or settings.decay or in_part):
                renewed = ProfileRenew[Input](
                    algorithm=algorithm,
                    toolchain=settings.toolchain,
                    new=made,
                    old=known,
                    decay=settings.decay,
                    part=in_part,
                )
                made = self._add(f"{order.name}/renew{suffix}", renewed)
            known = made
        assert made is not None
        return made

    def _collected_rounds(
        self,
        order: _Order,
        algorithm: str,
        below: tuple[str, ...] = (),
        profile: StepInput | None = None,
        base: Input | None = None,
    ) -> tuple[StepInput, str]:
        """The rounds of one algorithm.

        Args:
            below: the algorithms below it, whose profiles ``profile`` holds.
            base: the profile with which the kernel that is profiled is built.

        Returns:
            The profile, and the suffix of its steps.
        """
        part = self.variants.algorithms[algorithm]
        suffix = ""
        scouted: StepInput | None = None
        for number in range(1, part.rounds + 1):
            suffix = next(order.suffixes)
            trace = next(order.traces, None) if part.records_branches else None
            first = number == 1 and not below and base is None and trace is None
            if first and not part.same_build:
                scouted = self._listed(order, counts=not part.records_branches)
            made = Instrumented[Input](
                algorithm=algorithm,
                round=number,
                scouted=scouted,
                image_bytes=order.kernel.settings.instrument.image_bytes if scouted else None,
            )
            build = self._profiled_build(order, made, suffix, below, profile, base)
            raw: Input = (
                self._collected(f"{order.name}/collect{suffix}", order, algorithm, number, build)
                if trace is None
                else HostInput(trace)
            )
            converted = ProfileConvert[Input](
                algorithm=algorithm,
                round=number,
                toolchain=order.kernel.settings.toolchain,
                raw=raw,
                kernel=build,
                below=below,
                profile=profile,
            )
            profile = self._add(f"{order.name}/profile{suffix}", converted)
        assert profile is not None
        return profile, suffix

    def _listed(self, order: _Order, *, counts: bool) -> StepInput | None:
        """The step that lists the objects that are built to be profiled; None for all of them.

        Args:
            counts: whether the kernel counts by itself.
        """
        settings = order.kernel.settings
        chosen = settings.instrument
        if not counts or chosen == EVERYTHING:
            return self._scouted(order)[1]
        raw = executed = None
        if settings.hotness is None:
            raw, executed = self._scouted(order)
        listed = InstrumentedObjects[Input](
            kernel=self._build("plain/build", order.kernel, []),
            places=chosen.places,
            percent=chosen.percent,
            executed=executed,
            raw=raw,
            profile=settings.hotness,
            exclude=settings.exclude,
        )
        return self._add(f"{order.name}/selected", listed)

    def _scouted(self, order: _Order) -> tuple[StepInput, StepInput] | tuple[None, None]:
        """The step that records the plain kernel, and the one that lists the objects in which the
        training runs something.

        It records the plain kernel, whose objects most of the kernel that is profiled then has in
        common. None where all objects are instrumented: by the program's choice, because functions
        that never ran count, or because nothing can record the training beforehand.
        """
        settings, scenario = order.kernel.settings, order.statement.click.text
        if (
            not settings.scout
            or settings.device not in self.variants.recorders
            or scenario in self.variants.interactive
            or not self.variants.whole.isdisjoint(order.options)
        ):
            return None, None
        plain = self._build("plain/build", order.kernel, [])
        apps = self._apps(order)
        if self.variants.arguments.get(scenario) != "script":
            # Whatever the scenario picks, so that another one profiles the same kernel.
            scenario = EVERY_ACTION
            apps = tuple(app.model_copy(update={"weight": None, "script": None}) for app in apps)
        always = Settings(
            arch=settings.arch,
            cpus=settings.cpus,
            device=settings.device,
            without=settings.without,
        )
        collect = self._collect(scenario, apps, always, plain, Branches())
        raw = self._add(f"{order.name}/scout", collect)
        listed = ExecutedObjects[Input](raw=raw, kernel=plain)
        return raw, self._add(f"{order.name}/executed", listed)

    def _profiled_build(
        self,
        order: _Order,
        made: Instrumented[Input],
        suffix: str,
        below: tuple[str, ...],
        profile: Input | None,
        base: Input | None,
    ) -> StepInput:
        """The kernel that a round profiles.

        On a base, it must also boot to succeed, as the kernel in production had to. Link-time
        options apply only to the last build, unless a profile fits no other.
        """
        level = [option for option in order.options if option in self.variants.levels]
        return self._build(
            f"{order.name}/instrument{suffix}",
            order.kernel,
            order.options if self.variants.algorithms[made.algorithm].same_build else level,
            below if base is None else (made.algorithm,),
            profile if base is None else base,
            made,
            boots=base is not None,
        )

    def _collected(
        self,
        identifier: str,
        order: _Order,
        algorithm: str,
        number: int,
        build: StepInput,
    ) -> StepInput:
        """The step that collects the raw profile of a round on a device."""
        settings = order.kernel.settings
        record = None
        part = self.variants.algorithms[algorithm]
        if part.records_branches:
            record = Branches(settings.period or part.period, settings.depth)
        scenario = order.statement.click.text
        collect = self._collect(scenario, self._apps(order), settings, build, record)
        update = {"algorithm": algorithm, "round": number}
        return self._add(identifier, collect.model_copy(update=update))

    def _apps(self, order: _Order) -> tuple[TrainingApp[Input], ...]:
        statement = order.statement
        scenario = statement.click.text
        argument = self.variants.arguments.get(scenario, "script")
        if not statement.apps and argument != "script":
            # At a console, the user decides.
            at_console = scenario in self.variants.interactive
            return () if at_console else (TrainingApp[Input](name=self.variants.default_app),)
        settings = order.kernel.settings
        paths = {name for name in settings.without if name.endswith(".toml")}
        return tuple(
            self._app(word, argument, settings)
            for word in statement.apps
            if word.text.partition(":")[0] not in paths
        )

    def _collect(
        self,
        scenario: str,
        apps: tuple[TrainingApp[Input], ...],
        settings: Settings,
        build: StepInput,
        record: Branches | None,
    ) -> ProfileCollect[Input]:
        """A boot of a build under a scenario."""
        return ProfileCollect[Input](
            scenario=scenario,
            apps=apps,
            actions=settings.actions,
            arch=settings.arch,
            device=settings.device,
            cpus=settings.cpus,
            seed=settings.seed,
            without=settings.without,
            kernel=build,
            guest=self._guest(settings),
            record=record,
            suites=self._suites(
                settings, self.variants.app_additions, [a.name for a in apps if a.name]
            ),
            artifacts={} if record is None else self._artifacts(settings, record),
        )
