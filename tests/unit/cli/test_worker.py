"""``mepof worker``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from writers.ports import free_port

from mepof.cli.cluster import tls_of
from mepof.cli.worker import listening
from mepof.errors import EnvironmentLack, InputError
from mepof.executor.protocol import Settings, Tls

distributed = pytest.importorskip("distributed")
pytest.importorskip("cryptography")
pytest.importorskip("zstandard")

START_SECONDS = 90
UNIT = Path(__file__).parents[1]


def test_a_worker_listens_on_loopback_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert listening("127.0.0.1:8786", None) == "127.0.0.1"
    assert listening("tls://localhost:8786", None) == "127.0.0.1"
    assert listening("tcp://192.0.2.1:8786", "rack7") == "rack7"
    with pytest.raises(InputError, match="must be reachable"):
        listening("tcp://192.0.2.1:8786", None)
    with pytest.raises(InputError, match="not the address of a scheduler"):
        listening("tcp://:8786:x", None)


@pytest.mark.parametrize(
    "address",
    ["farm", "tcp://farm", "tcp://127.0.0.1:x", "tcp://127.0.0.1:99999", "moon://127.0.0.1:8786"],
)
def test_what_is_no_address_is_refused_before_dask_reads_it(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mepof.executor.cluster import connected

    monkeypatch.delattr(distributed, "Client")
    with (
        pytest.raises(InputError, match=f"{address} is not the address of a scheduler"),
        connected(address, None),
    ):
        pytest.fail("connected to no address")


def test_the_file_of_a_scheduler_stands_for_its_address(tmp_path: Path) -> None:
    from mepof.executor.cluster import checked_address

    path = tmp_path / "scheduler.json"
    path.write_text('{"type": "Scheduler", "address": "tcp://farm:8786"}')
    assert checked_address(str(path)) == "tcp://farm:8786"
    assert checked_address("tcp://farm:1") == "tcp://farm:1"
    for text in ("", "[]", "{}", "\udcff", '{"address": "farm"}'):
        path.write_text(text, errors="surrogateescape")
        with pytest.raises(InputError, match="is not the address of a scheduler"):
            checked_address(str(path))


def test_an_address_with_tls_needs_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    from mepof.executor.cluster import connected

    monkeypatch.delattr(distributed, "Client")
    with (
        pytest.raises(InputError, match="takes encrypted connections only") as caught,
        connected("tls://127.0.0.1:8786", None),
    ):
        pytest.fail("connected without a certificate")
    assert "--tls-ca" in str(caught.value.remedy)


def test_tls_needs_all_its_files() -> None:
    path = Path("x")
    assert tls_of(None, None, None) is None
    assert tls_of(path, path, path) == Tls(path, path, path)
    with pytest.raises(InputError, match="three files"):
        tls_of(path, None, path)


def test_a_scheduler_of_other_releases_is_refused() -> None:
    from mepof.executor.cluster import check_releases

    ours = distributed.versions.get_versions(packages=["mepof"])
    host, packages = {"python": "3.4.1.final.0"}, dict(ours["packages"], mepof="9.9")
    check_releases("tcp://farm:1", ours)
    check_releases(
        "tcp://farm:1",
        ours | {"host": {"python": f"{sys.version_info[0]}.{sys.version_info[1]}.99.final.0"}},
    )
    with pytest.raises(EnvironmentLack, match=r"farm:1 has Python 3\.4, and this machine Python 3"):
        check_releases("tcp://farm:1", ours | {"host": host})
    with pytest.raises(EnvironmentLack, match=r"has distributed 1, and this machine distributed"):
        check_releases("tcp://farm:1", ours | {"packages": packages | {"distributed": "1"}})
    if ours["packages"]["mepof"]:  # it is installed
        with pytest.raises(EnvironmentLack, match=r"has mepof 9\.9, and this machine mepof"):
            check_releases("tcp://farm:1", ours | {"packages": packages})
        with pytest.raises(EnvironmentLack, match="runs without mepof"):
            check_releases("tcp://farm:1", ours | {"packages": packages | {"mepof": None}})


def test_a_server_that_is_no_scheduler_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from mepof.executor import cluster

    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with (
            pytest.raises(EnvironmentLack, match=r"does not answer: it says nothing for 0\.3 s"),
            cluster.connected(address, None),
        ):
            pytest.fail("connected to something else")


def certificates(directory: Path) -> Tls:
    made = distributed.Security.temporary()
    parts = (made.tls_ca_file, made.tls_client_cert, made.tls_client_key)
    paths = [directory / name for name in ("ca.pem", "cert.pem", "key.pem")]
    for path, text in zip(paths, parts, strict=True):
        path.write_text(text)
    return Tls(*paths)


@contextmanager
def running(argv: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        started = subprocess.Popen(
            argv,
            stdout=file,
            stderr=file,
            env={**os.environ, "PYTHONPATH": str(UNIT)},
        )
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(20)
            except subprocess.TimeoutExpired:
                started.kill()


def test_workers_and_client_meet_by_certificates_and_share_a_store(tmp_path: Path) -> None:
    from executor.fake_steps import bodies, fake, plan_of

    from mepof.executor.cluster import connected
    from mepof.executor.dask import DaskExecutor

    files = certificates(tmp_path)
    port = free_port()
    address, shared = f"tls://127.0.0.1:{port}", str(tmp_path / "shared")
    names = ("--tls-ca", "--tls-cert", "--tls-key")
    given = [files.ca, files.cert, files.key]
    tls = [str(word) for pair in zip(names, given, strict=True) for word in pair]
    scheduler = [
        *(sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"),
        *("--port", str(port), "--protocol", "tls", "--no-dashboard", "--dashboard-address"),
        *("127.0.0.1:0", "--tls-ca-file", str(files.ca), *tls[2:]),
    ]
    worker = [
        *(sys.executable, "-c", "from mepof.cli.main import main; main()", "worker", address),
        *tls,
        *("--store", str(tmp_path / "worker"), "--shared-store", shared, "--cores", "1"),
        *("--offer", "phone-1"),
    ]
    settings = Settings(tmp_path / "client", 2, shared, address, tls=files)
    plan = plan_of(fake("one"), fake("two", "one", needs="phone-1", n=1))
    with ExitStack() as stack:
        server = stack.enter_context(running(scheduler, tmp_path / "scheduler.log"))
        working = stack.enter_context(running(worker, tmp_path / "worker.log"))
        client = stack.enter_context(reached(address, files))
        client.wait_for_workers(1, timeout=START_SECONDS)
        finished = DaskExecutor(settings, bodies).run(plan, tmp_path / "out", lambda event: None)
        assert finished.run.steps["two"].path.is_dir()
        assert (tmp_path / "worker" / "objects" / finished.run.steps["one"].digest).is_dir()
        assert not (tmp_path / "client" / "objects" / finished.run.steps["one"].digest).exists()
        with (
            pytest.raises(EnvironmentLack, match="does not answer"),
            connected(address.replace("tls", "tcp"), None),
        ):
            pytest.fail("reached without a certificate")
        (tmp_path / "other").mkdir()
        stranger = certificates(tmp_path / "other")
        with pytest.raises(EnvironmentLack, match="does not answer"), connected(address, stranger):
            pytest.fail("reached with a certificate of our own")
        assert server.poll() is None and working.poll() is None
    elsewhere = replace(settings, shared=None)
    with pytest.raises(EnvironmentLack, match="does not answer"):
        DaskExecutor(elsewhere, bodies).run(plan, tmp_path / "out", lambda event: None)


@contextmanager
def reached(address: str, files: Tls) -> Iterator[Any]:
    from mepof.executor.cluster import connected

    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with connected(address, files) as client:
                yield client
                return
        except EnvironmentLack:
            if time.monotonic() > deadline:
                raise
