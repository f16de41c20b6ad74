"""``pmu``: builds the emulator plugin that models a core.

It is separate from the step ``guest``, so that a change of the model does not rebuild the guest
or repeat what was measured or built with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from mepof.device.tcg_plugins import PMU
from mepof.kernel.overlay import native_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.process import find_tool, run, version_line
from mepof.toolchain.scheduling_models import llvm_config

_SOURCES = (
    "pmu/*",
    "tcg-plugin/decode*",
    "tcg-plugin/marks*",
    "tcg-plugin/qemu_plugin_api.*",
    "tcg-plugin/qemu_register_api.h",
    "tcg-plugin/registers*",
    "tcg-plugin/repeats.h",
    "tcg-plugin/turns*",
    "abi/*/*.h",
)


class PmuPluginBody:
    """Makes ``pmu.so``."""

    kind = "pmu"
    phase: Phase = "build"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {
            "native": native_digest(*_SOURCES),
            "gcc": version_line(find_tool("gcc", "apt-get install gcc")),
            "g++": version_line(find_tool("g++", "apt-get install g++")),
            # The plugin reads its scheduling models at run time.
            "llvm": run([llvm_config(), "--version"]).output.strip(),
        }

    def run(self, context: StepContext) -> None:
        directory = native_directory() / "pmu"
        given = (f"OUT={context.work}", f"LLVM_CONFIG={llvm_config()}")
        context.run(["make", "-C", directory, *given])
        (context.output / PMU).write_bytes((context.work / PMU).read_bytes())


BODY = PmuPluginBody()
