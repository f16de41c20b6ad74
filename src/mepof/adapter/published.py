"""What is known of a release that was published: ``provenance.json`` in its directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mepof.described import first_error
from mepof.errors import WorkError

FILE = "provenance.json"


class Refreshed(BaseModel):
    """What of a profile was counted on its release; the rest is of earlier ones.

    Attributes:
        files: that were instrumented.
        percent: the share of the samples of the profile before in functions that had changed.
        total_percent: the same, of all releases since all of it was counted.
        trained: the release on which all of it was.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...]
    percent: float
    total_percent: float
    trained: str

    def __str__(self) -> str:
        return f"{len(self.files)} files with {self.percent:.1f} % of the samples"


class Origin(BaseModel):
    """Where a profile comes from.

    Attributes:
        file: its name in the directory of the release.
        release: the release that was trained.
        refreshed: what of it was counted there, if that is not all.
        source: the step that fetches its source, as in ``plan.json``.
        artifact: directory with the whole profile: what it is of, and what ran; None of
            releases that were published without it.
        objects: those in which something ran, if that is known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    release: str
    source: dict[str, Any]
    artifact: str | None = None
    objects: tuple[str, ...] | None = None
    refreshed: Refreshed | None = None

    def used(self, directory: Path) -> Path:
        """What a program builds with: all that is known of the profile, or its file alone."""
        return directory / (self.artifact or self.file)


class Published(BaseModel):
    """How a release was made.

    Attributes:
        template: the program, in which ``{source}`` stands for the release.
        program: the program that ran.
        profile: ``reuse``, ``refresh`` or ``full``, and why.
        changed: by result, the share of samples in functions that changed, in percent.
        compilers: the version of each toolchain.
        profiles: by result.
        compared_with: the release that the images were compared with.
        published_at: ISO 8601 in UTC.
        packages: files that a package manager installs from a repository.
        sha256: of every file, by its path.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_name: ClassVar[str] = "mepof-provenance/1"

    follow: str
    release: str
    address: str
    template: str
    program: str
    profile: str
    reason: str
    changed: Mapping[str, float]
    compilers: Mapping[str, str]
    profiles: Mapping[str, Origin]
    compared_with: str | None
    published_at: str
    packages: tuple[str, ...] = ()
    sha256: Mapping[str, str] = {}

    @classmethod
    def read(cls, directory: Path) -> Self:
        """What a directory says of itself.

        Raises:
            WorkError: it says nothing, or nothing valid.
        """
        path = directory / FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise WorkError(f"{path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise WorkError(f"{path} is not valid: {first_error(error)}") from error
