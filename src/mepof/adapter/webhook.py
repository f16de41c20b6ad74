"""Sends a message to a web server, signed as https://www.standardwebhooks.com describes.

The signature is the HMAC-SHA256 of the message's identifier, the time in seconds and the body,
joined by dots. A receiver that keeps the identifiers it has seen, and refuses times that are long
past, handles each message once.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mepof.errors import InputError
from mepof.process import find_tool
from mepof.source.download import read_answers, retry_after
from mepof.toolchain.protocol import Run

_MIN_KEY_BYTES = 16
_PREFIX = "whsec_"
_SECONDS = 30
_GONE = 410


@dataclass(frozen=True)
class Answer:
    """What became of a message.

    Attributes:
        accepted: the server has it.
        final: it does not want to be asked again.
        wait: seconds that it asks to wait, if it does.
        reason: why it did not take it.
    """

    accepted: bool
    final: bool = False
    wait: float | None = None
    reason: str = ""


def key_of(path: Path) -> bytes:
    """The key in a file: ``whsec_`` and base64, or any text.

    Raises:
        InputError: it cannot be read, is too short, or others can read it.
    """
    remedy = f"umask 077; echo whsec_$(openssl rand -base64 24) > {path}"
    try:
        text = path.read_text(encoding="utf-8").strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the key of the webhook {path} cannot be read", remedy) from error
    if mode & 0o077:
        raise InputError(f"others can read the key of the webhook {path}", f"chmod 600 {path}")
    key = text.encode()
    if text.startswith(_PREFIX):
        try:
            key = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
        except binascii.Error as error:
            raise InputError(f"the key of the webhook {path} is not base64", remedy) from error
    if len(key) < _MIN_KEY_BYTES:
        raise InputError(
            f"the key of the webhook {path} is shorter than {_MIN_KEY_BYTES} bytes", remedy
        )
    return key


def signature(key: bytes, identifier: str, seconds: int, body: str) -> str:
    """The value of the header ``webhook-signature``."""
    signed = f"{identifier}.{seconds}.{body}".encode()
    return f"v1,{base64.b64encode(hmac.new(key, signed, sha256).digest()).decode()}"


def send(
    url: str, key: bytes, identifier: str, body: str, seconds: int, work: Path, run: Run
) -> Answer:
    """Send a message once. A redirect is not followed.

    Args:
        seconds: the time since the epoch.
        work: scratch directory that others cannot read.

    Raises:
        EnvironmentLack: curl is not installed.
        WorkError: it does not end in time.
    """
    headers, content, config = (work / f"webhook.{name}" for name in ("headers", "body", "curl"))
    content.write_text(body, encoding="utf-8")
    headers.unlink(missing_ok=True)
    settings = {
        "url": url,
        "data-binary": f"@{content}",
        "dump-header": str(headers),
        "output": "/dev/null",
        "max-time": str(_SECONDS),
        "proto": "=http,https",
        "user-agent": "mepof",
    }
    sent = {
        "Content-Type": "application/json",
        "webhook-id": identifier,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signature(key, identifier, seconds, body),
    }
    lines = [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    lines += [f"header = {_quoted(f'{name}: {value}')}" for name, value in sent.items()]
    # In a file, since the URL may contain a token that a list of processes would show.
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    config.chmod(0o600)
    argv = [find_tool("curl", "apt-get install curl"), "--silent", "--globoff", "--config", config]
    try:
        done = run(argv, check=False, timeout=2.0 * _SECONDS)
        codes, answered = read_answers(headers)
    finally:
        config.unlink()
    if done.status != 0 or not codes:
        return Answer(False, reason=f"the server does not answer (curl's status {done.status})")
    code = codes[-1]
    if 200 <= code < 300:
        return Answer(True)
    wait = retry_after(answered.get("retry-after", ""))
    return Answer(False, code == _GONE, wait, f"HTTP status {code}")


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
