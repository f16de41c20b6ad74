"""The ingredients that determine the result of a step, and their hash.

Digests of inputs cover their content, not how they were made: if a step runs again and makes
the same files, the steps after it are still in the store.
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
# results of older versions are rebuilt.
_FORMAT = 1


@dataclass(frozen=True)
class Ingredients:
    """Everything that determines the result of a step.

    Attributes:
        kind: the step's kind.
        version: the ``version`` of its body, if the body has one.
        params: the step's parameters.
        inputs: content digest of every input, by name.
        tools: the result of the body's ``identity``.
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
        """SHA-256 of the canonical JSON of all ingredients, in hexadecimal."""
        text = json.dumps(
            {"format": _FORMAT, **asdict(self)}, sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(text.encode()).hexdigest()


def body_of(step: Step, bodies: Mapping[str, StepBody]) -> StepBody:
    """The body that performs a step.

    Raises:
        InputError: no body has the step's kind.
    """
    if step.kind not in bodies:
        raise InputError(
            f"step {step.id} is of the unknown kind `{step.kind}`",
            "install the package that provides it",
        )
    return bodies[step.kind]
