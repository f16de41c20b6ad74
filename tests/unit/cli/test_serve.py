"""`mepof serve` on the command line: what it refuses, and how it begins and ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mepof.cli.main import main

Refused = tuple[int, str]


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> object:
    def called(*words: str | Path) -> Refused:
        monkeypatch.setattr("sys.argv", ["mepof", "serve", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, capsys.readouterr().err

    return called


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("file",), "is not a directory"),
        (("--programs", "missing"), "is not a directory"),
        (("--key", "file"), "--key is for --certificate"),
        (("--certificate", "file", "--key", "file", "--port", "0"), "cannot be used"),
        (("--certificate", "none", "--port", "0"), "none cannot be used: No such file"),
        (("--host", "no such host", "--port", "0"), "cannot be listened on"),
        (("--host", "192.0.2.1", "--port", "0"), "cannot be listened on"),
        (("--port", "70000"), "--port"),
    ],
)
def test_wrong_input_is_one_line_and_a_remedy(
    refuse: object,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no certificate")
    assert callable(refuse)
    status, err = refuse(*words)
    assert status == 2 and said in err and "help: " in err and "Traceback" not in err


def test_a_taken_port_is_said(refuse: object, tmp_path: Path) -> None:
    assert callable(refuse)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, err = refuse(tmp_path, "--port", str(taken.getsockname()[1]))
    assert status == 2 and "cannot be listened on: Address already in use" in err


def test_a_token_that_is_no_secret_is_refused(
    refuse: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(refuse)
    monkeypatch.setenv("MEPOF_SERVE_TOKEN", "secret")
    status, err = refuse(tmp_path, "--token")
    assert status == 2 and "fewer than 16 characters" in err


def test_without_the_extra_the_remedy_is_said(
    refuse: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(refuse)
    for name in [name for name in sys.modules if name.startswith("mepof.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.requests", None)
    status, err = refuse(tmp_path)
    assert status == 3 and "pip install 'mepof[web]'" in err


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_server_says_where_it_is_and_ends_at_an_interrupt(tmp_path: Path, host: str) -> None:
    command = [sys.executable, "-m", "mepof.cli.main", "serve", str(tmp_path / "out")]
    environment = {name: v for name, v in os.environ.items() if name != "MEPOF_SERVE_TOKEN"}
    process = subprocess.Popen(
        [*command, "--store", str(tmp_path / "s"), "--host", host, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stderr is not None
    try:
        lines = [process.stderr.readline()]
        while not (found := re.search(r"http://[\d.]+:(\d+)/", lines[-1])):
            assert lines[-1]
            lines.append(process.stderr.readline())
        assert "out does not exist yet" in process.stderr.readline()
        token = None
        if host != "127.0.0.1":
            token = process.stderr.readline().split()[-1]
            assert len(token) >= 32 and "in clear" in process.stderr.readline()
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
        status = 503  # while the runs are being read
        while status == 503:
            connection.request("GET", "/", headers={"Authorization": f"Bearer {token}"})
            status = connection.getresponse().status
            connection.close()
        assert status == 200
        connection.request("GET", "/")
        assert connection.getresponse().status == (200 if token is None else 401)
        connection.close()
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
