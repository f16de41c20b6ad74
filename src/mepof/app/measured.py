"""The actions of described apps as cases of a measurement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from pydantic import Field

from mepof.app.launch import PROGRAM
from mepof.app.own import OwnAction, OwnApp
from mepof.errors import InputError
from mepof.suite.cases import Case, CaseId, suite_names

_MAX_LETTERS = 40


class OwnCase(Case):
    """A case that is an action of a described app.

    Attributes:
        action: its limit, and what it must do to count as done.
    """

    action: OwnAction = Field(repr=False)


def suite_name(app: OwnApp) -> str:
    """What reports call the cases of an app: its title in small letters, with hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", app.title.lower().replace("'", "")).strip("-")
    # Titles in other scripts.
    return name[:_MAX_LETTERS].strip("-") or f"app-{sha256(app.title.encode()).hexdigest()[:8]}"


def case_ids(app: OwnApp) -> frozenset[CaseId]:
    """The cases that the actions of an app are."""
    return frozenset((suite_name(app), action.name) for action in app.actions)


def own_cases(app: OwnApp) -> tuple[OwnCase, ...]:
    """The cases of an app, in the order of its actions."""
    name = suite_name(app)
    return tuple(
        OwnCase(
            suite=name,
            metric=name,
            name=action.name,
            argv=(f"/{PROGRAM}", "measure", action.name),
            action=action,
        )
        for action in app.actions
    )


def check_distinct_suites(apps: Sequence[OwnApp]) -> None:
    """Refuse apps whose cases a report could not keep apart from others.

    Raises:
        InputError: there are such.
    """
    taken: dict[str, str] = {name: f"the suite {name}" for name in suite_names()}
    for app in apps:
        name = suite_name(app)
        if name in taken:
            raise InputError(
                f"reports would call `{app.title}` {name}, like {taken[name]}", "change the title"
            )
        taken[name] = f"`{app.title}`"
