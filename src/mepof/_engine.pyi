"""The profile engine: the compiled part of mepof (Rust, in ``crates/``).

Functions that work give a JSON document. They let other threads run, and end with what a signal
handler raised, such as ``KeyboardInterrupt``, within a tenth of a second or so. A file that they
write is there whole or not at all. What goes wrong is one of ``mepof.errors``: ``InputError`` for
what cannot be read or does not fit together, ``WorkError`` for what cannot be written. A
``RuntimeError`` is a bug.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

__version__: str
"""The version that was compiled; another one than ``mepof.__version__`` wants `make setup`."""

INPUT_FORMATS: Sequence[str]
"""Names of the formats that branch records are read from."""

OUTPUT_FORMATS: Sequence[str]
"""Names of the formats that branch records are converted to."""

PROFILE_FORMATS: Sequence[str]
"""Names of the formats that AutoFDO profiles are written in; a part of ``OUTPUT_FORMATS``."""

CAUSES: dict[str, str]
"""Why records are dropped: each cause's name, and its explanation, to follow a count."""

class Recording:
    """Branch records, and the binaries that they belong to.

    Args:
        binary: the vmlinux.
        inputs: branch records.
        names: what the verdict calls the inputs; none calls them by their paths.
        input_format: one of ``INPUT_FORMATS``; None finds out.
        modules: kernel modules, as built.
        kallsyms: a copy of /proc/kallsyms of the machine that recorded.
        space: whose samples to take: ``kernel``, ``guest`` or ``user``.
        events: the events to take; none takes all that have branch stacks.
        on_progress: called some times a second with the bytes of the inputs read so far.
    """

    def __init__(
        self,
        binary: Path,
        inputs: Sequence[Path],
        *,
        names: Sequence[Path] = (),
        input_format: str | None = None,
        modules: Sequence[Path] = (),
        kallsyms: Path | None = None,
        space: str = "kernel",
        events: Sequence[str] = (),
        on_progress: Callable[[int], None] | None = None,
    ) -> None: ...

def convert(
    recording: Recording,
    to: str,
    output: Path,
    *,
    lines: bool = False,
    infer: str = "single",
    md5_names: bool = False,
    symbol_list: bool = False,
    path_cloning: bool = False,
    allow_poor: bool = False,
) -> str:
    """Convert branch records.

    Args:
        to: one of ``OUTPUT_FORMATS``.
        output: the file to write; for ``propeller``, what the names of both files begin with.
        lines: use debug lines, even where the binary has pseudo probes.
        infer: where counts are inferred from control flow: ``never``, ``always``, or where
            ``single`` branches were recorded.
        md5_names: for ``autofdo``, write hashes of names, which are smaller.
        symbol_list: for ``autofdo``, name all functions of the binaries: to the compiler, those
            without samples are then cold, and only those without a name unknown.
        path_cloning: for ``propeller``, read the inputs again and copy blocks along hot paths.
        allow_poor: write the files even if the verdict is poor.

    Returns:
        ``{"outputs": [path…], "verdict": {…}}``; no outputs if the verdict is poor.
    """

def heatmap(
    recording: Recording,
    output: Path,
    *,
    form: str,
    rows: int,
    section: str | None = None,
) -> str:
    """Draw which code ran when.

    Args:
        form: ``png``, ``svg`` or ``json``.
        rows: how many rows of addresses, about.
        section: the section to draw alone.

    Returns:
        The data of the heatmap without its rows.
    """

def merge(
    weighted: Sequence[tuple[Path, int]],
    output: Path,
    format: str,
    *,
    names: Sequence[str] = (),
    like: Path | None = None,
) -> str:
    """Write the weighted sum of AutoFDO profiles, in one of ``PROFILE_FORMATS``.

    Args:
        names: what the provenance calls the profiles; their paths by default.
        like: a profile that says what text cannot: whether discriminators are flow-sensitive, and
            whether the profile is partial.

    Returns:
        ``provenance``, ``conflicts``, ``saturated`` (inputs at which a counter reached its end)
        and the ``statistics`` of the sum.
    """

def conflicts(like: Path, other: Path) -> str:
    """The functions of an AutoFDO profile that cannot be added to those of ``like``: their control
    flow is another one.

    Raises:
        InputError: one cannot be read, or none of it can be added.
    """

def compare(base: Path, test: Path, limit: int) -> str:
    """How alike two AutoFDO profiles are, with up to ``limit`` functions that differ."""

def drift(profile: Path, new: Path, old: Path | None) -> str:
    """What of an AutoFDO profile fits the binary ``new``; ``old`` is the one it was made from."""

def trace_format(path: Path) -> str:
    """The format of a branch trace, by its content. Of perf.data, the beginning is read.

    Args:
        path: a file, or a directory of `perf record --threads`.

    Raises:
        InputError: it cannot be read, is not a branch trace, or has no branches of the kernel.
    """

def show(profile: Path, functions: int, lines: int) -> str:
    """What is in an AutoFDO profile, with so many of its hottest functions and lines."""

def prune(text: bytes) -> bytes | None:
    """A preprocessed C file without the declarations that its object cannot depend on. It does not
    tell where declarations stand.

    Args:
        text: the file, with the preprocessor's line markers.

    Returns:
        None: the file asks for its place, so its object depends on all.
    """
