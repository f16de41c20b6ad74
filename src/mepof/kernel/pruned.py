"""Compile a file of a kernel from what it uses of its headers. ccache runs this, in place of the
compiler, for a file of which it has no object (``CCACHE_PREFIX``):

    python -I -S pruned.py FLAG… -- COMPILER ARGUMENT…

The file is preprocessed; the engine leaves out what the object cannot depend on
(:func:`mepof._engine.prune`); the rest is compiled through ccache once more, which may have it from
another version of the headers. FLAGs make the compiler accept arguments that are meant for the
preprocessor, and its own warnings, which are about what came from macros, and not told.

What is not a C file of a kernel, or does not compile in this way, is left to the compiler, so
errors are those of the whole file. Nothing else of mepof is loaded: a build runs this a thousand
times.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

# Options of the preprocessor; the value of those in the second line may be the next word.
_PREPROCESSOR = ("-M", "-Wp,")
_WITH_VALUE = ("-D", "-I", "-U", "-idirafter", "-imacros", "-include", "-iquote", "-isystem")
# With these, an object may tell where declarations stand, or have what nothing uses.
_WHOLE = (
    *("-fauto-profile", "-fcoverage-", "-fdebug-info-", "-fdebug-macro", "-fmemory-profile"),
    *("-fprofile-", "-fsanitize", "-fsave-optimization-record", "-ftest-coverage", "-g"),
    *("-fkeep-", "-fno-eliminate-unused-", "-fno-toplevel-reorder", "-fno-unit-at-a-time"),
    *("-flto", "-fpass-plugin", "-fplugin", "-save-temps", "-x", "@"),
)
# These are none of them.
_PRUNABLE = ("-fprofile-instrument=llvm", "-fprofile-use=", "-g0", "-gno-")
# The warnings that a build may read: which counts of a profile do not fit.
_WANTED = "[-Wbackend-plugin]"


def main(words: list[str]) -> None:
    """Compile a file, and leave by the compiler's exit status.

    Args:
        words: flags, ``--``, and the compiler's command.
    """
    end = words.index("--")
    flags, command = words[:end], words[end + 1 :]
    source = _source(command)
    if source is None or not _compile(flags, command, source):
        os.execvp(command[0], command)


def _source(command: list[str]) -> str | None:
    """The C file that a command compiles for a kernel; None if it does anything else, or the object
    needs the whole file."""
    sources = [word for word in command[1:] if word.endswith(".c") and word[0] != "-"]
    fits = all(word in command for word in ("-D__KERNEL__", "-c", "-o")) and len(sources) == 1
    is_whole = any(w.startswith(_WHOLE) and not w.startswith(_PRUNABLE) for w in command)
    return sources[0] if fits and not is_whole else None


def _compile(flags: list[str], command: list[str], source: str) -> bool:
    """Compile a file from what it uses; whether that was possible."""
    target = command[command.index("-o") + 1]
    text = Path(f"{target}.pruned.i")
    names = {"-c": "-E", target: str(text)}
    try:
        # This writes the file of dependencies, too.
        if not _succeeds([*(names.get(word, word) for word in command), "-MT", target]):
            return False
        sys.path.append(str(Path(__file__).parents[1]))
        if (left := import_module("_engine").prune(text.read_bytes())) is None:
            return False
        text.write_bytes(left)
        # ccache tells what it runs to leave it alone.
        for name in ("CCACHE_DISABLE", "CCACHE_PREFIX", "CCACHE_DEPEND"):
            os.environ.pop(name, None)
        os.environ["CCACHE_NODIRECT"] = "1"  # there are no headers left
        os.environ["CCACHE_DIR"] += "/pruned"
        arguments = [str(text) if w == source else w for w in _without_preprocessor(command[1:])]
        compiler = ["ccache", command[0], "-x", "cpp-output"]
        return _succeeds([*compiler, *arguments, *flags], only=_WANTED)
    finally:
        text.unlink(missing_ok=True)


def _without_preprocessor(arguments: list[str]) -> list[str]:
    """Arguments without those that a preprocessed file must not be compiled with."""
    left = []
    words = iter(arguments)
    for word in words:
        if word in (*_WITH_VALUE, "-MF", "-MQ", "-MT"):
            next(words, None)
        elif not word.startswith((*_WITH_VALUE, *_PREPROCESSOR)):
            left.append(word)
    return left


def _succeeds(argv: list[str], only: str = "") -> bool:
    """Run a program; whether it ends with status 0. Then its messages with the text ``only`` are
    passed on, and none otherwise: what is run instead says what is wrong."""
    reading, writing = os.pipe()
    redirected = [(os.POSIX_SPAWN_DUP2, writing, 2)]
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=redirected)
    os.close(writing)
    with os.fdopen(reading, errors="replace") as messages:
        told = [line for line in messages if only in line]
    succeeds = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    if succeeds:
        sys.stderr.writelines(told)
    return succeeds


if __name__ == "__main__":
    main(sys.argv[1:])
