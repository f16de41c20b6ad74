"""``source``: a kernel with a profile as its own build system makes it: a patch for the tree, the
profile, and the options, in a tar archive."""

from __future__ import annotations

import tarfile
from pathlib import Path

from mepof.arch import Arch
from mepof.package.contents import File, add
from mepof.package.protocol import Kernel, Recipe

_README = """\
# {title}

`mepof` made this from Linux {version} for {arch}. With it, make builds the kernel with its profile
from the same tree, whoever calls make:

```sh
cd linux-{version}
patch -p1 < ../{top}/mepof.patch
cp -r ../{top}/mepof .
```

- **Configuration**: yours, with the lines of `mepof.config`, as
  `scripts/kconfig/merge_config.sh -m .config ../{top}/mepof.config` adds them. `config` is the one
  of the kernel that was built and booted.
- **Compiler**: {compiler}, or another of the same major version.
- **Directory**: {directory}
- **Source**: {source}

`mepof.patch` changes makefiles, the linker script and tools, and no code that runs. The flags are
in `mepof/flags.mk`, those of single files in `mepof/selected.mk`; without this directory, make
stops.
"""
_ANYWHERE = "objects may be anywhere: `make`, `make O=…`."
_IN_BUILD = "the profile names files as seen from a directory of the tree: `make O=build`."
# What is imported is found by the name that the compiler has for its file.
_BEST_IN_TREE = """\
objects belong in the tree: `make`. Elsewhere, by `O=…`, ThinLTO does not inline
  static functions of other files that are called by pointers; the rest of the gain stays."""
_THIN = "CONFIG_LTO_CLANG_THIN=y"
_SOURCE = {
    True: "the profile fits only this source, with the configuration `config` and this compiler.",
    False: "what differs in another release is built without the profile.",
}


class SourcePackage:
    """An archive for another build system."""

    suffix = "source.tar"
    beside = False
    takes_file = False
    has_modules = False
    of_source = True
    programs: tuple[tuple[str, str], ...] = ()

    def check(self, arch: Arch, given: Path | None) -> None:
        """Every architecture will do."""

    def write(self, kernel: Kernel, given: Path | None, target: Path) -> None:
        assert kernel.recipe is not None
        made = kernel.recipe.portable
        top = f"linux-{kernel.version}-mepof"
        files: dict[str, File] = {
            "README.md": _readme(kernel, kernel.recipe, top).encode(),
            "config": kernel.build / "config",
            "mepof.config": "".join(f"{line}\n" for line in made.config_lines).encode(),
            "mepof.patch": made.patch,
            **made.files,
        }
        with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
            for name, content in sorted(files.items()):
                add(tar, f"{top}/{name}", content)


def _readme(kernel: Kernel, recipe: Recipe, top: str) -> str:
    used = "+".join(recipe.algorithms)
    return _README.format(
        title=f"Linux {kernel.version}, {used}" if used else f"Linux {kernel.version}",
        version=kernel.version,
        top=top,
        compiler=kernel.compiler,
        arch=kernel.arch.name,
        directory=_directory(kernel, recipe),
        source=_SOURCE[recipe.same_build],
    )


def _directory(kernel: Kernel, recipe: Recipe) -> str:
    """Which directories of objects the profile fits."""
    if recipe.same_build or not recipe.portable.anywhere:
        return _IN_BUILD
    config = (kernel.build / "config").read_text(encoding="utf-8").splitlines()
    return _BEST_IN_TREE if recipe.portable.relocated and _THIN in config else _ANYWHERE


FORMAT = SourcePackage()
