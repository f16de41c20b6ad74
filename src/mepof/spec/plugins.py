"""``plugins`` and ``pmu``: the emulator plugins."""

from __future__ import annotations

from typing import ClassVar, Generic

from mepof.plan.typed import In, StepModel


class Plugins(StepModel[In], Generic[In]):
    """The plugins that count and record."""

    kind: ClassVar[str] = "plugins"


class PmuPlugin(StepModel[In], Generic[In]):
    """The plugin that models a core."""

    kind: ClassVar[str] = "pmu"
