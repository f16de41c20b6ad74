"""Apps of a phone without Android: descriptions of their screens, as ``native/phone/standin.c``
reads them, and a generator of such apps."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

#: Pixels: of the screen, and of each of its elements from the top.
WIDTH, HEIGHT, TOP, ROW = 1080, 1920, 100, 60


@dataclass(frozen=True)
class Element:
    """What a screen shows.

    Attributes:
        kind: its class without ``android.widget.``.
        target: the screen that a touch leads to; ``-`` none, ``back``, ``@crash``, ``@anr``,
            ``@exit``, or ``ask:SCREEN`` after a dialog that asks for a permission.
    """

    kind: str
    name: str
    target: str
    text: str

    def line(self) -> str:
        return f"  {self.kind} {self.name} {self.target} {self.text}"


@dataclass
class Screen:
    """A screen; ``enter`` is what happens when it is shown: ``-``, ``@crash`` or ``@anr``."""

    name: str
    elements: list[Element] = field(default_factory=list)
    enter: str = "-"


@dataclass
class App:
    """An app; its first screen is where it starts."""

    package: str
    screens: dict[str, Screen]

    @property
    def start(self) -> str:
        return next(iter(self.screens))

    def text(self) -> str:
        """The description."""
        lines = [f"package {self.package}"]
        for screen in self.screens.values():
            lines.append(f"screen {screen.name} {screen.enter}")
            lines += [element.line() for element in screen.elements]
        return "\n".join(lines) + "\n"


def parse(text: str) -> App:
    """The app that a description describes; ``work`` lines are for the stand-in alone."""
    app = App("", {})
    for line in text.splitlines():
        words = line.split(None, 3)
        if not words or words[0].startswith("#") or words[0] == "work":
            continue
        if words[0] == "package":
            app.package = words[1]
        elif words[0] == "screen":
            app.screens[words[1]] = Screen(words[1], [], words[2])
        else:
            [*_, last] = app.screens.values()
            kind, name, target = words[:3]
            last.elements.append(Element(kind, name, target, " ".join(words[3:])))
    return app


_SYLLABLES = ["ka", "lo", "mi", "ne", "pu", "ra", "so", "ti", "va", "we", "xo", "yu"]


def _word(number: int) -> str:
    """A word for a number, since numbers do not tell screens apart."""
    word = ""
    while True:
        number, rest = divmod(number, len(_SYLLABLES))
        word += _SYLLABLES[rest]
        if not number:
            return word


def generated(states: int, seed: int, telling: bool = True) -> App:
    """An app of so many states, each of which can be reached.

    Lists and menus lead on, controls stay where they are, links lead to screens that are there
    already, and details have nothing but controls.

    Args:
        telling: what an element is tells what it probably does, as in apps that people write;
            otherwise all elements are buttons without a name.
    """
    random = Random(f"{states}/{seed}/{telling}")
    names = [f"screen-{_word(number)}" for number in range(states)]
    app = App(f"org.example.app{seed}", {name: Screen(name) for name in names})
    # Where screens are added: few screens have many rows, most have none.
    open_ends = [0]
    children: dict[int, list[int]] = {number: [] for number in range(states)}
    for number in range(1, states):
        parent = random.choice(open_ends[-12:])
        children[parent].append(number)
        if len(children[parent]) >= random.randint(2, 9):
            open_ends.remove(parent)
        if random.random() < 0.45 or not open_ends:
            open_ends.append(number)
    for number, name in enumerate(names):
        elements = [Element("TextView", "title", "none", f"about {_word(number)}")]
        controls = random.randint(1, 6)
        elements += [
            Element(*random.choice((("Switch", "setting"), ("ImageButton", "refresh"))), "-", text)
            for text in map(_word, range(1000, 1000 + controls))
        ]
        elements.append(Element("ImageButton", "up", "back", "up"))
        for child in children[number]:
            kind = random.choice(
                (("LinearLayout", "row"), ("LinearLayout", "row"), ("Button", "more"))
            )
            # A part of what looks like a control leads on, and of what looks like a row does not.
            if random.random() < 0.1:
                kind = "Switch", "setting"
            elements.append(Element(*kind, names[child], _word(child)))
        elements += [
            Element("LinearLayout", "row", "-", _word(2000 + each))
            for each in range(random.randint(0, 2))
        ]
        elements += [
            Element("Button", "link", names[random.randrange(number)], f"see {each}")
            for each in map(_word, range(random.randint(0, 2) if number else 0))
        ]
        shown, rest = elements[0], elements[1:]
        random.shuffle(rest)
        if not telling:
            rest = [Element("Button", "button", e.target, e.text) for e in rest]
        app.screens[name].elements = [shown, *rest]
    return app
