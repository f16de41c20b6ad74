"""When an instrumented kernel does not boot: which files must not be instrumented.

Counters are in memory, which some code runs before, beside or without. Whether a file counts
matters to no other file, so the few that cannot are left out, whole, and all others count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mepof.disk import replacing
from mepof.errors import WorkError
from mepof.kernel.bisect import culprits
from mepof.kernel.safeguard import EVERYTHING, OptOut, Trial, suspects

_MAX_FILES = 4
# Four files among 4096, one after another, and the trials before them.
MAX_TRIALS = 60
# Most of what cannot be instrumented sets up the processor or the memory.
_LIKELY = OptOut(files=("arch/%",))


class Trials:
    """The kernels that a search booted, kept in a file: a search that was interrupted continues.

    Args:
        file: with what was kept, or to be made.
        boot: builds and boots a kernel without instrumenting some files, and returns why it does
            not boot.
        note: is called with what came out.

    Attributes:
        built: what the last kernel that was built does not instrument; None before the first.
    """

    def __init__(self, file: Path, boot: Trial, note: Callable[[str], None]) -> None:
        self._file = file
        self._boot = boot
        self._note = note
        self._known: dict[tuple[str, ...], str | None] = {}
        self.built: OptOut | None = None
        if file.is_file():
            kept = json.loads(file.read_text(encoding="utf-8"))
            self._known = {tuple(each["without"]): each["failure"] for each in kept}
            note(f"{len(self)} kernels have been tried before")

    def __len__(self) -> int:
        return len(self._known)

    def __call__(self, opt_out: OptOut) -> WorkError | None:
        """Why the kernel does not boot without instrumenting some files; None if it boots.

        Raises:
            WorkError: the kernel does not compile, or too many were tried.
        """
        files = tuple(sorted(opt_out.files))
        if files not in self._known:
            if len(self) == MAX_TRIALS:
                raise WorkError(
                    f"the instrumented kernel does not boot, and {MAX_TRIALS} kernels did not show "
                    "which files are the cause",
                    "exclude what is suspicious with `set exclude`",
                )
            self.built = OptOut(files=files)
            failure = self._boot(self.built)
            self._known[files] = None if failure is None else failure.message
            self._keep()
            outcome = "it boots" if failure is None else failure.message.partition("\n")[0]
            self._note(f"trial {len(self)}, {_described(files)}: {outcome}")
        message = self._known[files]
        return None if message is None else WorkError(message)

    def _keep(self) -> None:
        kept = [{"without": list(f), "failure": failure} for f, failure in self._known.items()]
        with replacing(self._file) as partial:
            partial.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def not_to_instrument(
    failure: WorkError,
    trial: Trial,
    objects: Mapping[str, Sequence[str]],
    earlier: Sequence[str],
    note: Callable[[str], None],
) -> tuple[str, ...]:
    """Find the files that must not be instrumented for a kernel to boot.

    Args:
        failure: of the kernel in which every file is instrumented.
        trial: remembers what it was asked.
        objects: those of the kernel, and the functions of each.
        earlier: the files that another round of the kernel must not instrument.
        note: is called with what was found.

    Raises:
        WorkError: it does not boot without instrumentation either, or with too many files.
    """
    if earlier and trial(OptOut(files=tuple(earlier))) is None:
        return tuple(earlier)
    candidates = sorted(suspects(objects, failure, trial)) or _fewest(failure, trial, objects)
    if len(candidates) > 1:
        note(f"searching among {len(candidates)} files")

    def fails(instrumented: Sequence[str]) -> bool:
        kept = frozenset(instrumented)
        left_out = tuple(name for name in candidates if name not in kept)
        return trial(OptOut(files=left_out)) is not None

    found = culprits(candidates, fails, _MAX_FILES)
    if found is None:
        raise WorkError(
            f"more than {_MAX_FILES} files must not be instrumented: {failure.message}",
            "exclude them by their directories with `set exclude`",
        )
    return found


def _fewest(
    failure: WorkError, trial: Trial, objects: Mapping[str, Sequence[str]]
) -> Sequence[str]:
    """The candidates: the kernel boots if none of them is instrumented."""
    for opt_out in (_LIKELY, EVERYTHING):
        if trial(opt_out) is None:
            (pattern,) = opt_out.files
            return sorted(name for name in objects if name.startswith(pattern.removesuffix("%")))
    raise WorkError(f"the kernel does not boot without instrumentation either: {failure.message}")


def _described(files: tuple[str, ...]) -> str:
    match files:
        case ():
            return "all files instrumented"
        case ("%",):
            return "nothing instrumented"
        case (only,) if only.endswith("%"):
            return f"without {only.removesuffix('%')}"
        case (_, _, _, _, *_):
            return f"without {len(files)} files"
        case _:
            return f"without {', '.join(files)}"
