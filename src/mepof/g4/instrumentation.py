"""What ``set instrument`` chooses, and whether the statements below it can choose so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from mepof.g4.ast import Adap, Opt, Profile, Program, Set, Statement, Word
from mepof.g4.diagnostics import Diagnostic, quote, suggestion

#: The value of ``instrument`` by which everything that runs is instrumented.
ALL = "all"
#: The value of ``hotness`` by which the kernel is recorded to know what is hot.
NO_HOTNESS = "none"

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%")
_SIZE = re.compile(r"([0-9]{1,9})([KMG])(?:iB)?")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Instrumentation:
    """What is instrumented of a kernel.

    Attributes:
        places: subsystems, and paths in the tree; everything that runs without any.
        percent: the hottest files of these that make up so much of what ran in them.
        image_bytes: as many of the hottest files of those as an image of that size has room for.
    """

    places: tuple[str, ...] = ()
    percent: float | None = None
    image_bytes: int | None = None

    @property
    def ranks(self) -> bool:
        """Whether it must be known what is hot."""
        return self.percent is not None or self.image_bytes is not None


#: Everything that runs.
EVERYTHING = Instrumentation()


def tree_path(part: str) -> None:
    """Refuse what is not a file, directory or pattern of files in a kernel tree.

    Raises:
        ValueError: with a message for the user.
    """
    if not re.fullmatch(r"[\w.+*?\[\]!/-]+", part, re.ASCII):
        raise ValueError(f"`{part}` has a character that names of kernel files do not have")
    names = part.removesuffix("/").split("/")
    if not {"", ".", ".."}.isdisjoint(names):
        raise ValueError(f"write `{part}` as a path within the kernel tree: `kernel/fork.o`")
    if any("**" in name and name != "**" for name in names):
        raise ValueError("`**` stands for directories, as in `drivers/**/core.o`")
    if not part.endswith(("/", ".o", ".c")) and set("*?[").isdisjoint(part):
        raise ValueError(
            f"`{part}` is neither a file (`{part}.o`), nor a directory (`{part}/`), "
            f"nor a pattern (`{part}*`)"
        )


def instrumentation(text: str) -> Instrumentation:
    """What a value such as ``sched,mm,95%,16M`` chooses. Subsystems may be unknown."""
    places: set[str] = set()
    percent: float | None = None
    size: int | None = None
    for part in [] if text == ALL else text.split(","):
        if found := _PERCENT.fullmatch(part):
            if percent is not None or not 0 < float(found[1]) <= 100:
                raise ValueError("expected one percentage up to 100%, such as `95%`")
            percent = float(found[1])
        elif found := _SIZE.fullmatch(part):
            if size is not None or int(found[1]) == 0:
                raise ValueError("expected one size of an image, such as `16M`")
            size = int(found[1]) * _UNITS[found[2]]
        elif not part or part == ALL:
            raise ValueError(
                "separate subsystems, directories and files with commas, as in `sched,mm/`, "
                "or write `all`"
            )
        else:
            if not _may_be_subsystem(part):
                tree_path(part)
            places.add(part)
    return Instrumentation(tuple(sorted(places)), percent, size)


def _may_be_subsystem(part: str) -> bool:
    return re.fullmatch(r"\w[\w-]*", part, re.ASCII) is not None


def wrong_words(word: Word, subsystems: Collection[str]) -> Iterator[Diagnostic]:
    """Unknown subsystems in a value of ``set instrument`` that has the right form."""
    for span, part in word.parts([] if word.text == ALL else word.text.split(",")):
        named = _may_be_subsystem(part) and not _SIZE.fullmatch(part)
        if named and part not in subsystems:
            remedy = suggestion(part, subsystems)
            if number := re.match(r"\d+", part):
                remedy = f"a size is written `{number[0]}M`, a percentage `{number[0]}%`"
            yield Diagnostic(span, f"unknown subsystem {quote(part)}", remedy)


@dataclass
class _State:
    """The settings in force, as far as they matter."""

    value: Word | None = None
    chosen: Instrumentation = EVERYTHING
    hotness: bool = False
    scout: bool = True
    device: str = ""


def unfit(
    program: Program,
    recorded_rounds: Mapping[str, int],
    recorders: Collection[str],
    interactive: Collection[str],
    whole: Collection[str],
    device: str,
) -> Iterator[Diagnostic]:
    """Statements that cannot instrument what ``set instrument`` chooses.

    Args:
        recorded_rounds: how often each algorithm needs branches; not once if it instruments.
        recorders: the devices that record all branches.
        interactive: the scenarios whose actions are not known beforehand.
        whole: the options for which all of the kernel must be counted.
        device: of a program that sets none.
    """
    state = _State(device=device)
    for statement in program.statements:
        if isinstance(statement, Set):
            _set(statement, state)
        elif isinstance(statement, Opt | Adap | Profile) and state.chosen != EVERYTHING:
            yield from _unfit(statement, state, recorded_rounds, recorders, interactive, whole)


def _set(statement: Set, state: _State) -> None:
    value = statement.value
    match statement.key.text:
        case "instrument":
            try:
                state.value, state.chosen = value, instrumentation(value.text)
            except ValueError:
                state.chosen = EVERYTHING  # reported where the setting is checked
        case "hotness":
            state.hotness = value.text != NO_HOTNESS
        case "scout":
            state.scout = value.text != "off"
        case "device":
            state.device = value.text


def _unfit(
    statement: Opt | Adap | Profile,
    state: _State,
    recorded_rounds: Mapping[str, int],
    recorders: Collection[str],
    interactive: Collection[str],
    whole: Collection[str],
) -> Iterator[Diagnostic]:
    stack, options = statement.algorithm, _options(statement)
    if all(recorded_rounds.get(part, 0) for part in stack.text.split("+")):
        yield Diagnostic(
            stack.span,
            f"{quote(stack.text)} records branches and instruments nothing",
            f"write `set instrument {ALL}` before it",
        )
        return
    for option in options:
        if option.text in whole:
            yield Diagnostic(
                option.span,
                f"{quote(option.text)} needs to know of all code whether it ran",
                f"leave it out, or write `set instrument {ALL}` before it",
            )
    click = statement.click.text
    unrecorded = state.device not in recorders
    blind = not state.scout or click in interactive or unrecorded
    if state.chosen.ranks and blind and not state.hotness:
        why = (
            "`set scout off` forbids to record it"
            if not state.scout
            else f"the scenario {quote(click)} decides only later what runs"
            if click in interactive
            else f"the device {quote(state.device)} does not record it"
        )
        assert state.value is not None
        yield Diagnostic(
            state.value.span,
            f"what is hot in the kernel is unknown: {why}",
            "name an earlier profile by `set hotness`",
        )


def _options(statement: Statement) -> tuple[Word, ...]:
    return statement.options if isinstance(statement, Opt | Adap) else ()
