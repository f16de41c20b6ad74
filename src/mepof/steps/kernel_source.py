"""``kernel-source``: a kernel tree of its own for the store, from wherever it comes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.errors import InputError
from mepof.kernel import source
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import HostInput, Step


class KernelSource:
    """Params: ``debian`` (a package spec). Inputs: ``origin`` (directory or tarball)."""

    kind = "kernel-source"
    phase: Phase = "other"

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        given = step.inputs.get("origin")
        if isinstance(given, HostInput) and "://" in given.path:
            raise InputError(
                f"{given.path} is not fetched", "download it, and name the tarball or a directory"
            )
        origin = _debian(step)
        return {} if origin is None else {"source": file_digest(origin)}

    def run(self, context: StepContext) -> None:
        origin = _debian(context.step) or context.inputs["origin"]
        context.note(f"unpacking {origin}")
        version = source.unpack(origin, context.output, context.run)
        context.note(f"Linux {version}")


def _debian(step: Step) -> Path | None:
    spec = step.params.get("debian")
    package = source.debian_package(str(spec)) if spec is not None else None
    return source.debian_tarball(package) if package is not None else None


BODY = KernelSource()
