"""The agent's protocol, as bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mepof.device import agent
from mepof.device.agent import Decoder, Exec, ExecResult, Get, Put, Refused, Reply
from mepof.errors import WorkError

numbers = st.integers(0, 2**32 - 1)
replies = st.one_of(
    st.builds(agent.Hello, st.text(st.characters(codec="ascii"))),
    st.builds(ExecResult, numbers, st.integers(0, 2**64 - 1), st.binary(), st.booleans()),
    st.builds(agent.PutResult, numbers),
    st.builds(agent.GetResult, numbers, st.binary()),
    st.just(agent.PoweredOff()),
    st.builds(agent.ShellResult, numbers),
    st.just(agent.RecordResult()),
    st.builds(Refused, numbers, st.text()),
)


def frame(kind: int, payload: bytes) -> bytes:
    return b"MPF1" + struct.pack("<IQ", kind, len(payload)) + payload


def as_sent(reply: Reply) -> bytes:
    """What the guest's agent sends for a reply."""
    match reply:
        case agent.Hello(release):
            return frame(0x80, release.encode())
        case ExecResult(status, elapsed, output, truncated):
            return frame(0x81, struct.pack("<IIQ", status, truncated, elapsed) + output)
        case agent.PutResult(errno):
            return frame(0x82, struct.pack("<I", errno))
        case agent.GetResult(errno, data):
            return frame(0x83, struct.pack("<I", errno) + data)
        case agent.PoweredOff():
            return frame(0x84, b"")
        case agent.ShellResult(status):
            return frame(0x86, struct.pack("<I", status))
        case agent.RecordResult():
            return frame(0x87, b"")
        case Refused(request, message):
            return frame(0xFF, struct.pack("<I", request) + message.encode())


def test_requests_have_the_documented_bytes() -> None:
    assert agent.encode(Exec(("ls", "-l"), 1.5)) == frame(
        1, struct.pack("<II", 1500, 2) + b"ls\0-l\0"
    )
    assert agent.encode(Put("/a", 0o755, b"x\0y")) == frame(
        2, struct.pack("<I", 0o755) + b"/a\0x\0y"
    )
    assert agent.encode(Get("/a")) == frame(3, b"/a\0")
    assert agent.encode(agent.PowerOff()) == frame(4, b"")
    assert agent.encode(agent.Shell()) == frame(6, b"")
    assert agent.encode(agent.Record(True)) == frame(7, b"\x01\0\0\0")
    assert agent.encode(agent.Record(False)) == frame(7, b"\0\0\0\0")


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [(0, 0), (1e-9, 1), (0.25, 250), (1e9, 2**32 - 1), (float("inf"), 2**32 - 1)],
)
def test_limit_is_sent_in_milliseconds(seconds: float, limit: int) -> None:
    sent = agent.encode(Exec(("ls",), seconds))
    assert struct.unpack_from("<I", sent, 16) == (limit,)


@pytest.mark.parametrize(
    "request_",
    [Exec((), 1), Exec(("a\0b",), 1), Get(""), Get("a\0"), Put("", 0, b""), Get("\ud800")],
)
def test_what_the_protocol_cannot_carry_is_an_error(request_: agent.Request) -> None:
    with pytest.raises(WorkError):
        agent.encode(request_)


@given(st.lists(replies), st.lists(st.integers(1, 50)))
def test_replies_are_decoded_however_the_stream_is_split(
    sent: list[Reply], cuts: list[int]
) -> None:
    stream = b"".join(map(as_sent, sent))
    decoder = Decoder()
    got: list[Reply] = []
    for cut in cuts:
        got += decoder.feed(stream[:cut])
        stream = stream[cut:]
    got += decoder.feed(stream)
    decoder.close()
    assert got == sent


@given(st.lists(replies, min_size=1), st.data())
def test_truncated_stream_is_an_error_when_it_ends(sent: list[Reply], data: st.DataObject) -> None:
    last = as_sent(sent[-1])
    kept = data.draw(st.integers(1, len(last) - 1))
    decoder = Decoder()
    assert decoder.feed(b"".join(map(as_sent, sent[:-1])) + last[:kept]) == sent[:-1]
    with pytest.raises(WorkError, match="in the middle of a reply"):
        decoder.close()


@given(st.binary())
def test_any_bytes_give_replies_or_a_work_error(data: bytes) -> None:
    decoder = Decoder()
    try:
        decoder.feed(data)
        decoder.close()
    except WorkError:
        pass


@given(
    st.sampled_from([0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0xFF, 0]),
    st.binary(max_size=24),
)
def test_any_payload_gives_a_reply_or_a_work_error(kind: int, payload: bytes) -> None:
    try:
        assert len(Decoder().feed(frame(kind, payload))) == 1
    except WorkError as error:
        assert "\n" not in error.message


def test_huge_reply_is_refused_by_its_header() -> None:
    with pytest.raises(WorkError, match="announced"):
        Decoder().feed(b"MPF1" + struct.pack("<IQ", 0x83, 1 << 60))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            ExecResult(3, 0, b"first\nlast line\n\n", False),
            "`run it` failed with status 3 .* first / last line",
        ),
        (ExecResult(3, 0, b"a\nb\n\nc\nd", False), "failed with status 3 .* b / c / d"),
        # Perl dies and git and ssh fail with it.
        (ExecResult(255, 0, b"died", False), "failed with status 255 .* died"),
        (ExecResult(128 + 64, 0, b"", False), "killed by signal 64 .* no output"),
        (ExecResult(139, 0, b"", False), "killed by signal 11 .* no output"),
        (ExecResult(agent.TIMED_OUT, 0, b"", False), "did not finish within 2 s"),
        (ExecResult(agent.NOT_STARTED, 0, b"cannot run", False), "did not start .* cannot run"),
        (Refused(1, "short request"), "short request"),
    ],
)
def test_unsuccessful_program_is_explained(reply: Reply, message: str) -> None:
    with pytest.raises(WorkError, match=message.replace(" .* ", ".*: ")):
        agent.expect_success(Exec(("run", "it"), 2), reply)


@pytest.mark.parametrize(
    ("status", "output", "remedy"),
    [
        (137, b"", "memory"),
        (1, b"dd: No space left on device\n2+0 records out", "memory"),
        (1, b"wget: bad address 'example.org'", "no network"),
        (1, b"Error: listen EAFNOSUPPORT: address family not supported ::1:80", "IPv6"),
        (127, b"/bin/sh: 1: hostname: not found", "package with `hostname`"),
        (1, b"/opt/run: line 9: sed: command not found\ncannot go on", "package with `sed`"),
        (1, b"not found", None),
        (1, b"key: a: not found in the cache", None),
        (1, b"wrong", None),
    ],
)
def test_what_a_guest_lacks_is_the_remedy(status: int, output: bytes, remedy: str | None) -> None:
    with pytest.raises(WorkError) as raised:
        agent.expect_success(Exec(("run",), 2), ExecResult(status, 0, output, False))
    assert raised.value.remedy is None if remedy is None else remedy in (raised.value.remedy or "")


def test_successful_program_passes() -> None:
    agent.expect_success(Exec(("run",), 2), ExecResult(0, 0, b"", False))
