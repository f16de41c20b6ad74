"""The agent, serving a file of requests as an ordinary process."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from mepof.device.agent import (
    NOT_STARTED,
    TIMED_OUT,
    Decoder,
    Exec,
    ExecResult,
    Get,
    GetResult,
    Hello,
    PoweredOff,
    PowerOff,
    Put,
    PutResult,
    Record,
    RecordResult,
    Refused,
    Reply,
    Request,
    encode,
)

ENOENT = 2
EISDIR = 21


def serve_bytes(
    built: Path, directory: Path, data: bytes
) -> tuple[subprocess.CompletedProcess[str], list[Reply]]:
    requests, responses = directory / "requests", directory / "responses"
    requests.write_bytes(data)
    done = subprocess.run(
        [built / "agent", requests, responses], capture_output=True, text=True, timeout=60
    )
    decoder = Decoder()
    replies = decoder.feed(responses.read_bytes())
    decoder.close()
    return done, replies


def serve(built: Path, directory: Path, *requests: Request) -> list[Reply]:
    """The replies after the greeting."""
    done, replies = serve_bytes(built, directory, b"".join(map(encode, requests)))
    assert done.returncode == 0, done.stderr
    assert isinstance(replies[0], Hello)
    return replies[1:]


def only(replies: list[Reply]) -> ExecResult:
    (reply,) = replies
    assert isinstance(reply, ExecResult)
    return reply


def test_greets_with_the_kernel_release(built: Path, tmp_path: Path) -> None:
    done, replies = serve_bytes(built, tmp_path, b"")
    release = Path("/proc/sys/kernel/osrelease").read_text(encoding="utf-8").strip()
    assert (done.returncode, replies) == (0, [Hello(release)])


def test_output_of_both_streams_comes_in_order(built: Path, tmp_path: Path) -> None:
    script = "echo one; echo two >&2; echo three"
    result = only(serve(built, tmp_path, Exec(("sh", "-c", script), 30)))
    assert (result.status, result.output) == (0, b"one\ntwo\nthree\n")
    assert not result.truncated
    assert result.elapsed_ns > 0


def test_arguments_arrive_as_they_are(built: Path, tmp_path: Path) -> None:
    words = ("", "two words", "$HOME", "ünïcode", "'")
    result = only(serve(built, tmp_path, Exec(("printf", "<%s>", *words), 30)))
    assert result.text == "".join(f"<{word}>" for word in words)


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -SEGV $$", 128 + 11)])
def test_status_is_the_exit_code_or_signal(
    built: Path, tmp_path: Path, script: str, status: int
) -> None:
    assert only(serve(built, tmp_path, Exec(("sh", "-c", script), 30))).status == status


def test_missing_program_did_not_start(built: Path, tmp_path: Path) -> None:
    result = only(serve(built, tmp_path, Exec(("/no/such/program",), 30)))
    assert result.status == NOT_STARTED
    assert result.text == "cannot run /no/such/program: No such file or directory"


def test_limit_ends_the_whole_process_group(built: Path, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    script = f"echo begun; (sleep 30; touch {witness}) & sleep 30"
    result = only(serve(built, tmp_path, Exec(("sh", "-c", script), 0.3)))
    assert (result.status, result.output) == (TIMED_OUT, b"begun\n")
    assert 0.3e9 <= result.elapsed_ns < 20e9
    assert not witness.exists()


def test_background_process_does_not_delay_the_result(built: Path, tmp_path: Path) -> None:
    result = only(serve(built, tmp_path, Exec(("sh", "-c", "sleep 5 & echo done"), 60)))
    assert (result.status, result.output) == (0, b"done\n")
    assert result.elapsed_ns < 4e9


def test_long_output_is_cut_and_flagged(built: Path, tmp_path: Path) -> None:
    result = only(serve(built, tmp_path, Exec(("head", "-c", "5000000", "/dev/zero"), 30)))
    assert (result.status, len(result.output), result.truncated) == (0, 4 << 20, True)


def test_file_put_comes_back_complete(built: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "directories" / "file"
    data = bytes(range(256)) * 9000
    replies = serve(built, tmp_path, Put(str(path), 0o640, data), Get(str(path)))
    assert replies == [PutResult(0), GetResult(0, data)]
    assert path.stat().st_mode & 0o777 == 0o640


def test_file_without_a_size_is_read_to_its_end(built: Path, tmp_path: Path) -> None:
    (reply,) = serve(built, tmp_path, Get("/proc/cpuinfo"))
    assert isinstance(reply, GetResult)
    assert reply.data.startswith(b"processor")


def test_errors_of_files_carry_the_number(built: Path, tmp_path: Path) -> None:
    requests = (Get("/no/such/file"), Get(str(tmp_path)), Put(str(tmp_path), 0o600, b"x"))
    assert serve(built, tmp_path, *requests) == [
        GetResult(ENOENT, b""),
        GetResult(EISDIR, b""),
        PutResult(EISDIR),
    ]


def test_marks_do_nothing_without_a_recorder(built: Path, tmp_path: Path) -> None:
    replies = serve(built, tmp_path, Record(True), Record(False), Get("/no/such/file"))
    assert replies == [RecordResult(), RecordResult(), GetResult(ENOENT, b"")]


def test_nothing_is_served_after_power_off(built: Path, tmp_path: Path) -> None:
    replies = serve(built, tmp_path, PowerOff(), Get("/proc/cpuinfo"))
    assert replies == [PoweredOff()]


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (99, b""),
        (1, b"\1"),
        (1, struct.pack("<II", 0, 0)),
        (1, struct.pack("<II", 0, 1 << 31) + b"a\0"),
        (1, struct.pack("<II", 0, 2) + b"one\0unended"),
        (2, b""),
        (2, struct.pack("<I", 0o600) + b"unended"),
        (3, b""),
        (3, b"\0"),
        (3, b"unended"),
        (7, b""),
        (7, b"\1\0\0\0\0"),
    ],
)
def test_malformed_request_is_refused_and_the_next_is_served(
    built: Path, tmp_path: Path, kind: int, payload: bytes
) -> None:
    frame = b"MPF1" + struct.pack("<IQ", kind, len(payload)) + payload
    done, replies = serve_bytes(built, tmp_path, frame + encode(Get("/no/such/file")))
    assert done.returncode == 0
    assert isinstance(replies[1], Refused)
    assert replies[1].request == kind
    assert replies[2] == GetResult(ENOENT, b"")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "wrong magic"),
        (b"MPF1" + struct.pack("<IQ", 1, 1 << 40), "larger than"),
        (encode(Get("/x"))[:-1], "ends within a request"),
        (b"MPF", "ends within a request"),
    ],
)
def test_broken_stream_ends_the_agent_with_one_line(
    built: Path, tmp_path: Path, data: bytes, message: str
) -> None:
    done, _ = serve_bytes(built, tmp_path, data)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("mepof-agent: ")
    assert message in line
