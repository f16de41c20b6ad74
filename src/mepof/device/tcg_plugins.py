"""Plugins of QEMU's translator: which artifact holds the one that a session needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.device.observation import ArtifactNeed, Branches, Measure

#: Counts instructions and branches.
COUNTER = "count.so"
#: Models a core beside counting.
PMU = "pmu.so"
#: Records branches.
RECORDER = "record.so"
#: Says how often which code is executed.
EXECUTIONS = "executions.so"

# Each is the name both of the artifact and of the kind of step that makes it.
_PLUGINS = "plugins"
_PMU = "pmu"
_EXECUTIONS = "executions"


def needed(observed: Measure | Branches) -> tuple[str, str]:
    """The artifact, and the plugin in it."""
    match observed:
        case Measure(core=None, locations=True):
            return _EXECUTIONS, EXECUTIONS
        case Measure(core=None):
            return _PLUGINS, COUNTER
        case Measure():
            return _PMU, PMU
        case Branches():
            return _PLUGINS, RECORDER


def needs(observed: Measure | Branches) -> Mapping[str, ArtifactNeed]:
    """The artifact by its name, as the step that makes it."""
    artifact, plugin = needed(observed)
    return {artifact: ArtifactNeed(artifact, files=(plugin,))}


def path(observed: Measure | Branches, artifacts: Mapping[str, Path]) -> Path:
    """The plugin, among the artifacts that were made."""
    artifact, plugin = needed(observed)
    return artifacts[artifact] / plugin
