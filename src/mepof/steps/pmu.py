"""``pmu``: the emulator's plugin that models a core, from our own sources.

It is no part of the step ``guest``, so that a change of the model makes no guest anew, nor what
was measured or built with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mepof.kernel.overlay import files_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.process import find_tool, run

PLUGIN = "pmu.so"
_SOURCES = ("pmu/*", "tcg-plugin/decode*", "tcg-plugin/qemu_plugin_api.h")


class PmuPlugin:
    """No params, no inputs. Makes ``pmu.so``."""

    kind = "pmu"
    phase: Phase = "build"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        gcc = find_tool("gcc", "apt-get install gcc")
        return {
            "native": _sources_digest(),
            "gcc": run([gcc, "--version"]).output.splitlines()[0],
        }

    def run(self, context: StepContext) -> None:
        context.run(["make", "-C", native_directory() / "pmu", f"OUT={context.work}"])
        (context.output / PLUGIN).write_bytes((context.work / PLUGIN).read_bytes())


@cache
def _sources_digest() -> str:
    root = native_directory()
    files = sorted(path for pattern in _SOURCES for path in root.glob(pattern))
    return files_digest(root, (path for path in files if path.is_file()))


BODY = PmuPlugin()
