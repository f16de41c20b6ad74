"""``fastbootd``: fastboot in user space, which a boot loader hands over to, and logical partitions.

What it answers, and how it fails, is after AOSP's ``system/core/fastboot/device/commands.cpp``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mepof.phone.state import MIB, Refused, State, Storage

SUPER = 256 * MIB
"""Bytes of the partition that the logical ones share."""

_COMMANDS = frozenset(
    {
        "create-logical-partition",
        "delete-logical-partition",
        "resize-logical-partition",
        "download",
        "erase",
        "flash",
        "getvar",
        "reboot",
        "reboot-bootloader",
        "reboot-fastboot",
        "reboot-recovery",
        "set_active",
    }
)
_LOCKED = {
    "flash": "Flashing is not allowed on locked devices",
    "erase": "Erase is not allowed on locked devices",
    "set_active": "set_active command is not allowed on locked devices",
}
_LOGICAL = "-logical-partition"


@dataclass(frozen=True)
class Fastbootd:
    """What differs from the boot loader's commands.

    Attributes:
        keep: stores a state.
    """

    storage: Storage
    keep: Callable[[State], None]

    def check(self, state: State, verb: str) -> None:
        """Refuse a command that it does not have, or not on a locked phone.

        Raises:
            Refused: it is one.
        """
        if verb not in _COMMANDS:
            raise Refused(f"Unrecognized command {verb}")
        if not state.unlocked and (verb in _LOCKED or verb.endswith(_LOGICAL)):
            raise Refused(_LOCKED.get(verb, "Command not available on locked devices"))

    def answers(
        self, state: State, verb: str, argument: str, data: bytes
    ) -> Iterator[tuple[str, str]] | None:
        """The answers about logical partitions; None to all else, which the boot loader answers.

        Args:
            data: that was downloaded.

        Raises:
            Refused: it fails.
        """
        name, _, size = argument.partition(":")
        logical = dict(state.logical)
        if verb == "create-logical-partition":
            if name in logical or name in self.storage.sizes:
                raise Refused("Partition already exists")
            self._resize(state, logical, name, size)
            return iter([("OKAY", "Partition created")])
        if verb.endswith(_LOGICAL) and name not in logical:
            raise Refused("Partition does not exist")
        if verb == "resize-logical-partition":
            self._resize(state, logical, name, size)
            return iter([("OKAY", "Partition resized")])
        if verb == "delete-logical-partition":
            del logical[name]
            self.keep(state.model_copy(update={"logical": logical}))
            self.storage.erase(name)
            return iter([("OKAY", "Partition deleted")])
        for known in (name, f"{name}_{state.slot}"):
            if verb in ("flash", "erase") and known in logical:
                return self._written(verb, known, logical[known], data)
        return None

    def _resize(self, state: State, logical: dict[str, int], name: str, size: str) -> None:
        if not (size.isascii() and size.isdigit()):
            raise Refused("Invalid partition size")
        logical[name] = int(size)
        if sum(logical.values()) > SUPER:
            raise Refused("Not enough space to resize partition")
        self.keep(state.model_copy(update={"logical": logical}))

    def _written(self, verb: str, name: str, size: int, data: bytes) -> Iterator[tuple[str, str]]:
        if verb == "erase":
            self.storage.erase(name)
            return iter([("OKAY", "Erasing succeeded")])
        if not data:
            raise Refused("No such file or directory")
        if len(data) > size:
            raise Refused("Value too large for defined data type")
        self.storage.write(name, data)
        return iter([("OKAY", "Flashing succeeded")])

    def variables(self, state: State) -> Mapping[str, str]:
        """What ``getvar`` knows beside the boot loader's."""
        found = {"is-userspace": "yes", "super-partition-name": "super"}
        for name, size in state.logical.items():
            base = name.removesuffix("_a").removesuffix("_b")
            found[f"has-slot:{base}"] = "no" if base == name else "yes"
            found[f"partition-size:{name}"] = f"{size:#x}"
            found[f"partition-type:{name}"] = "raw"
            found[f"is-logical:{name}"] = "yes"
        return found
