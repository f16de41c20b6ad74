"""``kernel-package``: packages a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from mepof import arch
from mepof.algorithm.protocol import ALGORITHMS
from mepof.errors import InputError
from mepof.kernel.description import Safety
from mepof.kernel.modules import Modules
from mepof.kernel.overlay import native_digest
from mepof.kernel.portable import portable
from mepof.kernel.release import release_of
from mepof.package.protocol import FORMATS, Kernel, Recipe
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.process import find_tool, version_line
from mepof.spec.kernel_package import KernelPackage
from mepof.steps.kernel_ingredients import ingredients_of, requirements
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

_VERSION = re.compile(r"\d+(\.\d+)*(-rc\d+)?")


class KernelPackageBody:
    """Makes ``package.SUFFIX`` and, if the format has any, ``package.WORD.SUFFIX``."""

    kind = KernelPackage.kind
    phase: Phase = "other"
    version = 3

    def check(self, step: Step) -> None:
        """Refuse what cannot be packaged."""
        asked = KernelPackage[Input].of(step, step.inputs)
        given = Path(asked.given.path) if isinstance(asked.given, HostInput) else None
        used = FORMATS.get(asked.format)
        used.check(arch.get(asked.arch), given)
        if used.of_source and asked.built is not None:
            for name, required in requirements(asked.built).items():
                if "binary-layout" in required:
                    raise InputError(
                        f"{name} rewrites the finished kernel, which make does not do",
                        f"package it in another format than {asked.format}, or use another "
                        "algorithm",
                    )

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = KernelPackage[Input].of(step, step.inputs)
        used = FORMATS.get(asked.format)
        needed = used.programs
        if isinstance(asked.given, HostInput) and hasattr(used, "programs_for"):
            needed += used.programs_for(Path(asked.given.path))
        programs = {
            name: version_line(find_tool(name, f"apt-get install {package}"))
            for name, package in needed
        }
        return {
            **select(asked.toolchain).identity(arch.get(asked.arch)),
            **FORMATS.identity(asked.format),
            **programs,
            **({"overlays": native_digest("overlays/**/*")} if used.of_source else {}),
        }

    def run(self, context: StepContext) -> None:
        asked = KernelPackage[Path].of(context.step, context.inputs)
        toolchain, target = select(asked.toolchain), arch.get(asked.arch)
        used = FORMATS.get(asked.format)
        release = release_of(asked.kernel / "vmlinux")
        stripped: dict[str, Path] = {}
        made = None if used.of_source else Modules.find(asked.kernel)
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
            compiler=f"{asked.toolchain} {toolchain.version_for(target)}",
            build=asked.kernel,
            modules=stripped,
            revision=asked.revision,
            compilers=toolchain.packages(),
            recipe=_recipe(asked, context) if used.of_source else None,
        )
        used.write(kernel, asked.given, context.output / f"package.{used.suffix}")


def _recipe(asked: KernelPackage[Path], context: StepContext) -> Recipe:
    """What the kernel was built of, without what its checks have left out of the profile."""
    built = asked.built
    assert built is not None
    made = ingredients_of(built, context)
    tools = Tools(made.use.toolchain, context.run)
    safety = Safety.find(asked.kernel)
    spec = made.spec()
    if safety is not None and built.uses:
        spec = made.without(safety.opt_out, context.work, tools)
    same_build = any(ALGORITHMS.get(name).same_build for name in built.uses)
    counts = frozenset(filter(made.are_counts, spec.profiles))
    relocated = context.work / "relocated"
    relocated.mkdir(exist_ok=True)
    changes = portable(spec, counts, built.source, relocated, tools)
    return Recipe(built.uses, same_build, changes)


BODY = KernelPackageBody()
