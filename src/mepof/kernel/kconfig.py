"""Kernel configuration from fragments, merged and then verified.

A fragment is a file of Kconfig lines under ``configs/``: ``NAME.config`` for every
architecture and ``NAME.ARCH.config`` for one. A line may end in ``# since 6.9`` or
``# until 6.8`` where an option has changed its name. The first fragment that says
``# base: TARGET`` decides what the rest is laid over (``allnoconfig``, ``defconfig``).

Kconfig drops an option whose dependencies are not met without a word, so every line is
compared with the configuration that came out.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path

from mepof.errors import InputError, WorkError
from mepof.kernel.source import KernelVersion
from mepof.process import run

_DIRECTORY = Path(__file__).with_name("configs")
_LINE = re.compile(
    r"^(?:(?P<set>CONFIG_\w+)=(?P<value>\S.*?)|# (?P<unset>CONFIG_\w+) is not set)"
    r"(?:\s+# (?P<bound>since|until) (?P<major>\d+)\.(?P<minor>\d+))?$"
)
_SHOWN = 5


@dataclass(frozen=True)
class Setting:
    """One wanted option, without ``CONFIG_``; ``n`` where it must not be set."""

    symbol: str
    value: str
    origin: str

    def line(self) -> str:
        """As Kconfig writes it."""
        if self.value == "n":
            return f"# CONFIG_{self.symbol} is not set"
        return f"CONFIG_{self.symbol}={self.value}"


@dataclass(frozen=True)
class Fragments:
    """Merged fragments: the base target and the settings, later ones winning."""

    base: str
    settings: tuple[Setting, ...]


def names() -> tuple[str, ...]:
    """The fragments that come with mepof."""
    return tuple(sorted({path.name.split(".")[0] for path in _DIRECTORY.glob("*.config")}))


def paths(name: str, arch: str) -> tuple[Path, ...]:
    """The files of one of our fragments: for every architecture and for this one.

    Raises:
        InputError: there is none of that name.
    """
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        hint = f"did you mean `{near[0]}`?" if near else "known: " + ", ".join(names())
        raise InputError(f"unknown config `{name}`", hint)
    both = (_DIRECTORY / f"{name}.config", _DIRECTORY / f"{name}.{arch}.config")
    return tuple(path for path in both if path.is_file())


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over the contents of fragments."""
    return sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def merge(files: Sequence[Path], version: KernelVersion, extra: Iterable[str] = ()) -> Fragments:
    """Read and merge fragments for one kernel release.

    Args:
        extra: further lines, such as an algorithm's, which win over the files.

    Raises:
        InputError: a line is no Kconfig line.
    """
    base = "defconfig"
    based = False
    merged: dict[str, Setting] = {}
    sources = [(str(path), path.read_text(encoding="utf-8").splitlines()) for path in files]
    for origin, lines in [*sources, ("mepof", list(extra))]:
        for number, line in enumerate(map(str.strip, lines), 1):
            if line.startswith("# base: ") and not based:
                base, based = line.removeprefix("# base: "), True
            setting = _parse(line, f"{origin}:{number}", version)
            if setting is not None:
                merged[setting.symbol] = setting
    return Fragments(base, tuple(merged.values()))


def _parse(line: str, origin: str, version: KernelVersion) -> Setting | None:
    found = _LINE.match(line)
    if found is None:
        if line and not line.startswith("#"):
            raise InputError(
                f"{origin}: `{line}` is not a Kconfig line", "write it like CONFIG_NET=y"
            )
        return None
    if found["bound"]:
        reached = version.at_least(int(found["major"]), int(found["minor"]))
        exactly = (version.version, version.patchlevel) == (
            int(found["major"]),
            int(found["minor"]),
        )
        if not (reached if found["bound"] == "since" else not reached or exactly):
            return None
    symbol = (found["set"] or found["unset"]).removeprefix("CONFIG_")
    return Setting(symbol, found["value"] or "n", origin)


def dropped(wanted: Iterable[Setting], config: str) -> tuple[Setting, ...]:
    """The settings that a finished ``.config`` does not hold."""
    have = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", config, re.M))
    return tuple(s for s in wanted if have.get(s.symbol, "n") != s.value)


def configure(
    tree: Path,
    build: Path,
    fragments: Fragments,
    make: Sequence[str],
    environment: Mapping[str, str],
    runner: Callable[..., object],
) -> str:
    """Write ``build/.config`` and return its text.

    Args:
        tree: the source, or a view of it.
        make: the make command with all its variables, to which a target is added.
        environment: variables for Kconfig's own macros when a drop is explained.
        runner: runs a program like :func:`mepof.process.run`.

    Raises:
        WorkError: an option did not take; it is named together with the dependency
            that is not met.
    """
    build.mkdir(parents=True, exist_ok=True)
    wanted = build / ".mepof-config"
    wanted.write_text("".join(s.line() + "\n" for s in fragments.settings), encoding="utf-8")
    if fragments.base.startswith("all"):
        runner([*make, fragments.base], env={"KCONFIG_ALLCONFIG": str(wanted)})
    else:
        runner([*make, fragments.base])
        with (build / ".config").open("a", encoding="utf-8") as file:
            file.write(wanted.read_text(encoding="utf-8"))
        runner([*make, "olddefconfig"])
    text = (build / ".config").read_text(encoding="utf-8")
    missing = dropped(fragments.settings, text)
    if missing:
        reasons = explain(tree, build / ".config", missing, environment)
        listed = "; ".join(
            f"{s.line()} ({s.origin}): {reasons[s.symbol]}" for s in missing[:_SHOWN]
        )
        more = f"; and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise WorkError(
            f"{len(missing)} config option(s) did not take: {listed}{more}",
            "add the dependency to the fragment, or drop the option",
        )
    return text


def explain(
    tree: Path, config: Path, missing: Sequence[Setting], environment: Mapping[str, str]
) -> dict[str, str]:
    """Why options did not take: one phrase for each symbol.

    kconfiglib evaluates Kconfig in the process's environment, so it runs in a child.
    """
    argv = [sys.executable, "-m", "mepof.kernel.kconfig", str(tree), str(config)]
    symbols = [s.symbol for s in missing]
    result = run(
        [*argv, *symbols], env={**environment, "srctree": str(tree)}, cwd=tree, check=False
    )
    last = result.output.rpartition("\n")[2]
    try:
        answer: dict[str, str] = json.loads(last)
    except ValueError:
        return dict.fromkeys(symbols, "the tree's Kconfig could not be read to say why")
    return answer


def _explain_here(config: str, symbols: Sequence[str]) -> dict[str, str]:
    import kconfiglib  # slow to load, and only this child needs it

    kconf = kconfiglib.Kconfig("Kconfig", warn=False, suppress_traceback=False)
    kconf.load_config(config)
    answer = {}
    for name in symbols:
        symbol = kconf.syms.get(name)
        if symbol is None or not symbol.nodes:
            near = get_close_matches(name, kconf.syms, n=1, cutoff=0.8)
            hint = f"; the nearest is {near[0]}" if near else ""
            answer[name] = "this kernel has no such option" + hint
            continue
        unmet = [
            kconfiglib.expr_str(part)
            for part in kconfiglib.split_expr(symbol.direct_dep, kconfiglib.AND)
            if kconfiglib.expr_value(part) == 0
        ]
        if unmet:
            answer[name] = "unmet dependency " + " and ".join(dict.fromkeys(unmet))
        elif symbol.str_value != "n" and kconfiglib.expr_value(symbol.rev_dep):
            selecting = [
                kconfiglib.expr_str(part)
                for part in kconfiglib.split_expr(symbol.rev_dep, kconfiglib.OR)
                if kconfiglib.expr_value(part)
            ]
            answer[name] = "selected by " + " and ".join(selecting)
        elif symbol.choice is not None and symbol.choice.selection is not symbol:
            chosen = symbol.choice.selection
            answer[name] = f"its choice went to {chosen.name if chosen else 'none'}"
        elif not any(node.prompt for node in symbol.nodes):
            answer[name] = "it has no prompt: only another option can set it"
        else:
            answer[name] = f"its value came out as {symbol.str_value or 'n'}"
    return answer


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    print()
    print(json.dumps(_explain_here(sys.argv[2], sys.argv[3:])))
