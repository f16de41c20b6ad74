"""A program of the user's in a real guest: inputs, users, services, an image, and what fails."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path

import pytest

from mepof.app.laid import Laid, write_archive
from mepof.app.launch import PROGRAM, check_setup, request, start_requests, stop_requests
from mepof.app.own import load_own
from mepof.device import agent
from mepof.device.protocol import DEVICES, Session
from mepof.errors import WorkError
from mepof.executor.protocol import Finished
from mepof.kernel.overlay import native_directory
from mepof.process import run
from mepof.steps.app_programs import files_of

from .conftest import session_of

pytestmark = pytest.mark.boot

# A server that BusyBox has, and its client.
WEB = """
title = "Web"
directory = "rootfs"

[[setup]]
name = "page"
argv = ["/bin/busybox", "tee", "/tmp/page"]
input = "page"
seconds = 10

[[setup]]
name = "web"
argv = ["/bin/busybox", "httpd", "-f", "-p", "127.0.0.1:8080", "-h", "/tmp"]
user = 1000
seconds = 10
ready = { port = 8080 }

[[action]]
name = "fetch"
argv = ["/bin/busybox", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/page"]
seconds = 10
check = { output = ["a page", "of two lines"] }

[[action]]
name = "who"
argv = ["busybox", "sh", "-c", "id -u; pwd; echo $GREETING; cat; test -w /dev/shm"]
input = "page"
environment = { GREETING = "good day" }
workdir = "/srv"
user = 33
seconds = 10
"""


@pytest.fixture
def answer(
    finished: Finished, tmp_path: Path
) -> Callable[[str], tuple[dict[str, agent.ExecResult], tuple[str, ...]]]:
    """Boots the plain kernel with an app, and gives what each action did and was reported."""
    out = tmp_path / "launch"
    source = native_directory() / "launch"
    run(["make", "-C", source, f"OUT={out}", "GUEST_CC=musl-gcc"])
    (tmp_path / "rootfs/srv").mkdir(parents=True)
    (tmp_path / "page").write_text("a page\nof two lines\n")

    def boot(text: str) -> tuple[dict[str, agent.ExecResult], tuple[str, ...]]:
        path = tmp_path / "app.toml"
        path.write_text(text)
        app = load_own(path)
        files = files_of(app, path, "x86-64") | {PROGRAM: Laid(out / "launch", executable=True)}
        write_archive(files, tmp_path / "archive.cpio")
        starts, stops = start_requests(app.setup), stop_requests(app.setup)
        actions = tuple(request(action) for action in app.actions)
        session: Session = replace(
            session_of(finished, "plain/build"),
            requests=(*starts, *actions, *stops),
            archives=(tmp_path / "archive.cpio",),
            memory=app.memory,
        )
        replies = DEVICES.get("qemu").boot(session, tmp_path / "boot", run, lambda n: None).replies
        told = check_setup(app.setup, replies[: len(starts)], replies[len(replies) - len(stops) :])
        done = replies[len(starts) : len(starts) + len(actions)]
        results = {
            action.name: reply
            for action, reply in zip(app.actions, done, strict=True)
            if isinstance(reply, agent.ExecResult)
        }
        return results, told

    return boot


Answer = Callable[[str], tuple[dict[str, agent.ExecResult], tuple[str, ...]]]


def test_actions_reach_a_service_and_have_what_they_ask_for(answer: Answer) -> None:
    done, told = answer(WEB)
    assert (done["fetch"].status, done["fetch"].text) == (0, "a page\nof two lines\n")
    assert done["who"].text == "33\n/srv\ngood day\na page\nof two lines\n"
    assert done["who"].status == 0
    assert told == ()


def test_a_service_that_dies_fails_the_training_by_name(answer: Answer) -> None:
    dying = WEB.replace(
        '"wget", "-q", "-O", "-", "http://127.0.0.1:8080/page"', '"killall", "busybox"'
    )
    with pytest.raises(WorkError, match="the service `web` was killed by signal 15 before it was"):
        answer(dying)


def test_a_service_that_is_never_ready_fails_the_training_by_name(answer: Answer) -> None:
    deaf = WEB.replace("ready = { port = 8080 }", 'ready = { port = 8081 }\nstop = "INT"')
    with pytest.raises(WorkError, match="the service `web` was not ready within 10 s"):
        answer(deaf)


def test_an_image_starts_by_its_entry_point(answer: Answer, tmp_path: Path) -> None:
    layout = tmp_path / "oci"
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    program = tmp_path / "hello.c"
    program.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        'int main(int n, char **v) { printf("%s %s\\n", v[n - 1], getenv("WHERE")); return 0; }\n'
    )
    subprocess.run(["musl-gcc", "-static", "-o", tmp_path / "hello", program], check=True)
    with tarfile.open(tmp_path / "layer", "w:gz") as tar:
        tar.add(tmp_path / "hello", "usr/bin/hello")
        link = tarfile.TarInfo("bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        tar.addfile(link)

    def put(data: bytes) -> dict[str, object]:
        path = tmp_path / "blob"
        path.write_bytes(data)
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        path.rename(blobs / digest)
        return {"digest": f"sha256:{digest}"}

    settings = {"Entrypoint": ["hello"], "Cmd": ["there"], "Env": ["PATH=/bin", "WHERE=here"]}
    config = put(json.dumps({"architecture": "amd64", "os": "linux", "config": settings}).encode())
    layer = put((tmp_path / "layer").read_bytes())
    manifest = put(json.dumps({"config": config, "layers": [layer]}).encode())
    (layout / "index.json").write_text(json.dumps({"manifests": [manifest]}))
    (layout / "oci-layout").write_text("{}")
    done, _ = answer('title = "I"\nimage = "oci"\n[[action]]\nname = "a"\nseconds = 9\n')
    assert (done["a"].status, done["a"].text) == (0, "there here\n")
