"""fastboot's transports, TCP and UDP, on the loopback interface."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from mepof.phone.bootloader import Bootloader, CableLost

ADDRESS = "127.0.0.1"
MAX_COMMAND = 4096
_HANDSHAKE = b"FB01"
_STEP = 1 << 20

_ERROR, _QUERY, _INIT, _FASTBOOT = range(4)
_CONTINUES = 1
_UDP_VERSION = 1
_MAX_PACKET = 8192


def listening(kind: socket.SocketKind, port: int) -> socket.socket:
    """A socket that hosts on this machine reach; port 0 takes any that is free."""
    made = _bound(kind, port)
    if kind is socket.SOCK_STREAM:
        made.listen(1)
    return made


def held(port: int) -> socket.socket:
    """A TCP socket that keeps a port while none listens there; port 0 takes any that is free.

    Otherwise the kernel may give the port to any connection that is made on this machine, that of
    a host which tries to reach this very port included: it would be connected to itself.
    """
    return _bound(socket.SOCK_STREAM, port)


def _bound(kind: socket.SocketKind, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, kind)
    # A port that is held can be listened at, as long as nobody else listens there.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((ADDRESS, port))
    return made


def close(server: socket.socket) -> None:
    """End listening. A mere close() would not, while a thread waits for a host or a program that is
    being started still has a copy of the socket."""
    with contextlib.suppress(OSError):
        server.shutdown(socket.SHUT_RDWR)
    server.close()


def serve_tcp(server: socket.socket, bootloader: Bootloader) -> None:
    """Answer one host after the other, until the socket is closed or a system is started."""
    bootloader.started = None
    while not bootloader.left:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection, contextlib.suppress(CableLost, ConnectionError, EOFError):
            _converse(connection, bootloader)


def _converse(connection: socket.socket, bootloader: Bootloader) -> None:
    """The packets of one connection: eight bytes of length, and as many bytes."""
    bootloader.expected = 0  # a host that went away may not have sent all
    connection.sendall(_HANDSHAKE)
    if _exactly(connection, len(_HANDSHAKE))[:2] != _HANDSHAKE[:2]:
        return
    while True:
        size = int.from_bytes(_exactly(connection, 8), "big")
        if size > MAX_COMMAND:
            return
        for answer in bootloader.command(_exactly(connection, size)):
            _send(connection, answer)
        if bootloader.expected:
            _send(connection, bootloader.received(_download(connection, bootloader.expected)))
        if bootloader.started is not None:
            return


def _download(connection: socket.socket, expected: int) -> bytes:
    data = bytearray()
    while len(data) < expected:
        size = int.from_bytes(_exactly(connection, 8), "big")
        if size > expected - len(data):
            raise EOFError
        data += _exactly(connection, size)
    return bytes(data)


def _send(connection: socket.socket, data: bytes) -> None:
    connection.sendall(len(data).to_bytes(8, "big") + data)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), _STEP))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def serve_udp(server: socket.socket, bootloader: Bootloader) -> None:
    """Answer datagrams until the socket is closed or a system is started.

    A packet is an ID, flags, a sequence number and data. A host repeats what it got no answer to,
    so the last answer is kept. It sends empty packets to fetch each answer of the boot loader.
    """
    number = 0
    last = b""
    size = 512
    parts = bytearray()
    answers: Iterator[bytes] = iter(())
    lost = False
    bootloader.started = None
    while not (bootloader.left and last[4:8] == b"OKAY"):
        try:
            packet, host = server.recvfrom(_MAX_PACKET)
        except OSError:
            return
        if len(packet) < 4:
            continue
        kind, flags = packet[0], packet[1]
        sent, data = int.from_bytes(packet[2:4], "big"), packet[4:]
        lost = lost and kind != _QUERY
        if lost:
            continue
        if kind == _QUERY:
            server.sendto(bytes((_QUERY, 0, 0, 0)) + number.to_bytes(2, "big"), host)
            continue
        if sent == (number - 1) % 65536 and last:
            server.sendto(last, host)
            continue
        if sent != number or kind not in (_INIT, _FASTBOOT):
            continue
        if kind == _INIT:
            asked = int.from_bytes(data[2:4], "big")
            size = max(512, min(asked, _MAX_PACKET))
            version = _UDP_VERSION.to_bytes(2, "big")
            answer = version + _MAX_PACKET.to_bytes(2, "big")
            parts.clear()
            answers = iter(())
            bootloader.expected = 0
        else:
            answer = b""
            limit = bootloader.expected or MAX_COMMAND
            if data and len(parts) + len(data) <= limit:
                parts += data
            try:
                if not data:
                    answer = next(answers, b"")[: size - 4]
                elif bootloader.expected and len(parts) == bootloader.expected:
                    answers = iter((bootloader.received(bytes(parts)),))
                    parts.clear()
                elif not bootloader.expected and not flags & _CONTINUES:
                    # All of a command is done before its first answer is fetched.
                    answers = iter([*bootloader.command(bytes(parts))])
                    parts.clear()
            except CableLost:
                lost = True
                continue
        last = bytes((kind, 0)) + sent.to_bytes(2, "big") + answer
        server.sendto(last, host)
        number = (number + 1) % 65536
