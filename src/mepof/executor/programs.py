"""From a program's text to a plan that can run: every executor begins with this."""

from __future__ import annotations

from mepof.algorithm.protocol import ALGORITHMS
from mepof.device.protocol import DEVICES
from mepof.errors import InputError
from mepof.g4 import Source, check, parse, render
from mepof.g4.compiler import compile_program
from mepof.g4.vocabulary import vocabulary
from mepof.plan.model import Plan
from mepof.plan.preflight import preflight
from mepof.steps import BODIES
from mepof.suite.cases import guest_additions


class WrongProgram(InputError):
    """A program with mistakes in it; the message is the rendered diagnostics."""


def compiled(source: Source, perf_data: tuple[str, ...] = ()) -> Plan:
    """Check and compile a program, without looking at the files that it names.

    Args:
        perf_data: branch traces, as of :func:`mepof.g4.compiler.compile_program`.

    Raises:
        WrongProgram: it has mistakes.
    """
    parsed = parse(source)
    found = [*parsed.diagnostics, *check(parsed.program, vocabulary())]
    if found:
        raise WrongProgram(render(found, source))
    return compile_program(
        parsed.program,
        source.text,
        ALGORITHMS.all(),
        DEVICES.all(),
        perf_data,
        guest_additions(),
    )


def plan_of(source: Source, perf_data: tuple[str, ...] = ()) -> Plan:
    """Check and compile a program, and check what it names, so that nothing is built from wrong
    input.

    Raises:
        WrongProgram: it has mistakes.
        InputError: a file is missing, or is not what its statement needs.
    """
    plan = compiled(source, perf_data)
    preflight(plan, BODIES.all())
    return plan
