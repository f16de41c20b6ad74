"""``kernel-source``: copies a kernel source tree into the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.errors import InputError
from mepof.kernel import source
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import HostInput, Input, Step
from mepof.spec.kernel_source import KernelSource


class KernelSourceBody:
    """Copies or unpacks the source tree."""

    kind = KernelSource.kind
    phase: Phase = "other"

    def check(self, step: Step) -> None:
        """Refuse what is not kernel source."""
        asked = KernelSource[Input].of(step, step.inputs)
        if asked.debian is not None:
            source.debian_package(asked.debian)
        if isinstance(asked.origin, HostInput):
            source.check(asked.origin.path)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        origin = _debian(KernelSource[Input].of(step, step.inputs).debian)
        return {} if origin is None else {"source": file_digest(origin)}

    def run(self, context: StepContext) -> None:
        asked = KernelSource[Path].of(context.step, context.inputs)
        origin = _debian(asked.debian) or asked.origin
        if origin is None:
            raise InputError(f"{context.step.id} does not name a kernel source")
        context.note(f"unpacking {origin}")
        version = source.unpack(origin, context.output, context.run)
        context.note(f"Linux {version}")


def _debian(spec: str | None) -> Path | None:
    package = source.debian_package(spec) if spec is not None else None
    return source.debian_tarball(package) if package is not None else None


BODY = KernelSourceBody()
