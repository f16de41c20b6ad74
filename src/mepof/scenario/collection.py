"""What is known about a training run: the document beside a raw profile and its profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict

from mepof.app.apps import Action, App
from mepof.document import Document


class Coverage(BaseModel):
    """Of the apps' actions, how many there are, how many ran, and the names of the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    actions: int
    ran: int
    never: tuple[str, ...]


class Collection(Document):
    """A training run.

    Attributes:
        apps: names, in the program's order.
        actions: names, in the order in which they ran.
        release: of the kernel that was profiled.
    """

    file: ClassVar[str] = "collection.json"

    scenario: str
    apps: tuple[str, ...]
    actions: tuple[str, ...]
    coverage: Coverage
    seed: int
    release: str

    @classmethod
    def of(
        cls,
        scenario: str,
        apps: Sequence[App],
        actions: Sequence[Action],
        seed: int,
        release: str,
    ) -> Self:
        """The document of a run in which these actions ran."""
        ran = {action.name for action in actions}
        every = [action.name for app in apps for action in app.actions]
        never = tuple(name for name in every if name not in ran)
        return cls(
            scenario=scenario,
            apps=tuple(app.name for app in apps),
            actions=tuple(action.name for action in actions),
            coverage=Coverage(actions=len(every), ran=len(every) - len(never), never=never),
            seed=seed,
            release=release,
        )
