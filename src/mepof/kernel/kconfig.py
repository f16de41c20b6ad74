"""Kernel configuration from fragments, merged and then verified.

A fragment is a file of Kconfig lines under ``configs/``: ``NAME.config`` for every
architecture and ``NAME.ARCH.config`` for one. Where an option has had several names, a
line gives them all, ``CONFIG_NEW=y | CONFIG_OLD=y``, and one of them must take. What may keep an
option from taking stands behind it: ``| absent`` where some releases do not have it, and
``| unmet EXPRESSION`` where they have a dependency that may not be met. The first
fragment that says ``# base: TARGET…`` decides what the rest is laid over (``allnoconfig``,
``gki_defconfig vendor/phone.config``); one that says ``# over: NAME`` is laid over that fragment.
One that says ``# overlay: NAME`` has options of that overlay (:mod:`mepof.kernel.overlay`), and
``# load: NAME…`` names modules: guests then load these alone.

Kconfig silently drops an option whose dependencies are not met, so every line is compared with the
resulting configuration.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import IO

from mepof.errors import InputError, WorkError
from mepof.process import run

_DIRECTORY = Path(__file__).with_name("configs")
_SETTING = re.compile(
    r"^(?:CONFIG_(?P<symbol>\w+)=(?P<value>\S.*)|# CONFIG_(?P<unset>\w+) is not set)$", re.M
)
_VALUE = re.compile(r'[ynm]|-?[0-9][0-9A-Fa-f]*|0[xX][0-9A-Fa-f]+|"(?:\\.|[^"\\])*"')
# A comment after a line; a `#` may also begin a name that is off, or be in a string.
_COMMENT = re.compile(r'^((?:^#|(?<=\| )#|[^"#]|"(?:\\.|[^"\\])*")*?)(?<![|\s])\s+#.*$')
# Between the names of an option, not in a string.
_NEXT_NAME = re.compile(r' \| (?=(?:[^"]*"[^"]*")*[^"]*$)')
# The comments that name the base, and the modules that guests load.
_BASE = re.compile(r"#\s*base\s*:(.*)")
_LOAD = re.compile(r"^#\s*load\s*:(.*)$", re.M)
_SYMBOL = re.compile(r"^\s*(?:menu)?config\s+(\w+)\s*$", re.M)
# Why an option did not take, and what lines call it that expect it.
_ABSENT = "this kernel has no such option"
_UNMET = "unmet dependency "
_PROMPTLESS = "it has no prompt: only another option can set it"
_MAX_SHOWN = 20
# Options that name a file of certificates, without which the compilation would end.
_FILES = re.compile(
    r'^CONFIG_(MODULE_SIG_KEY|SYSTEM_TRUSTED_KEYS|SYSTEM_REVOCATION_KEYS)="(?!pkcs11:)(.+)"$', re.M
)
_GENERATED = "certs/signing_key.pem"


@dataclass(frozen=True)
class Setting:
    """One wanted option, without ``CONFIG_``; ``n`` where it must not be set.

    Attributes:
        origin: file and line that want it.
        otherwise: the same option under its names in other releases.
        excuses: reasons for which it need not take.
    """

    symbol: str
    value: str
    origin: str
    otherwise: tuple[Setting, ...] = ()
    excuses: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """All the names of the option."""
        return (self.symbol, *(other.symbol for other in self.otherwise))

    def lines(self) -> str:
        """As Kconfig writes it, with all its names; Kconfig ignores those that it does not have."""
        if self.value == "n":
            own = f"# CONFIG_{self.symbol} is not set\n"
        else:
            own = f"CONFIG_{self.symbol}={self.value}\n"
        return own + "".join(other.lines() for other in self.otherwise)


@dataclass(frozen=True)
class Fragments:
    """Merged fragments: the base targets and the settings, later ones winning.

    Attributes:
        base: targets of Kbuild, separated by blanks.
        base_origin: file and line that name them; empty for the default.
    """

    base: str
    settings: tuple[Setting, ...]
    base_origin: str


def names() -> tuple[str, ...]:
    """The fragments that come with mepof."""
    return tuple(sorted({path.name.split(".")[0] for path in _DIRECTORY.glob("*.config")}))


def paths(name: str, arch: str) -> tuple[Path, ...]:
    """The files of one of our fragments: those below it, that for every architecture, that for
    this one.

    Raises:
        InputError: there is none of that name.
    """
    if name not in names():
        near = get_close_matches(name, names(), n=1)
        hint = f"did you mean `{near[0]}`?" if near else "known: " + ", ".join(names())
        raise InputError(f"unknown config `{name}`", hint)
    general = _DIRECTORY / f"{name}.config"
    under = re.search(r"^# over: (\S+)$", general.read_text(encoding="utf-8"), re.M)
    both = (general, _DIRECTORY / f"{name}.{arch}.config")
    below = paths(under[1], arch) if under else ()
    return (*below, *(path for path in both if path.is_file()))


def below(name: str) -> tuple[str, ...]:
    """The fragments that one of ours is laid over."""
    found = dict.fromkeys(path.name.partition(".")[0] for path in paths(name, ""))
    return tuple(each for each in found if each != name)


def is_apart(name: str, chosen: Iterable[str]) -> bool:
    """Whether some of our fragments turn on no option that another one adds to what it is laid
    over, so that they have nothing of what that one is for."""
    added = _turned_on([name]) - _turned_on(below(name))
    return added.isdisjoint(_turned_on(chosen))


def is_minimal(chosen: Iterable[str]) -> bool:
    """Whether some of our fragments, laid over each other, begin with a kernel without options,
    so that it has the devices of QEMU's smallest machine alone."""
    return _ours(chosen).base == "allnoconfig"


def _ours(chosen: Iterable[str]) -> Fragments:
    """Some of our fragments, laid over each other."""
    return merge([path for name in chosen for path in paths(name, "")])


def _turned_on(chosen: Iterable[str]) -> set[str]:
    """The names of the options that some of our fragments turn on."""
    merged = _ours(chosen)
    return {name for each in merged.settings if each.value != "n" for name in each.names()}


def overlays(files: Iterable[Path]) -> tuple[str, ...]:
    """The overlays that some of our fragments name, each once."""
    found = (re.findall(r"^# overlay: (\S+)$", _read(path), re.M) for path in files)
    return tuple(dict.fromkeys(name for names in found for name in names))


def loaded(files: Iterable[Path]) -> frozenset[str] | None:
    """The modules that fragments want loaded in guests; None if none says so: all that are built.

    Returns:
        Their names as the kernel has them, with underscores.
    """
    lines = [found for path in files for found in _LOAD.findall(_read(path))]
    return frozenset(" ".join(lines).replace("-", "_").split()) if lines else None


def digest(files: Iterable[Path]) -> str:
    """SHA-256 over the contents of fragments."""
    return sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


def merge(files: Sequence[Path], extra: Iterable[str] = ()) -> Fragments:
    """Read and merge fragments.

    Args:
        extra: further lines, such as an algorithm's, which win over the files.

    Raises:
        InputError: a file cannot be read, or a line is not a Kconfig line or its value none.
    """
    base, base_origin = "defconfig", ""
    merged: dict[str, Setting] = {}
    # Whatever name an option goes by, the last line that has it says what is wanted.
    wanted_by: dict[str, str] = {}
    sources = [(str(path), _read(path).splitlines()) for path in files]
    for origin, lines in [*sources, ("mepof", list(extra))]:
        for number, whole in enumerate(map(str.strip, lines), 1):
            # Kconfig has none after a line and would take it as part of the value.
            line = _COMMENT.sub(r"\1", whole)
            if (named := _BASE.fullmatch(line)) and not base_origin:
                base, base_origin = named[1].strip(), f"{origin}:{number}"
                if not base:
                    raise InputError(
                        f"{base_origin}: `{line}` names no configuration",
                        "write it like `# base: defconfig`",
                    )
            setting = _parse(line, f"{origin}:{number}")
            if setting is not None:
                for name in setting.names():
                    if wanted_by.get(name, setting.symbol) != setting.symbol:
                        merged.pop(wanted_by[name], None)
                merged[setting.symbol] = setting
                wanted_by |= dict.fromkeys(setting.names(), setting.symbol)
    return Fragments(base, tuple(merged.values()), base_origin)


def stated_in(text: str) -> Iterator[tuple[str, str]]:
    """The options of a configuration's text without ``CONFIG_``, and their values; ``n`` where one
    is not set. Other lines are passed over."""
    for found in _SETTING.finditer(text):
        yield found["symbol"] or found["unset"], found["value"] or "n"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the config {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a Kconfig fragment: it is not text") from error


def _parse(line: str, origin: str) -> Setting | None:
    parts = [part.strip() for part in _NEXT_NAME.split(line)]
    excuses = tuple(excuse for part in parts[1:] if (excuse := _excuse(part)) is not None)
    names = [_SETTING.match(part) for part in parts[: len(parts) - len(excuses)]]
    settings = [
        Setting(found["symbol"] or found["unset"], found["value"] or "n", origin)
        for found in names
        if found is not None
    ]
    if len(settings) < len(names):
        if line and not line.startswith("#"):
            raise InputError(
                f"{origin}: `{line}` is not a Kconfig line", "write it like CONFIG_NET=y"
            )
        return None
    for each in settings:
        if not _VALUE.fullmatch(each.value):
            raise InputError(
                f"{origin}: `{each.value}` is not a value of CONFIG_{each.symbol}",
                "write y, n, m, a number, or a string in double quotes",
            )
    return replace(settings[0], otherwise=tuple(settings[1:]), excuses=excuses)


def _excuse(part: str) -> str | None:
    """The reason that a part of a line accepts."""
    if part == "absent":
        return _ABSENT
    unmet = part.removeprefix("unmet ").strip()
    return _UNMET + unmet if unmet and part.startswith("unmet ") else None


def may_have_modules(files: Sequence[Path]) -> bool:
    """Whether a configuration of these fragments can have modules, before Kconfig is asked."""
    return _may_have("MODULES", merge(files), "allnoconfig")


def may_have_btf(fragments: Fragments) -> bool:
    """Likewise BTF, which pahole writes: by default, no kernel has it; a defconfig may."""
    return _may_have("DEBUG_INFO_BTF", fragments, "allnoconfig", "alldefconfig")


def _may_have(symbol: str, fragments: Fragments, *without: str) -> bool:
    """Whether fragments say so of an option, or may without saying it, unless on these bases."""
    wanted = [each.value for each in fragments.settings if each.symbol == symbol]
    return wanted == ["y"] if wanted else fragments.base not in without


def has_modules(config: str) -> bool:
    """Whether a finished ``.config`` allows modules."""
    return "CONFIG_MODULES=y" in config.splitlines()


def dropped(wanted: Iterable[Setting], config: str) -> tuple[Setting, ...]:
    """The settings that a finished ``.config`` does not have."""
    have = dict(re.findall(r"^CONFIG_(\w+)=(.*)$", config, re.M))
    return tuple(setting for setting in wanted if not _took(setting, have))


def symbols(tree: Path) -> frozenset[str]:
    """Every option that a tree's Kconfig files define, for any architecture; also of a directory
    outside of the tree, if a link leads there."""
    found: set[str] = set()
    root = tree.resolve()
    outside: set[Path] = set()

    def is_new(link: Path) -> bool:
        real = link.resolve()
        new = not (real in outside or real.is_relative_to(root) or root.is_relative_to(real))
        outside.add(real)
        return new

    for directory, below, files in os.walk(tree, followlinks=True):
        paths = [Path(directory, name) for name in below]
        below[:] = [path.name for path in paths if not path.is_symlink() or is_new(path)]
        if directory == str(tree):
            # Large, and without options of kernels.
            below[:] = [name for name in below if name not in ("Documentation", "tools", ".git")]
        for name in files:
            if name.startswith("Kconfig"):
                text = (Path(directory) / name).read_text(encoding="utf-8", errors="replace")
                found.update(_SYMBOL.findall(text))
    return frozenset(found)


def unknown(wanted: Iterable[Setting], known: Set[str]) -> tuple[Setting, ...]:
    """The settings that a kernel must have and has under none of their names.

    Args:
        known: the kernel's options.
    """
    return tuple(
        setting
        for setting in wanted
        if setting.value != "n"
        and _ABSENT not in setting.excuses
        and known.isdisjoint(setting.names())
    )


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
) -> str:
    """Write ``build/.config`` and return its text.

    Args:
        tree: the source, or a view of it.
        make: the make command with all its variables, to which a target is added.
        environment: variables for Kconfig's own macros when a drop is explained.
        runner: runs a program like :func:`mepof.process.run`.

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
    reasons = explain(tree, build / ".config", missing, environment) if missing else {}
    missing = tuple(s for s in missing if not _excused(s, reasons[s.symbol]))
    problems = list(_lacking(text, missing, (build, tree)))
    if missing:
        listed = "; ".join(
            f"{s.lines().splitlines()[0]} ({s.origin}): {reasons[s.symbol]}"
            f"{_turned_off(reasons[s.symbol], fragments)}"
            for s in missing[:_MAX_SHOWN]
        )
        more = f"; and {len(missing) - _MAX_SHOWN} more" if len(missing) > _MAX_SHOWN else ""
        dropped_ones = f"{len(missing)} config option(s) did not take effect: {listed}{more}"
        problems.append((dropped_ones, "add the dependency to the fragment, or drop the option"))
    if problems:
        raise WorkError(*("; ".join(parts) for parts in zip(*problems, strict=True)))
    return text


def _turned_off(reason: str, fragments: Fragments) -> str:
    """Which lines turn off what an unmet dependency needs."""
    if not reason.startswith(_UNMET):
        return ""
    needed = set(re.findall(r"(?<![!\w])\w+", reason.removeprefix(_UNMET)))
    origins = [s.origin for s in fragments.settings if s.value == "n" and needed & {*s.names()}]
    return f" (turned off in {' and '.join(origins)})" if origins else ""


def _lacking(
    config: str, missing: Iterable[Setting], directories: Sequence[Path]
) -> Iterator[tuple[str, str]]:
    """What a configuration needs that is not there, each with its remedy.

    Args:
        missing: wanted options that the configuration does not have.
        directories: those in which make looks for files.
    """
    wanted = {*config.splitlines(), *(setting.lines().rstrip() for setting in missing)}
    # Before 6.12, the link is the first to notice.
    if "CONFIG_DEBUG_INFO_BTF=y" in wanted and shutil.which("pahole") is None:
        yield (
            "CONFIG_DEBUG_INFO_BTF needs pahole, which is not installed",
            "apt-get install pahole",
        )
    for symbol, name in _FILES.findall(config):
        if name != _GENERATED and not any((each / name).is_file() for each in directories):
            default = _GENERATED if symbol == "MODULE_SIG_KEY" else ""
            where = "does not exist" if name.startswith("/") else "is not in the tree"
            yield (
                f"CONFIG_{symbol} names {name}, which {where}",
                f'write CONFIG_{symbol}="{default}", or the absolute path of a file',
            )


def _excused(setting: Setting, reason: str) -> bool:
    """Whether an option need not take; what a compiler or another option decides stands in every
    whole configuration of a user's."""
    ours = setting.origin.startswith((f"{_DIRECTORY}{os.sep}", "mepof:"))
    return reason.startswith(setting.excuses) or (not ours and reason.endswith(_PROMPTLESS))


def explain(
    tree: Path, config: Path, missing: Sequence[Setting], environment: Mapping[str, str]
) -> dict[str, str]:
    """Why options did not take effect: one phrase for each symbol.

    kconfiglib evaluates Kconfig in the process's environment, so it runs in a child.
    """
    argv = [sys.executable, "-m", "mepof.kernel.kconfig", str(tree), str(config)]
    symbols = [s.symbol for s in missing]
    result = run([*argv, *symbols], env={**environment, "srctree": str(tree)}, check=False)
    last = result.output.rpartition("\n")[2]
    try:
        answer: dict[str, str] = json.loads(last)
    except ValueError:
        return dict.fromkeys(symbols, "the tree's Kconfig could not be read to say why")
    return answer


def _explain_here(config: str, symbols: Sequence[str]) -> dict[str, str]:
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
    answer = {}
    for name in symbols:
        symbol = kconf.syms.get(name)
        if symbol is None or not symbol.nodes:
            near = get_close_matches(name, kconf.syms, n=1, cutoff=0.8)
            hint = f"; the nearest is {near[0]}" if near else ""
            answer[name] = _ABSENT + hint
            continue
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
            answer[name] = _UNMET + " and ".join(dict.fromkeys(unmet))
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
        else:
            answer[name] = f"its value came out as {symbol.str_value or 'n'}"
        if not any(node.prompt for node in symbol.nodes):
            answer[name] += f"; {_PROMPTLESS}"
    return answer


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    print()
    print(json.dumps(_explain_here(sys.argv[2], sys.argv[3:])))
