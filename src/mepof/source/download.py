"""Downloads by curl: resumed, retried politely, verified, and kept by their content."""

from __future__ import annotations

import os
import random
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from hashlib import sha256 as sha256_hash
from pathlib import Path

from mepof.errors import InputError, MepofError, WorkError
from mepof.plan.digest import file_digest
from mepof.process import find_tool
from mepof.source.protocol import Workshop, locked

MAX_ATTEMPTS = 6
MAX_REDIRECTS = 5
#: The longest that a server's Retry-After is obeyed, in seconds; beyond it, the run ends.
MAX_WAIT = 600.0
#: Larger than any kernel's tarball, in bytes.
MAX_BYTES = 8 << 30
#: Larger than any list of releases, in bytes.
MAX_LIST_BYTES = 16 << 20
_FIRST_WAIT = 2.0
# Below this many bytes a second for this many seconds, the connection counts as dead.
_MIN_SPEED, _STALLED = 100, 60

# curl's exit statuses.
_REDIRECTS, _HTTP_ERROR, _NO_RANGE, _BAD_RESUME, _TOO_LARGE = 47, 22, 33, 36, 63
# Unsupported or malformed URL, TLS verification: another attempt gives the same.
_LASTING = {
    1: "its protocol is not supported",
    3: "it is not a URL",
    51: "the server's certificate is not valid",
    60: "the server's certificate is not valid",
}
# Some servers deny what is not there.
_MISSING = frozenset({403, 404, 410})
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})


class Busy(WorkError):
    """A server asks to come back later.

    Attributes:
        seconds: how much later.
    """

    def __init__(self, message: str, remedy: str, seconds: float) -> None:
        super().__init__(message, remedy)
        self.seconds = seconds


class Missing(InputError):
    """A server does not have a file; of a release that was just announced, a mirror may not yet."""


@dataclass(frozen=True)
class _Answer:
    """How an attempt ended: curl's status and last line, and the server's last answer."""

    curl: int
    complaint: str
    http: int
    headers: dict[str, str]


def download(url: str, sha256: str | None, workshop: Workshop) -> Path:
    """The file at a URL: see :func:`fetched`."""
    return fetched(url, sha256, workshop)[0]


def fetched(url: str, sha256: str | None, workshop: Workshop) -> tuple[Path, bool]:
    """The file at a URL, read-only and named by its SHA-256.

    What an earlier attempt left is continued, if the server says that it still has the same file.

    Args:
        sha256: what it must be; None takes what the URL gave before, or now.

    Returns:
        its path, and whether it may have been put together, now, from several answers.

    Raises:
        Missing: the server does not have the file.
        InputError: the file is not what it must be.
        EnvironmentLack: curl is not installed.
        Busy: the server asks to wait for too long.
        WorkError: it does not answer.
    """
    kept = workshop.cache / "downloads"
    partials = kept / "partial"
    partials.mkdir(parents=True, exist_ok=True)
    key = sha256_hash(url.encode()).hexdigest()[:32]
    link = kept / f"url-{key}"
    with locked(partials / f"{key}.lock", workshop, f"another run fetches {url}"):
        known = (kept / sha256 if sha256 is not None else link).resolve()
        if known.is_file() and file_digest(known) == known.name:
            return known, False
        partial = partials / key
        joined = _fetch(url, partial, workshop)
        found = file_digest(partial)
        if sha256 is not None and found != sha256 and joined:
            # The part that was here may be of another file.
            partial.unlink()
            joined = _fetch(url, partial, workshop)
            found = file_digest(partial)
        if sha256 is not None and found != sha256:
            size = partial.stat().st_size
            partial.unlink()
            raise InputError(
                f"{url} is not the file that the program names: its {size} bytes have the "
                f"SHA-256 {found}, not {sha256}",
                "correct the checksum only if you know why it changed",
            )
        target = kept / found
        partial.chmod(0o444)
        partial.replace(target)
        _header(partial).unlink(missing_ok=True)
        _relink(link, found)
        return target, joined


def changed(url: str, validator: str, workshop: Workshop) -> tuple[str | None, str]:
    """A small text at a URL, if it is another one than before.

    Args:
        validator: what this gave the last time; empty the first time.

    Returns:
        the text, None if it has not changed; and its validator.

    Raises:
        InputError: it does not exist, or is larger than :data:`MAX_LIST_BYTES`.
        Busy: the server asks to wait for too long.
        WorkError: the server does not answer.
    """
    partial = workshop.work / "changed"
    for attempt in range(1, MAX_ATTEMPTS + 1):
        partial.unlink(missing_ok=True)
        answer = _attempt(url, partial, workshop, MAX_LIST_BYTES, validator)
        if answer.curl == 0 and answer.http == 304:
            return None, validator
        if answer.curl == 0:
            known = _validator(_header(partial)) or ""
            return partial.read_text(encoding="utf-8", errors="replace"), known
        failure = _lasting(url, answer, partial, MAX_LIST_BYTES)
        if failure is not None:
            raise failure
        if attempt < MAX_ATTEMPTS:
            _wait(url, answer, attempt, partial, workshop)
    raise WorkError(f"{url} cannot be read: {_why(answer)}, {MAX_ATTEMPTS} times")


def forget(path: Path) -> None:
    """Remove a download that turned out to be wrong, so that the next attempt fetches it."""
    path.unlink(missing_ok=True)


def _relink(link: Path, target: str) -> None:
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def _fetch(url: str, partial: Path, workshop: Workshop) -> bool:
    """Fill ``partial``; attempt after attempt where another one may help.

    Returns:
        whether it may be of several answers.
    """
    joined = _known(partial) is not None
    continued = f", of which {_size(partial) >> 20} MiB are here" if partial.exists() else ""
    workshop.note(f"downloading {url}{continued}")
    for attempt in range(1, MAX_ATTEMPTS + 1):
        before = _size(partial)
        answer = _attempt(url, partial, workshop)
        joined = joined or answer.http == 206
        if answer.curl == 0 and partial.exists():  # else the part was of another file
            return joined
        failure = _lasting(url, answer, partial)
        if failure is not None:
            raise failure
        if answer.http == 416 or answer.curl in (_NO_RANGE, _BAD_RESUME):
            # It has no ranges, or not this one: what is here is useless, or already whole.
            if answer.http == 416 and _total(answer) == before:
                return joined
            partial.unlink(missing_ok=True)
            continue
        if attempt < MAX_ATTEMPTS:
            _wait(url, answer, attempt, partial, workshop)
    raise WorkError(
        f"{url} cannot be downloaded: {_why(answer)}, {MAX_ATTEMPTS} times",
        "run it again later: it continues where it stopped",
    )


def _attempt(
    url: str, partial: Path, workshop: Workshop, limit: int = MAX_BYTES, if_none_match: str = ""
) -> _Answer:
    curl = find_tool("curl", "apt-get install curl")
    same = _known(partial)
    fresh = _fresh(partial)
    argv: list[str | Path] = [
        *(curl, "--silent", "--show-error", "--fail", "--location", "--globoff"),
        *("--max-redirs", str(MAX_REDIRECTS), "--max-filesize", str(limit)),
        *("--proto", "=http,https,ftp", "--proto-redir", "=http,https"),
        *("--connect-timeout", "30", "--speed-limit", str(_MIN_SPEED)),
        *("--speed-time", str(_STALLED), "--user-agent", "mepof", "--netrc-optional"),
        *("--dump-header", fresh, "--output", partial),
        # The server sends the whole file if it is another one by now.
        *(["--continue-at", "-", "--header", f"If-Range: {same}"] if same else []),
        *(["--header", _condition(if_none_match)] if if_none_match else []),
        *("--", url),
    ]

    def watch() -> None:
        workshop.progress(_size(partial) >> 20, None, "MiB")
        if _size(partial) > limit:  # of a file whose size the server did not say
            raise _too_large(url, limit)

    done = workshop.run(argv, check=False, watch=watch)
    codes, headers = read_answers(fresh)
    _keep_header(partial)
    complaint = next((line for line in reversed(done.output.splitlines()) if line.strip()), "")
    return _Answer(
        done.status, re.sub(r"^curl: \(\d+\) ", "", complaint), codes[-1] if codes else 0, headers
    )


def _too_large(url: str, limit: int) -> InputError:
    return InputError(f"{url} is larger than {limit >> 20} MiB", "check the address")


def _lasting(url: str, answer: _Answer, partial: Path, limit: int = MAX_BYTES) -> MepofError | None:
    """The error that another attempt would meet again."""
    if answer.curl == _REDIRECTS:
        return InputError(f"{url} redirects more than {MAX_REDIRECTS} times", "check the address")
    if answer.curl == _TOO_LARGE:
        return _too_large(url, limit)
    if answer.curl in _LASTING:
        return InputError(f"{url} cannot be downloaded: {_LASTING[answer.curl]}")
    if answer.curl == 23:  # writing
        return WorkError(f"{partial} cannot be written: {answer.complaint}")
    if answer.curl == _HTTP_ERROR and answer.http not in (*_BUSY, 416):
        known = {
            401: "it needs a user name; put it into ~/.netrc",
            403: "access is denied",
            404: "there is no such file",
            410: "the file is gone",
        }
        why = known.get(answer.http, "the server refuses")
        kind = Missing if answer.http in _MISSING else InputError
        return kind(f"{url}: {why} (HTTP status {answer.http})", "check the address")
    return None


def _wait(url: str, answer: _Answer, attempt: int, partial: Path, workshop: Workshop) -> None:
    asked = retry_after(answer.headers.get("retry-after", ""))
    if asked is not None and asked > MAX_WAIT:
        raise Busy(
            f"{url}: the server asks to wait {asked / 60:.0f} minutes ({_why(answer)})",
            "run it again then: it continues where it stopped",
            asked,
        )
    # With jitter, so that many machines do not come back at once.
    seconds = asked if asked is not None else _FIRST_WAIT * 2 ** (attempt - 1)
    seconds += random.uniform(0, seconds / 2)
    so_far = f"; {_size(partial) >> 20} MiB are here" if _size(partial) else ""
    workshop.note(f"{url}: {_why(answer)}; again in {seconds:.0f} s{so_far}")
    workshop.wait(seconds)


def _why(answer: _Answer) -> str:
    if answer.curl == _HTTP_ERROR and answer.http:
        return f"HTTP status {answer.http}"
    return answer.complaint or f"curl failed with status {answer.curl}"


def retry_after(text: str) -> float | None:
    """Seconds to wait; RFC 9110 allows a number or a date."""
    if not text:
        return None
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (OverflowError, TypeError, ValueError):
        return None


def _total(answer: _Answer) -> int | None:
    """The size of the whole file, from ``Content-Range: bytes */SIZE``."""
    found = re.fullmatch(r"bytes \*/(\d+)", answer.headers.get("content-range", ""))
    return int(found[1]) if found else None


def read_answers(dumped: Path) -> tuple[list[int], dict[str, str]]:
    """The statuses of all answers, redirects included, and the headers of the last."""
    codes: list[int] = []
    headers: dict[str, str] = {}
    if not dumped.exists():
        return codes, headers
    for line in dumped.read_text(encoding="latin-1").splitlines():
        if found := re.match(r"HTTP/\S+ (\d{3})", line):
            codes.append(int(found[1]))
            headers = {}
        elif ":" in line:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
    return codes, headers


def _validator(header: Path) -> str | None:
    """What tells one version of the file from another: a strong ETag, or its date."""
    headers = read_answers(header)[1]
    etag = headers.get("etag", "")
    return etag if etag.startswith('"') else headers.get("last-modified")


def _known(partial: Path) -> str | None:
    """What tells whether a server still has the file of which a part is here. Without it, the part
    is removed: it may be of any file."""
    _keep_header(partial)  # of an attempt that was killed
    validator = _validator(_header(partial)) if partial.exists() else None
    if validator is None:
        _remove(partial)
    return validator


def _keep_header(partial: Path) -> None:
    """Keep the header of the answer that a part is of, however the attempt ended."""
    header, fresh = _header(partial), _fresh(partial)
    codes, _ = read_answers(fresh)
    if codes[-1:] == [200]:
        if not header.exists():
            fresh.replace(header)
        elif _validator(fresh) != _validator(header):
            _remove(partial)  # it was to be continued, and is of another file
    fresh.unlink(missing_ok=True)


def _remove(partial: Path) -> None:
    partial.unlink(missing_ok=True)
    _header(partial).unlink(missing_ok=True)


def _condition(validator: str) -> str:
    """The header that asks for a file only if it is another one."""
    if validator.startswith('"'):
        return f"If-None-Match: {validator}"
    return f"If-Modified-Since: {validator}"


def _header(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.header")


def _fresh(partial: Path) -> Path:
    """The header of the attempt that runs."""
    return _header(partial).with_suffix(".new")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
