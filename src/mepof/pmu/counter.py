"""Counters: the events of a core that count each metric.

They are data files under ``counters/``, found by their stem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from mepof.described import Described
from mepof.device.preparation import cpu_numbers
from mepof.device.shell import Files
from mepof.errors import EnvironmentLack
from mepof.registry import DescribedRegistry

_PMUS = "/sys/bus/event_source/devices"
# Intel's, and Arm's.
_HYBRID = ("cpu_*", "armv[89]_*")
_USER = "user_"
_PROCESSOR = re.compile(r"^(vendor_id|cpu family|model)\s*: (\S+)$", re.M)

GENERIC = "generic"
"""The counters that every processor may have."""


class Counter(Described):
    """One event of a metric; a metric is the sum of its events.

    Attributes:
        metric: its name in ``report.json``; ``user_`` counts user space, ``kernel_`` the kernel.
        event: a generic event of perf, or one of the PMU: a name that the PMU lists, or terms
            such as ``event=0xc0,umask=0x01``.
    """

    metric: str = Field(pattern=r"^(kernel|user)_[a-z0-9_]+$")
    event: str = Field(pattern=r"^[\w=,-]+$")


class Processor(Described):
    """Models of a processor, by the numbers of /proc/cpuinfo of x86.

    Attributes:
        models: numbers and ranges, such as ``16-31,96``.
    """

    vendor: str
    family: int
    models: str = Field(pattern=r"^\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*$")


class Counters(Described):
    """The counters of a kind of core.

    Attributes:
        title: the kind of core, in running text.
        source: of the events.
        pmu: pattern of the PMU's name in sysfs; empty for perf's generic events.
        processor: that has these events; None if every one with that PMU does.
        at_once: events that a core counts at the same time without multiplexing.
    """

    title: str
    source: str = Field(min_length=8)
    pmu: str = ""
    processor: Processor | None = None
    at_once: int = Field(gt=0, le=32)
    counter: tuple[Counter, ...]


@dataclass(frozen=True)
class Event:
    """An event on perf's command line.

    Attributes:
        text: the argument of ``-e``.
        name: its name in perf's output, without modifiers.
    """

    metric: str
    text: str
    name: str


@dataclass(frozen=True)
class Countable:
    """The events that a machine can count.

    Attributes:
        runs: the events that each run counts.
        lacking: why a metric is not counted.
    """

    runs: tuple[tuple[Event, ...], ...]
    lacking: dict[str, str]


COUNTERS = DescribedRegistry(
    Path(__file__).with_name("counters"), Counters, "counters", or_path=True
)


def counters_names() -> tuple[str, ...]:
    """The name of every file of counters, sorted."""
    return COUNTERS.names()


def load_counters(name: str) -> Counters:
    """The counters of that name, or of a file whose path ends in ``.toml``.

    Raises:
        InputError: they do not exist, or their file is wrong.
    """
    return COUNTERS.get(name)


def countable(files: Files, counters: Counters | None, cores: Sequence[int]) -> Countable:
    """Find the events that a machine can count.

    Args:
        counters: None to count nothing.
        cores: CPUs that the work runs on; they choose among the PMUs of several kinds of cores.

    Raises:
        EnvironmentLack: the machine does not have that PMU, or is another processor.
    """
    if counters is None:
        return Countable((), {})
    pmu = _pmu(files, counters, cores) if counters.pmu else ""
    hybrid = "" if pmu else _hybrid(files, cores)
    events: dict[str, list[Event]] = {}
    lacking: dict[str, str] = {}
    for counter in counters.counter:
        side = "u" if counter.metric.startswith(_USER) else "k"
        if hybrid:
            name = f"{hybrid}/{counter.event}"
            event = Event(counter.metric, f"{name}/{side}", name)
        elif not pmu:
            event = Event(counter.metric, f"{counter.event}:{side}", counter.event)
        elif "=" in counter.event or files.read(f"{_PMUS}/{pmu}/events/{counter.event}"):
            # Named explicitly, since perf's spelling of an event differs between releases.
            text = f"{pmu}/{counter.event},name={counter.metric}/{side}"
            event = Event(counter.metric, text, counter.metric)
        else:
            lacking[counter.metric] = f"the PMU {pmu} has no event {counter.event}"
            continue
        events.setdefault(counter.metric, []).append(event)
    whole = [e for metric, found in events.items() if metric not in lacking for e in found]
    runs = [whole[i : i + counters.at_once] for i in range(0, len(whole), counters.at_once)]
    return Countable(tuple(tuple(run) for run in runs), lacking)


def _hybrid(files: Files, cores: Sequence[int]) -> str:
    """The PMU for generic events on processors with several kinds of cores, of which perf otherwise
    counts each event on one, or on every one (Linux, tools/perf/Documentation/intel-hybrid.txt)."""
    for pattern in _HYBRID:
        paths = files.paths(f"{_PMUS}/{pattern}")
        if len(paths) > 1:
            return _covering(files, paths, pattern, cores)
    return ""


def _pmu(files: Files, counters: Counters, cores: Sequence[int]) -> str:
    paths = files.paths(f"{_PMUS}/{counters.pmu}")
    if not paths:
        raise EnvironmentLack(
            f"{files.name} has no PMU {counters.pmu}, which the counters of {counters.title} need",
            "pass the host's PMU through to a virtual machine, or evaluate on the device qemu",
        )
    if counters.processor is not None:
        _check_processor(files, counters.processor, counters.title)
    return _covering(files, paths, counters.pmu, cores)


def _check_processor(files: Files, wanted: Processor, title: str) -> None:
    """A PMU of x86 counts whatever it has under a number: on another processor, another event."""
    first = (files.read("/proc/cpuinfo") or "").partition("\n\n")[0]
    has = dict(_PROCESSOR.findall(first))
    vendor, family, model = (has.get(key, "?") for key in ("vendor_id", "cpu family", "model"))
    if (vendor, family) != (wanted.vendor, str(wanted.family)) or model not in map(
        str, cpu_numbers(wanted.models)
    ):
        raise EnvironmentLack(
            f"the counters of {title} would count other events on {files.name}, "
            f"a processor {vendor} of family {family}, model {model}",
            "choose the counters of that core, or `generic`",
        )


def _covering(files: Files, paths: Sequence[str], pattern: str, cores: Sequence[int]) -> str:
    for path in paths:
        of = files.read(f"{path}/cpus")
        # A PMU of all cores has no such file.
        if of is None or set(cores) <= set(cpu_numbers(of)):
            return Path(path).name
    raise EnvironmentLack(
        f"no PMU {pattern} of {files.name} covers all of the cores {list(cores)}",
        "choose cores of one kind",
    )
