"""Readers of what others wrote: whatever they get, they give a result or one of our errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report.samples import measurement

from mepof.device.console import panic_in
from mepof.device.preparation import cpu_numbers
from mepof.device.shell import Ran
from mepof.errors import MepofError
from mepof.gate import ktap
from mepof.kernel.functions import definitions
from mepof.kernel.image import read_image
from mepof.measure.measurement import Evaluation, read_evaluation
from mepof.measure.memory import memory_of
from mepof.measure.result_line import result_of, unsupported_of
from mepof.package.debian_archive import read_control
from mepof.plan.journal import read_runs
from mepof.pmu.counter import Event
from mepof.pmu.locations import read_raw
from mepof.pmu.perf_stat import counts_of, figures_of
from mepof.profile import sample_tree
from mepof.report.files import read_report
from mepof.source.download import read_answers, retry_after
from mepof.source.repo import read_manifest
from mepof.suite.cases import cases_of

EVENTS = (
    Event("user_instructions", "instructions:u", "instructions"),
    Event("kernel_cycles", "cycles:k", "cycles"),
)
CASE = cases_of(["pipe"])[0]
# Numbers at the limits of what parsers take, and what ends or nests structures.
PIECES = [
    b"",
    b"-1",
    b"0",
    b"1e400",
    b"9" * 25,
    b"9" * 5000,
    b"\xff\xfe",
    b"\x00",
    "\u0663\u00b2".encode(),
    b"[" * 3000,
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"\n",
    b"   ",
    b"null",
    b"{}",
]


@dataclass(frozen=True)
class Reader:
    """A reader of files, and a sound file."""

    read: Callable[[Path], object]
    sound: bytes


def of_text(read: Callable[[str], object]) -> Callable[[Path], object]:
    """A reader of text, which the caller has decoded so that nothing fails there."""
    return lambda path: read(path.read_text(encoding="utf-8", errors="replace"))


def perf_stat(text: str) -> object:
    counts, _ = counts_of(Ran(0, text), EVENTS)
    return figures_of(counts)


READERS = {
    "meminfo": Reader(
        of_text(lambda text: memory_of(text, 1 << 29)),
        b"MemTotal: 503848 kB\nMemFree: 479504 kB\nBuffers: 0 kB\nCached: 2072 kB\n"
        b"Slab: 12600 kB\nSReclaimable: 172 kB\nKernelStack: 448 kB\nPageTables: 300 kB\n",
    ),
    "result of a case": Reader(
        of_text(lambda text: result_of(CASE, text)),
        f"case={CASE.name} operations=100 elapsed_ns=5000 check=ok p99_ns=80\n".encode(),
    ),
    "unsupported case": Reader(
        of_text(lambda text: unsupported_of(CASE, text)),
        f"case={CASE.name} check=unsupported needs=CONFIG_VETH\n".encode(),
    ),
    "KTAP": Reader(
        of_text(ktap.parse),
        b"KTAP version 1\n1..2\n# Subtest: a\n    1..1\n    ok 1 b # SKIP c\nok 1 a\n"
        b"not ok 2 d # TODO\n",
    ),
    "console": Reader(of_text(panic_in), b"[    0.1] Kernel panic - not syncing: x\n---[ end\n"),
    "list of CPUs": Reader(of_text(cpu_numbers), b"0-3,6\n"),
    "locations of events": Reader(
        read_raw,
        b'{"version":1,"events":["taken_branches"]}\n'
        b'{"sites":[[4096,4100,2,50,3]],"slices":[[[1,100]]]}\n',
    ),
    "evaluation": Reader(
        read_evaluation,
        Evaluation(images=(measurement("plain"), measurement())).model_dump_json().encode(),
    ),
    "report": Reader(lambda path: read_report(path.parent), b"{}"),
    "journal": Reader(
        read_runs,
        json.dumps(
            {"run": "a", "event": "run", "time": "2024-01-01T00:00:00+00:00", "program": "p"}
        ).encode(),
    ),
    "profile in text": Reader(
        of_text(sample_tree.parse),
        b"main:184019:0\n 4: 534\n 5.1: 1075 f:3 g:2\n 9: h:64\n  1: 2\n",
    ),
    "manifest": Reader(
        of_text(lambda text: read_manifest(lambda file: text, "default.xml", "https://a/b")),
        b'<?xml version="1.0"?>\n<manifest><remote name="r" fetch=".."/>'
        b'<default remote="r" revision="m"/><project name="p" path="q" groups="g">'
        b'<copyfile src="a" dest="b"/></project><remove-project name="z"/></manifest>',
    ),
    "answers of a server": Reader(
        read_answers, b"HTTP/1.1 302 Found\r\nLocation: x\r\n\r\nHTTP/1.1 200 OK\r\nEtag: y\r\n\r\n"
    ),
    "Retry-After": Reader(of_text(retry_after), b"Wed, 21 Oct 2015 07:28:00 GMT"),
    "kernel image": Reader(read_image, b"\x00" * 0x1FE + b"\x55\xaa\x00\x00HdrS" + b"\x00" * 100),
    "package": Reader(
        read_control, b"!<arch>\ndebian-binary   0           0     0     100644  4\n"
    ),
    "C source": Reader(of_text(definitions), b"static int f(int a)\n{\n\treturn a;\n}\n"),
    "perf stat": Reader(
        of_text(perf_stat),
        b"123,,instructions:u,1000,100.00,,\n<not supported>,,cycles:k,0,100.00,,\n",
    ),
}


def damaged(sound: bytes) -> st.SearchStrategy[bytes]:
    """The file with something unexpected in it, instead of a part or beside it, or with a part
    that is repeated; or any bytes."""
    position = st.integers(0, len(sound))

    def changed(first: int, second: int, piece: bytes) -> bytes:
        return sound[:first] + piece + sound[second:]

    pieces = st.sampled_from(PIECES)
    inserted = st.builds(lambda at, piece: changed(at, at, piece), position, pieces)
    return st.builds(changed, position, position, pieces) | inserted | st.binary(max_size=200)


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_give_a_result_or_an_error_of_ours(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    path = tmp_path / "report.json"

    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(damaged(reader.sound))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            reader.read(path)
        except MepofError as error:
            assert "\n" not in str(error)

    check()
