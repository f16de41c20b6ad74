"""Turns the text of a program into a plan that can run, for every executor."""

from __future__ import annotations

from mepof.algorithm.protocol import ALGORITHMS, DEFAULT_ALGORITHM
from mepof.app import apps
from mepof.device.protocol import DEVICES
from mepof.errors import InputError
from mepof.g4 import Source, check, parse, render
from mepof.g4.compiler import compile_program
from mepof.g4.stacks import recorded_rounds
from mepof.g4.variants import Variants
from mepof.g4.vocabulary import vocabulary
from mepof.kernel.options import LEVEL, option_groups
from mepof.package.protocol import FORMATS
from mepof.plan.model import Plan
from mepof.plan.preflight import preflight
from mepof.scenario.protocol import SCENARIOS
from mepof.steps import BODIES
from mepof.suite.cases import groups_by_case, guest_additions


class WrongProgram(InputError):
    """A program with errors; the message is the rendered diagnostics."""


def compiled(source: Source, perf_data: tuple[str, ...] = ()) -> Plan:
    """Check and compile a program, without reading the files that it names.

    Args:
        perf_data: branch traces, as in :func:`mepof.g4.compiler.compile_program`.

    Raises:
        WrongProgram: it has errors.
    """
    parsed = parse(source)
    words = vocabulary()
    found = [*parsed.diagnostics, *check(parsed.program, words)]
    if found:
        raise WrongProgram(render(found, source))
    rounds = max(recorded_rounds(parsed.program, words).values(), default=0)
    if len(perf_data) > rounds:
        raise InputError(
            f"no round of the program uses {perf_data[rounds]}",
            "give one branch trace for each round that records branches",
        )
    variants = Variants(
        ALGORITHMS.all(),
        DEFAULT_ALGORITHM,
        DEVICES.all(),
        frozenset(option_groups()[LEVEL]),
        guest_additions(),
        apps.guest_additions(),
        {name: scenario.argument for name, scenario in SCENARIOS.all().items()},
        words.interactive,
        words.recorders,
        words.whole,
        cases=tuple(groups_by_case()),
        beside=frozenset(name for name, made in FORMATS.all().items() if made.beside),
    )
    return compile_program(parsed.program, source.text, variants, perf_data)


def plan_of(source: Source, perf_data: tuple[str, ...] = ()) -> Plan:
    """Check and compile a program, and check the files that it names, so that nothing is built
    from wrong input.

    Raises:
        WrongProgram: it has errors.
        InputError: a file is missing, or is not what its statement needs.
    """
    plan = compiled(source, perf_data)
    preflight(plan, BODIES.all())
    return plan
