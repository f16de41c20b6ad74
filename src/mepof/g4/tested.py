"""The steps by which images run the kernel's own tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mepof.g4.checks import KSELFTEST, KUNIT, KUNIT_CONFIG
from mepof.g4.training import Training
from mepof.gate.results import Gate
from mepof.plan.model import Input, StepInput
from mepof.plan.typed import StepModel
from mepof.spec.kernel_build import KernelBuild
from mepof.spec.kernel_tests import KernelTests
from mepof.spec.kselftest_programs import KselftestPrograms


@dataclass
class Tested(Training):
    """A plan in the making, whose images can be tested."""

    def _tests(
        self, gate: Gate, parts: tuple[str, ...], names: list[str], kernels: list[Input]
    ) -> Iterator[StepInput]:
        """The steps that run a gate's tests, image by image."""
        settings = self.settings
        programs = self._kselftests(parts, kernels) if gate == KSELFTEST else None
        for name, kernel in zip(names, kernels, strict=True):
            tests = KernelTests[Input](
                gate=gate,
                arch=settings.arch,
                device=settings.device,
                seed=settings.seed,
                boots=settings.test_boots,
                kernel=self._with_kunit(kernel) if gate == KUNIT else kernel,
                guest=self._guest(settings),
                programs=programs,
                cpus=settings.cpus,
            )
            yield self._add(f"{name}/tests/{gate}", tests)

    def _kselftests(self, parts: tuple[str, ...], kernels: list[Input]) -> StepInput:
        """The test programs of the first kernel whose source is known, for all images."""
        builds = (model for k in kernels if isinstance(model := self._model(k), KernelBuild))
        source = next(builds).source
        programs = KselftestPrograms[Input](
            arch=self.settings.arch, source=source, collections=parts
        )
        return self._add("kselftest", programs)

    def _with_kunit(self, kernel: Input) -> Input:
        """A kernel that has KUnit: the same build with that configuration laid over its own,
        unless it has the tests already. A file is taken as it is."""
        build = self._model(kernel)
        if not isinstance(build, KernelBuild) or KUNIT_CONFIG in build.config:
            return kernel
        assert isinstance(kernel, StepInput)
        again = build.model_copy(update={"config": (*build.config, KUNIT_CONFIG)})
        return self._add(f"{kernel.step.rpartition('/')[0]}/kunit", again)

    def _model(self, given: Input) -> StepModel[Input] | None:
        """The model of the step that makes an input; None for a host file."""
        return self.models.get(given.step) if isinstance(given, StepInput) else None
