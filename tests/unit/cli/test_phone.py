"""``mepof phone``: what it refuses before it listens."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from writers.kernel_image import bz_image

from mepof.cli.main import main
from mepof.phone.state import DEFAULT_MODEL, Storage


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--fault", "fire"), "unknown fault `fire`"),
        (("--model", "none.toml"), "cannot read the phone model none.toml"),
        (("--port", "70000"), "less than or equal to 65535"),
        (("--serial", "a phone"), "`a phone` is not a serial number"),
    ],
)
def test_wrong_input_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    message: str,
) -> None:
    assert message in refused(tmp_path, monkeypatch, capsys, *words)


def test_a_port_that_is_taken_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused(tmp_path, monkeypatch, capsys, "--port", port)
    assert f"port {port} cannot be used: Address already in use" in said
    assert "name another with --port" in said


def test_a_port_that_is_taken_leaves_no_phone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernel").write_bytes(bz_image())
    monkeypatch.setattr("mepof.cli.phone.ramdisk", lambda arch, work: b"ramdisk")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("--port", str(taken.getsockname()[1]), "--kernel", "kernel")
        refused(tmp_path, monkeypatch, capsys, *words)
    assert not (tmp_path / "phone/state.json").exists()


def test_a_phone_that_another_process_plays_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "phone").mkdir()
    storage = Storage(tmp_path / "phone", DEFAULT_MODEL)
    with storage.claim():
        said = refused(tmp_path, monkeypatch, capsys, "--port", "0")
    assert "another process plays the phone phone" in said
    storage.claim().close()


def test_a_state_that_was_edited_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "phone").mkdir()
    (tmp_path / "phone/state.json").write_text('{"slot": "c"}')
    assert "state.json is not a phone's state: slot" in refused(tmp_path, monkeypatch, capsys)


def test_a_serial_number_that_is_given_is_the_phones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serials = list[str]()

    def played(storage: Storage, *given: object, **named: object) -> SimpleNamespace:
        serials.append(storage.serial)
        return SimpleNamespace(port=1, on=lambda: None)

    monkeypatch.setattr("mepof.cli.phone.Phone", played)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    monkeypatch.chdir(tmp_path)
    for words in ((), ("--serial", "0123ABCD")):
        monkeypatch.setattr(sys, "argv", ["mepof", "phone", "phone", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
    assert serials == [Storage(tmp_path / "phone", DEFAULT_MODEL).serial, "0123ABCD"]


def refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *words: str,
) -> str:
    """What the command says when it ends with status 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mepof", "phone", "phone", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err
