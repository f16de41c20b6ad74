"""How much two AutoFDO profiles differ, by the totals of their functions."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FUNCTION = re.compile(r"^(\S.*):(\d+):\d+$", re.MULTILINE)


@dataclass(frozen=True)
class Difference:
    """Of two profiles.

    Attributes:
        functions: of the first, and of the second.
        samples: of the first, and of the second.
        share: of the first's samples, how many lie in functions whose totals differ by more
            than 0.1 %.
    """

    functions: tuple[int, int]
    samples: tuple[int, int]
    share: float


def totals(profile: Path) -> dict[str, int]:
    """Total samples of each function, as ``llvm-profdata`` tells them."""
    merge = ["llvm-profdata-22", "merge", "--sample", "--text", "-o", "-"]
    text = subprocess.run([*merge, str(profile)], capture_output=True, text=True, check=True).stdout
    return {name: int(total) for name, total in _FUNCTION.findall(text)}


def difference(first: Mapping[str, int], second: Mapping[str, int]) -> Difference:
    """What `second` has otherwise than `first`."""
    off = sum(
        total for name, total in first.items() if abs(second.get(name, 0) - total) > total / 1000
    )
    samples = sum(first.values())
    return Difference(
        (len(first), len(second)), (samples, sum(second.values())), off / samples if samples else 0
    )
