#!/usr/bin/env python3
"""Runs a program on the nodes of a Slurm cluster, by Dask's own dask-jobqueue.

    export DASK_CONFIG=/etc/mepof/dask.yaml
    examples/cluster/slurm.py --jobs 8 --cores 16 --memory 32GiB -- PROGRAM.g4 --out out

The scheduler runs here, at an address that the nodes reach; each job is a worker. Jobs that wait in
the queue join when they start, and all end with the program. What follows `--` is for `mepof run`.
Needs the Python package dask-jobqueue here, and mepof and the settings' files on all nodes.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys

from dask_jobqueue import SLURMCluster


def cluster(jobs: int, cores: int, memory: str, host: str, queue: str | None) -> SLURMCluster:
    """A scheduler here, and workers in jobs of Slurm.

    Args:
        cores: of each job.
        memory: of each job.
        host: address of this machine that the nodes reach.
        queue: Slurm's partition.
    """
    farm = SLURMCluster(
        queue=queue,
        cores=cores,
        processes=1,
        memory=memory,
        walltime="24:00:00",
        protocol="tls://",
        scheduler_options={"host": host, "dashboard_address": "127.0.0.1:0"},
        worker_extra_args=["--no-dashboard"],
    )
    farm.scale(jobs=jobs)
    return farm


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2, help="how many  [default: 2]")
    parser.add_argument("--cores", type=int, default=8, help="of each  [default: 8]")
    parser.add_argument("--memory", default="16GiB", help="of each  [default: 16GiB]")
    parser.add_argument("--queue", help="Slurm's partition")
    parser.add_argument("--listen", default=socket.gethostname(), help="address of this machine")
    parser.add_argument("run", nargs="+", help="arguments of mepof run")
    given = parser.parse_args()
    with cluster(given.jobs, given.cores, given.memory, given.listen, given.queue) as farm:
        where = ["--executor", "dask", "--scheduler", farm.scheduler_address]
        return subprocess.run(["mepof", "run", *given.run, *where], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
