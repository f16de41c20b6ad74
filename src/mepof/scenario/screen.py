"""What a phone shows, as ``uiautomator dump`` writes it, and what can be done there.

The format is that of AOSP's ``AccessibilityNodeInfoDumper``.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

BACK = "key BACK"
TEXT = "mepof"

_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
# Clocks, counters and badges do not make a new screen.
_NUMBER = re.compile(r"\d+")
_CLOSE = "android:id/aerr_close"
_WAIT = "android:id/aerr_wait"
_ALLOW = re.compile(r":id/permission_allow_(foreground_only_)?button$")

Dialog = Literal["crash", "anr", "permission"]


class NotAScreen(Exception):
    """A dump that cannot be read."""


@dataclass(frozen=True)
class Offer:
    """An action that a screen offers.

    Attributes:
        key: what it is on its screen, the same whenever the screen is the same.
        kinds: what it has in common with actions of other screens, the narrowest first.
        line: what a script does it by.
    """

    key: str
    kinds: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class Screen:
    """A screen.

    Attributes:
        package: of the window that has the focus.
        state: the same for screens that show the same, apart from numbers and what was typed.
        title: its first text.
        offers: actions, from the top, ``BACK`` last.
        dialog: of the system, which covers the app.
        answer: the script line that ends the dialog.
    """

    package: str
    state: str
    title: str
    offers: tuple[Offer, ...]
    dialog: Dialog | None = None
    answer: str = BACK


def read_screen(text: str) -> Screen:
    """The screen that a dump describes.

    Args:
        text: of the dump; what ``uiautomator`` prints around it is passed over.

    Raises:
        NotAScreen: it is not a dump; the argument says why.
    """
    start = text.find("<hierarchy")
    end = text.rfind("</hierarchy>")
    if start < 0 or end < start:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise NotAScreen(f"uiautomator wrote `{said[:80]}`")
    try:
        # A document type, which could define entities, comes before its first element.
        root = ElementTree.fromstring(text[start : end + len("</hierarchy>")])
    except ElementTree.ParseError as error:
        raise NotAScreen(f"uiautomator's dump is not XML: {error}") from error
    nodes = list(root.iter("node"))
    if not nodes:
        raise NotAScreen("uiautomator's dump has no node")
    dialog, answer = _dialog(nodes)
    back = Offer(BACK, (BACK,), BACK)
    return Screen(
        nodes[0].get("package", ""),
        _state(nodes),
        next((title for node in nodes if (title := _label(node))), ""),
        (*_offers(nodes), back),
        dialog,
        answer,
    )


def _state(nodes: list[ElementTree.Element]) -> str:
    shown = "\n".join("|".join((node.get("package", ""), _what(node))) for node in nodes)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def _dialog(nodes: list[ElementTree.Element]) -> tuple[Dialog | None, str]:
    """A dialog of the system, and what ends it."""
    by_id = {node.get("resource-id", ""): node for node in nodes}
    if _CLOSE in by_id:
        return ("anr" if _WAIT in by_id else "crash"), _tap(by_id[_CLOSE]) or BACK
    for name, node in by_id.items():
        if _ALLOW.search(name):
            return "permission", _tap(node) or BACK
    return None, BACK


def _offers(nodes: list[ElementTree.Element]) -> Iterator[Offer]:
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.get("enabled", "true") != "true" or _box(node) is None:
            continue
        for verb, line in _lines(node):
            what = f"{verb} {_what(node)}"
            seen[what] += 1
            key = what if seen[what] == 1 else f"{what} #{seen[what]}"
            general = f"{verb} {_class(node)}"
            kinds = (f"{general} {_NUMBER.sub('', node.get('resource-id', ''))}", general)
            yield Offer(key, kinds, line)


def _lines(node: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """Verbs that an element takes, and the script line of each."""
    tap = _tap(node)
    box = _box(node)
    if tap is None or box is None:
        return
    if _class(node).endswith("EditText"):
        yield "type", f"{tap}; text {TEXT}"
    elif node.get("clickable") == "true":
        yield "tap", tap
    if node.get("long-clickable") == "true":
        at = tap.removeprefix("tap ")
        yield "press", f"swipe {at} {at} 1000"
    if node.get("scrollable") == "true":
        left, top, right, bottom = box
        x, step = (left + right) // 2, (bottom - top) // 4
        yield "scroll", f"swipe {x} {bottom - step} {x} {top + step} 300"


def _box(node: ElementTree.Element) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom of an element that can be seen."""
    found = _BOUNDS.fullmatch(node.get("bounds", ""))
    if found is None:
        return None
    left, top, right, bottom = map(int, found.groups())
    return (left, top, right, bottom) if left < right and top < bottom else None


def _tap(node: ElementTree.Element) -> str | None:
    box = _box(node)
    return None if box is None else f"tap {(box[0] + box[2]) // 2} {(box[1] + box[3]) // 2}"


def _class(node: ElementTree.Element) -> str:
    return node.get("class", "").removeprefix("android.widget.")


def _label(node: ElementTree.Element) -> str:
    """What an element says, without numbers; nothing for one that is typed into."""
    if _class(node).endswith("EditText"):
        return ""
    said = node.get("text") or node.get("content-desc") or ""
    return _NUMBER.sub("#", " ".join(said.split()))


def _what(node: ElementTree.Element) -> str:
    words = (_class(node), node.get("resource-id", "").partition(":id/")[2], _label(node))
    return " ".join(word for word in words if word)
