"""``kernel-source``: fetches a kernel source tree into the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mepof.errors import WorkError
from mepof.kernel.source import version_of
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.plan.pin import Pinning
from mepof.source.protocol import Workshop, source_of
from mepof.source.unfinished import unfinished
from mepof.spec.kernel_source import KernelSource


class KernelSourceBody:
    """Fetches, copies or unpacks the source tree."""

    kind = KernelSource.kind
    phase: Phase = "other"

    def check(self, step: Step) -> None:
        """Refuse what is not kernel source, as far as no server is asked."""
        address = _address(KernelSource[Input].of(step, step.inputs))
        source_of(address).check(address)

    def pin(self, step: Step, pinning: Pinning) -> Step:
        """Settle what the address leaves open."""
        asked = KernelSource[Input].of(step, step.inputs)
        if asked.address is None or asked.pin is not None:
            return step
        workshop = Workshop(
            cache=pinning.cache,
            work=pinning.work,
            run=pinning.run,
            note=pinning.note,
            cancel=pinning.cancel,
            progress=lambda done, total, unit: None,
        )
        pin = source_of(asked.address).pin(asked.address, workshop)
        # What is settled already keeps the fingerprint of its text alone.
        return asked.model_copy(update={"pin": pin}).step(step.id) if pin else step

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = KernelSource[Input].of(step, step.inputs)
        address = _address(asked)
        return source_of(address).identity(address, asked.pin or {})

    def run(self, context: StepContext) -> None:
        asked = KernelSource[Path].of(context.step, context.inputs)
        address = asked.address or str(asked.origin)
        if asked.address is not None and asked.origin is not None:
            # A recipe may run in another directory than its program.
            _, mark, fragment = asked.address.partition("#")
            address = f"{asked.origin}{mark}{fragment}"
        workshop = Workshop(
            cache=context.cache,
            work=context.work,
            run=context.run,
            note=context.note,
            cancel=context.cancel,
            progress=context.progress,
        )
        context.note(f"unpacking {address}")
        source_of(address).fetch(address, asked.pin or {}, context.output, workshop)
        for message, remedy in unfinished(context.output):
            context.note(f"{message}: {remedy}")
        context.note(f"Linux {version_of(context.output, address)}")


def _address(asked: KernelSource[Input]) -> str:
    if asked.address is not None:
        return asked.address
    if isinstance(asked.origin, HostInput):
        return asked.origin.path
    raise WorkError("the step does not name a kernel source")


BODY = KernelSourceBody()
