"""Kernel configuration from fragments, merged and then verified.

A fragment is a file of Kconfig lines under ``configs/``: ``NAME.config`` for every
architecture and ``NAME.ARCH.config`` for one. Where an option has had several names, a
line gives them all, ``CONFIG_NEW=y | CONFIG_OLD=y``, and one of them must take. What may keep an
option from taking stands behind it: ``| absent`` where some releases do not have it, and
``| unmet EXPRESSION`` where they have a dependency that may not be met. The first
fragment that says ``# base: TARGET…`` decides what the rest is laid over (``allnoconfig``,
``gki_defconfig vendor/phone.config``); without one, it is ``defconfig``, or ``alldefconfig`` if the
first file is a defconfig itself. One that says ``# over: NAME`` is laid over that fragment.
One that says ``# overlay: NAME`` has options of that overlay (:mod:`mepof.kernel.overlay`), and
``# load: NAME…`` names modules: guests then load these alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path

from mepof.arch import Arch
from mepof.disk import existing
from mepof.errors import InputError

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
# Targets of Kbuild that are interactive, or not reproducible, or need a configuration themselves.
_NO_BASES = frozenset(
    (
        *("config", "gconfig", "menuconfig", "nconfig", "oldconfig", "xconfig"),
        *("localmodconfig", "localyesconfig", "randconfig"),
        *("helpnewconfig", "listnewconfig", "savedefconfig", "syncconfig"),
    )
)
# An option; of which kind it is, and whether it has a prompt, which stands before its help.
_SYMBOL = re.compile(
    r"^\s*(?:(?:menu)?config\s+(\w+)\s*$"
    r"|(?:(?:def_)?(bool|tristate|string|int|hex)|prompt)\b([ \t]*[\"'])?"
    r"|(?:-*help-*|choice)\s*$)",
    re.M,
)
# What an option of a kind takes, and the words for that.
_KINDS = {
    "bool": ("y or n", re.compile(r"[yn]")),
    "tristate": ("y, m or n", re.compile(r"[ymn]")),
    "string": ("a string in double quotes", re.compile(r'".*"')),
    "int": ("a decimal number", re.compile(r"-?[0-9]+")),
    "hex": ("a hexadecimal number", re.compile(r"(?:0[xX])?[0-9A-Fa-f]+")),
}
# What no text has.
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1a\x7f]")
# Which architecture a file is for, in the first lines of a whole configuration; or which, by a
# comment.
_ARCH = re.compile(r"^# (?:Linux/(\w+) \S+ Kernel Configuration\r?$|arch: ([^#\r\n]*))", re.M)
# How configurations are named that are the kernel's own.
_TREES = re.compile(r"[^.].*config|config")
# Such a file states what differs from Kconfig's own defaults, which kbuild lays it over.
_DEFCONFIG = re.compile(r"(.*[._-])?defconfig")
# How compressed files begin, such as /proc/config.gz, and what prints their content.
_COMPRESSED = {
    b"\x1f\x8b": "zcat",
    b"\xfd7zXZ": "xzcat",
    b"\x28\xb5\x2f\xfd": "zstdcat",
    b"BZh": "bzcat",
}
# What of Android's build is no configuration, by the file's name or the line, and what to do.
_OF_ANDROID = (
    (
        re.compile(r"build\.config"),
        "it is of Android's build: name what its DEFCONFIG says, by `# base: NAME`",
    ),
    (
        re.compile(r"BUILD\.bazel:|BUILD:|[^:]*\.bzl:"),
        "it is of Android's build, Kleaf: name the defconfig and the fragments that its"
        " kernel_build says, by `# base: NAME NAME`",
    ),
    (
        re.compile(r".*: \[\w*symbol_list\]"),
        "it lists symbols that modules need, and no options: leave it out, or list their names"
        " alone in the file that CONFIG_UNUSED_KSYMS_WHITELIST names",
    ),
)
# Where a line is from that an algorithm or an option of a program needs.
_MEPOF = "set by mepof"
#: Options of a kernel, and of which kinds each is; none of one that has no prompt, since a
#: configuration does not decide its value.
Kinds = Mapping[str, Collection[str]]
# Why an option did not take, and what lines call it that expect it.
ABSENT = "this kernel has no such option"
UNMET = "unmet dependency "
#: With more lines that do not take, a configuration is rather one of another kernel.
MANY = 20
#: What to do about it.
REDUCE = "take what the kernel has of it: `set dropped note.` (docs/configs.md)"


@dataclass(frozen=True)
class Setting:
    """One wanted option, without ``CONFIG_``; ``n`` where it must not be set.

    Attributes:
        origin: file and line that want it, or that mepof does.
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

    def is_ours(self) -> bool:
        """Whether a fragment or an algorithm of mepof's wants it, not a file of the user's."""
        return self.is_of_a_fragment() or self.origin == _MEPOF

    def is_of_a_fragment(self) -> bool:
        """Whether a fragment of mepof's wants it, which the user's files are laid over."""
        return self.origin.startswith(f"{_DIRECTORY}{os.sep}")


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

    @property
    def base_by_name(self) -> str | None:
        """The base that no content of the fragments decides, but the name of the first."""
        return None if self.base_origin or self.base == "defconfig" else self.base

    def values(self) -> dict[str, str]:
        """What the settings say, by every name that an option goes by."""
        return {name: each.value for each in self.settings for name in each.names()}

    @property
    def default(self) -> str:
        """What an option is that Kconfig turns on unless a configuration says otherwise, and that
        no setting names."""
        return "n" if self.base == "allnoconfig" else "y"


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
        hint = trees(name) or hint
        raise InputError(f"unknown config `{name}`", hint)
    general = _DIRECTORY / f"{name}.config"
    under = re.search(r"^# over: (\S+)$", general.read_text(encoding="utf-8"), re.M)
    both = (general, _DIRECTORY / f"{name}.{arch}.config")
    below = paths(under[1], arch) if under else ()
    return (*below, *(path for path in both if path.is_file()))


def reducible(missing: Iterable[Setting]) -> bool:
    """Whether very many of the options that a kernel does not have are the user's, which alone need
    not take effect (:data:`REDUCE`)."""
    return sum(not each.is_ours() for each in missing) > MANY


def trees(name: str) -> str | None:
    """What to write where a configuration is named that is a file here, or that a kernel may have
    itself, such as ``tinyconfig``."""
    if (here := existing(name)) and here.is_file():
        return f"a file of yours is named by a path: `./{name}`"
    if _TREES.fullmatch(name) is None:
        return None
    return f"one of the kernel's own is named in a file of yours: a line `# base: {name}`"


def check_arch(files: Iterable[Path], arch: Arch) -> None:
    """Refuse a whole configuration of another architecture, and lines for another one.

    Raises:
        InputError: one is, or cannot be read.
    """
    for path in files:
        found = _ARCH.search(_read(path))
        named = re.findall(r"[^\s,]+", found[1] or found[2]) if found else []
        cpu = arch.cpu if arch.machine else None  # a process on x86-64 is not for x86-64
        if named and {arch.name, arch.make, arch.source, cpu, arch.debian}.isdisjoint(named):
            raise InputError(
                f"{path} is a configuration for {', '.join(named)}, and the kernel is for"
                f" {arch.name}",
                "correct the architecture (`set arch`, --arch), or name another file",
            )


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
    is_defconfig = files and _DEFCONFIG.fullmatch(files[0].name)
    base, base_origin = "alldefconfig" if is_defconfig else "defconfig", ""
    merged: dict[str, Setting] = {}
    # Whatever name an option goes by, the last line that has it says what is wanted.
    wanted_by: dict[str, str] = {}
    sources = [(str(path), _read(path).splitlines()) for path in files]
    for origin, lines in [*sources, (_MEPOF, list(extra))]:
        for number, whole in enumerate(map(str.strip, lines), 1):
            # Kconfig has none after a line and would take it as part of the value.
            line = _COMMENT.sub(r"\1", whole)
            where = origin if origin == _MEPOF else f"{origin}:{number}"
            if (named := _BASE.fullmatch(line)) and not base_origin:
                base, base_origin = named[1].strip(), where
                if not base:
                    raise InputError(
                        f"{base_origin}: `{line}` names no configuration",
                        "write it like `# base: defconfig`",
                    )
                if unusable := _NO_BASES & {*base.split()}:
                    raise InputError(
                        f"{base_origin}: `{min(unusable)}` is interactive or not reproducible",
                        "name a defconfig, or write what it gave into a file: `make savedefconfig`",
                    )
            setting = _parse(line, where)
            if setting is not None:
                # Of the options of a choice, Kconfig takes the last one.
                for name in setting.names():
                    merged.pop(wanted_by.get(name, name), None)
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
        data = path.read_bytes()
    except OSError as error:
        is_named = path.name.endswith("defconfig") and not path.is_absolute()
        remedy = trees(path.as_posix()) if is_named else None
        raise InputError(f"the config {path} cannot be read: {error.strerror}", remedy) from error
    for magic, reader in _COMPRESSED.items():
        if data.startswith(magic):
            raise InputError(
                f"the config {path} is compressed",
                f"decompress it: `{reader} {path} >./my.config`, and name ./my.config",
            )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if _BINARY.search(data):
            raise InputError(f"{path} is not a Kconfig fragment: it is not text") from error
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: what stands there is not UTF-8",
            f"convert a copy: `iconv -f latin1 -t utf-8 {path} >./my.config`",
        ) from error


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
            wrong = f"{Path(origin).name}: {line}"
            known = (remedy for pattern, remedy in _OF_ANDROID if pattern.match(wrong))
            raise InputError(
                f"{origin}: `{line}` is not a Kconfig line",
                next(known, "write it like CONFIG_NET=y"),
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
        return ABSENT
    unmet = part.removeprefix("unmet ").strip()
    return UNMET + unmet if unmet and part.startswith("unmet ") else None


def may_have_modules(files: Sequence[Path]) -> bool:
    """Whether a configuration of these fragments can have modules, before Kconfig is asked."""
    return may_have("MODULES", merge(files), "allnoconfig")


def may_have(symbol: str, fragments: Fragments, *without: str) -> bool:
    """Whether fragments say so of an option, or may without saying it, unless on these bases."""
    wanted = [each.value for each in fragments.settings if each.symbol == symbol]
    return wanted == ["y"] if wanted else fragments.base not in without


def has_modules(config: str) -> bool:
    """Whether a finished ``.config`` allows modules."""
    return "CONFIG_MODULES=y" in config.splitlines()


def symbols(tree: Path) -> Kinds:
    """Every option that a tree's Kconfig files define, for any architecture, and its kinds; also of
    a directory outside of the tree, if a link leads there."""
    found: dict[str, set[str]] = {}
    prompted: set[str] = set()
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
            # Large, and without options of kernels; quilt has files before its patches in `.pc`.
            without = ("Documentation", "tools")
            below[:] = [name for name in below if name not in without and name[0] != "."]
        for name in files:
            if name.startswith("Kconfig"):
                text = (Path(directory) / name).read_text(encoding="utf-8", errors="replace")
                _read_kinds(text, found, prompted)
    return {name: kinds if name in prompted else () for name, kinds in found.items()}


def _read_kinds(text: str, found: dict[str, set[str]], prompted: set[str]) -> None:
    """Add the options that a Kconfig file defines, and those that have a prompt in it."""
    option = ""
    for name, kind, prompt in _SYMBOL.findall(text):
        if name:
            option = name
            found.setdefault(option, set())
        elif not (kind or prompt):
            option = ""  # what follows is prose, or of a choice, up to the next option
        elif option:
            if kind:
                found[option].add(kind)
            if prompt:
                prompted.add(option)


def unknown(wanted: Iterable[Setting], known: Collection[str]) -> tuple[Setting, ...]:
    """The settings that a kernel must have and has under none of their names.

    Args:
        known: the kernel's options.
    """
    return tuple(
        setting
        for setting in wanted
        if setting.value != "n"
        and ABSENT not in setting.excuses
        and not any(name in known for name in setting.names())
    )


def unfit(wanted: Iterable[Setting], known: Kinds) -> Iterator[tuple[Setting, str]]:
    """The settings whose value the option does not take under any of its names, and what it takes.

    Args:
        known: the kernel's options, and their kinds.
    """
    for setting in wanted:
        takes = [
            (*_KINDS[kind], each.value)
            for each in (setting, *setting.otherwise)
            for kind in sorted(known.get(each.symbol, ()))
        ]
        fits = (value == "n" or pattern.fullmatch(value) for _, pattern, value in takes)
        if takes and not any(fits):
            yield setting, " or ".join(dict.fromkeys(words for words, _, _ in takes))
