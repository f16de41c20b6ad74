"""Splitting models of steps into parameters and inputs, and reassembling them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Generic

import pytest

from mepof.errors import InputError
from mepof.plan.model import HostInput, Input, Step, StepInput
from mepof.plan.typed import In, Part, StepModel


class Side(Part[In], Generic[In]):
    name: str
    file: In | None = None


class Meal(StepModel[In], Generic[In]):
    kind: ClassVar[str] = "meal"

    dish: str
    main: In
    weight: Fraction = Fraction(1)
    sides: tuple[Side[In], ...] = ()
    plates: tuple[str | In, ...] = ()
    spices: Mapping[str, In] = {}
    dessert: Side[In] | None = None


WHOLE = Meal[Input](
    dish="soup",
    main=StepInput("cook"),
    weight=Fraction(1, 3),
    sides=(Side[Input](name="a"), Side[Input](name="b", file=HostInput("/b"))),
    plates=("deep", HostInput("/flat"), "deep"),
    spices={"salt": StepInput("salt"), "2": StepInput("two")},
    dessert=Side[Input](name="c", file=StepInput("cake")),
)


def test_a_model_survives_the_round_trip_through_a_step() -> None:
    step = WHOLE.step("meal/1")
    assert step == Step(
        "meal/1",
        "meal",
        {
            "dish": "soup",
            "weight": "1/3",
            "sides": [{"name": "a"}, {"name": "b"}],
            "plates": ["deep", None, "deep"],
            "spices": {"salt": None, "2": None},
            "dessert": {"name": "c"},
        },
        {
            "main": StepInput("cook"),
            "sides.1.file": HostInput("/b"),
            "plates.1": HostInput("/flat"),
            "spices.salt": StepInput("salt"),
            "spices.2": StepInput("two"),
            "dessert.file": StepInput("cake"),
        },
    )
    assert Meal[Input].of(step, step.inputs) == WHOLE


def test_a_body_sees_paths() -> None:
    step = WHOLE.step("x")
    paths = {name: Path("/in") / name for name in step.inputs}
    meal = Meal[Path].of(step, paths)
    assert meal.main == Path("/in/main")
    assert meal.plates == ("deep", Path("/in/plates.1"), "deep")
    assert meal.sides[1].file == Path("/in/sides.1.file")
    assert meal.spices["2"] == Path("/in/spices.2")


def test_a_field_with_its_default_is_not_in_the_step() -> None:
    step = Meal[Input](dish="soup", main=HostInput("/m")).step("x")
    assert step.params == {"dish": "soup"}
    assert step.inputs == {"main": HostInput("/m")}


@pytest.mark.parametrize(
    ("params", "inputs", "what"),
    [
        ({"main": 1}, {}, "dish: Field required"),
        ({"dish": "soup", "salty": True}, {"main": Path("/m")}, "salty: Extra inputs"),
        ({"dish": "soup"}, {"main": Path("/m"), "sides.3.file": Path("/x")}, "do not fit"),
        ({"dish": "soup", "sides": [1]}, {"main": Path("/m")}, "sides.0"),
    ],
)
def test_a_step_that_does_not_fit_the_model_is_refused(
    params: dict[str, object], inputs: dict[str, Path], what: str
) -> None:
    step = Step("meal/1", "meal", params)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="meal/1 is not a step of the kind `meal`") as caught:
        Meal[Path].of(step, inputs)
    assert what in caught.value.message
