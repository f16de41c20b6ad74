"""make, as it builds a kernel: its command line, environment and errors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from mepof.errors import WorkError
from mepof.kernel import companions, overlay, sharing
from mepof.kernel.build_spec import BuildPaths, BuildSpec, FileFlags
from mepof.process import run
from mepof.toolchain.protocol import Run, Toolchain

# In the objects' directory, where the compiler runs.
SELECTED = "mepof-selected.mk"
ORDER = "mepof-order.ld"

#: What a kernel says of who built it and when, which would differ between builds.
FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "mepof",
    "KBUILD_BUILD_HOST": "mepof",
    "KBUILD_BUILD_VERSION": "1",
}
# What make, Kbuild, Kconfig and compressors would take from the caller's environment, which no
# fingerprint covers. Android's kernels have the number of a CI's build in their release, and git
# would tell a hook, or what it bisects by, about the caller's repository.
_CALLERS = re.compile(
    r"CONFIG_\w+|KCONFIG_\w+|KBUILD_(?!SIGN_PIN$)\w+|INSTALL_\w+|UIMAGE_\w+"
    r"|(?:SUB|SRC)?ARCH|CROSS_COMPILE\w*|DTC|DTC_FLAGS|LLVM|LLVM_IAS|LOCALVERSION"
    r"|(?:K|HOST|USER)(?:A|C|CPP|CXX|LD|RUST)FLAGS|HOST_EXTRA\w+|HOSTLDLIBS"
    r"|BRANCH|BUILD_NUMBER|KMI_GENERATION|GIT_DIR|GIT_INDEX_FILE|GIT_WORK_TREE"
    r"|GNUMAKEFLAGS|MAKEFILES|GZIP|XZ_DEFAULTS|XZ_OPT|ZSTD_\w+"
    # What compilers read.
    r"|CPATH|C(?:PLUS)?_INCLUDE_PATH|COMPILER_PATH|GCC_EXEC_PREFIX|CCC_\w+"
)
# Where a machine may have the headers of libelf and openssl, for the programs that a build runs.
_HEADERS = {"CPATH": "-I", "C_INCLUDE_PATH": "-isystem"}
_WOULD_COMPILE = re.compile(r"echo '  (?:CC|AS)(?: \[M\])?  +")
_COMPLAINT = re.compile(r"error:|undefined symbol|: not found$|syntax error|can't open file")
_MAKE_COMPLAINT = re.compile(r"\*\*\* ")


def words(spec: BuildSpec, toolchain: Toolchain, paths: BuildPaths) -> list[str]:
    """The words that every command for a build begins with, profiles by their names."""
    debug = " ".join(toolchain.flags("debug-directory", directory="build"))
    kept: tuple[str, ...] = ()
    if spec.share:
        kept = sharing.keep_linked(toolchain, spec.config_lines, spec.ldflags, paths.cache)
    variables = {
        "ARCH": spec.arch.make,
        "CC": toolchain.tool("compiler", spec.arch),
        "HOSTCC": toolchain.tool("compiler"),
        **toolchain.make_variables(spec.arch),
        **FIXED,
        **companions.variables(spec.configuration()),
        # Not in the configuration, which every object depends on.
        **({"LOCALVERSION": spec.suffix} if spec.suffix else {}),
        "KCFLAGS": debug,
        "KAFLAGS": debug,
        **({"HOSTCFLAGS": " ".join(headers)} if (headers := [*_host_headers()]) else {}),
        **flag_variables(replace(spec, ldflags=(*spec.ldflags, *kept)), toolchain, SELECTED),
        **({"MEPOF_LINK": f"-Wl,--script={ORDER}"} if spec.link_order else {}),
    }
    if sharing.has_ccache():
        # rustc starts the host's compiler by its name alone, to link.
        variables["HOSTCC"] = f"$(if $(CONFIG_RUST),,ccache ){variables['HOSTCC']}"
        variables["CC"] = f"ccache {variables['CC']}"
    assigned = (f"{name}={value}" for name, value in variables.items())
    return ["make", "-C", str(paths.view), f"O={paths.objects}", *assigned]


def _host_headers() -> Iterator[str]:
    """The directories of headers that the caller's environment names, as flags."""
    for name, flag in _HEADERS.items():
        for directory in os.environ.get(name, "").split(os.pathsep):
            if directory and not re.search(r"\s", directory):
                yield flag + directory


def environment(spec: BuildSpec, toolchain: Toolchain, paths: BuildPaths) -> dict[str, str | None]:
    """Independent of the caller's job server, locale, flags and settings of ccache."""
    return {
        **{name: None for name in os.environ if _CALLERS.fullmatch(name)},
        # Where it is set, a release has no `+`.
        "LOCALVERSION": "",
        "KCONFIG_CONFIG": ".config",
        "MAKEFLAGS": "",
        "MFLAGS": "",
        "MAKELEVEL": "0",
        "LC_ALL": "C",
        **sharing.environment(toolchain, spec.arch, paths.cache, paths.work, share=spec.share),
    }


def kconfig_environment(spec: BuildSpec, toolchain: Toolchain, version: str) -> dict[str, str]:
    """What kbuild's top Makefile exports for Kconfig's macros."""
    return {
        "ARCH": spec.arch.make,
        "SRCARCH": spec.arch.source,
        "HEADER_ARCH": "x86",  # exported by the Makefile of `um`: its host's
        "KERNELVERSION": version,
        **toolchain.kconfig_environment(spec.arch),
        **companions.variables(spec.configuration()),
        "RUSTC_VERSION_TEXT": "",
    }


def selection(selected: Sequence[FileFlags], toolchain: Toolchain) -> str:
    """A makefile that defines ``mepof-selected``, the flags of an object, given its path; and those
    of one in Rust."""
    lines = [
        f"mepof-objects-{number} := {' '.join(each.names())}"
        for number, each in enumerate(selected)
    ]
    lines += [
        f"mepof-but-{number} := {' '.join(each.but)}"
        for number, each in enumerate(selected)
        if each.but
    ]

    def chosen(flags: Iterable[Sequence[str]]) -> str:
        return " ".join(
            f"$(if $(filter $(mepof-objects-{number}),{given(number)}),{' '.join(words)})"
            for number, words in enumerate(flags)
        )

    def given(number: int) -> str:
        return f"$(filter-out $(mepof-but-{number}),$1)" if selected[number].but else "$1"

    flags = [each.cflags for each in selected]
    lines += [
        f"mepof-selected = {chosen(flags)}",
        f"mepof-selected-rust = {chosen(map(toolchain.rust, flags))}",
    ]
    return "\n".join([*lines, ""])


def flag_variables(spec: BuildSpec, toolchain: Toolchain, selected: str) -> dict[str, str]:
    """Make's variables that the overlays read.

    Args:
        selected: the path of :func:`selection`.
    """
    return {
        "MEPOF_CFLAGS": " ".join(spec.cflags),
        "MEPOF_RUSTFLAGS": " ".join(toolchain.rust(spec.cflags)),
        "MEPOF_LDFLAGS": " ".join(spec.ldflags),
        "MEPOF_SELECTED": selected,
        **spec.variables,
        "MEPOF_EXCLUDE": " ".join(e.match for e in overlay.exclusions()),
    }


def files_to_compile(
    make: Sequence[str],
    environment: Mapping[str, str | None],
    paths: BuildPaths,
    identity: str,
) -> int | None:
    """How many files a make command compiles, according to make (``-n``: it runs nothing).

    That takes several seconds, so the answer is kept for the same tree and ``identity``.
    """
    if not any(paths.objects.glob("*/built-in.a")):
        key = sha256(f"{paths.tree}\n{identity}".encode()).hexdigest()[:32]
        kept = paths.cache / "files-to-compile" / key
        # It may be missing or cut off: the write is not worth a rename.
        with suppress(OSError, ValueError):
            return int(kept.read_text())
    else:
        kept = None  # a build that continues: what is left is less than the whole
    answer = run([*make, "--dry-run"], env=environment, check=False)
    total = sum(1 for line in answer.output.splitlines() if _WOULD_COMPILE.search(line))
    if kept is not None and total:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(str(total))
    return total or None


def start(
    argv: list[str],
    environment: Mapping[str, str | None],
    log: Path,
    run: Run,
    listener: Callable[[str], None] | None = None,
    what: str = "the kernel",
) -> None:
    """Run make; its error is a tool's first complaint, with the object, otherwise make's own."""
    result = run(argv, env=environment, on_line=listener, check=False)
    if result.status != 0:
        lines = [line.strip() for line in result.output.splitlines()]
        tool, make = (
            next((line for line in lines if wanted.search(line)), None)
            for wanted in (_COMPLAINT, _MAKE_COMPLAINT)
        )
        why = tool or make or f"make ended with status {result.status}"
        if tool and make and make.partition("]")[0].endswith(".o"):
            why += f"; {make}"
        raise WorkError(f"{what} did not build: {why}", f"see {log}")
