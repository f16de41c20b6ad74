"""``plugins``: builds the emulator plugins that count and record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mepof.device.tcg_plugins import COUNTER, RECORDER
from mepof.kernel.overlay import native_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import Step
from mepof.process import find_tool, version_line


@dataclass(frozen=True)
class PluginsBody:
    """Makes plugins that gcc alone compiles.

    Attributes:
        room: the directory of their Makefile, below that of our native sources.
        sources: patterns of all files that they are made of.
        plugins: the files that are made.
    """

    kind: str
    room: str
    sources: tuple[str, ...]
    plugins: tuple[str, ...]
    phase: Phase = "build"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        gcc = find_tool("gcc", "apt-get install gcc")
        return {"native": native_digest(*self.sources), "gcc": version_line(gcc)}

    def run(self, context: StepContext) -> None:
        directory = native_directory() / self.room
        context.run(["make", "-C", directory, f"OUT={context.work}"])
        for plugin in self.plugins:
            (context.output / plugin).write_bytes((context.work / plugin).read_bytes())


BODY = PluginsBody("plugins", "tcg-plugin", ("tcg-plugin/*", "abi/*/*.h"), (COUNTER, RECORDER))
