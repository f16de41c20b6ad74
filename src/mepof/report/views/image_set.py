"""The images of a report, and the number that distinguishes each in drawings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mepof.report.model import Image, Report


@dataclass(frozen=True)
class ImageSet:
    """The images that a page shows.

    Attributes:
        baseline: None where nothing is compared.
        subjects: all other images, sound or not.
        numbers: by image name; 0 for the baseline.
    """

    baseline: Image | None
    subjects: tuple[Image, ...]
    numbers: dict[str, int]

    @classmethod
    def of(cls, report: Report) -> ImageSet:
        """The images of a report."""
        baseline = next((image for image in report.images if image.baseline), None)
        subjects = tuple(image for image in report.images if not image.baseline)
        numbers = {baseline.name: 0} if baseline else {}
        numbers |= {image.name: number for number, image in enumerate(subjects, 1)}
        return cls(baseline, subjects, numbers)

    @property
    def sound(self) -> tuple[Image, ...]:
        """The subjects whose numbers count."""
        return tuple(image for image in self.subjects if image.sound)

    @property
    def all_sound(self) -> tuple[Image, ...]:
        """The sound subjects, after the baseline if it is sound."""
        return (*self._sound_baseline(), *self.sound)

    def _sound_baseline(self) -> Iterable[Image]:
        return (self.baseline,) if self.baseline and self.baseline.sound else ()

    def name(self, number: int) -> str:
        """The name of the image with this number."""
        return next(name for name, its in self.numbers.items() if its == number)
