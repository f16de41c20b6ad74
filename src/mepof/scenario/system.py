"""Android's own programs on a phone, as a scenario uses them (docs/android.md lists what is assumed
of each)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from mepof.app.android import AndroidApp
from mepof.device.shell import Ran, Shell
from mepof.errors import InputError, WorkError
from mepof.scenario.screen import NotAScreen, Screen, read_screen

_DUMP = "/data/local/tmp/mepof-screen.xml"
_READ = f"rm -f {_DUMP}; uiautomator dump {_DUMP} 2>&1; cat {_DUMP}"
_SECONDS = 60.0
_DUMPS = 3
_SIZE = re.compile(r"(?:Physical|Override) size: (\d+)x(\d+)")
# Of https://developer.android.com/reference/android/view/KeyEvent.
_KEY = re.compile(r"[A-Z0-9_]+")
_ARGUMENTS = {"tap": 2, "swipe": 5, "key": 1, "text": 1, "wait": 1, "launch": 1}


class DidNotStart(Exception):
    """An app that is not there after its start; the argument says what is."""


@dataclass(frozen=True)
class System:
    """The system that runs on a phone.

    Attributes:
        pause: waits for a number of seconds.
        now: seconds of a monotonic clock.
    """

    shell: Shell
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic

    @property
    def name(self) -> str:
        return self.shell.name

    def run(self, *argv: str, seconds: float = _SECONDS) -> Ran:
        return self.shell.run(argv, seconds)

    def check_installed(self, app: AndroidApp) -> None:
        """Refuse a package that the phone does not have.

        Raises:
            InputError: it has not.
        """
        found = self.run("pm", "path", app.package)
        if "package:" not in found.output:
            raise InputError(
                f"{self.name} has no package `{app.package}`", "see `adb shell pm list packages`"
            )

    def launch(self, app: AndroidApp) -> None:
        """Start an app afresh.

        Raises:
            InputError: it has no such activity, or none that the launcher starts.
        """
        self.run("am", "force-stop", app.package)
        if app.component is not None:
            done = self.run("am", "start", "-W", "-n", app.component)
            # It also shows the name of the activity, which may have the word in it.
            if re.search(r"^Error", done.output, re.MULTILINE):
                raise InputError(
                    f"{self.name} cannot start {app.component}: {_last(done.output)}",
                    "see `adb shell dumpsys package`, or leave `activity` out",
                )
            return
        category = "android.intent.category.LAUNCHER"
        done = self.run("monkey", "-p", app.package, "-c", category, "1")
        if "No activities found" in done.output:
            raise InputError(
                f"the launcher of {self.name} starts nothing of `{app.package}`",
                "name its `activity`",
            )

    def stop(self, app: AndroidApp) -> None:
        """End an app."""
        self.run("am", "force-stop", app.package)

    def is_running(self, app: AndroidApp) -> bool:
        """Whether the app has a process."""
        return self.run("pidof", app.package).status == 0

    def screen(self) -> Screen:
        """What is shown.

        Raises:
            NotAScreen: it does not come to rest, or cannot be read.
        """
        for attempt in range(_DUMPS):
            try:
                return read_screen(self.run("sh", "-c", _READ).output)
            except NotAScreen:
                if attempt == _DUMPS - 1:
                    raise
                self.pause(1)
        raise AssertionError

    def size(self) -> tuple[int, int]:
        """Width and height of the screen.

        Raises:
            WorkError: it has none.
        """
        found = _SIZE.findall(self.run("wm", "size").output)
        if not found:
            raise WorkError(f"{self.name} does not say how large its screen is")
        width, height = found[-1]  # an override comes last
        return int(width), int(height)

    def perform(self, line: str) -> None:
        """Do what a line of a script says; ``launch`` starts without ending what runs.

        Raises:
            InputError: it cannot be started.
            WorkError: the phone did not take it.
        """
        for part in line.split(";"):
            verb, *words = part.split(None, 1)
            given = words[0].strip() if words else ""
            if verb == "wait":
                self.pause(int(given) / 1000)
            elif verb == "launch":
                package, _, activity = given.partition("/")
                self.launch(AndroidApp(package=package, activity=activity or None))
            else:
                self._input(verb, given)

    def _input(self, verb: str, given: str) -> None:
        argv = {
            "key": ("keyevent", f"KEYCODE_{given}"),
            # `input` writes a blank for it.
            "text": ("text", given.replace(" ", "%s")),
        }.get(verb, (verb, *given.split()))
        done = self.run("input", *argv)
        if done.status != 0:
            raise WorkError(f"{self.name} does not accept `{verb} {given}`: {_last(done.output)}")


def check_line(line: str) -> None:
    """Refuse what :meth:`System.perform` cannot do.

    Raises:
        ValueError: the line is wrong; the message says how.
    """
    for part in line.split(";"):
        verb, *words = part.split(None, 1)[:2] or [""]
        given = words[0].split() if words else []
        wanted = _ARGUMENTS.get(verb)
        if wanted is None:
            raise ValueError(f"unknown action `{verb}`; known: {', '.join(sorted(_ARGUMENTS))}")
        if len(given) != wanted and not (verb == "text" and given):
            raise ValueError(f"`{verb}` takes {wanted} words, not {len(given)}")
        numbers = verb in ("tap", "swipe", "wait")
        if numbers and not all(word.isascii() and word.isdigit() for word in given):
            raise ValueError(f"`{verb}` takes whole numbers")
        if verb == "key" and not _KEY.fullmatch(given[0]):
            raise ValueError(f"`{given[0]}` is not the name of a key, such as BACK")
        if verb == "launch":
            package, _, activity = given[0].partition("/")
            AndroidApp(package=package, activity=activity or None)


def _last(output: str) -> str:
    return output.strip().rpartition("\n")[2] or "no output"
