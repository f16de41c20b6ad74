"""Typed steps: one frozen model of the parameters and inputs of each kind of step.

A model is generic over the type of an input: :data:`~mepof.plan.model.Input` while the step is
planned, a path while it runs. The engine sees neither: :meth:`StepModel.step` splits a model into
JSON parameters and inputs that are named by their path in the model (``images.0``), and
:meth:`StepModel.of` reassembles it.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from mepof.described import first_error
from mepof.errors import InputError
from mepof.plan.model import HostInput, Input, Json, Step, StepInput

In = TypeVar("In")


class Part(BaseModel, Generic[In]):
    """A part of a step's model."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class StepModel(Part[In], Generic[In]):
    """The parameters and inputs of one kind of step; ``kind`` is its name in plans."""

    kind: ClassVar[str]

    def step(self, identifier: str) -> Step:
        """The step that the engine runs. The model must hold inputs, not paths."""
        inputs: dict[str, Input] = {}
        params = _split(self, "", inputs)
        assert isinstance(params, dict)
        return Step(identifier, self.kind, params, inputs)

    @classmethod
    def of(cls, step: Step, inputs: Mapping[str, In]) -> Self:
        """The model of a step.

        Args:
            inputs: the value of each input, by name.

        Raises:
            InputError: the parameters or inputs are not those of this kind of step.
        """
        given: dict[str, Any] = deepcopy(dict(step.params))
        try:
            for name in inputs:
                _put(given, name.split("."), inputs[name])
            return cls.model_validate(given)
        except ValidationError as error:
            why = first_error(error)
        except (IndexError, KeyError, TypeError, ValueError):
            why = "the inputs do not fit the parameters"
        raise InputError(f"{step.id} is not a step of the kind `{cls.kind}`: {why}")


def _split(value: Any, name: str, inputs: dict[str, Input]) -> Json:
    """A value as JSON, without its inputs, which are added to ``inputs``."""

    def part(key: object, given: Any) -> Json:
        return _split(given, f"{name}.{key}" if name else str(key), inputs)

    match value:
        case StepInput() | HostInput():
            inputs[name] = value
            return None
        case None | bool() | int() | float() | str():
            return value
        case Fraction():
            return str(value)
        case BaseModel():
            # A field that is added later with a default must not change fingerprints.
            given_fields = {
                field: getattr(value, field)
                for field, known in type(value).model_fields.items()
                if getattr(value, field) != known.default
            }
            made = {field: part(field, given) for field, given in given_fields.items()}
            return {field: json for field, json in made.items() if json is not None}
        case _ if is_dataclass(value) and not isinstance(value, type):
            made = {f.name: part(f.name, getattr(value, f.name)) for f in fields(value)}
            return {name: json for name, json in made.items() if json is not None}
        case Mapping():
            return {str(key): part(key, given) for key, given in value.items()}
        case tuple():
            return [part(number, given) for number, given in enumerate(value)]
    raise TypeError(f"{name} is {value!r}, which a step cannot hold")


def _put(model: Any, name: list[str], given: object) -> None:
    """Put an input back into the model."""
    *parents, last = name
    for part in parents:
        model = model[int(part)] if isinstance(model, list) else model[part]
    if isinstance(model, list):
        model[int(last)] = given
    else:
        model[last] = given
