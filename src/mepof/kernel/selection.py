"""Which objects of a kernel are instrumented, and what share of it they are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict

from mepof.document import Document
from mepof.errors import InputError, WorkError

#: How many kernels are built to fit one below a limit.
MAX_BUILDS = 7
# An image that leaves less of the limit unused is not made larger.
_CLOSE = 0.01


class SelectedObject(BaseModel):
    """An object that is instrumented.

    Attributes:
        text: bytes of its code in the kernel that is not instrumented.
        weight: how much of it ran, in the unit of all weights; None where that is unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    text: int
    weight: int | None = None


class Selection(Document):
    """The objects that are instrumented, the hottest first.

    Attributes:
        files: how many objects the kernel has that could be instrumented.
        text: bytes of the kernel's code.
        weight: of all code that ran; None where that is unknown.
        plain_image: bytes of the image of the kernel that is not instrumented.
        image: bytes of the image of the instrumented one; None until it is built.
        limit: the bytes that it may have.
    """

    file: ClassVar[str] = "selection.json"

    objects: tuple[SelectedObject, ...]
    files: int
    text: int
    weight: int | None
    plain_image: int
    image: int | None = None
    limit: int | None = None

    @property
    def text_percent(self) -> float:
        """The instrumented share of the kernel's code."""
        return round(100 * sum(each.text for each in self.objects) / self.text, 2)

    @property
    def time_percent(self) -> float | None:
        """The share of what ran that ran in instrumented code."""
        if not self.weight:
            return None
        return round(100 * sum(each.weight or 0 for each in self.objects) / self.weight, 2)

    @property
    def growth_percent(self) -> float | None:
        """By how much the instrumented image is larger than the other."""
        return None if self.image is None else round(100 * (self.image / self.plain_image - 1), 2)

    def built(self, image: int, left_out: Sequence[str] = ()) -> Self:
        """What it is of a finished build.

        Args:
            image: bytes of its image.
            left_out: objects that could not be instrumented after all.
        """
        objects = tuple(each for each in self.objects if each.name not in left_out)
        return self.model_copy(update={"objects": objects, "image": image})

    def write_names(self, file: Path) -> None:
        """Write the objects' names, a line each."""
        names = sorted(each.name for each in self.objects)
        file.write_text("\n".join(names) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        time, growth = self.time_percent, self.growth_percent
        return (
            f"{len(self.objects)} of {self.files} files are instrumented: "
            f"{self.text_percent:.1f} % of the text"
            + (f", {time:.1f} % of what ran" if time is not None else "")
            + (f", an image that is {growth:.1f} % larger" if growth is not None else "")
        )


def objects_of_functions(
    functions: Sequence[str], defined: Mapping[str, Sequence[str]]
) -> Iterator[str | None]:
    """The object that each function of a kernel is from; None for what no listed object defines.

    The linker keeps the functions of an object together, so a name that several objects have
    belongs to the one that its neighbours belong to.

    Args:
        functions: names of symbols, in the order of their addresses.
        defined: the functions of each object.
    """
    owners: dict[str, list[str]] = {}
    for name, symbols in defined.items():
        for symbol in symbols:
            owners.setdefault(symbol, []).append(name)
    following: list[str | None] = []
    after: str | None = None
    for function in reversed(functions):
        following.append(after)
        if len(named := owners.get(function, [])) == 1:
            after = named[0]
    before: str | None = None
    for function, after in zip(functions, reversed(following), strict=True):
        found = owners.get(function, [])
        if not found:
            yield None
            continue
        before = next((near for near in (before, after) if near in found), found[0])
        if len(found) > 1:
            found.remove(before)  # it has the name once
        yield before


def hottest(objects: Sequence[SelectedObject], percent: float) -> tuple[SelectedObject, ...]:
    """The hottest objects that make up a percentage of what ran in these.

    Args:
        objects: the hottest first.
    """
    wanted = sum(each.weight or 0 for each in objects) * percent / 100
    so_far = list(accumulate(each.weight or 0 for each in objects))
    # Rounding must not add an object to all that ran.
    return tuple(each for each in objects[: bisect_left(so_far, wanted) + 1] if each.weight)


def fitting(selection: Selection, limit: int, image_of: Callable[[Selection], int]) -> Selection:
    """The hottest objects with which an image stays within a limit, by building some of them.

    An image grows about as the instrumented code does, which says what to try next.

    Args:
        limit: bytes.
        image_of: builds a kernel and returns the bytes of its image.

    Returns:
        The selection, whose kernel may not be the last that was built.

    Raises:
        InputError: the kernel is too large without instrumentation.
        WorkError: it is too large with the hottest object alone, or what is hot is unknown.
    """
    if selection.weight is None:
        raise WorkError(
            "what is hot is unknown: nothing was recorded",
            "name an earlier profile with `set hotness`",
        )
    if selection.plain_image > limit:
        raise InputError(
            f"the kernel's image has {selection.plain_image} bytes without instrumentation, "
            f"{selection.plain_image - limit} more than the limit",
            "set a larger limit, or configure less",
        )

    def first(count: int) -> Selection:
        return selection.model_copy(update={"objects": selection.objects[:count], "limit": limit})

    text = [0, *accumulate(each.text for each in selection.objects)]
    fits, image = 0, selection.plain_image
    too_many = len(selection.objects)
    too_large = image_of(first(too_many))
    if too_large <= limit:
        return first(too_many)
    for _ in range(MAX_BUILDS - 1):
        if too_many - fits < 2 or (fits and limit - image < _CLOSE * limit):
            break
        share = (limit - image) / (too_large - image)
        aim = text[fits] + share * (text[too_many] - text[fits])
        tried = min(max(bisect_left(text, aim) - 1, fits + 1), too_many - 1)
        size = image_of(first(tried))
        if size <= limit:
            fits, image = tried, size
        else:
            too_many, too_large = tried, size
    if not fits:
        raise WorkError(
            f"an image of {limit} bytes has no room for the counters of the hottest files",
            f"set a larger limit: without any, it has {selection.plain_image} bytes",
        )
    return first(fits)
