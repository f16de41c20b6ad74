"""Whether a configuration takes in a tree, by Kconfig itself.

Of a kernel, only Kconfig's own programs are compiled, in a directory that is gone afterwards.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mepof.adapter.fit import Fit, Reason, fragment_files, overlays_below
from mepof.arch import Arch
from mepof.errors import InputError, WorkError
from mepof.kernel import kbuild
from mepof.kernel.build_spec import BuildPaths, BuildSpec
from mepof.process import run
from mepof.source.directory import taken
from mepof.toolchain.protocol import Toolchain, Tools

# Most files of a tree, which neither Kconfig nor the top makefiles read; scripts are compiled, and
# the compiler is tried with headers.
_UNREAD = re.compile(
    r"(?!scripts/|tools/|(?:arch/[^/]+/)?include/).*\.(?:[chS]|dtsi?|dtso|rst|yaml|json|svg)"
)


def configured(
    fit: Fit,
    tree: Path,
    arch: Arch,
    toolchain: Toolchain,
    config: Sequence[str],
    in_place: bool = False,
    note_dropped: bool = False,
) -> Fit:
    """What :func:`mepof.adapter.fit.check_fit` found, and what Kconfig then says of the plain
    kernel.

    Args:
        fit: with nothing that keeps the plain kernel from being configured.
        config: names of configurations, and paths, which contain ``/``.
        in_place: the tree is a directory of the user's, which may hold what a build left.
        note_dropped: options of the user's files that do not take effect are a note.
    """
    spec = BuildSpec(
        arch=arch,
        fragments=tuple(fragment_files(config, arch)),
        note_dropped=note_dropped,
        overlays=overlays_below(config, arch),
        share=False,
    )
    with tempfile.TemporaryDirectory(prefix="mepof-adapt-") as directory:
        work = Path(directory)
        if in_place:
            (work / "source").mkdir()
            taken(tree).link(work / "source", _UNREAD)
            tree = work / "source"
        log = work / "log"
        paths = BuildPaths(tree, work, output=work, log=log, cache=work / "cache")
        try:
            noted = kbuild.configured(spec, Tools(toolchain, run), paths)
        except (InputError, WorkError) as error:
            # The log is gone with the directory.
            remedy = None if error.remedy == f"see {log}" else error.remedy
            return replace(fit, config=(*fit.config, Reason(error.message, remedy)))
    return replace(fit, notes=(*fit.notes, *map(Reason, noted)))
