"""How many screens of generated apps each scenario sees, for a number of actions.

    PYTHONPATH=tests bench/exploring.py

The phone is played (tests/writers/android_phone.py), so that the screens that were really shown can
be counted. Writes docs/benchmarks/exploring.md.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from writers.android_app import App, generated
from writers.android_phone import AndroidPhone

from mepof.app.android import AndroidApp
from mepof.scenario.driving import Budget, Drive, Screens
from mepof.scenario.protocol import SCENARIOS
from mepof.scenario.system import System

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "exploring.md"
#: Apart from those with which the strategy was tried out.
SEEDS = range(1000, 1003)
SCENARIO_NAMES = ("rand", "trav", "learned")
KINDS = {
    True: "the kind of an element tells what it does",
    False: "all elements are identical buttons",
}


def drive(scenario: str, app: App, actions: int, given: str | None) -> tuple[int, Screens]:
    """How many screens were shown, and what the scenario says of it."""
    phone = AndroidPhone.of(app)
    budget = Budget(AndroidApp(package=app.package, activity=".Main"), 1e9, actions)
    system = System(phone, phone.pause, phone.now)
    asked = Drive(system, (budget,), 1, given, lambda text: None, lambda count, name: None)
    done = SCENARIOS.get(scenario).drive(asked)
    return len(set(phone.shown[app.package])), done


def learned_again(app: App, actions: int) -> int:
    """Screens of a run that knows what one of as many actions has learned."""
    _, first = drive("learned", app, actions, None)
    assert first.memory is not None
    return drive("learned", app, actions, first.memory.model_dump_json())[0]


def row(states: int, times: float, telling: bool) -> str:
    """A row of the table."""
    apps = [generated(states, seed, telling) for seed in SEEDS]
    actions = round(states * times)
    cells = [
        f"{fmean(drive(name, app, actions, None)[0] for app in apps):.0f}"
        for name in SCENARIO_NAMES
    ]
    again = f"{fmean(learned_again(app, actions) for app in apps):.0f}"
    return f"| {states} | {KINDS[telling]} | {actions} | {' | '.join([*cells, again])} |"


def main() -> None:
    rows = [
        row(states, times, telling)
        for telling in KINDS
        for states in (60, 200)
        for times in (0.5, 1, 2)
    ]
    PAGE.write_text(
        "# Screens that scenarios reach\n\n"
        f"Mean number of screens shown, of {len(SEEDS)} generated apps each, on a simulated phone\n"
        "([apps of a phone](../android.md)). *Counted*, by `PYTHONPATH=tests "
        "bench/exploring.py`.\n`learned again` knows what one run of as many actions has learned."
        "\n\n| screens | elements | actions | `rand` | `trav` | `learned` | `learned` again |\n"
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: |\n" + "\n".join(rows) + "\n\n"
        "The apps are trees of lists and menus with controls that lead nowhere, links to screens "
        "that\nare there already, and a way up. In the second half nothing tells a control from a "
        "row, so\nthat there is nothing to learn about kinds of elements.\n"
    )


if __name__ == "__main__":
    main()
