"""Dask's own deployments, by the examples, on this machine: real servers on the loopback."""

from __future__ import annotations

import getpass
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from writers.ports import free_ports

from mepof.executor.carried import Where
from mepof.executor.cluster import OURS
from mepof.executor.on_cluster import OnCluster
from mepof.executor.preload import dask_setup
from mepof.executor.stores import store_of
from mepof.plan.engine import Engine
from mepof.plan.store import Store

from .fake_steps import bodies, fake, plan_of

pytest.importorskip("distributed")
pytest.importorskip("cryptography")
pytest.importorskip("zstandard")

EXAMPLES = Path(__file__).parents[3] / "examples" / "cluster"
SLURM = ("munged", "slurmctld", "slurmd", "sbatch")
PLAN = plan_of(
    fake("first"),
    fake("left", "first", n=1),
    fake("all", "first", kind="spread", parts=4),
    fake("last", "left", "all"),
)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The settings of the examples, with certificates and stores of this test."""
    import dask
    from distributed import Security

    made = Security.temporary()  # type: ignore[no-untyped-call]
    for name, pem in (
        ("ca", made.tls_ca_file),
        ("cert", made.tls_worker_cert),
        ("key", made.tls_worker_key),
    ):
        (tmp_path / f"{name}.pem").write_text(pem)
    text = (EXAMPLES / "dask.yaml").read_text()
    for given, here in (
        ("/etc/mepof/", f"{tmp_path}/"),
        ("/var/lib/mepof", f"{tmp_path}/store"),
        ("/srv/mepof", f"{tmp_path}/shared"),
    ):
        assert given in text
        text = text.replace(given, here)
    path = tmp_path / "dask.yaml"
    path.write_text(text)
    monkeypatch.setenv("DASK_CONFIG", str(path))
    # Where workers find the steps of these tests.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    dask.config.refresh(paths=[str(tmp_path)])
    yield path
    monkeypatch.undo()
    dask.config.refresh()


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same_as_here(address: str, root: Path, workers: int) -> list[dict[str, float]]:
    """Run a plan there and here: the digests are the same. What the workers offer is returned."""
    from mepof.executor.cluster import connected

    with connected(address, None) as client, ExitStack() as stack:
        client.wait_for_workers(workers, timeout=60)
        offered = client.scheduler_info(n_workers=-1)["workers"].values()
        shared = str(root / "shared")
        store = stack.enter_context(store_of(root / "here", shared, lambda event: None))
        store.open()
        on = OnCluster(client, bodies, Where.of(store))
        engine = Engine(store, bodies(), 2, lambda event: None, on, placed=True)
        made = engine.run(PLAN, root / "out").steps
        assert not any(step.cached for step in made.values())
    alone = Engine(Store(root / "alone"), bodies(), 2, lambda event: None)
    wanted = alone.run(PLAN, root / "alone-out").steps
    assert {n: s.digest for n, s in made.items()} == {n: s.digest for n, s in wanted.items()}
    return [each["resources"] for each in offered]


@contextmanager
def running(*argv: str, ready: Callable[[], bool]) -> Iterator[None]:
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not ready():
            assert process.poll() is None and time.monotonic() < deadline, argv
            threading.Event().wait(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.patient
def test_hosts_that_ssh_reaches_are_a_cluster(settings: Path, tmp_path: Path) -> None:
    pytest.importorskip("asyncssh")
    server = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    if server is None:
        pytest.skip("no OpenSSH server is installed")
    (port,) = free_ports(1)
    for name in ("user", "host"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(key, check=True)
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {tmp_path}/host\nStrictModes no\n"
        f"AuthorizedKeysFile {tmp_path}/user.pub\nUsePAM no\nPasswordAuthentication no\n"
        f"PidFile none\nSetEnv PYTHONPATH={os.environ['PYTHONPATH']}\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    host = (tmp_path / "host.pub").read_text()
    (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {host}")
    command = (server, "-D", "-e", "-f", str(tmp_path / "sshd_config"))
    with (
        running(*command, ready=lambda: listens(port)),
        example("ssh").cluster(
            ["127.0.0.1"] * 3,
            sys.executable,
            1,
            "lo",
            port=port,
            username=getpass.getuser(),
            client_keys=[str(tmp_path / "user")],
            known_hosts=str(tmp_path / "known"),
        ) as farm,
    ):
        assert farm.scheduler_address.startswith("tls://")
        offers = same_as_here(farm.scheduler_address, tmp_path, 2)
    assert [each["cores"] for each in offers] == [1, 1]
    assert all(each["memory"] > 0 for each in offers)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Slurm of one node, this machine, which listens on the loopback."""
    if any(shutil.which(each) is None for each in SLURM):
        pytest.skip("Slurm is not installed")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs as root alone")
    ctld, daemon = free_ports(2)
    for name in ("state", "spool"):
        (tmp_path / name).mkdir()
    (tmp_path / "munge.key").write_bytes(os.urandom(1024))
    (tmp_path / "munge.key").chmod(0o400)
    socket_path = tmp_path / "munge.socket"
    config = {
        "ClusterName": "farm",
        "SlurmctldHost": "localhost(127.0.0.1)",
        "SlurmctldPort": ctld,
        "SlurmdPort": daemon,
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={socket_path}",
        "ProctrackType": "proctrack/pgid",
        "TaskPlugin": "task/none",
        "AccountingStorageType": "accounting_storage/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "StateSaveLocation": tmp_path / "state",
        "SlurmdSpoolDir": tmp_path / "spool",
        "SlurmctldPidFile": tmp_path / "slurmctld.pid",
        "SlurmdPidFile": tmp_path / "slurmd.pid",
        "SlurmctldLogFile": tmp_path / "slurmctld.log",
        "SlurmdLogFile": tmp_path / "slurmd.log",
    }
    lines = [f"{name}={value}" for name, value in config.items()]
    lines += [
        "NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000 State=UNKNOWN",
        "PartitionName=all Nodes=localhost Default=YES State=UP",
    ]
    (tmp_path / "slurm.conf").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    munged = [f"--socket={socket_path}", f"--key-file={tmp_path}/munge.key"]
    munged += [f"--{name}-file={tmp_path}/munge.{name}" for name in ("pid", "log", "seed")]
    with (
        running("munged", "-F", "--force", *munged, ready=socket_path.exists),
        running("slurmctld", "-D", ready=lambda: listens(ctld)),
        running("slurmd", "-D", "-N", "localhost", ready=lambda: listens(daemon)),
    ):
        yield


@pytest.mark.patient
def test_jobs_of_slurm_are_a_cluster(
    settings: Path, slurm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dask_jobqueue")
    monkeypatch.chdir(tmp_path)  # where jobs write what they say
    with example("slurm").cluster(2, 1, "1GiB", "127.0.0.1", "all") as farm:
        assert farm.scheduler_address.startswith("tls://")
        offers = same_as_here(farm.scheduler_address, tmp_path, 2)
    assert [(each["cores"], each["memory"]) for each in offers] == [(1, 1024), (1, 1024)]


def test_an_address_without_a_protocol_is_encrypted(settings: Path) -> None:
    from distributed.comm.addressing import parse_address

    assert parse_address("farm:8786") == ("tls", "farm:8786")


@pytest.fixture
def manifest() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text()))


def test_the_manifest_follows_the_schemas_of_kubernetes(manifest: list[dict[str, Any]]) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    assert {each["kind"] for each in manifest} >= {"Deployment", "Service", "NetworkPolicy"}
    for each in manifest:
        validator.validate(each, validator.latest_version(), strict=True)
    manifest[1]["spec"]["template"]["spec"]["containers"][0]["comand"] = ["dask"]
    with pytest.raises(validator.ValidationError):
        validator.validate(manifest[1], validator.latest_version(), strict=True)


@pytest.mark.patient
def test_the_commands_of_the_manifest_are_a_cluster(
    manifest: list[dict[str, Any]], settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    (port,) = free_ports(1)
    here = {"8786": str(port), "tls://mepof-scheduler:8786": f"tls://127.0.0.1:{port}"}
    commands = {
        pod["name"]: [here.get(word, word).replace("$(CORES)", "1") for word in pod["command"]]
        for each in manifest
        if each["kind"] == "Deployment"
        for pod in each["spec"]["template"]["spec"]["containers"]
    }
    loopback = ["--host", "127.0.0.1"]
    with (
        running(*commands["scheduler"], *loopback, ready=lambda: listens(port)),
        running(*commands["worker"], *loopback, ready=lambda: True),
        running(*commands["worker"], *loopback, ready=lambda: True),
    ):
        offers = same_as_here(f"tls://127.0.0.1:{port}", tmp_path, 2)
    assert [each["cores"] for each in offers] == [1, 1]


async def versions(packages: list[str]) -> dict[str, Any]:
    from distributed.versions import get_versions

    return get_versions(packages=packages)


def test_a_worker_that_cannot_perform_steps_ends_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "a store"))
    monkeypatch.setattr(os, "_exit", sys.exit)
    scheduler = SimpleNamespace(address="tcp://farm:8786", versions=versions)
    with pytest.raises(SystemExit) as ended:
        asyncio.run(dask_setup(SimpleNamespace(scheduler=scheduler)))
    assert ended.value.code == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("mepof: kernels cannot be built in the store")
    assert "MEPOF_STORE" in line


def test_a_worker_offers_its_share_of_a_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    monkeypatch.setenv("MEPOF_STORE", str(tmp_path / "store"))
    monkeypatch.delenv("MEPOF_SHARED_STORE", raising=False)
    monkeypatch.setenv("MEPOF_OFFER", "phone-1 phone-2")
    state = SimpleNamespace(nthreads=3, total_resources={}, available_resources={})
    memory = SimpleNamespace(memory_limit=5 << 30)
    scheduler = SimpleNamespace(address="tcp://farm:8786", versions=versions)
    worker: Any = SimpleNamespace(state=state, memory_manager=memory, scheduler=scheduler)
    asyncio.run(dask_setup(worker))
    offered = state.total_resources
    assert offered == state.available_resources
    assert (offered["cores"], offered["memory"], offered["phone-2"]) == (3, 5120, 1)
    assert OURS in offered
    memory.memory_limit = None
    asyncio.run(dask_setup(worker))
    assert state.total_resources["memory"] > 0
