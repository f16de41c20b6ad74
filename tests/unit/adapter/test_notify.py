"""Notifications: signed, kept until they are delivered, and repeated politely."""

from __future__ import annotations

import base64
import functools
import hmac
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mepof.adapter.history import Entry, History
from mepof.adapter.notify import MAX_DELIVERIES, Messenger, messages
from mepof.adapter.watched import read_task
from mepof.adapter.webhook import key_of, signature
from mepof.errors import InputError
from mepof.process import run
from mepof.source.protocol import Workshop

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef01234567").decode()
ENTRY = Entry("stable", "v6.12.2", "git+https://x.org/l#tag=v6.12.2", "running", "", 1, 0, "", None)


@dataclass
class Receiver:
    """A web server that takes messages, with the answers that it gives next."""

    url: str = ""
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    got: list[tuple[dict[str, str], str]] = field(default_factory=list)


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, *args: object, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(*args)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.got.append((headers, body))
        status, extra = self.receiver.answers.pop(0) if self.receiver.answers else (204, {})
        self.send_response(status)
        for name, value in {**extra, "Content-Length": "0"}.items():
            self.send_header(name, value)
        self.end_headers()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    handler = functools.partial(_Handler, receiver=made)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        made.url = f"http://127.0.0.1:{server.server_address[1]}/hook?token=t0ken"
        yield made
        server.shutdown()
        thread.join()


@dataclass
class Desk:
    """A history with a message in it, and a messenger whose clock the test moves."""

    root: Path
    said: list[str] = field(default_factory=list)
    clock: float = 1_000_000.0

    def __post_init__(self) -> None:
        self.history = History(self.root / "out/history.sqlite")
        self.history.saw("stable", (), "", 0, "now")

    def file(self, lines: str) -> None:
        (self.root / "update.g4").write_text("adap {source} pgo rand kbench.\n")
        (self.root / "watch.toml").write_text(
            f'program = "update.g4"\npublish = "out"\n{lines}\n'
            '[[follow]]\nname = "stable"\nfeed = "git"\nurl = "https://x.org/l"\n'
        )

    def messenger(self) -> Messenger:
        work = self.root / "work"
        work.mkdir(exist_ok=True)
        workshop = Workshop(
            self.root, work, run, self.said.append, threading.Event(), lambda *shown: None
        )
        task = read_task(self.root / "watch.toml")
        return Messenger(task, workshop, lambda: self.clock, self.said.append)

    def tell(self, state: str = "held") -> None:
        told = messages(
            self.messenger().task, ENTRY, state, {"reason": "it does not boot"}, "2026-01-01"
        )
        self.history.ended(ENTRY, "held", "it does not boot", "2026-01-01", 0.0, told)

    def deliver(self) -> None:
        self.messenger().deliver(self.history)

    def waiting(self) -> int:
        return len(self.history.messages(float("inf")))


@pytest.fixture
def desk(tmp_path: Path, receiver: Receiver) -> Desk:
    secret = tmp_path / "hook.secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    made = Desk(tmp_path)
    made.file(f'[[webhook]]\nurl = "{receiver.url}"\nsecret = "hook.secret"')
    return made


def test_a_message_is_signed_and_says_what_became_of_a_release(
    desk: Desk, receiver: Receiver
) -> None:
    desk.tell()
    desk.deliver()
    desk.deliver()
    ((headers, body),) = receiver.got
    assert json.loads(body) == {
        "type": "release.held",
        "timestamp": "2026-01-01",
        "data": {
            "state": "held",
            "follow": "stable",
            "release": "v6.12.2",
            "address": ENTRY.address,
            "reason": "it does not boot",
        },
    }
    signed = f"{headers['webhook-id']}.1000000.{body}".encode()
    mac = hmac.new(b"0123456789abcdef01234567", signed, sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(mac).decode()}"
    assert headers["webhook-timestamp"] == "1000000"
    assert headers["content-type"] == "application/json"


def test_the_signature_is_that_of_the_specification() -> None:
    # The example of https://github.com/standard-webhooks/standard-webhooks, libraries/python.
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, '{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_is_repeated_under_its_identifier_after_growing_waits(
    desk: Desk, receiver: Receiver
) -> None:
    receiver.answers = [(500, {})] * 3
    desk.tell()
    waits = []
    while desk.waiting():
        before = len(receiver.got)
        desk.deliver()
        assert len(receiver.got) == before + 1
        desk.deliver()  # not before its time
        assert len(receiver.got) == before + 1
        due = desk.history.next_at()
        waits += [due - desk.clock] if due is not None else []
        desk.clock = due or desk.clock
    assert len(receiver.got) == 4
    assert 30 <= waits[0] <= 45 and 60 <= waits[1] <= 90 and 120 <= waits[2] <= 180
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    times = [headers["webhook-timestamp"] for headers, _ in receiver.got]
    assert len(set(times)) == 4


def test_a_server_that_asks_to_wait_is_obeyed(desk: Desk, receiver: Receiver) -> None:
    receiver.answers = [(429, {"Retry-After": "7200"})]
    desk.tell()
    desk.deliver()
    due = desk.history.next_at()
    assert due is not None and due - desk.clock >= 7200


@pytest.mark.parametrize(("status", "tries"), [(410, 1), (404, MAX_DELIVERIES)])
def test_a_message_that_nobody_takes_is_given_up(
    desk: Desk, receiver: Receiver, status: int, tries: int
) -> None:
    receiver.answers = [(status, {})] * 99
    desk.tell()
    for _ in range(MAX_DELIVERIES + 2):
        desk.deliver()
        desk.clock += 24 * 3600
    assert len(receiver.got) == tries and desk.waiting() == 0
    assert desk.said[-1].endswith(f"HTTP status {status}; given up after {tries} attempts")


def test_a_redirect_is_not_followed(desk: Desk, receiver: Receiver) -> None:
    receiver.answers = [(302, {"Location": receiver.url})]
    desk.tell()
    desk.deliver()
    assert len(receiver.got) == 1 and desk.waiting() == 1


def test_neither_the_key_nor_the_address_is_said(desk: Desk, receiver: Receiver) -> None:
    receiver.answers = [(500, {})]
    desk.tell()
    desk.deliver()
    text = "\n".join(desk.said)
    assert "127.0.0.1" in text and "t0ken" not in text
    assert SECRET not in text + repr(desk.messenger().task)
    assert list((desk.root / "work").glob("*.curl")) == []


def test_a_server_that_is_not_there_is_asked_again(desk: Desk, tmp_path: Path) -> None:
    desk.file('[[webhook]]\nurl = "http://127.0.0.1:9/"\nsecret = "hook.secret"')
    desk.tell()
    desk.deliver()
    assert desk.waiting() == 1 and "does not answer" in desk.said[0]


def test_a_command_gets_state_release_and_message(desk: Desk, tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {told}\ntest -e {tmp_path}/works\n')
    script.chmod(0o755)
    desk.file(f'notify = ["{script}"]')
    desk.tell("published")
    desk.deliver()
    assert desk.waiting() == 1
    (tmp_path / "works").touch()
    desk.clock += 3600
    desk.deliver()
    assert desk.waiting() == 0
    state, release, message = told.read_text().splitlines()[-3:]
    assert (state, release) == ("published", "v6.12.2")
    assert json.loads(message)["reason"] == "it does not boot"


def test_a_command_that_is_gone_is_tried_again(desk: Desk, tmp_path: Path) -> None:
    script = tmp_path / "tell"
    script.touch(0o755)
    desk.file(f'notify = ["{script}"]')
    desk.tell("published")
    messenger = desk.messenger()
    script.unlink()
    messenger.deliver(desk.history)
    assert desk.waiting() == 1
    (said,) = desk.said
    assert said.startswith(f"the notification of the command failed: there is no program {script};")


def test_a_message_to_who_is_no_longer_told_is_dropped(desk: Desk, receiver: Receiver) -> None:
    desk.tell()
    desk.file("")
    desk.deliver()
    assert desk.waiting() == 0 and receiver.got == []


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        (SECRET, 0o644, "others can read"),
        ("", 0o600, "shorter than 16 bytes"),
        ("short", 0o600, "shorter than 16 bytes"),
        ("whsec_?", 0o600, "is not base64"),
        (None, 0, "cannot be read"),
    ],
)
def test_a_key_that_is_not_one_is_an_error(
    tmp_path: Path, text: str | None, mode: int, message: str
) -> None:
    path = tmp_path / "key"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(InputError, match=message):
        key_of(path)


def test_any_text_that_is_long_enough_is_a_key(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("correct horse battery staple\n")
    path.chmod(0o600)
    assert key_of(path) == b"correct horse battery staple"
