"""What decides the result of a step, and the hash of it.

The digests of inputs are those of their content, not of how they were made: when a step
that ran again makes the same files as before, the steps after it are still in the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from mepof.errors import InputError
from mepof.plan.body import StepBody
from mepof.plan.model import Json, Step

# Raised when the meaning of a fingerprint or the layout of an artifact changes, so that
# results of older versions are made anew.
_FORMAT = 1


@dataclass(frozen=True)
class Ingredients:
    """Everything that decides what a step makes.

    Attributes:
        kind: the step's kind.
        version: the ``version`` of its body, if the body has one.
        params: the step's parameters.
        inputs: content digest of every input by its name.
        tools: what the body's ``identity`` said.
    """

    kind: str
    version: str | None
    params: Mapping[str, Json]
    inputs: Mapping[str, str]
    tools: Mapping[str, str]

    @classmethod
    def of(
        cls, step: Step, body: StepBody, inputs: Mapping[str, str], tools: Mapping[str, str]
    ) -> Ingredients:
        """The ingredients of a step whose inputs have these digests."""
        version = getattr(body, "version", None)
        return cls(
            step.kind,
            None if version is None else str(version),
            dict(step.params),
            dict(inputs),
            dict(tools),
        )

    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of the canonical JSON of all of it."""
        text = json.dumps(
            {"format": _FORMAT, **asdict(self)}, sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(text.encode()).hexdigest()


def body_of(step: Step, bodies: Mapping[str, StepBody]) -> StepBody:
    """The body that does a step.

    Raises:
        InputError: no body has the step's kind.
    """
    if step.kind not in bodies:
        raise InputError(
            f"step {step.id} is of the kind `{step.kind}`, which nothing provides",
            "install the package that adds it",
        )
    return bodies[step.kind]
