"""JSON documents in artifacts, by which steps pass data on, each with a frozen model."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mepof.described import first_error
from mepof.errors import WorkError


class Document(BaseModel):
    """A document; ``file`` is its name in an artifact."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: ClassVar[str]

    def write(self, directory: Path) -> None:
        """Write it into an artifact."""
        text = self.model_dump_json(indent=1)
        (directory / self.file).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The document in an artifact.

        Raises:
            WorkError: it is missing or invalid.
        """
        path = directory / cls.file
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise WorkError(f"{path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise WorkError(f"{path} is not valid: {first_error(error)}") from error

    @classmethod
    def find(cls, directory: Path) -> Self | None:
        """The document in an artifact, or None if the artifact has none."""
        return cls.read(directory) if (directory / cls.file).is_file() else None
