"""What is known about a training run: the document beside a raw profile and its profile."""

from __future__ import annotations

from collections.abc import Collection as AbstractCollection
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from mepof.app.apps import Action, App
from mepof.document import Document
from mepof.scenario.driving import Driven, Screens
from mepof.suite.cases import CaseId


class Coverage(BaseModel):
    """Of the apps' actions, how many there are, how many ran, and the names of the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    actions: int
    ran: int
    never: tuple[str, ...]


class NotInstrumented(BaseModel):
    """What a kernel did not instrument because it would not have booted.

    Attributes:
        files: objects.
        trials: how many kernels were booted to find them.
        failure: of the kernel that instrumented them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...]
    trials: int
    failure: str

    def __str__(self) -> str:
        files, why = ", ".join(self.files), self.failure.partition("\n")[0]
        return (
            f"nothing is counted in {files}: instrumenting that keeps the kernel from booting "
            f"({why}). {self.trials} kernels were booted to find it; "
            f"`set exclude {','.join(self.files)}.` makes it permanent"
        )


class Collection(Document):
    """A training run.

    Attributes:
        not_instrumented: what counted nothing, if there is any.
        apps: names, in the program's order; of an app of the user's, its title.
        actions: names, in the order in which they ran.
        release: of the kernel that was profiled.
        cases: those of suites that actions of the user's apps ran, and those that these actions
            are themselves; the installed apps tell theirs.
        screens: what was done to apps of a phone.
    """

    file: ClassVar[str] = "collection.json"

    scenario: str
    apps: tuple[str, ...]
    actions: tuple[str, ...]
    coverage: Coverage
    seed: int
    release: str
    cases: tuple[CaseId, ...] = ()
    not_instrumented: NotInstrumented | None = None
    screens: tuple[Driven, ...] = ()

    @model_serializer(mode="wrap")
    def _serialised(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """All fields, without those that are empty and that collections did not have at first:
        the others stay as they were."""
        written: dict[str, Any] = handler(self)
        for name in ("cases", "not_instrumented", "screens"):
            if not getattr(self, name):
                del written[name]
        return written

    @classmethod
    def of(
        cls,
        scenario: str,
        apps: Sequence[App],
        actions: Sequence[Action],
        seed: int,
        release: str,
        cases: AbstractCollection[CaseId] = (),
        not_instrumented: NotInstrumented | None = None,
        screens: Screens | None = None,
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
            cases=tuple(sorted(cases)),
            not_instrumented=not_instrumented,
            screens=screens.apps if screens is not None else (),
        )
