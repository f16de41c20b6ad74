"""What the sources of a plan left open and a run settled, for another run of the same release."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mepof.errors import InputError
from mepof.plan.model import Input, Plan, Step
from mepof.source.protocol import Pin
from mepof.spec.kernel_source import KernelSource

#: The file that passes them to ``mepof run --pins``.
PINS = "pins.json"

#: What is settled, by the address of the source.
Pins = Mapping[str, Pin]


def pins_of(plan: Plan) -> Pins:
    """What is settled of the sources of a plan."""
    asked = (_source(step) for step in plan.steps)
    return {each.address: each.pin for each in asked if each and each.address and each.pin}


def settled(plan: Plan, pins: Pins) -> Plan:
    """A plan in which no server is asked for what is settled already."""
    return replace(plan, steps=tuple(_settled(step, pins) for step in plan.steps))


def read_pins(path: Path) -> Pins:
    """The pins in a file.

    Raises:
        InputError: it cannot be read, or is not such a file.
    """
    try:
        made = json.loads(path.read_text(encoding="utf-8"))
        return {str(address): dict(pin) for address, pin in made.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{path} does not say what is settled: {error}") from error


def write_pins(pins: Pins, path: Path) -> None:
    """Write pins into a file."""
    text = json.dumps({address: dict(pin) for address, pin in pins.items()}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")


def _settled(step: Step, pins: Pins) -> Step:
    asked = _source(step)
    if asked is None or asked.pin is not None or asked.address is None:
        return step
    pin = pins.get(asked.address)
    return step if pin is None else asked.model_copy(update={"pin": pin}).step(step.id)


def _source(step: Step) -> KernelSource[Input] | None:
    return KernelSource[Input].of(step, step.inputs) if step.kind == KernelSource.kind else None
