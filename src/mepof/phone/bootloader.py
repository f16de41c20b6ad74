"""The boot loader: fastboot's commands, slots and their retries, and what it starts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mepof.bootimg.avb import footer_of, parse_vbmeta
from mepof.bootimg.image import BootImage
from mepof.bootimg.model import Model
from mepof.bootimg.plan import plan
from mepof.bootimg.reader import parse
from mepof.errors import EnvironmentLack, InputError
from mepof.phone.fastbootd import Fastbootd
from mepof.phone.faults import Faults
from mepof.phone.loading import Loaded, load
from mepof.phone.state import MAX_RETRIES, MIB, Refused, SlotName, State, Storage

MAX_DOWNLOAD = 256 << 20
MAX_RESPONSE = 256
_MIN_BATTERY_MV = 3500
_SLOTS: tuple[SlotName, ...] = ("a", "b")
_SPARSE_MAGIC = b"\x3a\xff\x26\xed"


_NO_FAULTS = Faults()


class CableLost(Exception):
    """The phone no longer answers."""


@dataclass(frozen=True)
class Started:
    """What a boot loader did when it left fastboot.

    Attributes:
        what: ``boot_a``, ``ram``, ``bootloader``, ``fastboot`` or ``recovery``.
        failed: why nothing was started; the boot loader is in fastboot again.
        loaded: what the processor runs now; None where the phone stays in its boot loader.
    """

    what: str
    failed: str = ""
    loaded: Loaded | None = None


class Bootloader:
    """A boot loader in fastboot. One command at a time, from one host.

    Args:
        tell: called with what a screen would show.
        faults: what goes wrong.
        arch: of the processor; None for a phone that stays in fastboot and only says what it
            would start.
    """

    def __init__(
        self,
        storage: Storage,
        model: Model,
        tell: Callable[[str], None],
        faults: Faults = _NO_FAULTS,
        arch: str | None = None,
    ) -> None:
        self._storage = storage
        self._model = model
        self._tell = tell
        self._faults = faults
        self._arch = arch
        self._downloaded = b""
        self.state: State = storage.load()
        self._fastbootd = Fastbootd(storage, self._keep)
        self._userspace = False
        self.expected = 0
        """Bytes that a host has to send now."""
        self.started: Started | None = None
        """What the last command started; the host is to be left alone."""
        self._former: dict[str, tuple[object, object]] = {}
        self.suffer()

    def suffer(self) -> None:
        """Show the faults that a phone's state has: again, if others have come since."""
        has = self._faults.has
        changed: dict[str, object] = {
            **({"battery_mv": 3300} if has("low-battery") else {}),
            **({"unlockable": False} if has("not-unlockable") else {}),
            **({"unlocked": False} if has("locked") else {}),
        }
        # A fault ends with the process that has it.
        for key, value in changed.items():
            self._former.setdefault(key, (value, getattr(self.state, key)))
        self.state = self.state.model_copy(update=changed)
        if has("image-too-large"):
            self._storage.sizes.update(dict.fromkeys(("boot_a", "boot_b"), MIB // 4))

    @property
    def left(self) -> bool:
        """Whether the last command started a system, so that hosts find no fastboot."""
        return self.started is not None and self.started.loaded is not None

    def command(self, line: bytes) -> Iterator[bytes]:
        """The answers to a command.

        Raises:
            CableLost: the phone does not answer.
        """
        self.started = None
        try:
            text = line.decode("ascii")
        except UnicodeDecodeError:
            yield b"FAILunknown command"
            return
        verb, _, argument = text.partition(":")
        try:
            for kind, said in self._answers(verb, argument):
                yield f"{kind}{said}".encode()[:MAX_RESPONSE]
        except Refused as refused:
            if verb != "getvar":  # fastboot asks for many that a phone may not have
                self._tell(f"{text}: {refused}")
            yield f"FAIL{refused}".encode()[:MAX_RESPONSE]

    def received(self, data: bytes) -> bytes:
        """The answer to the data that was asked for.

        Raises:
            CableLost: the phone does not answer.
        """
        self.expected = 0
        if self._faults.has("lost-in-download"):
            raise CableLost
        self._downloaded = data
        return b"OKAY"

    def _answers(self, verb: str, argument: str) -> Iterator[tuple[str, str]]:
        """Each answer: its kind and its text."""
        if self._userspace:
            self._fastbootd.check(self.state, verb)
            done = self._fastbootd.answers(self.state, verb, argument, self._downloaded)
            if done is not None:
                yield from done
                return
        if verb == "getvar":
            yield from self._variables(argument)
        elif verb == "download":
            yield "DATA", f"{self._download(argument):08x}"
        elif verb == "flash":
            yield "OKAY", self._flash(argument)
        elif verb == "erase":
            self._may("Erase is not allowed in Lock State")
            self._storage.erase(self._known(argument))
            yield "OKAY", ""
        elif verb == "set_active":
            yield "OKAY", self._set_active(argument)
        elif verb == "boot":
            self._boot_ram()
            yield "OKAY", ""
        elif verb in ("continue", "reboot"):
            self.started = self._boot_slot()
            yield "OKAY", ""
        elif verb in ("reboot-bootloader", "reboot-fastboot", "reboot-recovery"):
            self._hand_over(to := verb.removeprefix("reboot-"))
            self.started = Started(to)
            yield "OKAY", ""
        else:
            yield from self._lock(verb)

    def _hand_over(self, to: str) -> None:
        """Start ``fastbootd``, or end it."""
        self._userspace = to == "fastboot"
        self._tell(f"in {'fastbootd' if self._userspace else to}")

    def _lock(self, verb: str) -> Iterator[tuple[str, str]]:
        if verb in ("flashing get_unlock_ability", "oem device-info"):
            yield "INFO", f"get_unlock_ability: {int(self.state.unlockable)}"
            yield "INFO", f"Device unlocked: {str(self.state.unlocked).lower()}"
        elif verb in ("oem unlock", "flashing unlock", "oem lock", "flashing lock"):
            unlock = verb.endswith("unlock")
            if unlock == self.state.unlocked:
                raise Refused(f"Device already : {'unlocked' if unlock else 'locked'}!")
            if unlock and not self.state.unlockable:
                raise Refused("Flashing Unlock is not allowed")
            self._storage.erase("userdata")
            self._keep(self.state.model_copy(update={"unlocked": unlock}))
            self._tell(f"{'unlocked' if unlock else 'locked'}; userdata was erased")
        else:
            raise Refused("unknown command")
        yield "OKAY", ""

    def _keep(self, state: State) -> None:
        self.state = state
        former = {k: old for k, (new, old) in self._former.items() if getattr(state, k) == new}
        self._storage.save(state.model_copy(update=former))

    def _may(self, refusal: str) -> None:
        if not self.state.unlocked:
            raise Refused(refusal)

    def _known(self, partition: str) -> str:
        """A partition's full name; that of the active slot if the name has none."""
        for name in (partition, f"{partition}_{self.state.slot}"):
            if name in self._storage.sizes:
                return name
        raise Refused(f"({partition}) No such partition")

    def _download(self, size: str) -> int:
        try:
            self.expected = int(size, 16)
        except ValueError:
            raise Refused("Failed to get the number of bytes to download") from None
        if not 0 < self.expected <= MAX_DOWNLOAD:
            self.expected = 0
            raise Refused("Requested download size is more than max allowed")
        return self.expected

    def _flash(self, argument: str) -> str:
        self._may("Flashing is not allowed in Lock State")
        if self.state.battery_mv < _MIN_BATTERY_MV:
            raise Refused("Warning: battery's capacity is very low")
        name, data = self._known(argument), self._downloaded
        if not data:
            raise Refused("Error flashing partition : Invalid Parameter")
        if data.startswith(_SPARSE_MAGIC):
            raise Refused("Error flashing partition : Unsupported")
        if len(data) > self._storage.sizes[name]:
            raise Refused("Error flashing partition : Volume Full")
        if self._faults.has("lost-in-flash"):
            self._storage.write(name, data[: len(data) // 2])
            raise CableLost
        self._storage.write(name, data)
        if name == f"boot_{self.state.slot}":
            fresh = {"retry_count": MAX_RETRIES, "successful": False, "unbootable": False}
            self._keep(self.state.with_slot(self.state.slot, **fresh))
        self._tell(f"flashed {name}: {len(data)} bytes")
        return ""

    def _set_active(self, argument: str) -> str:
        self._may("Slot Change is not allowed in Lock State")
        slot = argument.removeprefix("_")
        if slot not in _SLOTS:
            raise Refused("Invalid Slot Suffix")
        if not self._faults.has("wrong-slot"):
            self.make_active("a" if slot == "a" else "b")
        return ""

    def _boot_ram(self) -> None:
        self._may("Fastboot boot command is not available in locked device")
        # It is the image in memory that is started, whatever the slots hold.
        found = self._load(self._downloaded, "ram")
        if isinstance(found, str):
            raise Refused(f"Failed to load/authenticate boot image: {found}")
        if "boot-loop" in self._faults.of_start("ram"):
            self._tell("ram: the kernel resets the phone")
            self.started = self._boot_slot()
        else:
            self.started = self._start("ram", found)

    def _boot_slot(self) -> Started:
        """Try the active slot until its retries are used up, and then the other one."""
        problem = "no slot is bootable"
        for _ in _SLOTS:
            name = self.state.slot
            while not self.state.of(name).unbootable:
                slot = self.state.of(name)
                if not slot.successful and slot.retry_count == 0:
                    self._keep(self.state.with_slot(name, unbootable=True))
                    self._tell(f"slot {name} is unbootable")
                    break
                if not slot.successful:
                    self._keep(self.state.with_slot(name, retry_count=slot.retry_count - 1))
                found = self._load(self._storage.read(f"boot_{name}"), name)
                loops = "boot-loop" in self._faults.of_start(name)
                if not isinstance(found, str) and not loops:
                    return self._start(f"boot_{name}", found)
                reason = found if isinstance(found, str) else "the kernel resets the phone"
                problem = f"boot_{name}: {reason}"
                self._tell(problem)
                if slot.successful:  # it has been overwritten by something else
                    self._keep(self.state.with_slot(name, successful=False))
            other: SlotName = "b" if name == "a" else "a"
            if self.state.of(other).unbootable:
                break
            self._keep(self.state.model_copy(update={"slot": other}))
        return Started("bootloader", problem)

    def _start(self, what: str, loaded: Loaded) -> Started:
        self._userspace = False
        self._keep(self.state.model_copy(update={"boots": self.state.boots + 1}))
        self._tell(f"started {what}")
        return Started(what, loaded=loaded if self._arch else None)

    def restart(self) -> Started:
        """Start a slot, after a reset or a command to reboot."""
        self.started = self._boot_slot()
        return self.started

    def mark_successful(self) -> None:
        """The system that was started says that it works."""
        self._keep(self.state.with_slot(self.state.slot, successful=True, unbootable=False))

    def make_active(self, slot: SlotName) -> None:
        """The system that runs chooses the slot of the next start."""
        fresh = {"retry_count": MAX_RETRIES, "successful": False, "unbootable": False}
        self._keep(self.state.with_slot(slot, **fresh).model_copy(update={"slot": slot}))

    def _load(self, data: bytes, start: str) -> Loaded | str:
        """What an image puts into memory; why a boot loader does not start it, if it does not.

        Args:
            start: ``ram``, ``a`` or ``b``.
        """
        slot = self.state.slot
        try:
            image = parse(data, "the image")
            if not image.section("kernel"):
                raise InputError("the image has no kernel")
            images = [image]
            vendor: BootImage | None = None
            if "kernel_address" not in image.fields:
                vendor = parse(self._storage.read(f"vendor_boot_{slot}"), "vendor_boot")
                images.append(vendor)
            generic = self._storage.read(f"init_boot_{slot}") if image.version >= 3 else b""
            init = parse(generic, "init_boot") if generic else None
            if init is not None:
                images.append(init)
            problems = plan(images, self._model).problems
            trusted = hashlib.sha256(data).hexdigest() in self.state.trusted
            verified = self.state.unlocked or trusted or _is_verified(data)
            if problems:
                self._tell(problems[0])
                return "Load Error"
            if not verified:
                return "Security Violation"
            loaded = load(image, vendor, init, start, slot)
            if self._arch not in (None, loaded.arch):
                raise InputError(f"the kernel is for {loaded.arch or 'no known architecture'}")
        except (InputError, EnvironmentLack) as error:
            self._tell(error.message)
            return "Invalid Parameter"
        return loaded

    def _variables(self, name: str) -> Iterator[tuple[str, str]]:
        known = self.variables()
        if name == "all":
            yield from (("INFO", f"{each}:{value}") for each, value in known.items())
            yield "OKAY", ""
        elif name in known:
            yield "OKAY", known[name]
        else:
            raise Refused("GetVar Variable Not found")

    def variables(self) -> dict[str, str]:
        """What ``getvar all`` lists."""
        state = self.state
        found = {
            "version": "0.4",
            "product": self._model.title,
            "serialno": self._storage.serial,
            "secure": "yes",
            "unlocked": _yes(state.unlocked),
            "is-userspace": "no",
            "max-download-size": f"{MAX_DOWNLOAD:#x}",
            "battery-voltage": str(state.battery_mv),
            "battery-soc-ok": _yes(state.battery_mv >= _MIN_BATTERY_MV),
            "slot-count": str(len(_SLOTS)),
            "current-slot": state.slot,
            "snapshot-update-status": state.update,
        }
        for slot in _SLOTS:
            found[f"slot-successful:{slot}"] = _yes(state.of(slot).successful)
            found[f"slot-unbootable:{slot}"] = _yes(state.of(slot).unbootable)
            found[f"slot-retry-count:{slot}"] = str(state.of(slot).retry_count)
        for partition, size in self._storage.sizes.items():
            base = partition.removesuffix("_a").removesuffix("_b")
            found[f"has-slot:{base}"] = _yes(base != partition)
            found[f"partition-size:{partition}"] = f"{size:#x}"
            found[f"partition-type:{partition}"] = "raw"
            found[f"is-logical:{partition}"] = "no"
        return {**found, **self._fastbootd.variables(state)} if self._userspace else found


def _is_verified(data: bytes) -> bool:
    """Whether a locked phone accepts an image: its hash matches, and the vbmeta is signed."""
    footer = footer_of(data)
    if footer is None:
        return False
    vbmeta = parse_vbmeta(data[footer.vbmeta_offset :][: footer.vbmeta_size], "the image")
    matching = [each.matches(data) for each in vbmeta.hashes if each.partition == "boot"]
    return vbmeta.algorithm != "none" and matching == [True]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
