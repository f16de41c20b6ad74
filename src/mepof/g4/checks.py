"""What a ``check`` runs, and whether its images can run it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mepof.g4.ast import Adap, Check, Merge, Opt, Profile, Recomp, Set, Word
from mepof.g4.diagnostics import Diagnostic, quote
from mepof.g4.names import Bindings, HostPath, Made
from mepof.gate.results import Gate

KSELFTEST: Gate = "kselftest"
KUNIT: Gate = "kunit"

#: The configuration that has the tests of ``kunit``.
KUNIT_CONFIG = "kunit"


def gates_of(statement: Check) -> dict[Gate, tuple[str, ...]]:
    """The gates of a statement without errors, each with the parts of it that run; no part means
    all. Without an operand it is ``kselftest``, which needs no kernel of its own."""
    words = [word.text.partition(":") for word in statement.gates] or [(KSELFTEST, "", "")]
    found: dict[Gate, tuple[str, ...]] = {}
    for gate in (KSELFTEST, KUNIT):
        parts = [part for name, _, part in words if name == gate]
        if parts:
            found[gate] = tuple(sorted(parts)) if all(parts) else ()
    return found


def untestable(
    statement: Check, bindings: Bindings, index: int, bound_to_build: Collection[str]
) -> Iterator[Diagnostic]:
    """Images whose tests cannot be had.

    Args:
        bound_to_build: the algorithms whose profiles fit only the build that was profiled.
    """
    gates = {word.text.partition(":")[0] for word in statement.gates} or {KSELFTEST}
    words = [word for word in statement.images if word.text]
    found = [(word, bindings.resolve(word, "image", index)) for word in words]
    for number, (word, made) in enumerate(found):
        if made in [earlier for _, earlier in found[:number]]:
            yield Diagnostic(
                word.span,
                f"{quote(word.text)} is named twice, so it would be compared with itself",
                "name the image that the others are compared with first, such as `plain.img`",
            )
    if KSELFTEST in gates and words and all(isinstance(made, HostPath) for _, made in found):
        yield Diagnostic(
            words[0].span.to(words[-1].span),
            "kselftests are compiled from a kernel's source, and these images are files",
            "name an image that the program builds as well",
        )
    if KUNIT not in gates:
        return
    for word, made in found:
        if isinstance(made, Made):
            bound = _bound(made, bindings, bound_to_build)
            if bound is not None and KUNIT_CONFIG not in _config_at(made.statement, bindings):
                yield Diagnostic(
                    word.span,
                    f"{quote(word.text)} cannot be built with KUnit: "
                    f"the profile of {quote(bound)} fits only one build",
                    "write `set config …+kunit` before the statement that makes it, so that the "
                    "profiled kernel has the tests as well",
                )


def _bound(made: Made, bindings: Bindings, bound_to_build: Collection[str]) -> str | None:
    """The algorithm of an image whose profile fits only one build, if there is one."""
    match bindings.program.statements[made.statement]:
        case Opt(algorithm=stack) | Adap(algorithm=stack) | Profile(algorithm=stack):
            return next((part for part in stack.text.split("+") if part in bound_to_build), None)
        case Recomp(profile=word):
            return _bound_profile(word, made.statement, bindings, bound_to_build)
        case Merge(profiles=words):
            every = (
                _bound_profile(word, made.statement, bindings, bound_to_build) for word in words
            )
            return next(filter(None, every), None)
    return None


def _bound_profile(
    word: Word, index: int, bindings: Bindings, bound_to_build: Collection[str]
) -> str | None:
    profile = bindings.resolve(word, "profile", index) if word.text else None
    return _bound(profile, bindings, bound_to_build) if isinstance(profile, Made) else None


def _config_at(index: int, bindings: Bindings) -> tuple[str, ...]:
    """The names of the configurations in force at a statement."""
    given = ""
    for statement in bindings.program.statements[:index]:
        if isinstance(statement, Set) and statement.key.text == "config":
            given = statement.value.text
    return tuple(given.split("+"))
