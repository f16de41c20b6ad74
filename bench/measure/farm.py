"""A farm, simulated: steps of measured cost on many workers, a shared store and one scheduler."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

ALL = 0
"""Of cores: all of the worker."""

# Kinds whose result is the same for everything that a farm builds.
_COMMON = ("guest", "plugins", "pmu", "suite-programs")


@dataclass(frozen=True)
class Task:
    """A step, or a boot of a measurement.

    Attributes:
        seconds: on a worker.
        cores: that it takes, or ALL.
        reads: the tasks whose artifacts it reads.
        megabytes: of its artifact.
    """

    seconds: float
    cores: int
    reads: tuple[str, ...]
    megabytes: float = 0.0


def farm_of(
    steps: Sequence[Mapping[str, Any]], kernels: int, compilers: int, loads: int
) -> dict[str, Task]:
    """The tasks of a program for every kernel, compiler and load.

    What does not depend on one of the three is made once for all of its values, as fingerprints
    have it: only what records a load, and what reads that, depends on the load.

    Args:
        steps: of one run, with their ``inputs``, in an order in which each follows them.
    """
    depends: dict[str, frozenset[str]] = {}
    for step in steps:
        own: set[str] = set()
        if step["kind"] not in _COMMON:
            own.add("kernel")
        if step["kind"] not in (*_COMMON, "kernel-source"):
            own.add("compiler")
        if step["kind"] == "profile-collect":
            own.add("load")
        depends[step["step"]] = frozenset(own).union(*(depends[name] for name in step["inputs"]))
    made: dict[str, Task] = {}
    for kernel, compiler, load in product(range(kernels), range(compilers), range(loads)):
        where = {"kernel": kernel, "compiler": compiler, "load": load}

        def name_of(step: str, where: Mapping[str, int] = where) -> str:
            return " ".join([step, *(f"{d}{where[d]}" for d in where if d in depends[step])])

        for step in steps:
            name = name_of(step["step"])
            if name in made:
                continue
            reads = tuple(name_of(each) for each in step["inputs"])
            if step["boots"]:
                # Parts of the step, which only waits for them.
                each = step["seconds"] * step["cores"] / step["boots"]
                boots = tuple(f"{name} boot{number}" for number in range(step["boots"]))
                made.update(dict.fromkeys(boots, Task(each, 1, reads)))
                made[name] = Task(0.0, 1, boots, step["megabytes"])
            else:
                cores = ALL if step["kind"] == "kernel-build" else 1
                made[name] = Task(step["seconds"], cores, reads, step["megabytes"])
    return made


@dataclass
class _Server:
    """Serves one after the other: the scheduler, or the store's link."""

    free: float = 0.0
    busy: float = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """When it is done with what comes now."""
        self.free = max(now, self.free) + seconds
        self.busy += seconds
        return self.free


@dataclass
class _Worker:
    free: int
    has: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Day:
    """What a simulation gave.

    Attributes:
        seconds: until the last task has ended.
        cores: share of all cores' time in which steps computed.
        link: share of the time in which the store's link was busy.
        scheduler: likewise.
    """

    seconds: float
    cores: float
    link: float
    scheduler: float

    @property
    def bottleneck(self) -> str:
        """What was busy for the largest share."""
        shares = {"workers": self.cores, "store": self.link, "scheduler": self.scheduler}
        return max(shares, key=lambda name: shares[name])


def simulate(
    tasks: Mapping[str, Task], workers: int, cores: int, overhead: float, link: float
) -> Day:
    """Run tasks on workers, those with the longest way to the end first.

    Args:
        workers: how many.
        cores: of each.
        overhead: seconds of the scheduler for each task.
        link: MB/s of the store, for all workers together; a worker keeps what it has read.
    """
    readers: dict[str, list[str]] = {name: [] for name in tasks}
    waits = {name: len(task.reads) for name, task in tasks.items()}
    for name, task in tasks.items():
        for read in task.reads:
            readers[read].append(name)
    urgency = _urgency(tasks, readers)
    machines = [_Worker(cores) for _ in range(workers)]
    whole = deque(range(workers))
    some: deque[int] = deque()
    queues: dict[bool, list[tuple[float, str]]] = {True: [], False: []}
    scheduler, store = _Server(), _Server()
    running: list[tuple[float, str, int]] = []
    taken = 0.0
    now = 0.0

    def ready(name: str) -> None:
        heapq.heappush(queues[tasks[name].cores == ALL], (-urgency[name], name))

    def start(name: str, number: int) -> None:
        nonlocal taken
        task, machine = tasks[name], machines[number]
        amount = cores if task.cores == ALL else task.cores
        machine.free -= amount
        begun = scheduler.serve(now, overhead)
        lacking = [each for each in task.reads if each not in machine.has]
        machine.has.update(lacking)
        size = sum(tasks[each].megabytes for each in lacking)
        if size:
            begun = store.serve(begun, size / link)
        ended = begun + task.seconds
        if task.megabytes:
            # Its turn at the link is taken now, though it writes at its end.
            ended = max(ended, store.serve(begun, task.megabytes / link))
            machine.has.add(name)
        taken += amount * task.seconds
        heapq.heappush(running, (ended, name, number))

    for name, count in waits.items():
        if not count:
            ready(name)
    while True:
        while queues[True] and whole:
            start(heapq.heappop(queues[True])[1], whole.popleft())
        while queues[False] and (some or whole):
            number = some.popleft() if some else whole.popleft()
            start(heapq.heappop(queues[False])[1], number)
            if machines[number].free:
                some.appendleft(number)
        if not running:
            break
        now, name, number = heapq.heappop(running)
        machine = machines[number]
        idle = machine.free
        machine.free += cores if tasks[name].cores == ALL else tasks[name].cores
        if idle:
            some.remove(number)
        (whole if machine.free == cores else some).append(number)
        for reader in readers[name]:
            waits[reader] -= 1
            if not waits[reader]:
                ready(reader)
    return Day(now, taken / (now * workers * cores), store.busy / now, scheduler.busy / now)


def _urgency(tasks: Mapping[str, Task], readers: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Seconds of the longest way from each task to the end; readers come after what they read."""
    longest: dict[str, float] = {}
    for name in reversed(list(tasks)):
        after = max((longest[each] for each in readers[name]), default=0.0)
        longest[name] = tasks[name].seconds + after
    return longest
