"""``executions``: builds the emulator plugin that says which code is executed.

It is separate from the step ``plugins``, so that a change of it repeats nothing that was measured
or trained with those.
"""

from __future__ import annotations

from mepof.device.tcg_plugins import EXECUTIONS
from mepof.steps.plugins import PluginsBody

BODY = PluginsBody(
    "executions",
    "executions",
    (
        "executions/*",
        "tcg-plugin/decode*",
        "tcg-plugin/marks*",
        "tcg-plugin/qemu_plugin_api.*",
        "abi/*/*.h",
    ),
    (EXECUTIONS,),
)
