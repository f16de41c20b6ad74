"""How long the views of `mepof serve` take with 500 runs and 100,000 lines of journals, and how
soon a page learns of a change.

    bench/serve.py [--runs N] [--lines N] [--requests N]

Generates the runs, their reports (the golden one of the tests, with other gains) and a store of as
many actions as there are runs times ten in a temporary directory, and asks a server in another
process. Writes docs/benchmarks/serve.json and .md; exits with 1 if a view takes longer than 300 ms
or a change longer than a second.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from mepof.process import run

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "docs" / "benchmarks" / "serve"
REPORT = ROOT / "tests" / "unit" / "report" / "golden" / "report.json"
MAX_VIEW_MS, MAX_CHANGE_MS = 300.0, 1000.0
CHANGES = 20
# Of an instrumented kernel of the size of `slim`.
FUNCTIONS = 25_000
LLVM = "llvm-profdata-22"
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
# Lines of a run beside those of its steps: `run`, `plan`, the report's step, `end`.
OTHER_LINES = 4


def digest(text: str) -> str:
    """A digest that stands for a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def steps_of(number: int) -> list[tuple[str, list[str]]]:
    """A plan of images that are built, profiled and built again, as real ones are."""
    steps: list[tuple[str, list[str]]] = [("source", []), ("guest", [])]
    for image in range(number):
        if len(steps) >= number:
            break
        last = "source"
        for part in ("instrument", "collect", "profile", "build"):
            name = f"image-{image}/{part}"
            steps.append((name, [last, "guest"] if part == "collect" else [last]))
            last = name
    return steps[:number]


def write_run(directory: Path, store: Path, number: int, lines: int, ends: bool = True) -> str:
    """One run with its journal; gives its id."""
    directory.mkdir(parents=True)
    identifier = digest(f"run {number}")[:12]
    now = BEGINNING + timedelta(hours=number)
    release = f"6.12.{number % 100}"
    steps = steps_of((lines - OTHER_LINES) // 2)
    plan = [*steps, ("report", [steps[-1][0]])]
    written: list[dict[str, Any]] = [
        {
            "event": "run",
            "program": f"# Optimise a release.\nopt linux-{release} pgo rand kbench O2.\n",
            "seed": 1,
            "tools": {f"tool-{n}": digest(f"tool {n}") for n in range(20)},
            "versions": {"mepof": "0.1.0", "python": "3.11", "host": "Linux"},
            "store": str(store),
            "cores": 2,
            "pid": os.getpid(),
        },
        {
            "event": "plan",
            "steps": [{"step": s, "kind": "kernel-build", "inputs": i} for s, i in plan],
        },
    ]
    for name, inputs in steps:
        step = {
            "step": name,
            "kind": "kernel-build",
            "phase": "build",
            "fingerprint": digest(f"{number} {name}"),
            "inputs": inputs,
        }
        made = digest(f"artifact of {number} {name}")
        log = str(store / "logs" / "a.log")
        written.append({"event": "start", **step, "reason": "the profile changed"})
        written.append({"event": "finish", **step, "digest": made, "seconds": 61.5, "log": log})
    report = digest(f"report {number}")
    written.append(
        {
            "event": "cached",
            "step": "report",
            "kind": "report",
            "phase": "other",
            "fingerprint": digest(f"fingerprint of report {number}"),
            "inputs": [steps[-1][0]],
            "digest": report,
            "seconds": 1.0,
            "log": "",
        }
    )
    written.append({"event": "end", "state": "done"})
    with (directory / "journal.jsonl").open("w") as file:
        for second, line in enumerate(written if ends else written[:-1]):
            at = (now + timedelta(seconds=10 * second)).isoformat(timespec="microseconds")
            file.write(json.dumps({"run": identifier, "time": at, **line}) + "\n")
    return identifier


def write_report(store: Path, number: int, document: dict[str, Any], chance: random.Random) -> None:
    """The artifact of a run's report, with gains of its own."""
    target = store / "objects" / digest(f"report {number}")
    target.mkdir(parents=True)
    document["provenance"]["kernel"] = f"Linux 6.12.{number % 100}"
    for row in document["summary"]:
        gain = 10 + chance.gauss(0, 1)
        row["geomean_improvement_percent"] = gain
        row["interval_percent"] = [gain - 0.5, gain + 0.5]
    (target / "report.json").write_text(json.dumps(document))
    (target / "report.html").write_text("<!DOCTYPE html><title>A report</title>")


def write_actions(store: Path, count: int) -> str:
    """A chain of actions; gives the digest at its end."""
    (store / "actions").mkdir(parents=True)
    before = digest("nothing")
    for number in range(count):
        fingerprint, made = digest(f"action {number}"), digest(f"made {number}")
        action = {
            "fingerprint": fingerprint,
            "step": f"image-{number}/build",
            "kind": ("kernel-build", "profile-convert", "measure")[number % 3],
            "version": "1",
            "params": {"flags": ["-O2"] * 20},
            # Chains of twelve, as long as real ones.
            "inputs": {"source": before} if number % 12 else {},
            "tools": {f"tool-{n}": digest(f"tool {n}") for n in range(10)},
            "digest": made,
            "listing": digest("listing"),
            "seconds": 61.5,
            "made_at": (BEGINNING + timedelta(minutes=number)).isoformat(),
        }
        (store / "actions" / f"{fingerprint}.json").write_text(json.dumps(action))
        before = made
    return before


def write_counts(store: Path) -> str:
    """The artifact of a profile as an instrumented kernel gives it; its digest."""
    made = digest("counts")
    target = store / "objects" / made
    target.mkdir(parents=True)
    chance = random.Random(3)
    functions = (
        f"function_{n}\n{n}\n8\n" + "\n".join(str(chance.randrange(1 << 20)) for _ in range(8))
        for n in range(FUNCTIONS)
    )
    text = store / "counts"
    text.write_text("\n\n".join(functions) + "\n")
    run([LLVM, "merge", text, "-o", target / "kernel.profdata"])
    return made


@contextmanager
def served(out: Path, store: Path) -> Iterator[tuple[int, int, float]]:
    """A server in another process: its port, its process and the seconds until it answered."""
    command = [sys.executable, "-m", "mepof.cli.main", "serve", str(out), "--store", str(store)]
    began = time.monotonic()
    process = subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = next(filter(None, (re.search(r":(\d+)/", line) for line in process.stderr)), None)
        if found is None:
            raise SystemExit("the server did not start")
        yield int(found[1]), process.pid, time.monotonic() - began
    finally:
        process.terminate()
        process.wait()


def ask(port: int, path: str) -> float:
    """Milliseconds until a whole page is here."""
    milliseconds, status = look(port, path)
    if status != 200:
        raise SystemExit(f"{path}: {status}")
    return milliseconds


def until_read(port: int, path: str) -> dict[str, Any]:
    """Looks at a page, of which one says at first that something is being read."""
    began = time.monotonic()
    looks = [look(port, path)]
    while looks[-1][1] == 503:
        time.sleep(0.05)
        looks.append(look(port, path))
    if looks[-1][1] != 200:
        raise SystemExit(f"{path}: {looks[-1][1]}")
    return {
        "first_ms": round(looks[0][0], 1),
        "max_ms": round(max(milliseconds for milliseconds, _ in looks), 1),
        "read_seconds": round(time.monotonic() - began, 2),
    }


def look(port: int, path: str) -> tuple[float, int]:
    """Milliseconds until a whole page is here, and its status."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return 1000 * (time.monotonic() - began), answer.status


def changes(port: int, journal: Path, identifier: str) -> list[float]:
    """Milliseconds from a line in a journal to the event in a browser, for some lines."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found = []
    with journal.open("a") as file:
        # Held, it is that of a run under way; the server looks five times a second.
        fcntl.flock(file, fcntl.LOCK_SH)
        time.sleep(0.5)
        connection.request("GET", f"/runs/{identifier}/events")
        answer = connection.getresponse()
        events = (line for line in answer if line.startswith(b"data: "))
        next(events)
        for number in range(CHANGES):
            line = {
                "run": identifier,
                "event": "start",
                "time": datetime.now(UTC).isoformat(),
                "step": "image-0/build",
                "kind": "kernel-build",
                "phase": "build",
                "fingerprint": digest(str(number)),
                "inputs": [],
            }
            if number % 2:
                line |= {"event": "fail", "message": f"attempt {number}"}
            # Somewhere between two looks of the server.
            time.sleep(random.Random(number).random() / 2)
            began = time.monotonic()
            file.write(json.dumps(line) + "\n")
            file.flush()
            next(events)
            found.append(1000 * (time.monotonic() - began))
    connection.close()
    return found


def memory_mib(process: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def measure(runs: int, lines: int, requests: int, scratch: Path) -> dict[str, Any]:
    """All figures."""
    out, store = scratch / "out", scratch / "store"
    document = json.loads(REPORT.read_text())
    chance = random.Random(1)
    ids = []
    each = lines // runs
    for number in range(runs):
        ids.append(write_run(out / f"run-{number}", store, number, each))
        write_report(store, number, document, chance)
    live = write_run(out / "live", store, runs, each, ends=False)
    artifact = write_actions(store, 10 * runs)
    counts = write_counts(store)
    journals = list(out.glob("*/journal.jsonl"))
    count = sum(path.read_bytes().count(b"\n") for path in journals)
    last = f"/runs/{ids[-1]}"
    views = {
        "the list of runs": "/",
        "the list, last page": f"/?page={-(-(runs + 1) // 50)}",
        "the list, searched": "/?find=run-3",
        "a run": last,
        "a step": f"{last}/steps/image-3/build",
        "a report": f"{last}/reports/report",
        "a heatmap": f"{last}/heatmaps/report",
        "two runs by case": f"/compare?run={ids[0]}&run={ids[1]}",
        "eight runs by case": "/compare?" + "&".join(f"run={i}" for i in ids[:8]),
        "trends": "/trends",
        "the store": "/store",
        "the store, by kind": "/store?kind=measure&page=9",
        "an artifact": f"/store/{artifact}",
        "provenance": f"/store/{artifact}/provenance",
        "start a run": "/start",
    }
    with served(out, store) as (port, process, seconds):
        start, profile = until_read(port, "/"), until_read(port, f"/store/{counts}/functions")
        first = {name: ask(port, path) for name, path in views.items()}
        later = {
            name: sorted(ask(port, path) for _ in range(requests)) for name, path in views.items()
        }
        latencies = changes(port, out / "live" / "journal.jsonl", live)
        memory = memory_mib(process)
    return {
        "schema": "mepof-benchmark-serve/1",
        "runs": len(journals),
        "lines": count,
        "actions": 10 * runs,
        "requests": requests,
        "start_seconds": round(seconds, 2),
        "start": start,
        "profile": profile,
        "load": round(os.getloadavg()[0], 1),
        "memory_mib": round(memory),
        "views": {
            name: {
                "first_ms": round(first[name], 1),
                "median_ms": round(statistics.median(later[name]), 1),
                "max_ms": round(later[name][-1], 1),
            }
            for name in views
        },
        "change_ms": {
            "median": round(statistics.median(latencies)),
            "max": round(max(latencies)),
            "count": len(latencies),
        },
    }


def page(found: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    rows = "\n".join(
        f"| {name} | {v['first_ms']:.0f} | {v['median_ms']:.0f} | {v['max_ms']:.0f} |"
        for name, v in found["views"].items()
    )
    change, start, profile = found["change_ms"], found["start"], found["profile"]
    return f"""# How fast the page is

`make bench-serve` (`bench/serve.py`) generates {found["runs"]} runs with
{found["lines"]:,} lines of journals, a report each, and a store of {found["actions"]:,} actions.
It asks [`mepof serve`](../serve.md) over HTTP: milliseconds from the request to the end of the
page, once after the start, and then {found["requests"]} times.

The server answers {found["start_seconds"]} s after its process was started, and reads every
journal and report in the background, for {start["read_seconds"]} s. Until then, a page shows its
progress and asks again each second; the first such page takes {start["first_ms"]:.0f} ms, the
longest {start["max_ms"]:.0f} ms. Likewise with the counts of {FUNCTIONS:,} functions, a
`.profdata`: the first look takes
{profile["first_ms"]:.0f} ms, the longest {profile["max_ms"]:.0f} ms, and they
are there after {profile["read_seconds"]} s.
The server needs {found["memory_mib"]} MiB of memory. The machine's load was {found["load"]} at the
end, on {os.cpu_count()} cores.

| view | first | median | longest |
| --- | --- | --- | --- |
{rows}

From a line in the journal of a run to the event in the browser: {change["median"]} ms in the
median, {change["max"]} ms at most, of {change["count"]}.
"""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(given.runs, given.lines, given.requests, Path(scratch))
    RESULT.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(page(found))
    waiting = {"the start": found["start"], "the counts of a profile": found["profile"]}
    slow = [
        f"{name}: {v['max_ms']} ms"
        for name, v in {**found["views"], **waiting}.items()
        if max(v["max_ms"], v["first_ms"]) > MAX_VIEW_MS
    ]
    if found["change_ms"]["max"] > MAX_CHANGE_MS:
        slow.append(f"a change: {found['change_ms']['max']} ms")
    print(page(found))
    print("\n".join(slow), file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
