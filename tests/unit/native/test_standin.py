"""What stands in for Android on a virtual phone, run on this machine: it writes what Android does,
and scenarios drive it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from writers.android_app import App, generated, parse
from writers.android_phone import AndroidPhone

from mepof.app.android import AndroidApp
from mepof.device.shell import Ran
from mepof.kernel.overlay import native_directory
from mepof.scenario.driving import Budget, Drive, Screens
from mepof.scenario.protocol import SCENARIOS
from mepof.scenario.screen import read_screen
from mepof.scenario.system import System

pytestmark = pytest.mark.skipif(
    shutil.which("musl-gcc") is None, reason="musl-tools is not installed"
)
PROGRAMS = ("am", "pm", "input", "wm", "monkey", "uiautomator", "finger", "getevent", "dumpsys")
PIDOF = '#!/bin/sh\nkill -0 "$(cat "$STANDIN_ROOT/tmp/android/$1.pid" 2>/dev/null)" 2>/dev/null\n'
SMALL = generated(12, 3)
SHIPPED = [
    parse(path.read_text())
    for path in sorted((native_directory() / "phone/root/system/apps").iterdir())
]
TROUBLES = parse("""\
package org.example.troubles
screen main -
  TextView title none Troubles & "more"
  Button crash @crash crash now
  Button hang @anr hang now
  Button ask ask:camera take a picture
  Button leave @exit leave
screen camera -
  TextView title none <Camera>
""")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the programs."""
    out = tmp_path_factory.mktemp("standin")
    source = str(native_directory() / "phone")
    made = ["make", "-s", "-C", source, f"OUT={out}", f"{out}/standin/standin"]
    subprocess.run(made, check=True, timeout=120)
    for name in PROGRAMS:
        (out / name).symlink_to("standin/standin")
    (out / "pidof").write_text(PIDOF)
    (out / "pidof").chmod(0o755)
    return out


@dataclass(frozen=True)
class Here:
    """This machine's shell, with the programs."""

    programs: Path
    root: Path
    name: str = "here"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.programs}:{os.environ['PATH']}"
        return {"PATH": path, "STANDIN_ROOT": str(self.root), "STANDIN_PATIENCE": "200"}

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        here = [word.replace("/data/local/tmp", str(self.root)) for word in argv]
        done = subprocess.run(
            here,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode())

    def install(self, *apps: App) -> None:
        for app in apps:
            (self.root / "system/apps" / app.package).write_text(app.text())


@pytest.fixture
def here(built: Path, tmp_path: Path) -> Iterator[Here]:
    for name in ("tmp/android", "system/apps"):
        (tmp_path / name).mkdir(parents=True)
    yield Here(built, tmp_path)
    for process in (tmp_path / "tmp/android").glob("*.pid"):
        try:
            os.kill(int(process.read_text()), signal.SIGKILL)
        except (OSError, ValueError):
            continue


def drive(shell: Here, scenario: str, app: App, actions: int | None = None) -> Screens:
    budget = Budget(AndroidApp(package=app.package, activity=".Main", throttle=0), 60, actions)
    system = System(shell, pause=lambda seconds: None)
    asked = Drive(system, (budget,), 1, None, lambda text: None, lambda count, name: None)
    return SCENARIOS.get(scenario).drive(asked)


def test_dumps_are_those_of_the_played_phone(here: Here) -> None:
    here.install(SMALL)
    phone = AndroidPhone.of(SMALL)
    for shell in (here, phone):
        System(shell, pause=lambda seconds: None).launch(
            AndroidApp(package=SMALL.package, activity=".Main")
        )
    real = System(here).screen()
    assert (real.state, real.offers) == (
        System(phone).screen().state,
        System(phone).screen().offers,
    )


def test_trav_reaches_every_screen(here: Here) -> None:
    here.install(SMALL)
    [driven] = drive(here, "trav", SMALL).apps
    assert (driven.states, driven.ended, driven.crashes) == (12, "complete", ())


@pytest.mark.parametrize("app", SHIPPED, ids=lambda app: app.package)
def test_every_screen_of_the_apps_that_are_shipped_can_be_reached(app: App) -> None:
    phone = AndroidPhone.of(app)
    budget = Budget(AndroidApp(package=app.package, activity=".Main"), 1e9)
    system = System(phone, phone.pause, phone.now)
    asked = Drive(system, (budget,), 1, None, lambda text: None, lambda count, name: None)
    SCENARIOS.get("trav").drive(asked)
    assert set(phone.shown[app.package]) == set(app.screens)
    targets = {e.target.removeprefix("ask:") for s in app.screens.values() for e in s.elements}
    assert {t for t in targets if t[0] not in "-@"} - {"none", "back"} <= set(app.screens)


@pytest.mark.parametrize("app", SHIPPED, ids=lambda app: app.package)
def test_the_apps_that_are_shipped_do_their_work(here: Here, app: App) -> None:
    source = native_directory() / "phone/root/system/apps" / app.package
    (here.root / "system/apps" / app.package).write_bytes(source.read_bytes())
    [driven] = drive(here, "learned", app, 20).apps
    assert driven.ended == "actions"
    assert driven.states is not None and driven.states > 5


def test_crashes_anrs_permissions_and_exits_are_what_a_scenario_sees(here: Here) -> None:
    here.install(TROUBLES)
    [driven] = drive(here, "trav", TROUBLES).apps
    assert driven.states == 2
    assert [text.rpartition(": ")[2] for text in driven.crashes[:1]] == [
        "org.example.troubles has stopped"
    ]
    assert driven.crashes[1].endswith('`Troubles & "more"`: its process is gone')
    assert len(driven.anrs) == 1


def test_monkey_does_the_same_for_the_same_seed_and_reports(here: Here) -> None:
    here.install(TROUBLES)

    def events(seed: int) -> str:
        asked = f"monkey -p {TROUBLES.package} -s {seed} --throttle 0 -v 60"
        return here.run(asked.split(), 60).output

    first = events(1)
    assert first == events(1) != events(2)
    assert "Events injected: 60" in first
    [driven] = drive(here, "rand", TROUBLES, 120).apps
    assert driven.actions == 120
    assert driven.crashes[:1] == (TROUBLES.package,)


def test_what_a_finger_does_becomes_a_script(here: Here) -> None:
    here.install(SMALL)
    target = next(
        e.target for e in SMALL.screens[SMALL.start].elements if e.target in SMALL.screens
    )
    at = [e.target for e in SMALL.screens[SMALL.start].elements].index(target)
    y = 100 + 60 * at + 30

    @dataclass(frozen=True)
    class WithFinger(Here):
        """A person who touches as soon as events are recorded."""

        def run(self, argv: Sequence[str], timeout: float) -> Ran:
            if argv[0] != "timeout":
                return super().run(argv, timeout)
            with subprocess.Popen(
                argv[2:], env=self.environment, stdout=subprocess.PIPE, text=True
            ) as recorder:
                assert recorder.stdout is not None
                said = [recorder.stdout.readline()]
                threading.Thread(target=super().run, args=(("finger", "540", str(y)), 20)).start()
                while (
                    "SYN_REPORT" not in said[-1]
                    or "BTN_TOUCH" not in said[-2]
                    or "UP" not in said[-2]
                ):
                    said.append(recorder.stdout.readline())
                recorder.kill()
            return Ran(124, "".join(said))

    shell = WithFinger(here.programs, here.root)
    screens = drive(shell, "manual", SMALL)
    assert screens.route[0] == f"launch {SMALL.package}/.Main"
    [line] = screens.route[1:]
    verb, x, touched = line.split()
    assert verb == "tap"
    assert abs(int(x) - 540) <= 1 and abs(int(touched) - y) <= 1


def test_what_is_wrong_is_refused_as_android_does(here: Here) -> None:
    here.install(SMALL)
    assert "does not exist" in here.run(("am", "start", "-W", "-n", "a.b/.Main"), 10).output
    assert "No activities found" in here.run(("monkey", "-p", "a.b", "-v", "2"), 10).output
    assert here.run(("pm", "path", "../../etc/passwd"), 10).status == 1
    assert here.run(("input", "fly"), 10).status == 255
    (here.root / "system/apps/a.b").write_bytes(b"screen\nwork\n  x y z\n" + bytes(range(256)) * 40)
    assert here.run(("pm", "path", "a.b"), 10).status == 1


def test_a_dump_without_an_app_is_the_launcher(here: Here) -> None:
    screen = System(here).screen()
    assert screen.package == "com.android.launcher3"
    assert (
        read_screen(
            here.run(
                ("sh", "-c", "uiautomator dump /data/local/tmp/x; cat /data/local/tmp/x"), 10
            ).output
        )
        == screen
    )
