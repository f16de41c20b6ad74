"""The steps that make a profile: what is built for it, run, converted and merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from mepof.device.observation import Branches
from mepof.g4.ast import Adap, Opt, Profile
from mepof.g4.draft import Draft, Kernel
from mepof.plan.model import HostInput, Input, StepInput
from mepof.spec.kernel_build import Instrumented
from mepof.spec.profile_collect import ProfileCollect
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
        made: StepInput | None = None
        for _ in range(settings.rounds if part.repeats else 1):
            recorded = known if part.repeats else None
            made, suffix = self._collected_rounds(order, algorithm, base=recorded)
            # Without weight, the base still shapes a profile that was recorded on it.
            if known is not None and (part.repeats or settings.decay):
                renewed = ProfileRenew[Input](
                    algorithm=algorithm,
                    toolchain=settings.toolchain,
                    new=made,
                    old=known,
                    decay=settings.decay,
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
        for number in range(1, part.rounds + 1):
            suffix = next(order.suffixes)
            build = self._profiled_build(order, algorithm, number, suffix, below, profile, base)
            trace = next(order.traces, None) if part.records_branches else None
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

    def _profiled_build(
        self,
        order: _Order,
        algorithm: str,
        number: int,
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
            order.options if self.variants.algorithms[algorithm].same_build else level,
            below if base is None else (algorithm,),
            profile if base is None else base,
            Instrumented[Input](algorithm=algorithm, round=number),
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
        settings, statement = order.kernel.settings, order.statement
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
