"""Configure a kernel, and say why what it should have did not take.

Kconfig silently drops an option whose dependencies are not met, so every line is compared with the
resulting configuration.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, NamedTuple

from mepof.errors import WorkError
from mepof.kernel import companions, outside
from mepof.kernel.kconfig import ABSENT, MANY, REDUCE, UNMET, Fragments, Setting, reducible
from mepof.process import run

#: Lists the options of the user's files that did not take effect, beside a kernel.
DROPPED = "dropped.txt"
_PROMPTLESS = "it has no prompt: only another option can set it"
_MAX_SHOWN = MANY


def dropped(wanted: Iterable[Setting], config: str) -> tuple[Setting, ...]:
    """The settings that a finished ``.config`` does not have."""
    have = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", config, re.M))
    return tuple(setting for setting in wanted if not _took(setting, have))


def _took(setting: Setting, have: Mapping[str, str]) -> bool:
    """Whether one of its names took; an option is off only if all its names are."""
    took = [have.get(name.symbol, "n") == name.value for name in (setting, *setting.otherwise)]
    return all(took) if setting.value == "n" else any(took)


def configure(
    tree: Path,
    build: Path,
    fragments: Fragments,
    make: Sequence[str],
    environment: Mapping[str, str],
    runner: Callable[..., object],
    *,
    note_dropped: bool = False,
) -> tuple[str, list[str]]:
    """Write ``build/.config``.

    Args:
        tree: the source, or a view of it.
        make: the make command with all its variables, to which a target is added.
        environment: variables for Kconfig's own macros when a drop is explained.
        runner: runs a program like :func:`mepof.process.run`.
        note_dropped: options of the user's files need not take effect.

    Returns:
        Its text, and which of these options did not take effect and why, a line each.

    Raises:
        WorkError: an option did not take effect; the message names it and the dependency that
            is not met. Or one needs a file or program that does not exist.
    """
    build.mkdir(parents=True, exist_ok=True)
    wanted = build / ".mepof-config"
    wanted.write_text("".join(s.lines() for s in fragments.settings), encoding="utf-8")
    targets = fragments.base.split()
    if len(targets) == 1 and targets[0].startswith("all"):
        runner([*make, *targets], env={"KCONFIG_ALLCONFIG": str(wanted)})
    else:
        # One by one, as Kbuild itself makes several: the defconfig, then each fragment over it.
        for target in targets:
            runner([*make, target])
        with (build / ".config").open("a", encoding="utf-8") as file:
            file.write(wanted.read_text(encoding="utf-8"))
        runner([*make, "olddefconfig"])
    text = (build / ".config").read_text(encoding="utf-8")
    missing = dropped(fragments.settings, text)
    found = explain(tree, build / ".config", missing, environment) if missing else {}
    missing = tuple(
        s
        for s in missing
        if not _excused(s, found[s.symbol].reason) and not _gave_way(s, found, fragments.settings)
    )
    noted = tuple(s for s in missing if note_dropped and not s.is_ours())
    missing = tuple(s for s in missing if not note_dropped or s.is_ours())
    problems = list(_lacking(text, missing, (build, tree), make))

    def why(setting: Setting) -> str:
        reasons = [found[name].reason for name in setting.names()]
        # That of the name which the option has in this release.
        reason = next((each for each in reasons if not each.startswith(ABSENT)), reasons[0])
        line = setting.lines().splitlines()[0]
        return f"{line} ({setting.origin}): {reason}{_turned_off(reason, fragments)}"

    if missing:
        listed = "; ".join(map(why, missing[:_MAX_SHOWN]))
        more = f"; and {len(missing) - _MAX_SHOWN} more" if len(missing) > _MAX_SHOWN else ""
        dropped_ones = f"{len(missing)} config option(s) did not take effect: {listed}{more}"
        remedy = "add the dependency to the fragment, or correct or drop the option"
        if any(setting.is_of_a_fragment() for setting in missing):
            remedy += "; a file of yours drops one of mepof's by `# CONFIG_… is not set`"
        problems.append((dropped_ones, f"{remedy}; or {REDUCE}" if reducible(missing) else remedy))
    if problems:
        raise WorkError(*("; ".join(parts) for parts in zip(*problems, strict=True)))
    return text, [*map(why, noted)]


def _turned_off(reason: str, fragments: Fragments) -> str:
    """Which lines turn off what an unmet dependency needs."""
    if not reason.startswith(UNMET):
        return ""
    needed = set(re.findall(r"(?<![!\w])\w+", reason.removeprefix(UNMET)))
    origins = [s.origin for s in fragments.settings if s.value == "n" and needed & {*s.names()}]
    return f" (turned off in {' and '.join(origins)})" if origins else ""


def _lacking(
    config: str, missing: Iterable[Setting], directories: Sequence[Path], make: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """What a configuration needs that is not there, each with its remedy.

    Args:
        missing: wanted options that the configuration does not have.
        directories: those in which make looks for files.
        make: the make command with all its variables.
    """
    have = {*config.splitlines()}
    wanted = {*have, *(setting.lines().rstrip() for setting in missing)}
    yield from companions.lacking(wanted)
    yield from companions.unsuitable(wanted - have, make)
    yield from outside.lacking(config, directories)


def _excused(setting: Setting, reason: str) -> bool:
    """Whether an option need not take; what a compiler or another option decides stands in every
    whole configuration of a user's."""
    return reason.startswith(setting.excuses) or (
        not setting.is_ours() and reason.endswith(_PROMPTLESS)
    )


def _gave_way(setting: Setting, found: Mapping[str, Cause], settings: Sequence[Setting]) -> bool:
    """Whether a later line chooses another option of the same choice; a user's own option gives way
    to the user's lines alone."""
    chosen = {found[name].chosen for name in setting.names()} - {""}
    return bool(chosen) and any(
        later.value != "n" and chosen & {*later.names()}
        for later in settings[settings.index(setting) + 1 :]
        if setting.is_ours() or not later.is_ours()
    )


class Cause(NamedTuple):
    """Why an option did not take effect.

    Attributes:
        reason: a phrase.
        chosen: the option that its choice went to; empty if it belongs to none.
    """

    reason: str
    chosen: str = ""


def explain(
    tree: Path, config: Path, missing: Sequence[Setting], environment: Mapping[str, str]
) -> dict[str, Cause]:
    """Why options did not take effect, by each of their names.

    kconfiglib evaluates Kconfig in the process's environment, so it runs in a child.
    """
    argv = [sys.executable, "-m", "mepof.kernel.configure", str(tree), str(config)]
    symbols = [name for s in missing for name in s.names()]
    result = run([*argv, *symbols], env={**environment, "srctree": str(tree)}, check=False)
    last = result.output.rpartition("\n")[2]
    try:
        answer: dict[str, list[str]] = json.loads(last)
    except ValueError:
        return dict.fromkeys(symbols, Cause("the tree's Kconfig could not be read to say why"))
    return {name: Cause(*each) for name, each in answer.items()}


def _came_out(symbol: Any, *, modules: bool) -> str:
    """What an option whose dependencies are met takes, and what its value came out as.

    Args:
        modules: whether the configuration can have them.
    """
    import kconfiglib

    value = symbol.str_value
    if symbol.orig_type is kconfiglib.STRING:
        return f'it takes a string, and came out as "{value}"'
    if symbol.orig_type in (kconfiglib.INT, kconfiglib.HEX):
        ranges = (
            f" from {low.str_value} to {high.str_value}"
            for low, high, condition in symbol.ranges
            if kconfiglib.expr_value(condition)
        )
        return f"it takes a number{next(ranges, '')}, and came out as {value}"
    since = "" if modules or value != "y" else ", since m needs CONFIG_MODULES=y"
    return f"its value came out as {value or 'n'}{since}"


def _explain_here(config: str, symbols: Sequence[str]) -> dict[str, Cause]:
    import kconfiglib  # slow to load, and only this child needs it

    class Kconfig(kconfiglib.Kconfig):  # type: ignore[misc]
        """Reads the words that Kconfig has gained since kconfiglib's last release."""

        def _open(self, filename: str, mode: str) -> IO[str]:
            with super()._open(filename, mode) as file:
                text = file.read()
            text = re.sub(r"^(\s+)modules$", r"\1option modules", text, flags=re.M)  # 5.16
            text = re.sub(r"^\s+transitional$", "", text, flags=re.M)  # 6.18
            # 7.0
            only_if = r"\1(\2) || !(\3)"
            text = re.sub(r"^(\s+depends on )([^#\n]+) if ([^#\n]+)", only_if, text, flags=re.M)
            return io.StringIO(text)

    kconf = Kconfig("Kconfig", warn=False, suppress_traceback=False)
    kconf.load_config(config)
    # Others are merely mentioned, such as one that a kernel no longer has.
    known = [name for name, symbol in kconf.syms.items() if symbol.nodes]

    def reason(name: str, symbol: Any, chosen: str) -> str:
        if symbol is None or not symbol.nodes:
            near = get_close_matches(name, known, n=1, cutoff=0.8)
            return ABSENT + (f"; the nearest is {near[0]}" if near else "")
        needs = kconfiglib.split_expr(symbol.direct_dep, kconfiglib.AND)
        if symbol.choice is not None:
            needs += kconfiglib.split_expr(symbol.choice.direct_dep, kconfiglib.AND)
        unmet = [
            "a test of the compiler or its tools"  # Kconfig replaces $(success,…) by its result
            if part is kconf.n
            else kconfiglib.expr_str(part)
            for part in needs
            if part is not symbol.choice and kconfiglib.expr_value(part) == 0
        ]
        if unmet:
            because = UNMET + " and ".join(dict.fromkeys(unmet))
        elif symbol.str_value != "n" and kconfiglib.expr_value(symbol.rev_dep):
            selecting = [
                kconfiglib.expr_str(part)
                for part in kconfiglib.split_expr(symbol.rev_dep, kconfiglib.OR)
                if kconfiglib.expr_value(part)
            ]
            because = "selected by " + " and ".join(selecting)
        elif symbol.choice is not None and chosen != name:
            because = f"its choice went to {chosen or 'none'}"
        else:
            because = _came_out(symbol, modules=kconf.modules.str_value == "y")
        has_prompt = any(node.prompt for node in symbol.nodes)
        return because if has_prompt else f"{because}; {_PROMPTLESS}"

    answer = {}
    for name in symbols:
        symbol = kconf.syms.get(name)
        choice = None if symbol is None else symbol.choice
        selection = None if choice is None else choice.selection
        chosen = "" if selection is None else selection.name
        answer[name] = Cause(reason(name, symbol, chosen), chosen)
    return answer


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    print()
    print(json.dumps(_explain_here(sys.argv[2], sys.argv[3:])))
