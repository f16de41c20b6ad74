"""The newest artifacts of a store."""

from __future__ import annotations

from pathlib import Path

from mepof.kernel.image import read_image
from mepof.plan.store import Store


def newest(store: Store, arch: str) -> dict[str, Path]:
    """The newest artifact of each step that is still there.

    Args:
        arch: of the kernels: a program for another architecture may have the same steps.
    """
    found = {}
    for action in sorted(store.actions(), key=lambda action: action.made_at):
        made = store.object(action.artifact.digest)
        kernel = made / "kernel"
        if made.exists() and (not kernel.is_file() or read_image(kernel).arch == arch):
            found[action.step] = made
    return found
