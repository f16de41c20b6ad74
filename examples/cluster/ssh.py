#!/usr/bin/env python3
"""Runs a program on machines that SSH reaches, by Dask's own SSHCluster.

    export DASK_CONFIG=/etc/mepof/dask.yaml
    examples/cluster/ssh.py --host farm --host rack1 --host rack2 -- PROGRAM.g4 --out out

The scheduler starts on the first host and a worker on each further one, as whoever SSH logs in; all
end with the program. What follows `--` is for `mepof run`. Needs the Python package asyncssh here,
and mepof and the settings' files on all hosts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from distributed import SSHCluster


def cluster(
    hosts: Sequence[str], python: str, cores: int | None, interface: str | None, **ssh: Any
) -> SSHCluster:
    """A scheduler on the first host, and a worker on each of the others.

    Args:
        python: of the hosts, with mepof.
        cores: of each worker; all of its machine by default.
        interface: of the network at which workers listen; that of the default route by default.
        ssh: options of `asyncssh.connect`; it reads ~/.ssh/config on its own.
    """
    return SSHCluster(
        list(hosts),
        connect_options=ssh,
        remote_python=python,
        # Listens at the address by which it is reached, and there alone.
        scheduler_options={
            "host": hosts[0],
            "protocol": "tls://",
            "dashboard_address": "127.0.0.1:0",
        },
        worker_options={
            "nthreads": cores,
            "interface": interface,
            "protocol": "tls://",
            "dashboard_address": "127.0.0.1:0",
        },
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--host", action="append", required=True, help="repeat it for each")
    parser.add_argument("--python", default="python3", help="of the hosts  [default: python3]")
    parser.add_argument("--cores", type=int, help="of each worker  [default: all]")
    parser.add_argument("--interface", help="of the network at which workers listen")
    parser.add_argument("run", nargs="+", help="arguments of mepof run")
    given = parser.parse_args()
    with cluster(given.host, given.python, given.cores, given.interface) as farm:
        where = ["--executor", "dask", "--scheduler", farm.scheduler_address]
        return subprocess.run(["mepof", "run", *given.run, *where], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
