"""What builds share: objects, by ccache, and what ThinLTO's links compile, by the linker."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof.arch import Arch
from mepof.kernel import pruned
from mepof.process import run
from mepof.toolchain.protocol import Toolchain

# What the caller may tell ccache: where it keeps what it has and what runs the compiler, not which
# objects are the same.
_CALLERS = re.compile(
    r"CCACHE_(?:LOGFILE|MAXFILES|MAXSIZE|PREFIX|REMOTE_\w+|RESHARE|SECONDARY_STORAGE|STATSLOG|TEMPDIR"
    r"|UMASK)"
)
# What a toolchain can do whose compiler ccache runs by a program of ours.
_PRUNED = "pruned-files"
# Objects that hold another file by `.incbin`, of generated sources. ccache does not see that file,
# and would give a kernel the certificates, the initramfs or the compressed kernel of another build.
_GENERATED_HOLDERS = ("%piggy.o", "%.dtb.o", "%.dtbo.o", "%.gen.o")
# How much ThinLTO's links keep for one set of flags. The objects of a small kernel are 40 MB.
_KEPT_LINKED = "1g"


def has_ccache() -> bool:
    """Whether kernels can share objects that are compiled in the same way."""
    return shutil.which("ccache") is not None


def environment(
    toolchain: Toolchain, arch: Arch, directory: Path, work: Path, *, share: bool
) -> dict[str, str | None]:
    """Settings of ccache, which do not depend on the caller's.

    Args:
        arch: what is built for.
        directory: the store's directory for what can be made again.
        work: the build's own directory, which gets the program by which ccache compiles.
        share: take objects of other builds, and leave them these.
    """
    given = [name for name in os.environ if name.startswith("CCACHE_")]
    prunes = share and _PRUNED in toolchain.capabilities and "CCACHE_PREFIX" not in given
    return {
        **{name: None for name in given if not _CALLERS.fullmatch(name)},
        "CCACHE_DIR": str(directory / "ccache"),
        "CCACHE_BASEDIR": str(directory.parent),
        "CCACHE_NOHASHDIR": "1",
        # By the dependency files that kbuild writes anyway, not by preprocessing everything
        # first, which made a first build 50 % slower.
        "CCACHE_DEPEND": "1",
        "CCACHE_COMPILERCHECK": _compiler_check(toolchain, arch),
        **({"CCACHE_PREFIX": str(write_compile(toolchain, work))} if prunes else {}),
        **({} if share else {"CCACHE_DISABLE": "1"}),
    }


def _compiler_check(toolchain: Toolchain, arch: Arch) -> str:
    """How ccache tells compilers apart. It looks at the program alone: who builds a compiler of
    their own may replace what this loads or starts."""
    content = toolchain.compiler_content(arch)
    return "mtime" if content is None else f"string:{content}"


def write_compile(toolchain: Toolchain, directory: Path) -> Path:
    """Write the program by which ccache compiles what it does not have
    (:mod:`mepof.kernel.pruned`), with flags of a toolchain that has ``pruned-files``."""
    program = directory / "mepof-compile"
    flags = toolchain.flags("compile-preprocessed")
    words = (sys.executable, "-I", "-S", pruned.__file__, *flags, "--")
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def unshared(tree: Path) -> list[str]:
    """Lines of a makefile that keep ccache from objects which hold another file."""
    names = " ".join((*_GENERATED_HOLDERS, *_holders(tree)))
    # Without the prefix, which would ask ccache again.
    return [f"{names}: export CCACHE_DISABLE := 1", f"{names}: export CCACHE_PREFIX :="]


@cache  # a tree stays as it is, and several kernels may be built of it
def _holders(tree: Path) -> tuple[str, ...]:
    """The objects whose sources in a tree hold another file by ``.incbin``, in C or assembly."""
    options = ("--recursive", "--files-with-matches", "--no-messages", "--ignore-case")
    grep = ["grep", *options, "--include=*.[cS]", "incbin", "."]
    found = run(grep, cwd=tree, env={"LC_ALL": "C"}, check=False).output.splitlines()
    return tuple(sorted({Path(name).with_suffix(".o").as_posix() for name in found}))


def keep_linked(
    toolchain: Toolchain, config_lines: Sequence[str], ldflags: Sequence[str], directory: Path
) -> tuple[str, ...]:
    """Flags by which ThinLTO's links keep the objects that they compile, and use each other's.

    The linker finds an object by what it is compiled from, a sample profile too, but not by all of
    its flags: each set has a directory, which make names, since it alone knows those of the
    kernel's own makefiles. Nor does the linker see what a list of basic blocks holds.

    Args:
        config_lines: the build's Kconfig lines.
        ldflags: the linker's other flags.
        directory: the store's directory for what can be made again.
    """
    is_thin = "CONFIG_LTO_CLANG_THIN=y" in config_lines
    if not is_thin or any("--lto-basic-block" in flag for flag in ldflags):
        return ()
    known = json.dumps((toolchain.identity(), ldflags), sort_keys=True)
    ours = sha256(known.encode()).hexdigest()[:16]
    flags = (
        f"--thinlto-cache-dir={directory}/thinlto/{ours}-$(kernels)",
        f"--thinlto-cache-policy=cache_size_bytes={_KEPT_LINKED}",
    )
    kernels = "$(firstword $(shell echo '$(KBUILD_LDFLAGS)' | sha256sum))"
    kept = f"$(foreach kernels,{kernels},{' '.join(flags)})"
    # Not in the makes before and below the one that sets the kernel's flags, where these would
    # refer to each other.
    is_set = "$(filter simple,$(flavor KBUILD_LDFLAGS))"
    return (f"$(if {is_set},{kept})",)
