"""Branches of a phone: a played one, with a simpleperf that records what it is told."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from writers.played_bench import Bench
from writers.played_phone import install

from mepof.device import agent, phone
from mepof.device.observation import Branches, Measure
from mepof.device.protocol import Interlude, Outcome, Session, branch_source
from mepof.device.shell import Shell
from mepof.errors import EnvironmentLack, WorkError
from mepof.process import run

SIMPLEPERF = """#!/bin/sh
case "$1" in
list)
    echo "List of coresight etm events:"
    [ -e {fault}/no-etm ] || echo "  $2"
    ;;
record)
    [ -e {fault}/busy ] && { echo "E cmd_record.cpp: the sink is busy" >&2; exit 1; }
    echo "$*" >> {log}
    trap 'echo stopped >> {log}; echo traced > perf.data; exit 0' TERM
    while :; do sleep 0.05; done
    ;;
inject)
    [ -e {fault}/overflow ] && { echo "E cmd_inject.cpp: no branches" >&2; exit 1; }
    echo "$*" >> {log}
    cp perf.data branches
    ;;
esac
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    host = install(tmp_path / "programs", made.adb_port)
    words = {"{fault}": str(tmp_path), "{log}": str(tmp_path / "log")}
    text = SIMPLEPERF
    for name, value in words.items():
        text = text.replace(name, value)
    program = tmp_path / "programs/phone/simpleperf"
    program.write_text(text)
    program.chmod(0o755)
    with mock.patch.dict(os.environ, PATH=f"{host}:{os.environ['PATH']}"):
        made.on()
        yield made
        made.off()


def boot(bench: Bench, interlude: Interlude | None = None) -> Outcome:
    archive = bench.root / "initramfs"
    archive.write_bytes(b"a guest")
    session = Session(
        "arm64",
        bench.kernel,
        archive,
        (agent.Record(True), agent.Exec(("work",), 9), agent.Record(False)),
        1,
        interlude=interlude,
        record=Branches(),
    )
    with mock.patch.object(phone, "claimed", lambda directory: bench.handset):
        return phone.DEVICE.boot(session, bench.root / "work", run, lambda count: None)


def log(bench: Bench) -> list[str]:
    return (bench.root / "log").read_text().splitlines()


RECORD = "record -e cs-etm:k -a -z -o perf.data"
INJECT = "inject -i perf.data --output branch-list --binary kernel.kallsyms -o branches"


def test_simpleperf_records_while_the_programs_run(bench: Bench) -> None:
    outcome = boot(bench)
    assert log(bench) == [RECORD, "stopped", INJECT]
    assert outcome.branches is not None and outcome.branches.read_text() == "traced\n"
    assert len(outcome.replies) == 3
    assert list((bench.root / "programs/data/local/tmp/mepof").glob("record-*")) == []


def test_of_apps_only_what_their_screens_do_is_recorded(bench: Bench) -> None:
    def drive(shell: Shell) -> None:
        assert log(bench) == [RECORD]
        (bench.root / "log").write_text("driven\n")

    outcome = boot(bench, Interlude(1, drive))
    assert log(bench) == ["driven", "stopped", INJECT]
    assert outcome.branches is not None and len(outcome.replies) == 3


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("no-etm", EnvironmentLack, "records no branches: simpleperf does not list cs-etm"),
        ("busy", WorkError, "simpleperf cannot record on .*: .*the sink is busy"),
        ("overflow", WorkError, "simpleperf cannot convert its recording on .*: .*no branches"),
    ],
)
def test_a_phone_that_cannot_record_says_why(
    bench: Bench, fault: str, error: type[Exception], message: str
) -> None:
    (bench.root / fault).touch()
    with pytest.raises(error, match=message):
        boot(bench)
    assert list((bench.root / "programs/data/local/tmp/mepof").glob("record-*")) == []


def test_a_phone_without_simpleperf_says_where_it_goes(bench: Bench) -> None:
    (bench.root / "programs/phone/simpleperf").unlink()
    with pytest.raises(EnvironmentLack, match="has no simpleperf") as raised:
        boot(bench)
    assert "/data/local/tmp" in (raised.value.remedy or "")


def test_an_app_that_fails_stops_the_recording(bench: Bench) -> None:
    def fail(shell: Shell) -> None:
        raise WorkError("the app is gone")

    with pytest.raises(WorkError, match="the app is gone"):
        boot(bench, Interlude(1, fail))
    # Nobody waits for it.
    until = time.monotonic() + 10
    while log(bench) != [RECORD, "stopped"] and time.monotonic() < until:
        time.sleep(0.05)
    assert log(bench) == [RECORD, "stopped"]


def test_only_processors_with_trace_units_record() -> None:
    assert branch_source("phone").branch_recorder("arm64") == "simpleperf, ETM"
    with pytest.raises(EnvironmentLack, match="which x86-64 does not have"):
        branch_source("phone").branch_recorder("x86-64")


def test_a_phone_does_not_count(bench: Bench) -> None:
    session = Session("arm64", bench.kernel, bench.kernel, (), 1)
    with pytest.raises(EnvironmentLack, match="the device phone does not count"):
        phone.DEVICE.boot(replace(session, measure=Measure()), bench.root, run, lambda n: None)
