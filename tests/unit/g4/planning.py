"""Plans of programs, with variants that stand for the installed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mepof.device.observation import ArtifactNeed, Branches, Measure
from mepof.g4.compiler import compile_program
from mepof.g4.variants import Variants
from mepof.plan.model import HostInput, Input, Plan, Step, StepInput
from mepof.spec.report import Report

from .reading import VOCABULARY, sound


@dataclass
class Known:
    """An algorithm, as far as the compiler depends on it."""

    profile_names: tuple[str, ...]
    rounds: int = 1
    same_build: bool = False
    records_branches: bool = False
    period: int | None = None
    repeats: bool = False
    names_functions: bool = True


ALGORITHMS = {
    "bolt": Known(("kernel.fdata",), same_build=True, records_branches=True, names_functions=False),
    "autofdo": Known(("kernel.afdo",), records_branches=True, repeats=True),
    "cspgo": Known(("kernel.csprofdata",), rounds=2),
    "autofdo-probe": Known(("kernel.probes",), records_branches=True, repeats=True),
    "gcc-autofdo": Known(("kernel.gcov",), records_branches=True, repeats=True),
    "gcc-pgo": Known(("kernel.gcda.tar",), names_functions=False),
    "pgo": Known(("kernel.profdata",)),
    "propeller": Known(
        ("kernel.cc_profile", "kernel.ld_profile"),
        same_build=True,
        records_branches=True,
        names_functions=False,
    ),
    "propeller-paths": Known(
        ("paths.cc_profile", "paths.ld_profile"),
        same_build=True,
        records_branches=True,
        period=1009,
        names_functions=False,
    ),
}
assert set(ALGORITHMS) == set(VOCABULARY.algorithms)


@dataclass
class Device:
    """A device, as far as the compiler depends on it."""

    def needs(self, arch: str, observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
        match observed:
            case Measure(core=None) | Branches():
                return {"plugins": ArtifactNeed("plugins")}
            case Measure():
                return {"pmu": ArtifactNeed("pmu")}


VARIANTS = Variants(
    *(ALGORITHMS, "pgo", {"qemu": Device()}, frozenset(("O2", "O3", "Os"))),
    cases=tuple(VOCABULARY.cases),
)


def plan(text: str, *perf_data: str) -> Plan:
    return compile_program(sound(text), text, VARIANTS, perf_data)


def kinds(made: Plan) -> Counter[str]:
    return Counter(step.kind for step in made.steps)


def ids(made: Plan) -> list[str]:
    return [step.id for step in made.steps]


def made_from(made: Plan, step: Step, name: str) -> Step:
    """The step whose artifact is the input with that name."""
    given = step.inputs[name]
    assert isinstance(given, StepInput)
    return made.step(given.step)


def names(made: Plan, report: str) -> list[str]:
    """The names of a report's images."""
    step = made.step(report)
    return [image.name for image in Report[Input].of(step, step.inputs).images]


def assert_well_formed(made: Plan) -> None:
    """Unique ids, no step twice, inputs before their users, results of existing steps."""
    seen: set[str] = set()
    for step in made.steps:
        assert step.id not in seen
        for given in step.inputs.values():
            assert isinstance(given, HostInput) or given.step in seen
        seen.add(step.id)
    contents = [(s.kind, str(s.params), str(s.inputs)) for s in made.steps]
    assert len(set(contents)) == len(contents)
    assert all(result.step in seen for result in made.results)
    names = [(result.name, result.kind) for result in made.results]
    assert len(set(names)) == len(names)
