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
_DIRECTORY = {
    True: "objects may be anywhere: `make`, `make O=…`.",
    False: "the profile names files as seen from a directory of the tree: `make O=build`.",
}
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
        directory=_DIRECTORY[recipe.portable.anywhere and not recipe.same_build],
        source=_SOURCE[recipe.same_build],
    )


FORMAT = SourcePackage()
