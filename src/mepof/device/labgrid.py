"""Places of a lab: labgrid gives each to one user at a time (docs/devices/phone.md).

A place is acquired under a name that no other claim has, and that a locked file keeps. So two runs
of one user do not share a place, and what a killed run has left acquired can be told from what
others use.
"""

from __future__ import annotations

import ast
import atexit
import os
import re
import secrets
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import IO, Any

from mepof.errors import EnvironmentLack, MepofError, WorkError
from mepof.process import Completed, find_tool, run

_INSTALL = "pip install labgrid"
_USB_DEVICES = Path("/sys/bus/usb/devices")
_HOLDER = re.compile(r"^  acquired: (.+/.+)$", re.M)
_RESERVATION = re.compile(r"^  reservation: ", re.M)
_RESOURCE = re.compile(
    r"^(?:Acquired|Matching) resource '(.*)' \(.*\):\n((?:  .*(?:\n|\Z))+)", re.M
)


@dataclass(frozen=True)
class Place:
    """A place of the coordinator that ``LG_COORDINATOR`` names.

    Attributes:
        name: in labgrid.
        owner: ``HOST/USER`` as which labgrid knows this claim.
    """

    name: str
    owner: str

    def acquire(self) -> bool:
        """Acquire it; False if somebody else uses it.

        Raises:
            EnvironmentLack: labgrid is not installed or not reachable, or has no such place.
        """
        done = self._client("acquire")
        if done.status == 0:
            return True
        shown = self._show()
        shared = any(each["acquired"] for each in _resources(shown).values())
        if shared or _HOLDER.search(shown) or _RESERVATION.search(shown):
            return False
        raise self._failed("cannot be acquired", done)

    def is_ours(self) -> bool:
        """Whether this claim has it.

        Raises:
            EnvironmentLack: as :meth:`acquire`.
        """
        return self.owner in _HOLDER.findall(self._show())

    def release(self) -> None:
        """Give it back, if this claim still has it.

        Raises:
            EnvironmentLack: it could not be given back.
        """
        done = self._client("release-from", self.owner)
        if done.status != 0 and self.is_ours():
            raise self._failed("cannot be released", done)

    def addresses(self, fastboot: str, adb: str) -> tuple[str, str]:
        """Where its phone answers fastboot and adb.

        Args:
            fastboot: what the list of phones says; empty for what labgrid says.
            adb: likewise.

        Raises:
            EnvironmentLack: labgrid does not say, or this machine cannot reach it.
            WorkError: the phone is not there.
        """
        found = _resources(self._show())
        kinds = {each["cls"].removeprefix("Remote"): each["params"] for each in found.values()}
        if not fastboot and "AndroidNetFastboot" in kinds:
            at = _near(kinds["AndroidNetFastboot"], self.name)
            fastboot = f"{at['protocol']}:{at['address']}:{at['port']}"
        elif not fastboot and "AndroidUSBFastboot" in kinds:
            fastboot = _serial(kinds["AndroidUSBFastboot"], self.name)
        if not adb and "adb" in found and found["adb"]["cls"] == "NetworkService":
            at = _near(found["adb"]["params"], self.name)
            adb = f"{at['address']}:{at['port']}"
        if not fastboot:
            raise EnvironmentLack(
                f"the place {self.name} has no AndroidNetFastboot or AndroidUSBFastboot",
                "export one, or give `fastboot` in the list of phones",
            )
        if not adb and ":" in fastboot:
            raise EnvironmentLack(
                f"the place {self.name} has no NetworkService `adb`",
                "export one of that name, or give `adb` in the list of phones",
            )
        return fastboot, adb

    def _show(self) -> str:
        done = self._client("show")
        if done.status != 0:
            raise self._failed("cannot be shown", done)
        return done.output

    def _client(self, *words: str) -> Completed:
        program = find_tool("labgrid-client", _INSTALL)
        host, _, user = self.owner.partition("/")
        # The user's configuration of labgrid would choose another place.
        names = {"LG_HOSTNAME": host, "LG_USERNAME": user, "LG_ENV": "", "LG_STATE": ""}
        # Without a time limit, which needs a thread: at the end of a process none can be started.
        # The client has limits of its own.
        return run((program, "-p", self.name, *words), env=names, check=False)

    def _failed(self, what: str, done: Completed) -> EnvironmentLack:
        said = done.output.strip().rpartition("\n")[2].rpartition("rror: ")[2]
        at = os.environ.get("LG_COORDINATOR", "127.0.0.1:20408")
        return EnvironmentLack(
            f"the place {self.name} of labgrid {what}: {said}",
            f"see `labgrid-client -x {at} places`; LG_COORDINATOR names another coordinator",
        )


_held: dict[Place, IO[str]] = {}


def claimed(name: str, file: IO[str]) -> Place | None:
    """Acquire a place until the process ends; None if somebody else uses it.

    What a killed process has left is taken over, so that what it was doing to the phone can be
    undone before others get it.

    Args:
        file: locked by this process. It names a claim from before it is made until it is released.

    Raises:
        EnvironmentLack: as :meth:`Place.acquire`.
    """
    file.seek(0)
    former = Place(name, file.read().strip())
    if former.owner and former.is_ours():
        _held[former] = file
        return former
    user = f"{getuser()}-mepof-{secrets.token_hex(4)}"
    place = Place(name, f"{socket.gethostname()}/{user}")
    _write(file, place.owner)
    _held[place] = file
    try:
        if place.acquire():
            return place
    except MepofError:
        del _held[place]
        raise
    del _held[place]
    _write(file, "")
    return None


def give_back(place: Place) -> None:
    """Release a place that this process has claimed.

    Raises:
        EnvironmentLack: as :meth:`Place.release`.
    """
    file = _held.pop(place)
    place.release()
    _write(file, "")


# Registered before what returns phones to their own systems, so it runs after that.
@atexit.register
def give_back_all() -> None:
    """Release all places that this process has claimed; an error is printed."""
    for place in list(_held):
        try:
            give_back(place)
        except MepofError as error:
            print(f"mepof: {error}", file=sys.stderr)


def _write(file: IO[str], owner: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(owner)
    file.flush()
    os.fsync(file.fileno())


def _resources(shown: str) -> Mapping[str, Mapping[str, Any]]:
    """The resources of a place by their names."""
    return {name: ast.literal_eval(text.strip()) for name, text in _RESOURCE.findall(shown)}


def _near(params: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """What reaches a phone over the network, from here."""
    extra = params.get("extra", {})
    if extra.get("proxy_required"):
        raise EnvironmentLack(
            f"the phone of the place {place} is reached only through {extra['proxy']}",
            "run mepof there",
        )
    return params


def _serial(params: Mapping[str, Any], place: str) -> str:
    """The serial number of a phone at a USB port of this machine."""
    host, path = params["host"], params["path"]
    if host not in (socket.gethostname(), socket.getfqdn()):
        raise EnvironmentLack(
            f"the phone of the place {place} is at a USB port of {host}", "run mepof there"
        )
    try:
        return (_USB_DEVICES / str(path) / "serial").read_text().strip()
    except OSError as error:
        raise WorkError(
            f"the phone of the place {place} is not at its USB port",
            "connect it, or give its serial number (`fastboot` in the list of phones)",
        ) from error
