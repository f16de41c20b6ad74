"""What a virtual phone keeps when it is off: lock, slots, battery, and its partitions."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field, ValidationError

from mepof.bootimg.model import Model
from mepof.described import Described, first_error
from mepof.disk import replacing
from mepof.errors import InputError, WorkError

MAX_RETRIES = 7
"""How often a slot is tried before it counts as unbootable."""

MIB = 1 << 20
SlotName = Literal["a", "b"]


class Refused(Exception):
    """A command fails with this text."""


class Slot(Described):
    """A slot's attributes, as the GPT of a phone has them."""

    retry_count: Annotated[int, Field(ge=0, le=MAX_RETRIES)] = MAX_RETRIES
    successful: bool = False
    unbootable: bool = False


class State(Described):
    """What changes.

    Attributes:
        unlockable: whether "OEM unlocking" is on.
        boots: how often an operating system was started.
        arch: of the processor; None for a phone that stays in fastboot.
        trusted: SHA-256 of the maker's boot images, which a locked phone starts.
        logical: sizes of logical partitions, which only ``fastbootd`` knows.
        update: of the system; ``snapshotted`` and ``merging`` are not finished.
    """

    unlocked: bool = False
    unlockable: bool = True
    slot: SlotName = "a"
    a: Slot = Slot(successful=True)
    b: Slot = Slot(retry_count=0, unbootable=True)
    battery_mv: int = 4100
    boots: int = 0
    arch: str | None = None
    trusted: tuple[str, ...] = ()
    logical: Mapping[str, int] = {}
    update: Literal["none", "snapshotted", "merging"] = "none"

    def of(self, name: SlotName) -> Slot:
        """A slot."""
        return self.a if name == "a" else self.b

    def with_slot(self, name: SlotName, **changes: object) -> State:
        """The state with other attributes of a slot."""
        return self.model_copy(update={name: self.of(name).model_copy(update=changes)})


_PARTITIONS = {
    "boot": 64 * MIB,
    "init_boot": 64 * MIB,
    "vendor_boot": 64 * MIB,
    "dtbo": 8 * MIB,
    "vbmeta": MIB // 16,
    "userdata": 64 * MIB,
    "misc": MIB,
}


def _model(title: str, start: int) -> Model:
    reserved = {"name": "boot loader", "start": start + 1008 * MIB, "size": 8 * MIB}
    memory = {"start": start, "size": 1016 * MIB, "reserved": [reserved]}
    return Model.model_validate_json(
        json.dumps(
            {
                "title": "mepof-virtual",
                "source": title,
                "memory": memory,
                "partitions": _PARTITIONS,
                "compressions": ["gzip", "lz4-legacy", "xz"],
            }
        )
    )


DEFAULT_MODEL = _model("QEMU's machine virt, with 1 GiB of memory", 0x40000000)
_MODELS = {"x86-64": _model("QEMU's machine microvm, with 1 GiB of memory", MIB)}


def model_of(arch: str | None) -> Model:
    """The model of a virtual phone with a processor of an architecture."""
    return _MODELS.get(arch or "", DEFAULT_MODEL)


def limits_of(model: Model) -> str:
    """The description of a model, as ``mepof bootimg plan`` and the device ``phone`` read it."""
    lines = [
        f"title = {json.dumps(model.title)}",
        f"source = {json.dumps(model.source)}",
        f"device_tree_growth = {model.device_tree_growth}",
        f"compressions = {json.dumps(list(model.compressions))}",
        "",
        "[memory]",
        f"start = {model.start:#x}",
        f"size = {model.size:#x}",
        *(
            f"[[memory.reserved]]\nname = {json.dumps(each.name)}\n"
            f"start = {each.start:#x}\nsize = {each.size:#x}"
            for each in model.memory.reserved
        ),
        "",
        "[partitions]",
        *(f"{name} = {size}" for name, size in model.partitions.items()),
    ]
    return "\n".join(lines) + "\n"


_SERIAL_DIGITS = 8
_WITHOUT_SLOT = ("userdata", "misc", "recovery")


class Storage:
    """A virtual phone's directory: ``state.json``, and a file for each partition.

    Every change is a rename, so a phone whose process is killed has the old content or the new.

    Attributes:
        serial: the phone's serial number. That of the directory is not kept in it, since a copy of
            the directory is another phone.
    """

    def __init__(self, directory: Path, model: Model, serial: str | None = None) -> None:
        self.directory = directory
        path = os.fsencode(directory.resolve())
        self.serial = serial or f"mepof-{sha256(path).hexdigest()[:_SERIAL_DIGITS]}"
        self.sizes: dict[str, int] = {}
        for name, size in model.partitions.items():
            for suffix in ("",) if name in _WITHOUT_SLOT else ("_a", "_b"):
                self.sizes[f"{name}{suffix}"] = size

    def claim(self) -> IO[bytes]:
        """Keep other processes from the directory for as long as the file is open.

        Raises:
            InputError: another process plays this phone.
            WorkError: the directory cannot be written.
        """
        path = self.directory / "lock"
        try:
            lock = path.open("ab")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise InputError(
                f"another process plays the phone {self.directory}",
                "end that one, or name another directory",
            ) from error
        except OSError as error:
            raise WorkError(f"{path} cannot be written: {error.strerror}") from error
        return lock

    def load(self) -> State:
        """The state; that of a new phone if there is none.

        Raises:
            InputError: it was edited and is wrong.
        """
        path = self.directory / "state.json"
        try:
            return State.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return State()
        except ValidationError as error:
            raise InputError(
                f"{path} is not a phone's state: {first_error(error)}", "remove it"
            ) from error

    def save(self, state: State) -> None:
        """Keep the state."""
        self._write("state.json", state.model_dump_json(indent=1).encode())

    def read(self, partition: str) -> bytes:
        """A partition's content, without the zeros behind what was flashed."""
        path = self.directory / f"{partition}.img"
        return path.read_bytes() if path.exists() else b""

    def write(self, partition: str, data: bytes) -> None:
        """Flash a partition."""
        self._write(f"{partition}.img", data)

    def erase(self, partition: str) -> None:
        """Make a partition empty."""
        (self.directory / f"{partition}.img").unlink(missing_ok=True)

    def _write(self, name: str, data: bytes) -> None:
        path = self.directory / name
        try:
            with replacing(path) as partial:
                partial.write_bytes(data)
        except OSError as error:
            raise WorkError(f"{path} cannot be written: {error.strerror}") from error
