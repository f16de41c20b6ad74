"""A phone with Android's programs, played: what ``am``, ``input``, ``uiautomator``, ``monkey`` and
others write and do, for apps of :mod:`writers.android_app`. Time passes as it is told to."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from random import Random
from xml.sax.saxutils import quoteattr

from mepof.device.shell import NOT_FOUND, Ran
from writers.android_app import HEIGHT, ROW, TOP, WIDTH, App, Element

_LAUNCHER = "com.android.launcher3"
_PERMISSIONS = "com.android.permissioncontroller"
_LEFT = {"home": _LAUNCHER, "crash": "android", "anr": "android", "ask": _PERMISSIONS}
# Seconds of the phone's time.
_COST = {"uiautomator": 1.5, "input": 0.3, "am": 0.8}


@cache
def node(kind: str, package: str, name: str, text: str, top: int, touch: bool) -> str:
    """A node of a dump, as AOSP's AccessibilityNodeInfoDumper writes it."""
    touched = str(touch).lower()
    attributes = {
        "index": "0",
        "text": text,
        "resource-id": name,
        "class": kind if "." in kind else f"android.widget.{kind}",
        "package": package,
        "content-desc": "",
        "checkable": str(kind == "Switch").lower(),
        "checked": "false",
        "clickable": touched,
        "enabled": "true",
        "focusable": touched,
        "focused": "false",
        "scrollable": "false",
        "long-clickable": "false",
        "password": "false",
        "selected": "false",
        "bounds": f"[0,{top}][{WIDTH},{top + ROW}]",
    }
    return f"<node {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())} />"


@dataclass
class AndroidPhone:
    """A phone with apps, whose programs are called as over adb.

    Attributes:
        shown: the screens that were shown of each app.
        dumps: what ``uiautomator`` writes instead of the next screens.
        events: what ``getevent -lt`` writes.
    """

    apps: dict[str, App]
    name: str = "played"
    seconds: float = 0.0
    app: str | None = None
    stack: list[str] = field(default_factory=list)
    over: str = "home"
    asked: str = ""
    running: set[str] = field(default_factory=set)
    shown: dict[str, list[str]] = field(default_factory=dict)
    dumps: list[str] = field(default_factory=list)
    events: str = ""
    commands: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, *apps: App) -> AndroidPhone:
        return cls({app.package: app for app in apps})

    def now(self) -> float:
        return self.seconds

    def pause(self, seconds: float) -> None:
        self.seconds += seconds

    def run(self, argv: Sequence[str], timeout: float) -> Ran:
        self.commands.append(shlex.join(argv))
        if argv[0] == "sh":
            return Ran(0, self._dump())
        if argv[0] == "timeout":
            limit, argv = float(argv[1]), argv[2:]
            return self._monkey(argv, limit) if argv[0] == "monkey" else Ran(124, self.events)
        self.seconds += _COST.get(argv[0], 0.05)
        match list(argv):
            case ["pm", "path", package]:
                found = package in self.apps
                return Ran(not found, f"package:/data/app/{package}/base.apk\n" * found)
            case ["am", "force-stop", package]:
                self._leave(package)
                return Ran(0, "")
            case ["am", "start", "-W", "-n", component]:
                return self._start(component)
            case ["monkey", "-p", package, "-c", _, "1"]:
                if package not in self.apps:
                    return Ran(0, "** No activities found to run, monkey aborted.\n")
                self._show(package, self.apps[package].start, [])
                return Ran(0, "Events injected: 1\n")
            case ["pidof", package]:
                return Ran(package not in self.running, "4711\n" * (package in self.running))
            case ["wm", "size"]:
                return Ran(0, f"Physical size: {WIDTH}x{HEIGHT}\n")
            case ["getevent", "-lp"]:
                return Ran(0, GETEVENT)
            case ["input", "tap", x, y]:
                self._touch(int(x), int(y))
                return Ran(0, "")
            case ["input", "keyevent", "KEYCODE_BACK"]:
                self._back()
                return Ran(0, "")
            case ["input", ("text" | "swipe"), *_]:
                return Ran(0, "")
        return Ran(NOT_FOUND, f"{argv[0]}: inaccessible or not found\n")

    # -- what the system does

    def _start(self, component: str) -> Ran:
        package, _, activity = component.partition("/")
        said = f"Starting: Intent {{ cmp={component} }}\n"
        if package not in self.apps or activity not in (".Main", ".ErrorReport"):
            wrong = f"Error type 3\nError: Activity class {{{component}}} does not exist.\n"
            return Ran(1, said + wrong)
        self._show(package, self.apps[package].start, [])
        return Ran(0, f"{said}Status: ok\nLaunchState: COLD\nActivity: {component}\nComplete\n")

    def _show(self, package: str, screen: str, below: list[str]) -> None:
        self.app, self.stack, self.over = package, [*below, screen], ""
        self.running.add(package)
        entered = self.apps[package].screens[screen].enter
        if entered != "-":
            self._end(entered)
            return
        self.shown.setdefault(package, []).append(screen)

    def _leave(self, package: str) -> None:
        self.running.discard(package)
        if self.app == package:
            self.app, self.stack, self.over = None, [], "home"

    def _end(self, how: str) -> None:
        self.over = how.removeprefix("@")
        if self.over == "exit":
            self.over = "home"
            self.running.discard(self.app or "")

    def _back(self) -> None:
        if self.over == "ask" or self.over == "home":
            self.over = "" if self.over == "ask" else self.over
        elif self.over == "" and self.app is not None:
            below = self.stack[:-1]
            if below:
                self._show(self.app, below[-1], below[:-1])
            else:
                self.over = "home"

    def _elements(self) -> list[tuple[str, Element]]:
        """What is shown now, with the package that shows it."""
        if self.over in ("crash", "anr"):
            said = "has stopped" if self.over == "crash" else "isn't responding"
            ids = ["aerr_close"] if self.over == "crash" else ["aerr_close", "aerr_wait"]
            return [
                ("android", Element("TextView", "alertTitle", "none", f"{self.app} {said}")),
                *(("android", Element("Button", each, "-", each)) for each in ids),
            ]
        if self.over == "ask":
            names = ("permission_allow_button", "permission_deny_button")
            return [(_PERMISSIONS, Element("Button", name, "-", name)) for name in names]
        if self.over or self.app is None:
            return [(_LAUNCHER, Element("TextView", "icon", "-", "Apps"))]
        screen = self.apps[self.app].screens[self.stack[-1]]
        return [(self.app, element) for element in screen.elements]

    def _dump(self) -> str:
        self.seconds += _COST["uiautomator"]
        if self.dumps:
            return self.dumps.pop(0)
        rows = "".join(
            node(
                e.kind,
                package,
                f"{package}:id/{e.name}",
                e.text,
                TOP + ROW * at,
                e.target != "none",
            )
            for at, (package, e) in enumerate(self._elements())
        )
        return (
            "UI hierchary dumped to: /data/local/tmp/mepof-screen.xml\n"
            "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
            f'<hierarchy rotation="0">{rows}</hierarchy>'
        )

    def _touch(self, x: int, y: int) -> None:
        elements = self._elements()
        at = (y - TOP) // ROW
        if not 0 <= at < len(elements):
            return
        element = elements[at][1]
        if self.over in ("crash", "anr"):
            if element.name == "aerr_close" and self.app is not None:
                self._leave(self.app)
        elif self.over == "ask":
            if element.name == "permission_allow_button" and self.app is not None:
                self._show(self.app, self.asked, self.stack)
        elif not self.over and self.app is not None:
            target = element.target
            if target == "back":
                self._back()
            elif target.startswith("@"):
                self._end(target)
            elif target.startswith("ask:"):
                self.over, self.asked = "ask", target.removeprefix("ask:")
            elif target not in ("-", "none"):
                self._show(self.app, target, self.stack)

    def _monkey(self, argv: Sequence[str], limit: float) -> Ran:
        words = dict(pairwise(argv))
        package, count = words["-p"], int(argv[-1])
        if package not in self.apps:
            return Ran(0, "** No activities found to run, monkey aborted.\n")
        random, lines = Random(int(words["-s"])), []
        self._show(package, self.apps[package].start, [])
        until, injected = self.seconds + limit, 0
        while injected < count and self.seconds < until:
            self.seconds += int(words["--throttle"]) / 1000
            injected += 2
            # One of twenty events is a key, as by default.
            if random.random() < 0.05:
                lines += [":Sending Key (ACTION_DOWN): 4    // KEYCODE_BACK"]
                self._back()
            else:
                x, y = random.randrange(WIDTH), random.randrange(HEIGHT)
                lines += [f":Sending Touch (ACTION_DOWN): 0:({x}.0,{y}.0)"]
                self._touch(x, y)
            lines.append(":Sending Touch (ACTION_UP): 0:(0.0,0.0)")
            if self.over in ("crash", "anr"):
                said = "CRASH" if self.over == "crash" else "NOT RESPONDING"
                lines.append(f"// {said}: {package} (pid 4711)")
                self._leave(package)
            if self.over == "home":
                self._show(package, self.apps[package].start, [])
        if self.seconds >= until and injected < count:
            return Ran(124, "\n".join(lines))
        return Ran(0, "\n".join([*lines, f"Events injected: {injected}", "// Monkey finished"]))


# https://source.android.com/docs/core/interaction/input/getevent
GETEVENT = """\
add device 1: /dev/input/event0
  name:     "gpio-keys"
  events:
    KEY (0001): KEY_POWER
  input props:
    <none>
add device 2: /dev/input/event2
  name:     "touchscreen"
  events:
    KEY (0001): BTN_TOUCH
    ABS (0003): ABS_MT_SLOT           : value 0, min 0, max 9, fuzz 0, flat 0, resolution 0
                ABS_MT_POSITION_X     : value 0, min 0, max 32767, fuzz 0, flat 0, resolution 0
                ABS_MT_POSITION_Y     : value 0, min 0, max 32767, fuzz 0, flat 0, resolution 0
                ABS_MT_TRACKING_ID    : value 0, min 0, max 65535, fuzz 0, flat 0, resolution 0
  input props:
    INPUT_PROP_DIRECT
"""
