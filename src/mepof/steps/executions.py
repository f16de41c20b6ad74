"""``executions``: builds the emulator plugin that says which code is executed.

It is separate from the step ``plugins``, so that a change of it repeats nothing that was measured
or trained with those.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mepof.device.tcg_plugins import EXECUTIONS
from mepof.kernel.overlay import files_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.process import find_tool, version_line

_SOURCES = (
    "executions/*",
    "tcg-plugin/decode*",
    "tcg-plugin/marks*",
    "tcg-plugin/qemu_plugin_api.h",
    "abi/*/*.h",
)


class ExecutionsPluginBody:
    """Makes ``executions.so``."""

    kind = "executions"
    phase: Phase = "build"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        gcc = find_tool("gcc", "apt-get install gcc")
        return {"native": _sources_digest(), "gcc": version_line(gcc)}

    def run(self, context: StepContext) -> None:
        directory = native_directory() / "executions"
        context.run(["make", "-C", directory, f"OUT={context.work}"])
        (context.output / EXECUTIONS).write_bytes((context.work / EXECUTIONS).read_bytes())


@cache
def _sources_digest() -> str:
    root = native_directory()
    files = sorted(path for pattern in _SOURCES for path in root.glob(pattern))
    return files_digest(root, (path for path in files if path.is_file()))


BODY = ExecutionsPluginBody()
