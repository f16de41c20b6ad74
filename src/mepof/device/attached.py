"""The phones of a workplace: which there are, how they are reached, and what their models need.

Programs do not name phones: ``set device phone`` takes one that is free. Which are attached is a
file of the workplace's, ``~/.config/mepof/phones.toml`` or that of ``MEPOF_PHONES``.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Annotated, Literal
from urllib.parse import quote

from pydantic import Field, field_validator, model_validator

from mepof.described import Described, check_distinct, read_described
from mepof.device import labgrid
from mepof.device.adb import AdbShell
from mepof.device.fastboot import Fastboot
from mepof.errors import EnvironmentLack, InputError, Interrupted, MepofError, WorkError
from mepof.home import home

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
Seconds = Annotated[float, Field(gt=0, le=3600)]


class PhoneModel(Described):
    """What a phone model needs.

    Attributes:
        title: what it is.
        source: where the figures are from.
        image: its own boot image, relative to this file; without it the phone's is read.
        limits: what its boot loader can load, a file as ``mepof bootimg plan --model`` reads it.
        header_version: of its boot images.
        flash: the slot that is flashed; ``active`` for a phone whose other slot has no system.
        root: how a shell gets root: ``adbd`` is restarted as root, ``su`` is installed.
        boot_seconds: until adb answers.
        min_battery_mv: below which nothing is flashed.
    """

    title: str
    source: str
    image: str | None = None
    limits: str | None = None
    header_version: Annotated[int, Field(ge=0, le=4)] | None = None
    flash: Literal["inactive", "active"] = "inactive"
    root: Literal["adbd", "su"] = "adbd"
    boot_seconds: Seconds = 180
    min_battery_mv: Annotated[int, Field(ge=0)] = 3700


class Attached(Described):
    """A phone.

    Attributes:
        name: by which messages and journals call it.
        fastboot: serial number, or ``tcp:HOST:PORT``.
        adb: serial number, or ``HOST:PORT``; that of fastboot if it is the same.
        place: of labgrid, which says whatever of the two above is empty.
        model: the file of a :class:`PhoneModel`, relative to the list.
    """

    name: str
    fastboot: str = ""
    adb: str = ""
    place: str = ""
    model: str

    @field_validator("name")
    @classmethod
    def _is_a_file_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"`{name}` must be letters, digits, `_`, `-` and `.`")
        return name

    @model_validator(mode="after")
    def _can_be_reached(self) -> Attached:
        if not self.fastboot and not self.place:
            raise ValueError("`fastboot` is missing, or `place` of one that labgrid gives")
        return self


class _List(Described):
    phone: tuple[Attached, ...]

    @field_validator("phone")
    @classmethod
    def _are_distinct(cls, phones: tuple[Attached, ...]) -> tuple[Attached, ...]:
        if not phones:
            raise ValueError("lists none")
        check_distinct(each.name for each in phones)
        check_distinct(_address(each) for each in phones)
        return phones


def list_path() -> Path:
    """The file that lists the phones."""
    given = os.environ.get("MEPOF_PHONES")
    if given:
        return Path(given)
    config = os.environ.get("XDG_CONFIG_HOME") or home() / ".config"
    return Path(config) / "mepof" / "phones.toml"


def attached() -> tuple[Attached, ...]:
    """The phones of this workplace; of several, the one that ``ANDROID_SERIAL`` names, if it does.

    Raises:
        EnvironmentLack: there is no list.
        InputError: it is wrong, or lacks that phone.
    """
    path = list_path()
    if not path.is_file():
        wrong = "is not a file" if path.exists() else "does not exist"
        raise EnvironmentLack(
            f"no phone is known here: {path} {wrong}",
            "list the phones in it, or name another file in MEPOF_PHONES (docs/devices/phone.md)",
        )
    phones = read_described(path, _List, "list of phones").phone
    wanted = os.environ.get("ANDROID_SERIAL")
    if not wanted:
        return phones
    # adb and fastboot choose by the same variable.
    chosen = tuple(each for each in phones if wanted in (each.name, each.fastboot, each.adb))
    if not chosen:
        names = ", ".join(each.name for each in phones)
        raise InputError(
            f"ANDROID_SERIAL is `{wanted}`, and {path} lists no such phone",
            f"unset it, or set it to the name or serial number of one of these: {names}",
        )
    return chosen


def model_path(phone: Attached) -> Path:
    """The file that describes a phone's model."""
    return list_path().parent / phone.model


def model_of(phone: Attached) -> PhoneModel:
    """What the model of a phone needs.

    Raises:
        InputError: the file is wrong.
    """
    remedy = f"correct `model` of the phone {phone.name} in {list_path()}"
    return read_described(model_path(phone), PhoneModel, "phone model", remedy=remedy)


def state_directory() -> Path:
    """The directory of journals and saved images of phones. It must not be emptied.

    Raises:
        InputError: the user has no home directory.
    """
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise InputError("there is no home directory for journals", "set XDG_STATE_HOME") from error
    return Path(state) / "mepof" / "phones"


_POLL_SECONDS = 0.5


class InUse(WorkError):
    """Other processes use all phones that answer."""


_claimed: dict[Path, tuple[Attached, IO[str]]] = {}
_claiming = threading.Lock()


def claim(note: Callable[[str], None] = lambda text: None, *, answering: bool = True) -> Attached:
    """A phone that no other process uses; the same one until this process gives it back or ends.

    All that a run compares is therefore measured on one phone, and several runs use several. One
    that does not answer is taken only if no phone answers and none is in use.

    Args:
        note: called with a line that names the phones before it in the list that do not answer.
        answering: False takes the first that no other process uses, whether it answers or not, and
            notes which it is.

    Raises:
        EnvironmentLack: none is known.
        InUse: all that answer are in use.
    """
    with _claiming:
        path = list_path()
        if path in _claimed:
            return _claimed[path][0]
        known = attached()
        state_directory().mkdir(parents=True, exist_ok=True)
        # What a killed process left of a lab comes first: it may have to be restored.
        order = sorted(known, key=lambda each: not _left_acquired(each))
        locks = {each.name: lock for each in order if (lock := _locked(each)) is not None}
        free = [each for each in order if each.name in locks]
        silent: list[Attached] = []
        try:
            for phone in _to_try(free, len(known), silent) if answering else free:
                reached = _reached(phone, locks[phone.name])
                if reached is not None:
                    if not answering and len(known) > 1:
                        note(_chosen(phone))
                    if silent and phone not in silent:
                        names = ", ".join(each.name for each in silent)
                        note(f"using {phone.name}: no answer by adb or fastboot from {names}")
                    _claimed[path] = (reached, locks.pop(phone.name))
                    return reached
        finally:
            for lock in locks.values():
                lock.close()
        names = ", ".join(each.name for each in known if each not in silent)
        which = "every phone that answers" if silent else "every phone"
        raise InUse(f"{which} is in use: {names}", "wait until a run ends")


def give_back() -> None:
    """Let other processes use the phone of this one."""
    with _claiming:
        labgrid.give_back_all()
        for _, lock in _claimed.values():
            lock.close()
        _claimed.clear()


def _chosen(phone: Attached) -> str:
    first = f"using {phone.name}, the first phone in the list that no other run uses"
    if _answers(phone):
        return first
    return f"{first}: waiting for it, since no other is flashed instead (see ANDROID_SERIAL)"


def _to_try(free: Iterable[Attached], known: int, silent: list[Attached]) -> Iterator[Attached]:
    """The phones to take, the best first.

    Args:
        free: those that no other process uses.
        known: how many there are.
        silent: those that do not answer are added to it.
    """
    for phone in free:
        if known == 1 or _answers(phone):
            yield phone
        else:
            silent.append(phone)
    # One that is in use will be free sooner than one that is off answers.
    if len(silent) == known:
        yield from tuple(silent)


def _answers(phone: Attached) -> bool:
    """Whether a phone is on; True where a lab knows how it is reached."""
    if phone.place:
        return True
    try:
        shell = AdbShell(phone.adb or phone.fastboot, phone.name)
        return Fastboot(phone.fastboot).present() or shell.present()
    except WorkError:
        return False


def reserve(
    note: Callable[[str], None], cancel: threading.Event, *, answering: bool = True
) -> None:
    """Wait until this process has a phone.

    Args:
        note: called with a line if phones do not answer, and once if it must wait.
        cancel: set it to give up waiting.
        answering: as in :func:`claim`.

    Raises:
        EnvironmentLack: none is known.
        Interrupted: ``cancel`` was set.
    """
    said = False
    while True:
        try:
            claim(note, answering=answering)
        except InUse as error:
            if not said:
                note(f"waiting: {error.message}")
            said = True
        else:
            return
        if cancel.wait(_POLL_SECONDS):
            raise Interrupted("interrupted")


def _lock(phone: Attached) -> Path:
    # Another list may call it by another name.
    return state_directory() / f"{quote(_address(phone), safe='')}.lock"


def _address(phone: Attached) -> str:
    return f"{phone.place} {phone.fastboot}".strip()


def _locked(phone: Attached) -> IO[str] | None:
    """The lock of a phone, which this process holds now; None if it is in use."""
    lock = _lock(phone).open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _left_acquired(phone: Attached) -> bool:
    lock = _lock(phone)
    return lock.exists() and lock.stat().st_size > 0


def _reached(phone: Attached, lock: IO[str]) -> Attached | None:
    """A phone with its addresses; None if somebody else uses its place."""
    if not phone.place:
        return phone
    place = labgrid.claimed(phone.place, lock)
    if place is None:
        return None
    try:
        fastboot, adb = place.addresses(phone.fastboot, phone.adb)
    except MepofError:
        labgrid.give_back(place)
        raise
    return phone.model_copy(update={"fastboot": fastboot, "adb": adb})
