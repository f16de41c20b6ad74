"""Downloads from a real server that misbehaves."""

from __future__ import annotations

import os
import select
import socket
import struct
from hashlib import sha256
from pathlib import Path

import pytest

from mepof.errors import InputError, WorkError
from mepof.source.download import MAX_ATTEMPTS, download

from .conftest import Answer, Handler, Recorder, Server, status

DATA = os.urandom(300_000)
DIGEST = sha256(DATA).hexdigest()


@pytest.fixture
def url(server: Server) -> str:
    (server.root / "linux.tar").write_bytes(DATA)
    return f"{server.url}/linux.tar"


def cut(size: int) -> Answer:
    def answer(handler: Handler) -> bool:
        handler.give(DATA, size)
        return True

    return answer


def partial(bench: Recorder) -> list[Path]:
    directory = bench.workshop.cache / "downloads/partial"
    return [path for path in directory.iterdir() if not path.suffix]


def test_a_file_lies_by_its_content_and_is_not_fetched_again(
    bench: Recorder, server: Server, url: str
) -> None:
    path = download(url, DIGEST, bench.workshop)
    assert (path.name, path.read_bytes()) == (DIGEST, DATA)
    assert path.stat().st_mode & 0o777 == 0o444
    assert download(url, DIGEST, bench.workshop) == path
    assert download(url, None, bench.workshop) == path
    assert len(server.asked) == 1
    assert partial(bench) == []


def test_a_damaged_file_is_fetched_again(bench: Recorder, server: Server, url: str) -> None:
    path = download(url, DIGEST, bench.workshop)
    path.chmod(0o644)
    path.write_bytes(b"damaged")
    assert download(url, DIGEST, bench.workshop).read_bytes() == DATA
    assert len(server.asked) == 2


def test_half_a_file_is_continued_where_it_stopped(
    bench: Recorder, server: Server, url: str
) -> None:
    server.script[:] = [cut(100_000), cut(200_000)]
    assert download(url, DIGEST, bench.workshop).read_bytes() == DATA
    assert [wanted for _, _, wanted in server.asked] == [None, "bytes=100000-", "bytes=200000-"]
    assert len(bench.waits) == 2 and bench.waits[0] < bench.waits[1] * 2


def test_a_download_goes_on_in_another_run(bench: Recorder, server: Server, url: str) -> None:
    server.script[:] = [cut(100_000), *[status(503)] * (MAX_ATTEMPTS - 1)]
    with pytest.raises(WorkError, match="HTTP status 503, 6 times") as caught:
        download(url, DIGEST, bench.workshop)
    assert caught.value.remedy is not None and "continues" in caught.value.remedy
    assert partial(bench)[0].stat().st_size == 100_000
    assert download(url, DIGEST, bench.workshop).read_bytes() == DATA
    assert server.asked[-1][2] == "bytes=100000-"


def test_a_file_that_changed_since_the_first_half_is_fetched_whole(
    bench: Recorder, server: Server, url: str
) -> None:
    server.script[:] = [cut(100_000)]
    other = os.urandom(250_000)

    def change(handler: Handler) -> bool:
        (server.root / "linux.tar").write_bytes(other)
        return False

    server.script.append(change)
    path = download(url, sha256(other).hexdigest(), bench.workshop)
    assert path.read_bytes() == other


def reset(bench: Recorder) -> Answer:
    """Resets the connection when most of 100 000 bytes have arrived: curl's status 56."""

    def answer(handler: Handler) -> bool:
        handler.give(DATA, 100_000)
        handler.wfile.flush()
        while not partial(bench) or partial(bench)[0].stat().st_size < 60_000:
            select.select([], [], [], 0.001)
        now = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
        handler.connection.close()
        return True

    return answer


def test_a_file_that_changed_while_the_connection_was_reset_is_fetched_whole(
    bench: Recorder, server: Server, url: str
) -> None:
    other = os.urandom(250_000)

    def change(handler: Handler) -> bool:
        (server.root / "linux.tar").write_bytes(other)
        return False

    server.script[:] = [reset(bench), change]
    assert download(url, None, bench.workshop).read_bytes() == other


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("header", ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nETag: {}\r\n"])
def test_what_a_killed_download_left_is_continued_only_if_it_is_of_the_same_file(
    bench: Recorder, server: Server, url: str, header: str, changed: bool
) -> None:
    server.script[:] = [cut(100_000), *[status(503)] * (MAX_ATTEMPTS - 1)]
    with pytest.raises(WorkError):
        download(url, None, bench.workshop)
    (part,) = partial(bench)
    part.with_name(f"{part.name}.header").unlink()
    if header:
        etag = f'"{hash(DATA)}"'
        part.with_name(f"{part.name}.new").write_text(header.format(etag))
    given = os.urandom(250_000) if changed else DATA
    (server.root / "linux.tar").write_bytes(given)
    assert download(url, None, bench.workshop).read_bytes() == given
    assert (server.asked[-1][2] is not None) == ("ETag" in header and not changed)


def test_a_server_without_ranges_is_asked_for_the_whole(
    bench: Recorder, server: Server, url: str
) -> None:
    def whole(handler: Handler) -> bool:
        del handler.headers["Range"]
        return False

    server.script[:] = [cut(100_000), whole]
    assert download(url, DIGEST, bench.workshop).read_bytes() == DATA


def test_a_part_that_is_already_whole_is_taken(bench: Recorder, server: Server, url: str) -> None:
    server.script[:] = [cut(100_000), *[status(404)]]
    with pytest.raises(InputError, match="404"):
        download(url, DIGEST, bench.workshop)
    partial(bench)[0].write_bytes(DATA)
    assert download(url, DIGEST, bench.workshop).read_bytes() == DATA


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_that_asks_to_wait_is_obeyed(
    bench: Recorder, server: Server, url: str, code: int
) -> None:
    server.script[:] = [status(code, Retry_After="7")]
    assert download(url, DIGEST, bench.workshop).read_bytes() == DATA
    assert len(bench.waits) == 1 and 7 <= bench.waits[0] <= 10.5
    assert any(f"HTTP status {code}; again in" in note for note in bench.notes)


def test_a_server_that_asks_to_wait_for_hours_ends_the_run(
    bench: Recorder, server: Server, url: str
) -> None:
    server.script[:] = [status(429, Retry_After="7200")]
    with pytest.raises(WorkError, match="asks to wait 120 minutes"):
        download(url, DIGEST, bench.workshop)
    assert bench.waits == [] and len(server.asked) == 1


def test_a_redirect_is_followed_and_a_loop_is_an_error(
    bench: Recorder, server: Server, url: str
) -> None:
    server.script[:] = [status(302, Location="/linux.tar")]
    assert download(f"{server.url}/moved", DIGEST, bench.workshop).read_bytes() == DATA
    server.script[:] = [status(302, Location="/loop")] * 20
    with pytest.raises(InputError, match="redirects more than 5 times"):
        download(f"{server.url}/loop", None, bench.workshop)


def test_a_redirect_to_a_file_of_this_machine_is_refused(
    bench: Recorder, server: Server, url: str
) -> None:
    server.script[:] = [status(302, Location="file:///etc/passwd")]
    with pytest.raises(InputError, match="its protocol is not supported"):
        download(f"{server.url}/moved", None, bench.workshop)


@pytest.mark.parametrize(
    ("code", "why"), [(404, "there is no such file"), (403, "access is denied"), (400, "refuses")]
)
def test_what_a_server_refuses_is_not_asked_for_again(
    bench: Recorder, server: Server, url: str, code: int, why: str
) -> None:
    server.script[:] = [status(code)]
    with pytest.raises(InputError, match=f"{why} .HTTP status {code}"):
        download(url, DIGEST, bench.workshop)
    assert len(server.asked) == 1


def test_another_file_than_the_program_names_is_refused_and_not_kept(
    bench: Recorder, url: str
) -> None:
    with pytest.raises(InputError, match=f"have the SHA-256 {DIGEST}, not 0000") as caught:
        download(url, "0" * 64, bench.workshop)
    assert caught.value.remedy is not None
    assert partial(bench) == []
    assert not (bench.workshop.cache / "downloads" / DIGEST).exists()


def test_a_server_that_is_not_there_is_asked_a_few_times(bench: Recorder, server: Server) -> None:
    url = server.url.rpartition(":")[0] + ":1/linux.tar"
    with pytest.raises(WorkError, match="cannot be downloaded"):
        download(url, None, bench.workshop)
    assert len(bench.waits) == MAX_ATTEMPTS - 1
    assert all(b > a * 0.9 for a, b in zip(bench.waits, bench.waits[1:], strict=False))
