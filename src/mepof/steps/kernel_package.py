"""``kernel-package``: packages a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mepof import arch
from mepof.kernel.modules import Modules
from mepof.kernel.release import release_of
from mepof.package.protocol import FORMATS, Kernel
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.process import find_tool, version_line
from mepof.spec.kernel_package import KernelPackage
from mepof.toolchain.protocol import select

_VERSION = re.compile(r"\d+(\.\d+)*(-rc\d+)?")


class KernelPackageBody:
    """Makes ``package.SUFFIX`` and, if the format has any, ``package.WORD.SUFFIX``."""

    kind = KernelPackage.kind
    phase: Phase = "other"
    version = 2

    def check(self, step: Step) -> None:
        """Refuse what cannot be packaged."""
        asked = KernelPackage[Input].of(step, step.inputs)
        given = Path(asked.given.path) if isinstance(asked.given, HostInput) else None
        FORMATS.get(asked.format).check(arch.get(asked.arch), given)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = KernelPackage[Input].of(step, step.inputs)
        programs = {
            name: version_line(find_tool(name, f"apt-get install {package}"))
            for name, package in FORMATS.get(asked.format).programs
        }
        return {
            **select(asked.toolchain).identity(arch.get(asked.arch)),
            **FORMATS.identity(asked.format),
            **programs,
        }

    def run(self, context: StepContext) -> None:
        asked = KernelPackage[Path].of(context.step, context.inputs)
        toolchain, target = select(asked.toolchain), arch.get(asked.arch)
        used = FORMATS.get(asked.format)
        release = release_of(asked.kernel / "vmlinux")
        stripped: dict[str, Path] = {}
        made = Modules.find(asked.kernel)
        if made is not None and not used.has_modules:
            name = context.step.id.rpartition("/")[0]
            context.note(
                f"the package has no modules: those of the kernel are in {name}.modules.tar"
            )
        elif made is not None:
            objcopy = toolchain.tool("objcopy", target)
            copies = made.stripped(asked.kernel, objcopy, context.work, context.run)
            stripped = {module.path: copy for module, copy in copies}
        version = _VERSION.match(release)
        kernel = Kernel(
            release=release,
            version=release if version is None else version[0],
            arch=target,
            compiler=f"{asked.toolchain} {toolchain.version}",
            build=asked.kernel,
            modules=stripped,
            revision=asked.revision,
            compilers=toolchain.packages(),
        )
        used.write(kernel, asked.given, context.output / f"package.{used.suffix}")


BODY = KernelPackageBody()
