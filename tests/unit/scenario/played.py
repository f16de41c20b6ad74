"""Scenarios that drive a played phone."""

from __future__ import annotations

from writers.android_app import App, parse
from writers.android_phone import AndroidPhone

from mepof.app.android import AndroidApp, AndroidApps
from mepof.scenario.driving import Budget, Drive, Driven, Screens
from mepof.scenario.protocol import SCENARIOS
from mepof.scenario.system import System

#: Screens that crash, hang, ask for a permission, leave the app, and one that cannot be left.
TROUBLES = parse("""\
package org.example.troubles
screen main -
  TextView title none Troubles
  Button crash @crash crash now
  Button hang @anr hang now
  Button ask ask:camera take a picture
  Button leave @exit leave
  EditText name - 12
  Switch sound - sound
screen camera -
  TextView title none Camera
  Button shoot - shoot
""")


def budgets(*apps: App, seconds: float = 1e9, actions: int | None = None) -> tuple[Budget, ...]:
    """A budget for each app."""
    return tuple(
        Budget(AndroidApp(package=app.package, activity=".Main"), seconds, actions) for app in apps
    )


def drive(
    scenario: str,
    phone: AndroidPhone,
    budgets: tuple[Budget, ...],
    seed: int = 1,
    given: str | None = None,
    notes: list[str] | None = None,
) -> Screens:
    """What a scenario does to apps of a phone."""
    system = System(phone, phone.pause, phone.now)
    note = (lambda text: None) if notes is None else notes.append
    asked = Drive(system, budgets, seed, given, note, lambda count, name: None)
    return SCENARIOS.get(scenario).drive(asked)


def only(screens: Screens) -> Driven:
    """What was done to the one app."""
    [driven] = screens.apps
    return driven


def shown(phone: AndroidPhone, app: App) -> int:
    """How many screens of an app the phone has shown."""
    return len(set(phone.shown[app.package]))


def listed(*packages: str) -> AndroidApps:
    """A list of apps."""
    apps = [{"package": package, "activity": ".Main"} for package in packages]
    return AndroidApps.model_validate({"name": "list", "title": "list", "android": apps})
