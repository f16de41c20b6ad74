"""``pmu``: the emulator's plugin that models a core, from our own sources.

It is no part of the step ``guest``, so that a change of the model makes no guest anew, nor what
was measured or built with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mepof.device.tcg_plugins import PMU
from mepof.errors import EnvironmentLack
from mepof.kernel.overlay import files_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.process import find_tool, run, version_line
from mepof.toolchain import clang

_SOURCES = (
    "pmu/*",
    "tcg-plugin/decode*",
    "tcg-plugin/marks*",
    "tcg-plugin/qemu_plugin_api.h",
    "abi/*/*.h",
)


class PmuPlugin:
    """No params, no inputs. Makes ``pmu.so``."""

    kind = "pmu"
    phase: Phase = "build"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {
            "native": _sources_digest(),
            "gcc": version_line(find_tool("gcc", "apt-get install gcc")),
            "g++": version_line(find_tool("g++", "apt-get install g++")),
            # Whose scheduling models are read when it runs.
            "llvm": run([llvm_config(), "--version"]).output.strip(),
        }

    def run(self, context: StepContext) -> None:
        directory = native_directory() / "pmu"
        context.run(
            ["make", "-C", directory, f"OUT={context.work}", f"LLVM_CONFIG={llvm_config()}"]
        )
        (context.output / PMU).write_bytes((context.work / PMU).read_bytes())


@cache
def llvm_config() -> str:
    """The program that tells where the LLVM is whose scheduling models are read.

    Raises:
        EnvironmentLack: it or LLVM's headers are missing.
    """
    suffix = clang.models_suffix(clang.select("clang").suffix)
    remedy = f"apt-get install llvm{suffix}-dev"
    program = find_tool(f"llvm-config{suffix}", remedy)
    headers = Path(run([program, "--includedir"]).output.strip())
    if not (headers / "llvm/MC/MCSchedule.h").is_file():
        raise EnvironmentLack(f"the headers of LLVM{suffix} are not installed", remedy)
    return program


@cache
def _sources_digest() -> str:
    root = native_directory()
    files = sorted(path for pattern in _SOURCES for path in root.glob(pattern))
    return files_digest(root, (path for path in files if path.is_file()))


BODY = PmuPlugin()
