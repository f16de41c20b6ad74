"""What a person touches becomes a script, and what a script says is checked."""

from __future__ import annotations

import pytest
from writers.android_app import generated
from writers.android_phone import GETEVENT, AndroidPhone

from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.scenario.touches import TouchScreen, read_range, read_touches

from .played import budgets, drive, only

SCREEN = TouchScreen("/dev/input/event2", (0, 0), (32767, 32767))
SIZE = (1080, 1920)
APP = generated(20, 1)


def event(seconds: float, code: str, value: int | str, device: str = "event2") -> str:
    kind = {"SYN": "EV_SYN", "BTN": "EV_KEY"}.get(code[:3], "EV_ABS")
    word = value if isinstance(value, str) else f"{value & 0xFFFFFFFF:08x}"
    return f"[{seconds:15.6f}] /dev/input/{device}: {kind:<12} {code:<20} {word:<20}\n"


def touch(start: float, end: float, *at: tuple[int, int]) -> str:
    """A finger that goes through positions, of which the first and the last are written."""
    lines = [event(start, "ABS_MT_TRACKING_ID", 7), event(start, "BTN_TOUCH", "DOWN")]
    for number, (x, y) in enumerate(at):
        moment = start + (end - start) * number / max(1, len(at) - 1)
        lines.append(event(moment, "ABS_MT_POSITION_X", x))
        lines.append(event(moment, "ABS_MT_POSITION_Y", y))
        lines.append(event(moment, "SYN_REPORT", 0))
    lines += [event(end, "ABS_MT_TRACKING_ID", -1), event(end, "BTN_TOUCH", "UP")]
    return "".join([*lines, event(end, "SYN_REPORT", 0)])


def test_the_touch_screen_is_found_among_the_devices() -> None:
    assert read_range(GETEVENT, "played") == SCREEN


def test_a_phone_without_a_touch_screen_is_refused() -> None:
    with pytest.raises(EnvironmentLack, match="no touch screen"):
        read_range('add device 1: /dev/input/event0\n  name: "gpio-keys"\n', "played")


def test_taps_swipes_and_pauses_become_lines() -> None:
    text = (
        touch(10.0, 10.08, (16384, 16384))
        + touch(12.5, 12.9, (16384, 30000), (16384, 8192))
        + touch(13.0, 14.2, (0, 0))
    )
    assert read_touches(text, SCREEN, SIZE) == (
        "tap 540 960",
        "wait 2420",
        "swipe 540 1757 540 480 400",
        "swipe 0 0 0 0 1200",
    )


def test_other_devices_second_fingers_and_broken_lines_are_passed_over() -> None:
    other = event(1.0, "ABS_MT_POSITION_X", 9, "event0")
    second = event(1.05, "ABS_MT_SLOT", 1) + event(1.05, "ABS_MT_POSITION_X", 1)
    first = event(1.05, "ABS_MT_SLOT", 0)
    begun, ended = touch(1.0, 1.1, (16384, 16384)).split("[       1.100000]", 1)
    text = f"add device 1\n[ 1.0\n{begun}{other}{second}{first}[       1.100000]{ended}\n[    2.0"
    assert read_touches(text, SCREEN, SIZE) == ("tap 540 960",)


def test_manual_guides_the_person_and_records_a_script() -> None:
    phone, notes = AndroidPhone.of(APP), list[str]()
    # The third element of the first screen, in the touch screen's coordinates.
    phone.events = touch(10.0, 10.08, (16384, round((100 + 2 * 60 + 30) * 32768 / 1920)))
    screens = drive("manual", phone, budgets(APP, seconds=60), notes=notes)
    assert notes[0] == f"use {APP.package} on played for 60 s; what you touch is recorded"
    assert screens.route == (f"launch {APP.package}/.Main", "tap 540 250")
    assert only(screens).actions == 1
    again = AndroidPhone.of(APP)
    drive("script", again, budgets(APP), given="\n".join(screens.route))
    assert "input tap 540 250" in again.commands


def test_a_screen_that_nobody_touched_is_an_error() -> None:
    with pytest.raises(WorkError, match="nobody touched"):
        drive("manual", AndroidPhone.of(APP), budgets(APP, seconds=5))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("tap 1", "takes 2 words, not 1"),
        ("tap 1 -2", "takes whole numbers"),
        ("tip 1 2", "unknown action `tip`"),
        ("key back", "not the name of a key"),
        ("launch mail", "package"),
        ("tap 1 2; wait soon", "takes whole numbers"),
        ("text", "takes 1 words"),
        ("# nothing", "lists no action"),
    ],
)
def test_a_line_that_cannot_be_done_is_refused(line: str, why: str) -> None:
    phone = AndroidPhone.of(APP)
    with pytest.raises(InputError, match=why):
        drive("script", phone, budgets(APP), given=line)
    assert not phone.commands


def test_a_script_types_waits_and_starts_apps() -> None:
    phone = AndroidPhone.of(APP)
    given = f"launch {APP.package}\ntext hello there\nwait 5000 # seconds\nswipe 1 2 3 4 50\n"
    drive("script", phone, budgets(APP), given=given)
    assert "input text hello%sthere" in phone.commands
    assert "input swipe 1 2 3 4 50" in phone.commands
    assert phone.seconds > 5


def test_a_script_ends_when_the_time_is_up() -> None:
    driven = only(
        drive("script", AndroidPhone.of(APP), budgets(APP, seconds=3), given="wait 2000\n" * 5)
    )
    assert (driven.ended, driven.actions) == ("time", 2)
