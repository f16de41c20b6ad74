"""A Dask cluster: connecting to one, or starting one on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mepof.errors import EnvironmentLack, InputError
from mepof.executor.protocol import Tls

REMEDY = "install mepof with its extra `cluster`: pip install 'mepof[cluster,remote]'"
DEFAULT_WORKERS = 2
#: What each worker of mepof offers, and no other that Dask has started.
OURS = "mepof"
#: Seconds after which a worker that says nothing is given up.
SILENCE_SECONDS = 60
#: A step with which so many workers died is at fault.
MAX_DEATHS = 4
_CONNECT_SECONDS = 10


def installed() -> Any:
    """The module ``distributed``.

    Raises:
        EnvironmentLack: it is not installed.
    """
    try:
        import distributed
    except ImportError as error:
        raise EnvironmentLack("a cluster needs the Python package distributed", REMEDY) from error
    return distributed


def library() -> Any:
    """The module ``distributed``, which is quiet: what concerns users, mepof says.

    Raises:
        EnvironmentLack: it is not installed.
    """
    distributed = installed()
    # Of packages that do not matter, too; those that do are compared in `check_releases`.
    warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def security_of(tls: Tls) -> Any:
    """Dask's own TLS with these files; a connection without it is refused.

    Raises:
        InputError: a file is missing, or is not what TLS needs.
    """
    for path in (tls.ca, tls.cert, tls.key):
        if not path.is_file():
            raise InputError(f"{path} does not exist", "name PEM files")
    try:
        context = ssl.create_default_context(cafile=tls.ca)
        context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:
        raise InputError(
            f"{tls.ca}, {tls.cert} or {tls.key} cannot be used: {error}", "name PEM files"
        ) from error
    cert, key = str(tls.cert), str(tls.key)
    return library().Security(
        require_encryption=True,
        tls_ca_file=str(tls.ca),
        tls_client_cert=cert,
        tls_client_key=key,
        tls_worker_cert=cert,
        tls_worker_key=key,
        tls_scheduler_cert=cert,
        tls_scheduler_key=key,
    )


def checked_address(address: str, tls: Tls | None = None) -> str:
    """Look at an address before Dask does, whose client and worker say less of a wrong one, and
    whose client complains again when it is collected.

    Args:
        address: a file of ``dask scheduler --scheduler-file`` stands for the address in it.
        tls: what encrypts; without it, Dask's settings may say so.

    Raises:
        InputError: it is not the address of a scheduler, or cannot be reached without TLS.
    """
    distributed = library()
    try:
        if Path(address).is_file():
            address = str(json.loads(Path(address).read_bytes())["address"])
        _, port = distributed.comm.get_address_host_port(address)
        if not 0 < port < 1 << 16:
            raise ValueError(f"there is no port {port}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{address} is not the address of a scheduler",
            "write tcp://HOST:PORT, with TLS tls://HOST:PORT; a scheduler's port is 8786; or name"
            " its --scheduler-file",
        ) from error
    if address.startswith("tls://") and tls is None:
        of_dask = distributed.Security().get_connection_args("client")
        if of_dask.get("ssl_context") is None:
            raise InputError(
                f"{address} takes encrypted connections only",
                "give --tls-ca, --tls-cert and --tls-key, or Dask's settings of them",
            )
    return address


async def reach(address: str, security: Any, role: str, seconds: float) -> None:
    """Ask a scheduler for its releases.

    Args:
        role: ``client`` or ``worker``, whose certificate we show.
        seconds: how long it may take.

    Raises:
        OSError: nobody is there.
        TimeoutError: whoever is there does not speak as a scheduler does.
        EnvironmentLack: it has other releases than we.
    """
    distributed = library()

    async def asked() -> Any:
        # Dask waits for ever for a server that talks otherwise.
        given = security.get_connection_args(role)
        comm = await distributed.comm.connect(address, seconds, **given)
        try:
            return await distributed.core.send_recv(comm, op="versions", packages=["mepof"])
        finally:
            comm.abort()

    check_releases(address, await asyncio.wait_for(asked(), seconds))


def check_releases(address: str, theirs: Mapping[str, Any]) -> None:
    """Refuse a scheduler of other releases: only the same can read what they send each other.

    Args:
        theirs: what it answers to ``versions(packages=["mepof"])``.

    Raises:
        EnvironmentLack: the message names them.
    """
    ours = _releases(installed().versions.get_versions(packages=["mepof"]))
    for name, has in _releases(theirs).items():
        # A checkout that is not installed has no release.
        if has != ours[name] and ours[name]:
            raise EnvironmentLack(
                f"the scheduler {address} has {name} {has}, and this machine {name} {ours[name]}"
                if has
                else f"the scheduler {address} runs without {name}",
                "use the same releases of mepof, Python and Dask on all machines",
            )


def _releases(versions: Mapping[str, Any]) -> dict[str, str | None]:
    """The releases that decide who can talk to whom."""
    python = ".".join(versions["host"]["python"].split(".")[:2])
    packages = versions["packages"]
    return {"Python": python, **{name: packages.get(name) for name in ("distributed", "mepof")}}


@contextlib.contextmanager
def connected(address: str, tls: Tls | None) -> Iterator[Any]:
    """A client of a scheduler that runs elsewhere.

    Raises:
        InputError: it is not an address.
        EnvironmentLack: there is no answer, or its releases are others.
    """
    distributed = library()
    security = distributed.Security() if tls is None else security_of(tls)
    address = checked_address(address, tls)
    try:
        asyncio.run(reach(address, security, "client", _CONNECT_SECONDS))
        client = distributed.Client(
            address, security=security, timeout=_CONNECT_SECONDS, set_as_default=False
        )
    except (OSError, TimeoutError, TypeError) as error:
        why = " ".join(str(error).split()) or f"it says nothing for {_CONNECT_SECONDS} s"
        raise EnvironmentLack(
            f"the scheduler {address} does not answer: {why}",
            "start one with `dask scheduler`; with TLS, its address begins with tls://",
        ) from error
    with contextlib.closing(client):
        yield client


def _nanny(distributed: Any) -> Any:
    """What starts and ends a worker's process; its end may take long on a busy machine."""

    class Nanny(distributed.Nanny):  # type: ignore[misc]
        async def kill(self, *args: Any, **named: Any) -> None:
            # It is asked to end, then killed, and Dask fails if it is not gone a moment later. That
            # would lose a run that has ended, and a worker that is to be started again.
            with contextlib.suppress(TimeoutError):
                await super().kill(*args, **named)

    return Nanny


@contextlib.contextmanager
def started(
    workers: int,
    cores: int,
    offers: dict[str, float],
    environment: dict[str, str],
    scratch: Path,
    silence: float = SILENCE_SECONDS,
) -> Iterator[Any]:
    """A client of a cluster of processes of this machine, which ends with the block.

    Only we can talk to it, by certificates that exist as long as it does: whoever can talk to a
    scheduler can run programs as its user.

    Args:
        workers: how many processes.
        cores: how many cores all of them offer together.
        offers: what else each of them offers; of ``memory``, its share.
        environment: of the workers, such as where their store is.
        scratch: directory for what Dask itself stores.
        silence: seconds after which a worker that says nothing is ended and started again.
    """
    import dask

    distributed = library()
    each = max(1, cores // workers)
    if "memory" in offers:
        offers = {**offers, "memory": offers["memory"] // workers}
    try:
        security = distributed.Security.temporary()
    except ImportError as error:
        raise EnvironmentLack("a cluster needs the Python package cryptography", REMEDY) from error
    limits = {
        "distributed.scheduler.worker-ttl": f"{silence}s",
        "distributed.scheduler.allowed-failures": MAX_DEATHS - 1,
        # Its pages would be open to every user of this machine.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        # Steps take seconds and more: what looks at the cluster every few milliseconds would
        # compute more than all the rest of it.
        "distributed.admin.tick.interval": "500ms",
        "distributed.admin.system-monitor.interval": "10s",
        "distributed.scheduler.work-stealing-interval": "1s",
        "distributed.worker.profile.enabled": False,
    }
    with (
        dask.config.set(limits),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=each,
            worker_class=_nanny(distributed),
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            protocol="tls://",
            security=security,
            memory_limit=0,
            resources={"cores": each, OURS: 1, **offers},
            env=environment,
            local_directory=str(scratch),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        contextlib.closing(distributed.Client(cluster, set_as_default=False)) as client,
    ):
        # Dask restarts a worker that dies, but not one that dies while it starts.
        cluster.adapt(minimum=workers, maximum=workers, interval="1s")
        yield client
