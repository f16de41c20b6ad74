"""Where ThinLTO's links keep what they compile: by all flags that decide it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mepof import arch
from mepof.kernel import make_command
from mepof.kernel.build_spec import BuildPaths, BuildSpec
from mepof.process import run
from mepof.toolchain.named import select

THIN = BuildSpec(
    arch.get("x86-64"), (), config_lines=("CONFIG_LTO_CLANG_THIN=y",), ldflags=("-mllvm", "-some=1")
)
# As the kernel's: a first make starts a second one, which sets the flags and starts others.
MAKEFILE = """
ifndef SECOND
show:
\t@$(MAKE) --no-print-directory SECOND=1
else ifndef THIRD
KBUILD_LDFLAGS := -plugin-opt=-stack-alignment=$(ALIGNMENT)
export KBUILD_LDFLAGS
show:
\t@$(MAKE) --no-print-directory THIRD=1
else
show:
\t@echo "$(KBUILD_LDFLAGS)"
endif
ifndef THIRD
KBUILD_LDFLAGS += $(MEPOF_LDFLAGS)
endif
"""


def linked(root: Path, spec: BuildSpec, *words: str) -> str:
    """The flags that a link of the kernel gets."""
    (root / "Makefile").write_text(MAKEFILE)
    paths = BuildPaths(*(root / name for name in ("tree", "work", "out", "log", "cache")))
    command = make_command.words(spec, select("clang"), paths)
    flags = [word for word in command if word.startswith("MEPOF_LDFLAGS=")]
    shown = run(["make", "--no-print-directory", *flags, "ALIGNMENT=8", *words], cwd=root)
    return shown.output.strip()


def directory(root: Path, spec: BuildSpec, *words: str) -> str | None:
    found = re.search(r"--thinlto-cache-dir=(\S+)", linked(root, spec, *words))
    return None if found is None else found[1]


def test_links_with_the_same_flags_share_a_directory_in_the_cache(tmp_path: Path) -> None:
    flags = linked(tmp_path, THIN)
    assert flags.startswith("-plugin-opt=-stack-alignment=8 -mllvm -some=1 --thinlto-cache-dir=")
    assert " --thinlto-cache-policy=cache_size_bytes=" in flags
    kept = directory(tmp_path, THIN)
    assert kept is not None
    assert Path(kept).parent == tmp_path / "cache/thinlto"
    assert directory(tmp_path, replace(THIN, suffix="-7", cflags=("-O3",))) == kept


def test_other_flags_have_another_directory(tmp_path: Path) -> None:
    others = (
        directory(tmp_path, replace(THIN, ldflags=("-mllvm", "-some=2"))),
        directory(tmp_path, replace(THIN, ldflags=())),
        directory(tmp_path, THIN, "ALIGNMENT=16"),
    )
    assert None not in others
    assert len({directory(tmp_path, THIN), *others}) == 4


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (replace(THIN, share=False), ()),
        (replace(THIN, config_lines=()), ()),
        (replace(THIN, ldflags=("--lto-basic-block-sections=mepof-profiles/blocks",)), ()),
        (THIN, ("ALIGNMENT=8'",)),
    ],
    ids=[
        "share off",
        "not linked so",
        "a list of blocks",
        "an odd flag",
    ],
)
def test_what_the_linker_cannot_tell_apart_is_not_shared(
    tmp_path: Path, spec: BuildSpec, words: tuple[str, ...]
) -> None:
    assert directory(tmp_path, spec, *words) is None
