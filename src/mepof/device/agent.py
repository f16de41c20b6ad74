"""The guest agent's wire protocol: encodes requests and decodes replies. No I/O.

A frame is ``u32 magic "MPF1", u32 type, u64 size`` and the payload, little endian. The other
end is ``native/guest/agent.c``; ``docs/kbench.md`` has the table of both.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from signal import NSIG, SIGKILL

from mepof.errors import WorkError

_MAGIC = b"MPF1"
_HEADER = struct.Struct("<4sIQ")
_U32 = struct.Struct("<I")
_EXEC_REQUEST = struct.Struct("<II")
_EXEC_RESULT = struct.Struct("<IIQ")
_TRUNCATED = 1
# Larger than any profile: a header that claims more is not the agent's.
_MAX_PAYLOAD = 1 << 30

_LAST_LINES = 3
# By a shell, whose script may go on and end with another status than that of this.
_NO_COMMAND = re.compile(r": (\S+): (?:command )?not found$", re.M)
_NETWORK = "the guest has no network besides the loopback"
_CONFIG = "the kernel lacks it: `slim` has no IPv6, for example, and `set config server` has more"
#: By what programs say.
_REMEDIES = {
    "No space left on device": "the guest's files are in its memory: give it more: `memory`",
    "bad address": _NETWORK,
    "Network is unreachable": _NETWORK,
    "Temporary failure in name resolution": _NETWORK,
    "Could not resolve": _NETWORK,
    # strerror's words, and those of Go and Node.js.
    "Address family not supported": _CONFIG,
    "address family not supported": _CONFIG,
    "Function not implemented": _CONFIG,
}

#: How many MiB of a program's output the agent keeps.
OUTPUT_MIB = 4
TIMED_OUT = 0xFFFFFFFE
NOT_STARTED = 0xFFFFFFFF


@dataclass(frozen=True)
class Exec:
    """Run a program in the guest, without a shell.

    Attributes:
        timeout: limit in seconds, after which its process group is killed; 0 means no limit.
    """

    argv: tuple[str, ...]
    timeout: float


@dataclass(frozen=True)
class Put:
    """Write a file and create its directories. ``mode`` applies to a file that did not exist."""

    path: str
    mode: int
    data: bytes


@dataclass(frozen=True)
class Get:
    """Read a file to its end, whatever size ``stat`` reports."""

    path: str


@dataclass(frozen=True)
class PowerOff:
    """Power the guest off."""


@dataclass(frozen=True)
class Shell:
    """Hand the console to the user until they leave the shell."""


@dataclass(frozen=True)
class Record:
    """Begin or end recording branches (``Session.record``); otherwise it does nothing."""

    on: bool


Request = Exec | Put | Get | PowerOff | Shell | Record


@dataclass(frozen=True)
class Hello:
    """The agent runs; ``release`` is the kernel's (``uname -r``)."""

    release: str


@dataclass(frozen=True)
class ExecResult:
    """How a program ended.

    Attributes:
        status: exit code, 128 + signal, ``TIMED_OUT`` or ``NOT_STARTED``.
        elapsed_ns: guest time from start to end.
        output: standard output and error in order, or why it did not start.
        truncated: the program wrote more than the agent keeps.
    """

    status: int
    elapsed_ns: int
    output: bytes
    truncated: bool

    @property
    def text(self) -> str:
        """The output as text; bytes that are not UTF-8 are replaced."""
        return self.output.decode("utf-8", "replace")


@dataclass(frozen=True)
class PutResult:
    """``errno`` is the guest's error number, 0 when the file was written."""

    errno: int


@dataclass(frozen=True)
class GetResult:
    """``errno`` is the guest's error number, 0 when ``data`` is the whole file."""

    errno: int
    data: bytes


@dataclass(frozen=True)
class PoweredOff:
    """The last reply: the guest powers off."""


@dataclass(frozen=True)
class ShellResult:
    """The user left the shell; ``status`` as in :class:`ExecResult`."""

    status: int


@dataclass(frozen=True)
class RecordResult:
    """Recording began or ended, if the device records."""


@dataclass(frozen=True)
class Refused:
    """The agent did not understand a request of the type ``request``."""

    request: int
    message: str


Reply = (
    Hello | ExecResult | PutResult | GetResult | PoweredOff | ShellResult | RecordResult | Refused
)


def encode(request: Request) -> bytes:
    """The frame of a request; a request file is a sequence of frames.

    Raises:
        WorkError: the protocol cannot carry an argument or path.
    """
    match request:
        case Exec(argv, timeout):
            if not argv:
                raise WorkError("the guest agent was asked to run an empty command")
            limit = min(max(timeout * 1000, 1), 0xFFFFFFFF) if timeout > 0 else 0
            words = b"".join(_string(word) for word in argv)
            return _frame(1, _EXEC_REQUEST.pack(round(limit), len(argv)) + words)
        case Put(path, mode, data):
            return _frame(2, _U32.pack(mode & 0o7777) + _path(path) + data)
        case Get(path):
            return _frame(3, _path(path))
        case PowerOff():
            return _frame(4, b"")
        case Shell():
            return _frame(6, b"")
        case Record(on):
            return _frame(7, _U32.pack(on))


def _frame(kind: int, payload: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, kind, len(payload)) + payload


def _string(text: str) -> bytes:
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise WorkError(f"{text!r} cannot be encoded") from error
    if b"\0" in data:
        raise WorkError(f"{text!r} contains a NUL byte; arguments and paths cannot")
    return data + b"\0"


def _path(path: str) -> bytes:
    if not path:
        raise WorkError("the guest agent was given an empty path")
    return _string(path)


class Decoder:
    """Decodes the agent's replies from a stream of bytes.

    Input from a guest is not trusted: anything that is not a reply is a WorkError.
    """

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Reply]:
        """Add bytes, and return the replies that are complete now.

        Raises:
            WorkError: the stream is not the agent's.
        """
        self._pending += data
        replies: list[Reply] = []
        at = 0
        while len(self._pending) - at >= _HEADER.size:
            magic, kind, size = _HEADER.unpack_from(self._pending, at)
            if magic != _MAGIC:
                raise WorkError("the guest sent data that is not a reply of its agent")
            if size > _MAX_PAYLOAD:
                raise WorkError(f"the guest agent announced a reply of {size} bytes")
            end = at + _HEADER.size + size
            if len(self._pending) < end:
                break
            replies.append(_reply(kind, bytes(self._pending[at + _HEADER.size : end])))
            at = end
        del self._pending[:at]
        return replies

    def close(self) -> None:
        """End the stream.

        Raises:
            WorkError: the last reply is incomplete.
        """
        if self._pending:
            raise WorkError("the guest went down in the middle of a reply")


def _reply(kind: int, payload: bytes) -> Reply:
    try:
        match kind:
            case 0x80:
                return Hello(payload.decode("ascii", "replace"))
            case 0x81:
                status, flags, elapsed_ns = _EXEC_RESULT.unpack_from(payload)
                output = payload[_EXEC_RESULT.size :]
                return ExecResult(status, elapsed_ns, output, bool(flags & _TRUNCATED))
            case 0x82:
                return PutResult(_U32.unpack(payload)[0])
            case 0x83:
                return GetResult(_U32.unpack_from(payload)[0], payload[_U32.size :])
            case 0x84:
                return PoweredOff()
            case 0x86:
                return ShellResult(_U32.unpack(payload)[0])
            case 0x87:
                return RecordResult()
            case 0xFF:
                (request,) = _U32.unpack_from(payload)
                return Refused(request, payload[_U32.size :].decode("utf-8", "replace"))
    except struct.error as error:
        raise WorkError(f"a reply of the guest agent is malformed (type {kind:#x})") from error
    raise WorkError(f"the guest agent sent a reply of unknown type {kind:#x}")


def expect_success(request: Exec, reply: Reply) -> None:
    """Check that a program ended with exit status 0.

    Raises:
        WorkError: it did not; the message says how it ended, and the last lines that it wrote.
    """
    name = " ".join(request.argv)
    if not isinstance(reply, ExecResult):
        raise WorkError(f"the guest agent answered `{name}` with {reply}")
    if reply.status == 0:
        return
    last = last_lines(reply.text)
    if reply.status == TIMED_OUT:
        how = f"did not finish within {request.timeout:g} s"
    elif reply.status == NOT_STARTED:
        how = "did not start"
    elif 128 < reply.status < 128 + NSIG:  # programs say 255 themselves
        how = f"was killed by signal {reply.status - 128}"
    else:
        how = f"failed with status {reply.status}"
    raise WorkError(f"`{name}` {how} in the guest: {last}", _remedy(reply))


def last_lines(text: str) -> str:
    """The end of what a program wrote, for one line: the reason is often not in the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-_LAST_LINES:]) or "no output"


def _remedy(reply: ExecResult) -> str | None:
    """What may help a program that failed for what a guest lacks."""
    if reply.status == 128 + SIGKILL:
        return "if the guest's memory was used up, as its console says, give it more: `memory`"
    return remedy_for(reply.text)


def remedy_for(text: str) -> str | None:
    """What may help a program that wrote this and failed; None if nothing is known."""
    if lacking := _NO_COMMAND.search(text):
        return f"the guest has only what its app lays there: add the package with `{lacking[1]}`"
    return next((remedy for said, remedy in _REMEDIES.items() if said in text), None)
