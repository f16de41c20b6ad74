"""What labgrid says of a place, and how its phone is reached from here."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from mepof.device import labgrid
from mepof.device.labgrid import Place
from mepof.errors import EnvironmentLack, WorkError

SHOWN = """\
Place 'p':
  acquired: here/me
Acquired resource 'phone' (bench/p/{cls}/phone):
  {{'acquired': 'p',
   'avail': True,
   'cls': '{cls}',
   'params': {params}}}
"""


def shown(monkeypatch: pytest.MonkeyPatch, cls: str, params: dict[str, object]) -> Place:
    text = SHOWN.format(cls=cls, params=params)
    monkeypatch.setattr(Place, "_show", lambda self: text)
    return Place("p", "here/me")


def test_the_serial_number_is_that_of_the_usb_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1-3.2").mkdir()
    (tmp_path / "1-3.2/serial").write_text("0123ABCD\n")
    monkeypatch.setattr(labgrid, "_USB_DEVICES", tmp_path)
    params: dict[str, object] = {"host": socket.gethostname(), "path": "1-3.2"}
    place = shown(monkeypatch, "RemoteAndroidUSBFastboot", params)
    assert place.addresses("", "") == ("0123ABCD", "")
    assert place.addresses("tcp:phone:5554", "phone:5555") == ("tcp:phone:5554", "phone:5555")
    place = shown(monkeypatch, "RemoteAndroidUSBFastboot", {**params, "path": "1-4"})
    with pytest.raises(WorkError, match="is not at its USB port"):
        place.addresses("", "")
    place = shown(monkeypatch, "RemoteAndroidUSBFastboot", {**params, "host": "attic"})
    with pytest.raises(EnvironmentLack, match=r"at a USB port of attic \(run mepof there"):
        place.addresses("", "")


def test_a_phone_that_cannot_be_reached_from_here_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    params: dict[str, object] = {"address": "phone", "port": 5554, "protocol": "udp"}
    place = shown(monkeypatch, "RemoteAndroidNetFastboot", params)
    assert place.addresses("", "phone:5555") == ("udp:phone:5554", "phone:5555")
    with pytest.raises(EnvironmentLack, match="has no NetworkService `adb`"):
        place.addresses("", "")
    away = {**params, "extra": {"proxy": "attic", "proxy_required": True}}
    place = shown(monkeypatch, "RemoteAndroidNetFastboot", away)
    with pytest.raises(EnvironmentLack, match="only through attic"):
        place.addresses("", "")
    place = shown(monkeypatch, "NetworkPowerPort", {})
    with pytest.raises(EnvironmentLack, match="no AndroidNetFastboot or AndroidUSBFastboot"):
        place.addresses("", "")
