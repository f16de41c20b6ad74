"""``mepof worker``: this machine as a worker of a cluster."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
import sys
import tempfile
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from mepof.cli.cluster import TlsCa, TlsCert, TlsKey, tls_of
from mepof.cli.run import Cores, Shared, StoreRoot, settings_of
from mepof.errors import EnvironmentLack, InputError
from mepof.executor.protocol import Settings, Tls


def worker(
    address: Annotated[
        str, typer.Argument(help="Scheduler, such as tls://farm:8786.", metavar="ADDRESS")
    ],
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            help="Address of this machine at which the scheduler and other workers reach it.  "
            "[default: loopback, if the scheduler is there too]",
            metavar="HOST",
        ),
    ] = None,
    offer: Annotated[
        list[str] | None,
        typer.Option(
            "--offer", help="Device that this machine has; repeat it for each.", metavar="NAME"
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            "--memory",
            min=1,
            help="MiB of memory to offer: its share, where several workers run on one machine.  "
            "[default: all]",
            metavar="MIB",
        ),
    ] = None,
    store: StoreRoot = None,
    shared_store: Shared = None,
    cores: Cores = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Perform steps for the runs of a cluster.

    The worker offers its cores, its memory and what `mepof doctor` found. It works until it is
    interrupted, or until the scheduler has been gone for a while.

    Raises:
        InputError: an address or file is wrong.
        EnvironmentLack: the scheduler does not answer, or has other releases.
    """
    from mepof.executor.cluster import checked_address
    from mepof.executor.offers import named, offers_of_machine
    from mepof.executor.stores import check_store

    settings = settings_of(store, cores, shared_store)
    check_store(settings.store, settings.shared)
    tls = tls_of(tls_ca, tls_cert, tls_key)
    address = checked_address(address, tls)
    host = listening(address, listen)
    offers = {**offers_of_machine(settings.store), **dict.fromkeys(offer or (), 1.0)}
    if memory is not None:
        offers["memory"] = float(memory)
    print(f"offers {named({'cores': settings.cores, **offers})}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(_work(address, host, settings, offers, tls, scratch))


def listening(address: str, listen: str | None) -> str:
    """The address to listen at.

    Raises:
        InputError: the scheduler is on another machine, and none is given.
    """
    if listen is not None:
        return listen
    try:
        host = urlsplit(address if "://" in address else f"tcp://{address}").hostname
        if host is None:
            raise ValueError("it names no host")
        near = ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"{address} is not the address of a scheduler: {why}", "write tcp://HOST:8786"
        ) from error
    if not near:
        raise InputError(
            "a worker of another machine's scheduler must be reachable from there",
            "give --listen with an address of this machine, and TLS, as whoever reaches it can run"
            " programs here",
        )
    return "127.0.0.1"


async def _work(
    address: str,
    host: str,
    settings: Settings,
    offers: dict[str, float],
    tls: Tls | None,
    scratch: str,
) -> None:
    from mepof.executor.cluster import OURS, SILENCE_SECONDS, library, security_of

    distributed = library()
    environment = {
        "MEPOF_STORE": str(settings.store.absolute()),
        # In the worker's process: the end of a scheduler is no traceback.
        "DASK_LOGGING__DISTRIBUTED": "critical",
        "DASK_LOGGING__TORNADO": "critical",
    }
    if settings.shared is not None:
        environment["MEPOF_SHARED_STORE"] = settings.shared
    os.environ.update(environment)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    security = distributed.Security() if tls is None else security_of(tls)
    # Dask restarts a worker that dies, but gives up one that dies while it starts.
    while not stopping.is_set():
        try:
            # A worker that reaches nobody dies in its own process, which keeps the reason.
            if not await _reaches(address, security, stopping):
                return
            nanny = await distributed.Nanny(
                address,
                nthreads=settings.cores,
                host=host,
                resources={"cores": settings.cores, OURS: 1, **offers},
                security=security,
                env=environment,
                memory_limit=0,
                local_directory=scratch,
                death_timeout=SILENCE_SECONDS,
                # Nobody needs a page of each worker.
                dashboard=False,
            )
        except (OSError, TimeoutError, TypeError, RuntimeError) as error:
            why = " ".join(str(error).split()) or f"it says nothing for {SILENCE_SECONDS} s"
            raise EnvironmentLack(
                f"the scheduler {address} does not answer: {why}",
                "start one with `dask scheduler`; with TLS, its address begins with tls://",
            ) from error
        ended = asyncio.create_task(nanny.finished())
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        await nanny.close()


async def _reaches(address: str, security: Any, stopping: asyncio.Event) -> bool:
    """Whether a scheduler was reached before we were asked to stop.

    Raises:
        OSError: nobody is there.
        TimeoutError: whoever is there does not speak as a scheduler does.
        EnvironmentLack: it has other releases than we.
    """
    from mepof.executor.cluster import SILENCE_SECONDS, reach

    reaching = asyncio.create_task(reach(address, security, "worker", SILENCE_SECONDS))
    stopped = asyncio.create_task(stopping.wait())
    done, waiting = await asyncio.wait(
        {reaching, stopped}, timeout=SILENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    for task in waiting:
        task.cancel()
    if not done:
        raise TimeoutError
    if reaching in done:
        reaching.result()
    return stopped not in done
