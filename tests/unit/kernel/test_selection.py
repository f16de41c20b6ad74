"""Which objects are instrumented: the hottest, and as many as an image has room for."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mepof.errors import InputError, WorkError
from mepof.kernel.selection import (
    MAX_BUILDS,
    SelectedObject,
    Selection,
    fitting,
    hottest,
    objects_of_functions,
)


def some(*weights: int, text: int = 1000) -> tuple[SelectedObject, ...]:
    return tuple(
        SelectedObject(name=f"o{number}.o", text=text, weight=weight)
        for number, weight in enumerate(weights)
    )


def selected(*objects: SelectedObject, plain: int = 10_000) -> Selection:
    return Selection(objects=objects, files=50, text=20_000, weight=200, plain_image=plain)


@pytest.mark.parametrize(
    ("percent", "count"),
    [(50, 1), (50.1, 2), (80, 2), (80.1, 3), (95, 3), (96, 4), (100, 4), (0.1, 1)],
)
def test_the_hottest_objects_are_as_few_as_make_up_a_percentage(percent: float, count: int) -> None:
    objects = some(50, 30, 15, 5, 0)
    assert hottest(objects, percent) == objects[:count]


def test_where_nothing_ran_nothing_is_hot() -> None:
    assert hottest(some(0, 0), 100) == ()
    assert hottest((), 50) == ()


def test_shares_are_of_the_whole_kernel() -> None:
    chosen = selected(*some(100, 30))
    assert (chosen.text_percent, chosen.time_percent, chosen.growth_percent) == (10.0, 65.0, None)
    built = chosen.built(10_500)
    assert chosen.built(10_500, ["o0.o"]).objects == chosen.objects[1:]
    assert built.growth_percent == 5.0
    assert str(built) == (
        "2 of 50 files are instrumented: 10.0 % of the text, 65.0 % of what ran, "
        "an image that is 5.0 % larger"
    )
    unknown = Selection(objects=some(1), files=3, text=2000, weight=None, plain_image=1)
    assert str(unknown) == "1 of 3 files are instrumented: 50.0 % of the text"
    with pytest.raises(WorkError, match="what is hot is unknown"):
        fitting(unknown, 10, lambda selection: 1)


def test_a_function_that_several_objects_have_belongs_where_its_neighbours_do() -> None:
    defined = {
        "a.o": ["open_a", "helper", "close_a"],
        "b.o": ["helper", "open_b"],
        "c.o": ["other"],
        "d.o": ["other"],
    }
    functions = ["open_a", "helper", "close_a", "entry", "helper", "open_b", "other"]
    assert list(objects_of_functions(functions, defined)) == [
        *("a.o", "a.o", "a.o", None, "b.o", "b.o", "c.o")
    ]
    # What comes first has only what follows.
    assert list(objects_of_functions(["helper", "open_b"], defined)) == ["b.o", "b.o"]


class Builds:
    """Images that grow with what is instrumented, and not evenly."""

    def __init__(self, growth: float, power: float = 1.0) -> None:
        self.growth = growth
        self.power = power
        self.sizes: list[int] = []
        self.counts: list[int] = []

    def image_of(self, chosen: Selection) -> int:
        text = sum(each.text for each in chosen.objects)
        size = chosen.plain_image + int(self.growth * text**self.power)
        self.sizes.append(size)
        self.counts.append(len(chosen.objects))
        return size


def test_everything_is_instrumented_where_there_is_room() -> None:
    builds = Builds(0.5)
    chosen = selected(*some(*range(40, 0, -1)))
    found = fitting(chosen, 30_000, builds.image_of)
    assert found == chosen.model_copy(update={"limit": 30_000})
    assert builds.counts == [40]


@pytest.mark.parametrize("power", [0.6, 1.0, 1.5])
@pytest.mark.parametrize("limit", [11_500, 13_000, 15_000, 19_000])
def test_as_many_of_the_hottest_are_instrumented_as_there_is_room_for(
    limit: int, power: float
) -> None:
    chosen = selected(*some(*range(60, 0, -1), text=250))
    builds = Builds(10_000 / 15_000**power, power)
    found = fitting(chosen, limit, builds.image_of)
    count = len(found.objects)
    assert found.objects == chosen.objects[:count]
    assert found.limit == limit
    assert len(builds.counts) <= MAX_BUILDS
    size = builds.image_of(found)
    assert size <= limit
    # One more would not fit, or hardly anything is unused.
    one_more = chosen.model_copy(update={"objects": chosen.objects[: count + 1]})
    assert limit - size < 0.01 * limit or builds.image_of(one_more) > limit
    assert all(fewer != more for fewer, more in pairwise(builds.counts[:-2]))


def test_a_kernel_that_is_too_large_as_it_is_cannot_be_made_smaller() -> None:
    builds = Builds(1)
    with pytest.raises(InputError, match="10000 bytes without instrumentation, 1 more than"):
        fitting(selected(*some(1)), 9_999, builds.image_of)
    assert builds.counts == []


def test_a_limit_that_leaves_room_for_nothing_is_said() -> None:
    with pytest.raises(WorkError, match="no room for the counters of the hottest files"):
        fitting(selected(*some(2, 1)), 10_001, Builds(1).image_of)
