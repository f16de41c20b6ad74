"""When a kernel fails with a profile: which files, and which functions in them, must not use it.

A profile changes how code is inlined, split and laid out, so it exposes what was already wrong
in the source, the compiler or the build. Little is affected; the rest keeps the profile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field

from mepof.errors import WorkError
from mepof.kernel.bisect import culprits
from mepof.kernel.objtool import Unclean

# With more than these, the failure is not one of single files or functions.
_MAX_FILES = 8
_MAX_FUNCTIONS = 4
# Those that failures name need no search.
_MAX_SUSPECTS = 32
_FAILED_OBJECT = re.compile(r"\*\*\* \[[^\]]*?([^\s:\]]+\.o)\]")
_FAILED_FUNCTION = re.compile(r"(?:RIP: \w+:|\bpc : |, in )([\w.]+)\+0x")
# What `initcall_debug` makes a kernel print.
_CALLED = re.compile(r"\bcalling +([\w.]+)\+0x")
_RETURNED = re.compile(r"\binitcall ([\w.]+)\+0x\S+ returned\b")


@dataclass(frozen=True)
class OptOut:
    """What does not use the profile.

    Attributes:
        files: objects that do not use it at all.
        functions: of other objects, by object: functions that the profile they use does not have.
    """

    files: tuple[str, ...] = ()
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        functions = (f"{name}() in {file}" for file, f in self.functions.items() for name in f)
        return ", ".join([*self.files, *functions])


EVERYTHING = OptOut(files=("%",))
"""No file uses the profile: make's pattern for all of them."""

Trial = Callable[[OptOut], WorkError | None]
"""Builds, checks and boots the kernel, and returns what failed."""


def smallest_opt_out(
    failure: WorkError,
    trial: Trial,
    objects_built: Callable[[], Mapping[str, Sequence[str]]],
    note: Callable[[str], None],
    *,
    by_function: bool = True,
) -> OptOut:
    """Find what must not use the profile for a kernel to work, by file and then by function.

    The last trial is one of the opt-out that is returned.

    Args:
        failure: what failed with the profile used everywhere.
        trial: it counts a warning of objtool as a failure if the kernel without the profile does
            not have it.
        objects_built: returns the objects of a kernel that was built, and the functions of each.
        note: is called with what was found.
        by_function: single functions can be left out of the profile.

    Raises:
        WorkError: it fails without the profile too, in too many files, or only sometimes.
    """
    if trial(EVERYTHING) is not None:
        note("the kernel fails without the profile, too: the cause is elsewhere")
        raise failure
    if isinstance(failure, Unclean):
        # Its warnings may all be the same without the profile, which is known by now.
        again = trial(OptOut())
        if again is None:
            return OptOut()
        failure = again
    objects = objects_built()
    names = sorted(objects)
    note(f"the kernel boots without the profile; searching for what fails: {failure.message}")

    def fails(using: Sequence[str]) -> bool:
        kept = frozenset(using)
        return trial(OptOut(files=tuple(name for name in names if name not in kept))) is not None

    suspected = suspects(objects, failure, trial)
    files = tuple(suspected) or culprits(names, fails, _MAX_FILES)
    if files is None:
        raise WorkError(
            f"{failure.message} (and more than {_MAX_FILES} files fail with the profile)",
            failure.remedy,
        )
    if not files:
        raise _not_repeated(failure)
    note(f"these fail with the profile: {', '.join(files)}")
    found = OptOut(files=files)
    for file in files:
        if by_function:
            found = _narrowed(found, file, objects[file], suspected.get(file, ()), trial)
        elif trial(lifted := _lifted(found, file)) is None:
            found = lifted  # it was a suspect only
    if found == OptOut():
        raise _not_repeated(failure)
    if trial(found) is not None:  # functions that fail only together
        found = OptOut(files=files)
        if (again := trial(found)) is not None:
            raise again
    return found


def _not_repeated(failure: WorkError) -> WorkError:
    return WorkError(f"{failure.message} (but not on a second try)", failure.remedy)


def suspects(
    objects: Mapping[str, Sequence[str]], failure: WorkError, trial: Trial
) -> Mapping[str, Set[str]]:
    """The objects that failures name, one after another, if leaving them out is enough.

    Returns:
        The functions that were named, by the objects that may be meant.
    """
    found: dict[str, set[str]] = {}
    wrong: WorkError | None = failure
    while wrong is not None:
        named = _named(objects, wrong)
        if named.keys() <= found.keys() or len(found.keys() | named.keys()) > _MAX_SUSPECTS:
            return {}
        for name in sorted(named):
            found.setdefault(name, set()).update(named[name])
        wrong = trial(OptOut(files=tuple(found)))
    return found


def _named(objects: Mapping[str, Sequence[str]], failure: WorkError) -> Mapping[str, Set[str]]:
    text = failure.message
    found: dict[str, set[str]] = {n: set() for n in _FAILED_OBJECT.findall(text) if n in objects}
    stuck = set(_CALLED.findall(text)).difference(_RETURNED.findall(text))
    functions = {name.partition(".")[0] for name in (*_FAILED_FUNCTION.findall(text), *stuck)}
    for warned in failure.warned if isinstance(failure, Unclean) else ():
        if warned.file in objects:
            found.setdefault(warned.file, set()).update(warned.functions())
        else:  # an object of many
            functions |= warned.functions()
    for name, defined in objects.items():
        if meant := functions.intersection(defined):
            found.setdefault(name, set()).update(meant)
    return found


def _lifted(found: OptOut, file: str) -> OptOut:
    """What a search found, without a file of it."""
    return OptOut(tuple(name for name in found.files if name != file), found.functions)


def _narrowed(
    found: OptOut, file: str, functions: Sequence[str], named: Collection[str], trial: Trial
) -> OptOut:
    """Let a file use the profile, except for the functions that fail with it.

    Args:
        functions: what the file defines.
        named: functions that failures named; tried first.
    """
    lifted = _lifted(found, file)

    def without(spared: Sequence[str]) -> OptOut:
        return OptOut(lifted.files, {**found.functions, file: tuple(spared)})

    def fails(using: Sequence[str]) -> bool:
        kept = frozenset(using)
        return trial(without([name for name in functions if name not in kept])) is not None

    if suspects := [name for name in functions if name in named]:
        if trial(without(())) is None:
            return lifted
        if trial(without(suspects)) is None:
            return without(suspects)
    if trial(without(functions)) is not None:
        return found
    failing = culprits(functions, fails, _MAX_FUNCTIONS)
    if failing is None:
        return found
    # None: it was a suspect only, or fails only together with another that is spared.
    return without(failing) if failing else lifted
