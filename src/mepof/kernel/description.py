"""What a kernel build says about itself, for the steps after it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from mepof.document import Document
from mepof.kernel.rewriting import Rewritten
from mepof.kernel.safeguard import OptOut


class Origin(BaseModel):
    """What a profile that fits one build only must have in common with it: digests, and the
    compiler's version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    config: str
    compiler: str
    flags: str

    def differences(self, other: Origin) -> tuple[str, ...]:
        """The names of the fields that are not the same."""
        return tuple(
            name for name in type(self).model_fields if getattr(self, name) != getattr(other, name)
        )


class BuildSize(BaseModel):
    """Bytes of the kernel's text, and of its bootable image."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: int
    image: int


class SelectedFlags(BaseModel):
    """Compiler flags of some objects, or of all of them (None)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objects: int | None
    cflags: tuple[str, ...]


class BuildDescription(Document):
    """A finished build."""

    file: ClassVar[str] = "build.json"

    version: str
    origin: Origin
    arch: str
    size_bytes: BuildSize
    sections: dict[str, int]
    cflags: tuple[str, ...]
    selected: tuple[SelectedFlags, ...] = ()
    ldflags: tuple[str, ...]
    variables: dict[str, str]
    config_lines: tuple[str, ...]
    overlays: tuple[str, ...]
    rewritten: Rewritten | None = None

    @property
    def flags(self) -> str:
        """The flags and Kconfig lines that the build adds to the configuration's own."""
        selected = (
            f"[{' '.join(each.cflags)}]({each.objects} files)"
            if each.objects is not None
            else " ".join(each.cflags)
            for each in self.selected
        )
        return " ".join((*self.cflags, *selected, *self.config_lines))


class Safety(Document):
    """How a kernel with a profile, or an instrumented one, passed its checks.

    Attributes:
        release: as the booted kernel calls itself.
        opt_out: what does without the profile, or is not instrumented.
        failure: of the kernel with the whole profile, or instrumented as a whole; None if it
            passed.
        objtool: its warnings, which the kernel without the profile has as well.
        trials: how many kernels were booted to find what must not be instrumented.
    """

    file: ClassVar[str] = "safety.json"

    booted: bool
    self_check: str
    release: str
    opt_out: OptOut
    failure: str | None
    objtool: tuple[str, ...]
    trials: int | None = None

    @model_serializer(mode="wrap")
    def _serialised(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """All fields, without ``trials`` of a kernel that is not instrumented."""
        written: dict[str, Any] = handler(self)
        if self.trials is None:
            del written["trials"]
        return written
