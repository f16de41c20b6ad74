"""Dumps of ``uiautomator`` become screens with actions."""

from __future__ import annotations

import pytest
from writers.android_phone import node

from mepof.scenario.screen import BACK, NotAScreen, read_screen

PACKAGE = "org.example.mail"


def dump(*nodes: str) -> str:
    return (
        "UI hierchary dumped to: /sdcard/screen.xml\n<?xml version='1.0' encoding='UTF-8' "
        f"standalone='yes' ?><hierarchy rotation=\"0\">{''.join(nodes)}</hierarchy>\n"
    )


def row(name: str, text: str, top: int = 0, kind: str = "Button", touch: bool = True) -> str:
    return node(kind, PACKAGE, f"{PACKAGE}:id/{name}", text, top, touch)


def test_what_can_be_touched_is_offered_in_its_order_and_back_is_last() -> None:
    screen = read_screen(
        dump(row("title", "Inbox", kind="TextView", touch=False), row("send", "Send", 60))
    )
    assert (screen.package, screen.title, screen.dialog) == (PACKAGE, "Inbox", None)
    assert [(offer.key, offer.line) for offer in screen.offers] == [
        ("tap Button send Send", "tap 540 90"),
        (BACK, "key BACK"),
    ]


def test_equal_elements_are_told_apart_by_their_number_and_have_one_kind() -> None:
    first, second, _ = read_screen(dump(row("row1", "Hi"), row("row1", "Hi", 60))).offers
    assert (first.key, second.key) == ("tap Button row1 Hi", "tap Button row1 Hi #2")
    assert first.kinds == second.kinds == (f"tap Button {PACKAGE}:id/row", "tap Button")


def test_text_is_typed_and_lists_are_scrolled_and_what_is_long_is_pressed() -> None:
    wide = row("list", "", 600, "ListView").replace('scrollable="false"', 'scrollable="true"')
    pressed = row("photo", "p").replace('long-clickable="false"', 'long-clickable="true"')
    screen = read_screen(dump(row("name", "old", 60, "EditText"), wide, pressed))
    lines = [offer.line for offer in screen.offers]
    assert "tap 540 90; text mepof" in lines
    assert "swipe 540 645 540 615 300" in lines
    assert "swipe 540 30 540 30 1000" in lines


def test_what_is_disabled_or_not_visible_is_not_offered() -> None:
    off = row("off", "Off").replace('enabled="true"', 'enabled="false"')
    hidden = row("gone", "Gone").replace("[0,0][1080,60]", "[0,0][0,0]")
    assert [offer.key for offer in read_screen(dump(off, hidden)).offers] == [BACK]


def test_numbers_typed_text_and_switches_make_no_new_state() -> None:
    at_nine = dump(row("clock", "09:15"), row("name", "", 60, "EditText"))
    at_ten = dump(row("clock", "10:48"), row("name", "mepof", 60, "EditText"))
    assert read_screen(at_nine).state == read_screen(at_ten).state
    switched = at_nine.replace('checked="false"', 'checked="true"')
    assert read_screen(at_nine).state == read_screen(switched).state
    assert read_screen(at_nine).state != read_screen(dump(row("clock", "now"))).state


@pytest.mark.parametrize(
    ("names", "dialog", "answer"),
    [
        (("aerr_close",), "crash", "tap 540 30"),
        (("aerr_close", "aerr_wait"), "anr", "tap 540 30"),
        (("aerr_restart", "aerr_close"), "crash", "tap 540 90"),
    ],
)
def test_dialogs_of_a_crash_and_of_one_that_does_not_respond(
    names: tuple[str, ...], dialog: str, answer: str
) -> None:
    rows = [
        node("Button", "android", f"android:id/{name}", name, 60 * at, True)
        for at, name in enumerate(names)
    ]
    screen = read_screen(dump(*rows))
    assert (screen.dialog, screen.answer) == (dialog, answer)


@pytest.mark.parametrize(
    "button", ["permission_allow_button", "permission_allow_foreground_only_button"]
)
def test_a_permission_is_given(button: str) -> None:
    package = "com.google.android.permissioncontroller"
    deny = node("Button", package, f"{package}:id/permission_deny_button", "Don't", 0, True)
    allow = node("Button", package, f"{package}:id/{button}", "While using", 60, True)
    screen = read_screen(dump(deny, allow))
    assert (screen.dialog, screen.answer) == ("permission", "tap 540 90")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ERROR: could not get idle state.\n", "could not get idle state"),
        ("ERROR: null root node returned by UiTestAutomationBridge.\n", "null root node"),
        ("", "wrote `nothing`"),
        ("<hierarchy><node></hierarchy>", "not XML"),
        ("<hierarchy><node text='&bomb;'/></hierarchy>", "not XML"),
        ("<hierarchy rotation='0'></hierarchy>", "has no node"),
        ("</hierarchy><hierarchy>", "uiautomator wrote"),
    ],
)
def test_what_is_not_a_dump_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(NotAScreen, match=why):
        read_screen(text)
