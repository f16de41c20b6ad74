"""The record that a step made an artifact, and from what."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from mepof.plan.fingerprint import Ingredients


@dataclass(frozen=True)
class Artifact:
    """A committed tree: its content digest, and the digest of its listing for cheap checks."""

    digest: str
    listing: str


@dataclass(frozen=True)
class Action:
    """Says that a step made an artifact, and from what.

    Attributes:
        fingerprint: of ``ingredients``.
        seconds: wall time that the step took.
        made_at: when it finished, ISO 8601 in UTC.
    """

    fingerprint: str
    step: str
    ingredients: Ingredients
    artifact: Artifact
    seconds: float
    made_at: str

    def to_json(self) -> str:
        """The action as JSON text."""
        document = {
            "fingerprint": self.fingerprint,
            "step": self.step,
            **asdict(self.artifact),
            **asdict(self.ingredients),
            "seconds": self.seconds,
            "made_at": self.made_at,
        }
        return json.dumps(document, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Action:
        """The action in a JSON text; ValueError, KeyError or TypeError if it is not one."""
        d = json.loads(text)
        return cls(
            d["fingerprint"],
            d["step"],
            Ingredients(d["kind"], d["version"], d["params"], d["inputs"], d["tools"]),
            Artifact(d["digest"], d["listing"]),
            d["seconds"],
            d["made_at"],
        )
