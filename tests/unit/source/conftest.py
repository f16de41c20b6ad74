"""Small kernels, real servers on the loopback, and keys made for the tests."""

from __future__ import annotations

import functools
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mepof.process import run
from mepof.source.protocol import Workshop

MAKEFILE = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = {}\nEXTRAVERSION =\n"


def write_kernel(root: Path, sublevel: int = 117) -> Path:
    """A directory that passes for a kernel."""
    (root / "kernel").mkdir(parents=True, exist_ok=True)
    (root / "Makefile").write_text(MAKEFILE.format(sublevel))
    (root / "Kbuild").write_text("obj-y += kernel/\n")
    (root / "kernel/fork.c").write_text(f"int fork = {sublevel};\n")
    return root


def files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir())


@dataclass
class Recorder:
    """A workshop, what it said, and how long it would have waited."""

    workshop: Workshop
    notes: list[str]
    waits: list[float] = field(default_factory=list)


class _Impatient(Workshop):
    """Does not wait, and remembers for how long it should have."""

    waits: list[float]

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def bench(tmp_path: Path) -> Recorder:
    notes: list[str] = []
    work = tmp_path / "work"
    work.mkdir()
    workshop = _Impatient(
        cache=tmp_path / "cache",
        work=work,
        run=run,
        note=notes.append,
        cancel=threading.Event(),
        progress=lambda done, total, unit: None,
    )
    waits: list[float] = []
    object.__setattr__(workshop, "waits", waits)
    return Recorder(workshop, notes, waits)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "output"
    path.mkdir()
    return path


Answer = Callable[["Handler"], bool]


@dataclass
class Server:
    """A web server: the files below ``root``, with answers that stand in for theirs.

    Attributes:
        script: the next answers, each called with the handler; it says whether it answered.
        asked: the method, path and ``Range`` of every request.
    """

    root: Path
    url: str = ""
    script: list[Answer] = field(default_factory=list)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)


class Handler(SimpleHTTPRequestHandler):
    """Files with ranges and ETags, which the library's handler does not have."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args: object, server_state: Server, **options: object) -> None:
        self.state = server_state
        super().__init__(*args, directory=str(server_state.root), **options)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.state.asked.append((self.command, self.path, self.headers.get("Range")))
        if self.state.script and self.state.script.pop(0)(self):
            return
        file = Path(self.translate_path(self.path))
        if not file.is_file():
            self.send_error(404)
            return
        self.give(file.read_bytes())

    def give(self, data: bytes, cut: int | None = None) -> None:
        """Send data, or what a Range asks of it; ``cut`` closes the connection after as many."""
        etag = f'"{hash(data)}"'
        start, wanted = 0, self.headers.get("Range")
        if wanted and self.headers.get("If-Range", etag) == etag:
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        self.send_response(206 if start else 200)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[start:cut])
        if cut is not None:
            self.close_connection = True


def status(code: int, **headers: str) -> Answer:
    """An answer of one status."""

    def answer(handler: Handler) -> bool:
        handler.send_response(code)
        for name, value in {**headers, "Content-Length": "0"}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        return True

    return answer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = tmp_path / "www"
    root.mkdir()
    state = Server(root)
    handler = functools.partial(Handler, server_state=state)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        state.url = f"http://127.0.0.1:{httpd.server_address[1]}"
        yield state
        httpd.shutdown()
        thread.join()


@dataclass(frozen=True)
class Signer:
    """A GnuPG home with one key."""

    home: Path
    fingerprint: str
    keyring: Path

    def sign(self, file: Path, signature: Path) -> Path:
        self.gpg("--detach-sign", "--armor", "--yes", "--output", signature, file)
        return signature

    def gpg(self, *words: str | Path) -> str:
        argv = ["gpg", "--homedir", self.home, "--batch", "--quiet", *words]
        done = subprocess.run(argv, check=True, capture_output=True, text=True)
        return done.stdout


def new_signer(root: Path, name: str, expires: str = "never") -> Signer:
    """Make a key; a home directory's path must be short, for the agent's socket."""
    home = root / name
    home.mkdir(mode=0o700)
    signer = Signer(home, "", home / "keyring.gpg")
    signer.gpg(
        *("--pinentry-mode", "loopback", "--passphrase", "", "--quick-generate-key"),
        *(f"{name} <{name}@example.org>", "ed25519", "sign", expires),
    )
    listed = signer.gpg("--with-colons", "--list-keys")
    found = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))
    signer.gpg("--output", signer.keyring, "--export", found)
    return Signer(home, found, signer.keyring)


def _end(signer: Signer) -> None:
    subprocess.run(["gpgconf", "--homedir", signer.home, "--kill", "all"], check=False)


@pytest.fixture(scope="session")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    made = new_signer(tmp_path_factory.mktemp("k"), "greg")
    yield made
    _end(made)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    made = new_signer(tmp_path_factory.mktemp("s"), "mallory")
    yield made
    _end(made)


def git(repository: Path, *words: str) -> str:
    """Run git as a developer would, with none of this machine's configuration."""
    identity = ["-c", "user.name=D", "-c", "user.email=d@example.org", "-c", "init.defaultBranch=m"]
    environment = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "PATH": "/usr/bin:/bin",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    }
    argv = ["git", "-C", str(repository), *identity, *words]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.strip()


def commit(repository: Path, sublevel: int) -> str:
    """Commit a kernel release; returns its hash."""
    write_kernel(repository, sublevel)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", f"Linux 6.12.{sublevel}")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository: v6.12.1 with an annotated tag, then v6.12.2 on the branch ``m``."""
    root = tmp_path / "linux"
    root.mkdir()
    git(root, "init", "--quiet")
    commit(root, 1)
    git(root, "tag", "--annotate", "--message", "Linux 6.12.1", "v6.12.1")
    commit(root, 2)
    git(root, "tag", "v6.12.2")
    return root
