"""What a phone model can load: a file that people write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from mepof.bootimg.compression import NAMES
from mepof.described import Described, check_known, read_described

Bytes64 = Annotated[int, Field(ge=0, lt=1 << 64)]
Partition = Literal[
    "boot", "init_boot", "recovery", "vendor_boot", "dtbo", "vbmeta", "userdata", "misc"
]


class Reserved(Described):
    """Memory that the boot loader or the firmware uses."""

    name: str
    start: Bytes64
    size: Annotated[int, Field(gt=0)]


class Memory(Described):
    """Memory that a boot loader can load to, in bytes."""

    start: Bytes64
    size: Annotated[int, Field(gt=0)]
    reserved: tuple[Reserved, ...] = ()


class Model(Described):
    """A phone model.

    Attributes:
        title: what it is.
        source: where the figures are from.
        partitions: bytes of each.
        device_tree_growth: bytes that the boot loader adds to a device tree.
        compressions: of kernels, that the boot loader decompresses.
    """

    title: str
    source: str
    memory: Memory
    partitions: dict[Partition, Annotated[int, Field(gt=0)]] = Field(default_factory=dict)
    device_tree_growth: Annotated[int, Field(ge=0)] = 65536
    compressions: tuple[str, ...] = ()

    @field_validator("compressions")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_known(name, NAMES, "compression") for name in names)

    @property
    def start(self) -> int:
        """The first address of memory."""
        return self.memory.start

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return self.memory.size

    @property
    def end(self) -> int:
        """The first address behind memory."""
        return self.start + self.size


def read_model(path: Path, remedy: str = "describe it as docs/bootimg.md says") -> Model:
    """Read the description of a model.

    Args:
        remedy: for a file that cannot be read.

    Raises:
        InputError: it cannot be read, or is wrong.
    """
    return read_described(path, Model, "phone model", remedy=remedy)
