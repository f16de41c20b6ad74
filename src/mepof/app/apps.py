"""Apps: what a scenario exercises.

On a plain Linux guest that is a program with a list of named actions, described by a file under
``apps/``; or a suite, whose cases are the actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from mepof.described import Described, Named, Word, check_distinct, nearest
from mepof.errors import InputError
from mepof.registry import DescribedRegistry
from mepof.suite.cases import MIN_MEMORY, Programs, load_suite, suite_names

Text = Annotated[str, Field(min_length=1)]


class Check(Described):
    """What an action must do to count as done.

    Attributes:
        status: its exit status.
        output: text that it must write to standard output or error, or several.
    """

    status: int = Field(default=0, ge=0, le=255)
    output: Text | tuple[Text, ...] | None = None

    @field_validator("output")
    @classmethod
    def _is_some_text(cls, output: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if output == ():
            raise ValueError("must be a text or several")
        return output

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that it must write."""
        return (self.output,) if isinstance(self.output, str) else self.output or ()


class Action(Described):
    """A command with a time limit, which a scenario can pick.

    Attributes:
        seconds: the limit.
        includes: groups of cases (G4's metrics) that it runs among other things.
    """

    name: Word
    argv: tuple[str, ...] = Field(min_length=1)
    seconds: float = Field(gt=0)
    # Left out of repr(), which steps hash: it does not change what runs.
    includes: tuple[str, ...] = Field(default=(), repr=False)
    # Likewise: a description that an operand names is an input of the step, by its content.
    check: Check = Field(default=Check(), repr=False)


class App(Named):
    """A workload with named actions.

    Attributes:
        suites: those whose programs its actions run.
        memory: MiB that its guest needs.
        brings_files: it adds files of the user's to the guest.
    """

    brings_files: ClassVar[bool] = False

    title: str
    actions: tuple[Action, ...] = Field(alias="action")
    suites: tuple[str, ...] = ()
    memory: int = Field(default=MIN_MEMORY, ge=MIN_MEMORY)

    @field_validator("actions")
    @classmethod
    def _names_are_distinct(cls, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        check_distinct(action.name for action in actions)
        return actions

    def action(self, name: str) -> Action:
        """The action of that name.

        Raises:
            InputError: there is none.
        """
        for action in self.actions:
            if action.name == name:
                return action
        hint = nearest(name, [action.name for action in self.actions])
        raise InputError(f"app `{self.name}` has no action `{name}`", hint)


class InstalledApp(App):
    """An app that comes with mepof.

    Attributes:
        programs: of its own, which are built as a suite's are; None if the guest has all that its
            actions run.
    """

    programs: Programs | None = None


#: That of a training that names none.
DEFAULT = "general"

#: MiB that the kernel, the guest itself and small programs take.
BASE_MEMORY = 192

_LACKS = re.compile(r"^action=\S+ check=ok lacks=(\S+)$", re.M)


def lacked(output: str) -> tuple[str, ...]:
    """What an action names in its result line as missing from the kernel.

    It has passed over the work that needs it; an action that cannot run at all ends otherwise
    (docs/suites.md).

    Args:
        output: of the action.
    """
    return tuple(word for line in _LACKS.findall(output) for word in line.split(","))


DESCRIBED = DescribedRegistry(Path(__file__).with_name("apps"), InstalledApp, "app")

# Generous: under emulation a case takes some seconds of the host's time, and the guest's
# limit counts guest time.
_CASE_SECONDS = 120.0


def app_names() -> tuple[str, ...]:
    """The apps of a plain Linux guest: those that are described, and every suite."""
    return tuple(sorted({*DESCRIBED.names(), *suite_names()}))


def load_app(name: str) -> InstalledApp:
    """The app of that name.

    Raises:
        InputError: there is none, or its file is wrong.
    """
    if name in DESCRIBED.names() or name not in suite_names():
        return DESCRIBED.get(name)
    suite = load_suite(name)
    actions = tuple(
        Action(name=case.name, argv=case.argv, seconds=_CASE_SECONDS) for case in suite.cases
    )
    return InstalledApp(name=name, title=suite.title, action=actions, suites=(name,))


def programs_of(name: str) -> Programs | None:
    """What a suite or an installed app adds to the guest; None if that is nothing.

    Raises:
        InputError: there is no such app.
    """
    if name in suite_names():
        return load_suite(name).programs
    return DESCRIBED.get(name).programs


def guest_additions() -> dict[str, tuple[str, ...]]:
    """What adds programs to the guest for an app's actions, by app: suites, and the app itself."""
    return {
        name: tuple(
            dict.fromkeys(
                added for added in (name, *load_app(name).suites) if programs_of(added) is not None
            )
        )
        for name in app_names()
    }


def memory_of(apps: Iterable[App]) -> int:
    """MiB of memory that a guest needs to exercise all these apps."""
    apps = tuple(apps)
    suites = (load_suite(suite).memory for app in apps for suite in app.suites)
    shared = (app.memory for app in apps if not app.brings_files)
    own = memory_together(app.memory for app in apps if app.brings_files)
    return max(*suites, *shared, own, MIN_MEMORY)


def memory_together(apps: Iterable[int]) -> int:
    """MiB that a guest needs for apps that bring files, all of which are there at once.

    Args:
        apps: what the guest of each alone needs.
    """
    return BASE_MEMORY + sum(memory - BASE_MEMORY for memory in apps)
