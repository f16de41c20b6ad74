"""What a profile is worth on another source, before anything is built.

The functions that have samples are looked up in the files that differ between the two trees, and
their code is compared without comments and layout. What a function includes (macros, structures)
and the configuration are not looked at: the drift of the first build is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from filecmp import cmp
from functools import cached_property
from hashlib import md5
from math import fsum
from pathlib import Path
from typing import Literal

from mepof import _engine
from mepof.errors import InputError
from mepof.kernel.functions import definitions, source_name, symbol_names

# What no kernel is made of.
_ASIDE = frozenset({".git", "Documentation", "tools", "samples", "scripts"})
# How many functions say what a profile is of.
_HOTTEST = 20
# Where a kernel spends its time.
_CORE = frozenset({"kernel", "mm", "fs", "lib", "net", "arch", "block", "security", "include"})
# More functions than any kernel has.
_ALL = 1 << 30

_CALL = re.compile(r"\b(\w+)\s*\(")

#: ``renamed``: moved, but a profile's name of it has the file that it was in.
State = Literal["changed", "moved", "renamed", "gone"]


@dataclass(frozen=True)
class Sampled:
    """A function with samples.

    Attributes:
        name: of its symbol; in a profile with MD5 names, the decimal hash of it.
        source: its file where the profile says so, as the compiler saw it.
        share: its part of all samples, in percent, without that of what was inlined.
    """

    name: str
    source: str | None
    share: float

    @property
    def unit(self) -> str | None:
        """That file in the tree."""
        return None if self.source is None else self.source.removeprefix("../")


@dataclass(frozen=True)
class Affected:
    """A function with samples whose code is not the same in the new tree.

    Attributes:
        file: of the old tree.
        share: in percent of all samples.
        units: the C files of the new tree that are compiled with it; empty where that is unknown.
    """

    name: str
    file: str
    state: State
    share: float
    units: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """How much of a profile is of code that has changed.

    Attributes:
        functions: with samples.
        affected: those whose code is not the same, the largest share first.
        differing: how many C files of the old tree are not in the new one as they were.
        callers: the C files of the new tree with a function with samples that calls a function of a
            header which changed: a compiler inlines small ones before it counts.
    """

    functions: int
    affected: tuple[Affected, ...]
    differing: int
    callers: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[Affected, ...]:
        """The functions that have changed or are gone; what has moved costs nothing."""
        return tuple(each for each in self.affected if each.state != "moved")

    @property
    def changed_percent(self) -> float:
        """The share of samples in these."""
        return fsum(each.share for each in self.changed)

    @property
    def units(self) -> tuple[str, ...]:
        """The C files that are compiled with one of these or with a call of one, in alphabetical
        order."""
        found = {unit for each in self.changed for unit in each.units}
        return tuple(sorted(found.union(self.callers)))

    @property
    def unknown_percent(self) -> float:
        """The share of samples in these of which no such file is known."""
        return fsum(each.share for each in self.changed if not each.units)

    @property
    def files(self) -> Mapping[str, float]:
        """The share of samples in changed functions by file, the largest first."""
        found: dict[str, float] = {}
        for each in self.affected:
            found[each.file] = found.get(each.file, 0.0) + each.share
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        count = len(self.changed)
        text = f"{self.changed_percent:.1f} % of samples are in {count} functions that changed"
        named = [f"{a.name} of {a.file} {a.share:.1f} %" for a in self.affected[:3]]
        return f"{text}: {', '.join(named)}" if named else text


def sampled_functions(profile: Path) -> tuple[Sampled, ...]:
    """The functions that a profile has samples of, the largest share first.

    Raises:
        InputError: it cannot be read, or has no samples.
        EnvironmentLack: what reads it is not installed.
    """
    from mepof.profile.instrumentation import is_instrumentation  # loads all toolchains

    counted = _counted(profile) if is_instrumentation(profile) else _recorded(profile)
    found = [(name, count) for name, count in counted if count]
    total = sum(count for _, count in found)
    if not total:
        raise InputError(f"{profile} has no samples")
    made = []
    for name, count in found:
        source, _, symbol = name.rpartition(";")
        made.append(Sampled(symbol, source or None, 100 * count / total))
    return tuple(sorted(made, key=lambda each: (-each.share, each.name)))


def _counted(profile: Path) -> Iterator[tuple[str, int]]:
    from mepof.profile.counts import read_counts

    for each in read_counts(profile):
        yield each.name, each.total


def _recorded(profile: Path) -> Iterator[tuple[str, int]]:
    for each in json.loads(_engine.show(profile, _ALL, 0))["functions"]:
        yield each["name"], each["own_count"]


def objects_that_ran(profile: Path) -> tuple[str, ...] | None:
    """The objects of the old build in which something ran, if the profile's description beside it
    says so.

    Raises:
        WorkError: the description is not valid.
    """
    from mepof.profile.artifact import ProfileDescription

    described = ProfileDescription.find(profile.parent)
    return None if described is None else described.executed_objects


def judge(
    sampled: Sequence[Sampled],
    old: Path,
    new: Path,
    arch: str,
    objects: Collection[str] | None = None,
) -> Judgement:
    """Compare the code of functions with samples in two trees.

    Args:
        old: the tree that the profile is of.
        arch: the directory below ``arch/`` that is compiled; others are not looked at.
        objects: those of the old build in which something ran, if that is known. The directories
            that have none are not looked at, and of several functions of one name the one that is
            in one of them counts.
    """
    code = _Code.read(old, new, arch, objects)
    if any(each.name.isdecimal() for each in sampled):
        sampled = code.named(sampled)
    affected = (code.affected(each) for each in sampled)
    callers = _callers(
        code.altered_headers(), code.compiled(), {source_name(each.name) for each in sampled}
    )
    return Judgement(
        len(sampled), tuple(each for each in affected if each), len(code.before), callers
    )


def foreign(sampled: Sequence[Sampled], tree: Path, arch: str) -> tuple[str, ...]:
    """The hottest functions that no file of a tree names, if these are most of them: the profile
    may be of another kernel or program. Files are read until half of them are found.

    Args:
        sampled: the largest share first; those with hashes for names are not looked for.
        arch: the directory below ``arch/`` that is compiled.
    """
    hottest = [source_name(each.name) for each in sampled if not each.name.isdecimal()][:_HOTTEST]
    # A macro defines a system call, by the rest of its name.
    words = {name.removeprefix("compat_").removeprefix("sys_"): None for name in hottest}
    absent = {word: re.compile(rf"\b{re.escape(word)}\s*[(),]") for word in words}
    for file in _files(tree, arch, None, _CORE):
        if 2 * len(absent) <= len(words):
            break
        text = _text(tree / file)
        for word in [each for each in absent if each in text and absent[each].search(text)]:
            del absent[word]
    return tuple(absent) if 2 * len(absent) > len(words) else ()


#: The code of functions, by file and name.
Functions = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class _Code:
    """The code of two trees that may differ.

    Attributes:
        before, after: of the files that are not as they were.
        kept: of the old tree's files that ran and are as they were.
        appeared: the new tree's files that have some code, of those that are new or not as they
            were.
        ran: the C files in which something ran; None if that is not known.
    """

    old: Path
    new: Path
    before: Functions
    after: Functions
    kept: Functions
    appeared: Mapping[str, Sequence[str]]
    ran: frozenset[str] | None

    @classmethod
    def read(cls, old: Path, new: Path, arch: str, objects: Collection[str] | None) -> _Code:
        """Read what :func:`judge` compares."""
        below = None if objects is None else {Path(name).parent.as_posix() for name in objects}
        differing = list(_differing(old, new, arch, below))
        before, after = ({name: _read(tree / name) for name in differing} for tree in (old, new))
        # Of a file that is new, only where a function has moved to.
        appeared: dict[str, list[str]] = {}
        added = (name for name in _files(new, arch, below) if not (old / name).exists())
        for name, made in (*after.items(), *((name, _read(new / name)) for name in added)):
            for body in made.values():
                appeared.setdefault(body, []).append(name)
        ran = None
        if objects is not None:
            ran = frozenset(f"{name.removesuffix('.o')}.c" for name in objects)
        kept = {file: _read(old / file) for file in (ran or frozenset()) - before.keys()}
        return cls(old, new, before, after, kept, appeared, ran)

    @cached_property
    def defined(self) -> dict[str, list[str]]:
        """The files of ``before`` that have a function, by its name."""
        found: dict[str, list[str]] = {}
        for file, functions in self.before.items():
            for function in functions:
                found.setdefault(function, []).append(file)
        return found

    @cached_property
    def same(self) -> frozenset[str]:
        """The functions of the files that ran and are as they were."""
        return frozenset[str]().union(*self.kept.values())

    def named(self, sampled: Sequence[Sampled]) -> list[Sampled]:
        """Functions with the names of those hashes that a name in these files has."""
        hashes = {each.name for each in sampled}
        symbols = (s for name in {*self.defined, *self.same} for s in symbol_names(name))
        names = {found: s for s in symbols if (found := _hash(s)) in hashes}
        return [replace(each, name=names.get(each.name, each.name)) for each in sampled]

    def affected(self, each: Sampled) -> Affected | None:
        """What has become of a function whose code is not the same."""
        name = source_name(each.name)
        if name not in self.defined:
            name = name.lstrip("_")  # what a macro declares often has more of them
        states = (
            (_state(self.before[file][name], self.after[file].get(name), self.appeared), file)
            for file in self._candidates(each, name)
        )
        known = [(state, file) for state, file in states if state is not None]
        if not known:
            return None
        state, file = min(known, key=lambda pair: _ORDER.index(pair[0]))
        units = self._units(each, name)
        places = self.appeared.get(self.before[file][name], ())
        if state == "moved" and each.unit and not _in_header((file, *places)):
            state = "changed" if name in self.after[file] else "renamed"
            if state == "renamed":
                there = self._compiled(places)
                units = units | there if there else there
        return Affected(each.name, file, state, each.share, tuple(sorted(units)))

    def _candidates(self, each: Sampled, name: str) -> Sequence[str]:
        """The files of ``before`` that a function may be from."""
        files = self.defined.get(name, [])
        if each.unit is not None and files:
            own = self.before.get(each.unit) or self.kept.get(each.unit)
            return _of_unit(files, each.unit, name in (own or _read(self.old / each.unit)))
        if self.ran is None:
            return files
        # A header's function may be in any object, and so may that of a C file which another one
        # includes.
        ran = [file for file in files if file in self.ran or file.endswith(".h")]
        return ran or ([] if name in self.same else files)

    def _units(self, each: Sampled, name: str) -> set[str]:
        """The C files that are compiled with a function."""
        if each.unit:
            return self._compiled([each.unit])
        there = [file for file, functions in self.after.items() if name in functions]
        return self._compiled([*self._candidates(each, name), *there])

    def _compiled(self, files: Iterable[str]) -> set[str]:
        """Those of some files that are compiled, and the files beside the others that include
        them."""
        ran = self.ran or frozenset()
        found: set[str] = set()
        for file in files:
            if file in ran:
                found.add(file)
                continue
            at, _, name = file.rpartition("/")
            line = re.compile(rf'^[ \t]*#[ \t]*include[ \t]+"{re.escape(name)}"', re.M)
            beside = (unit for unit in ran if unit.rpartition("/")[0] == at)
            found.update(unit for unit in beside if line.search(_text(self.new / unit)))
        return {unit for unit in found if (self.new / unit).is_file()}

    def altered_headers(self) -> dict[str, list[str]]:
        """The headers with a function whose code is another, by its name."""
        found: dict[str, list[str]] = {}
        for name, files in self.defined.items():
            for file in files:
                now = self.after[file].get(name)
                if file.endswith(".h") and now is not None and now != self.before[file][name]:
                    found.setdefault(name, []).append(file)
        return found

    def compiled(self) -> Functions:
        """The new code of the files that ran."""
        ran = self.ran or frozenset()
        return {file: self.after[file] if file in self.after else self.kept[file] for file in ran}


def _callers(
    altered: Mapping[str, Sequence[str]],
    compiled: Mapping[str, Mapping[str, str]],
    sampled: Collection[str],
) -> tuple[str, ...]:
    """The C files in which a function with samples calls one of a header that it may include.

    Args:
        altered: the headers with functions that changed, by their names.
        compiled: the code of the functions of each C file.
    """
    return tuple(
        file
        for file, functions in sorted(compiled.items())
        if any(
            name in sampled
            and any(_of_unit(altered.get(n, ()), file, False) for n in _CALL.findall(code))
            for name, code in functions.items()
        )
    )


def _of_unit(files: Sequence[str], unit: str, defines: bool) -> list[str]:
    """Which of several files the static function of a C file may be from: from it, or from a file
    that it may include.

    Args:
        defines: it has a function of that name itself.
    """
    own = [file for file in files if f"/{unit}".endswith(f"/{file}")]
    if own or defines:
        return own
    above = [(file, file.rpartition("/")[0]) for file in files]
    return [f for f, at in above if "include" in at.split("/") or unit.startswith(f"{at}/")]


# The worst first: with several candidates, it counts.
_ORDER: tuple[State, ...] = ("gone", "changed", "moved")


def _hash(symbol: str) -> str:
    """What stands for a function in a profile with MD5 names: the low half of the digest, little
    endian (LLVM's ``MD5Hash``)."""
    digest = md5(symbol.encode(), usedforsecurity=False).digest()
    return str(int.from_bytes(digest[:8], "little"))


def _in_header(files: Iterable[str]) -> bool:
    """Whether a static function is one of each C file that has it, wherever it is defined."""
    return any(file.endswith(".h") for file in files)


def _state(before: str, after: str | None, appeared: Collection[str]) -> State | None:
    if before == after:
        return None
    if before in appeared:
        return "moved"
    return "gone" if after is None else "changed"


def _read(path: Path) -> dict[str, str]:
    return definitions(_text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _differing(old: Path, new: Path, arch: str, below: Collection[str] | None) -> Iterator[str]:
    """The C files of the old tree that are not in the new one, or not as they were."""
    for name in _files(old, arch, below):
        one, other = old / name, new / name
        try:
            same = one.stat().st_size == other.stat().st_size and cmp(one, other, shallow=False)
        except OSError:
            same = False
        if not same:
            yield name


def _files(
    tree: Path, arch: str, below: Collection[str] | None, first: Collection[str] = ()
) -> Iterator[str]:
    """C files: headers anywhere, and others in the directories ``below``; those in directories
    called ``first`` come before others."""
    for directory, inner, names in os.walk(tree):
        where = Path(directory).relative_to(tree).as_posix()
        if where == ".":
            inner[:] = [name for name in inner if name not in _ASIDE]
        elif where == "arch":
            inner[:] = [name for name in inner if name == arch]
        inner.sort(key=lambda name: (name not in first, name))
        used = below is None or where in below
        if not used and where.partition("/")[0] == "drivers":
            continue  # a driver's headers are its own
        prefix = "" if where == "." else f"{where}/"
        for name in sorted(names):
            if name.endswith(".h") or (used and name.endswith(".c")):
                yield prefix + name
