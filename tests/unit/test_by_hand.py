"""A kernel optimised by hand and by mepof: the procedure with stand-ins for its programs, and what
the benchmark makes of both."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from mepof.errors import WorkError
from mepof.executor.programs import compiled
from mepof.g4 import Source
from mepof.plan.journal import JournalledRun, JournalledStep
from mepof.toolchain import gcda
from mepof.toolchain.gcda import Counts, Function

BENCH = Path(__file__).parents[2] / "bench"
PROGRAM = BENCH / "published" / "by-hand.g4"
CASES = ("syscall", "overhead", "pipe128", "pipe512", "proc", "file512", "file1024", "file8k")

#: Counts with the summary of a run, and as the kernel's gcov writes them, without.
WHOLE = gcda.serialize(
    Counts(int.from_bytes(b"B22*", "big"), (7, 0), 0, (Function((1, 2, 3), {0: (41,)}),)), 0
)
OF_KERNEL = WHOLE[:16] + WHOLE[32:]

STAND_INS = {
    "busybox": "",
    "cpio": "cat >/dev/null",
    "make": """\
for word in "$@"; do case $word in O=*) out=${word#O=} ;; esac; done
echo "$*" >>"$out/made"
mkdir -p "$out/arch/x86/boot" && echo "$out" >"$out/arch/x86/boot/bzImage"
""",
    # Serves the console's lines; a kernel with a profile takes half as long.
    "qemu-system-x86_64": """\
while [ $# -gt 0 ]; do [ "$1" = -kernel ] && kernel=$2; shift; done
case $kernel in build/*) ns=50 ;; *) ns=100 ;; esac
while read -r line; do
    case $line in
    @*) printf '%s\\r\\n' "$line" ;;
    gather*) mkdir -p "gcov/sys/kernel/debug/gcov$HERE/build/kernel"
        cp "$GCDA" "gcov/sys/kernel/debug/gcov$HERE/build/kernel/fork.gcda"
        tar cf out -C gcov sys ;;
    "kbench run "*)
        echo "case=${line##* } metric=m round=0 operations=10 elapsed_ns=$ns check=$CHECK" ;;
    esac
done <root/console
[ -n "$DIES" ] && echo 'Kernel panic' || echo 'console: done'
""",
}


class Bench:
    """The procedure's arguments, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.out = directory / "out"
        tree = directory / "linux-6.12" / "scripts"
        tree.mkdir(parents=True)
        (tree / "config").write_text("#!/bin/sh\n")
        (tree / "config").chmod(0o755)
        with tarfile.open(directory / "linux.tar.xz", "w:xz") as archive:
            archive.add(tree.parent, "linux-6.12")
        (directory / "config").write_text("CONFIG_DEBUG_FS=y\n")
        (directory / "kbench").write_text("")
        self.gcda = directory / "fork.gcda"
        self.gcda.write_bytes(OF_KERNEL)
        (directory / "list").write_text("# all\nsyscall\nmix-io  # files\n\n")
        self.words = [directory / name for name in ("linux.tar.xz", "config", "kbench", "list")]
        stand_ins = directory / "bin"
        stand_ins.mkdir()
        for name, body in STAND_INS.items():
            (stand_ins / name).write_text(f"#!/bin/bash\n{body}")
            (stand_ins / name).chmod(0o755)
        self.path = f"{stand_ins}:{os.environ['PATH']}"

    def run(self, check: str = "ok", dies: str = "") -> subprocess.CompletedProcess[str]:
        """The finished procedure."""
        return subprocess.run(
            [BENCH / "published" / "by-hand.sh", *self.words, self.out],
            env={
                **os.environ,
                "PATH": self.path,
                "GCDA": str(self.gcda),
                "CHECK": check,
                "DIES": dies,
            },
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("by_hand")


def test_the_procedure_counts_what_a_person_does(bench: Bench, module: Any) -> None:
    done = bench.run()
    assert done.returncode == 0, done.stderr
    way = module.by_hand((bench.out / "record").read_text().splitlines())
    assert list(way.seconds) == list(module.STAGES)
    assert way.commands["training"] == 6  # chmod, pack, start, and three at the console
    assert way.commands["transfer"] == 3  # at the console, unpack, rewrite
    assert way.commands["measurement"] == 2 * (2 + len(CASES))
    assert way.lines == {"preparation": 8, "instrumentation": 3, "training": 5}
    assert way.gain_percent == pytest.approx(100)


def test_the_procedure_uses_the_counts_that_the_guest_gave(bench: Bench) -> None:
    assert bench.run().returncode == 0
    build = bench.out / "build"
    # Without a summary, GCC leaves counts unused.
    assert (build / "kernel" / "fork.gcda").read_bytes() == WHOLE
    made = (build / "made").read_text().splitlines()
    assert ["-fprofile-use" in line for line in made] == [False, False, False, True]
    config = (build / ".config").read_text()
    assert "CONFIG_GCOV_PROFILE_ALL=y" in config
    typed = (bench.out / "record").read_text()
    assert "typed training kbench run syscall\n" in typed
    assert "typed training kbench mix io\n" in typed
    assert "typed transfer gather /dev/vport0p1\n" in typed


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({"dies": "yes"}, "did not come to the end"),
        ({"missing": "config"}, "is not a file"),
        ({"broken": "make"}, "this failed: make -C linux CC=gcc-12 O=$HERE/plain olddefconfig"),
    ],
)
def test_the_procedure_says_what_failed(bench: Bench, ask: dict[str, str], said: str) -> None:
    if "missing" in ask:
        bench.words[1].unlink()
    if "broken" in ask:
        (bench.words[0].parent / "bin" / "make").write_text("#!/bin/sh\nexit 2\n")
    done = bench.run(dies=ask.get("dies", ""))
    assert done.returncode != 0
    assert said in done.stderr


def test_the_procedure_never_overwrites(bench: Bench) -> None:
    bench.out.mkdir()
    done = bench.run()
    assert (done.returncode, list(bench.out.iterdir())) == (2, [])
    assert "exists" in done.stderr


def test_a_wrong_result_of_a_case_is_no_figure(bench: Bench, module: Any) -> None:
    assert bench.run(check="failed").returncode == 0
    with pytest.raises(WorkError, match="did not record"):
        module.by_hand((bench.out / "record").read_text().splitlines())


def test_a_procedure_that_lacks_a_stage_is_an_error(module: Any) -> None:
    record = ["seconds plain 1.5", "measured plain proc 10 1", "measured build proc 5 1"]
    with pytest.raises(WorkError, match="all of its stages"):
        module.by_hand(record)


def journal(**steps: float) -> JournalledRun:
    return JournalledRun(
        id="1",
        program="",
        seed=1,
        tools={},
        versions={},
        store="",
        cores=2,
        started="2026-01-01T00:00:00+00:00",
        ended="2026-01-01T00:10:00+00:00",
        steps={
            name: JournalledStep(name, "kind", "build", "f", "done", seconds=seconds)
            for name, seconds in steps.items()
        },
    )


def gained(value: float) -> dict[str, Any]:
    row = {"image": "opt", "metric": "guest_time", "case": "proc", "value": value, "baseline": 10}
    return {"baseline": "plain", "cases": [row]}


def test_every_step_of_the_program_belongs_to_a_stage(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BENCH.parent)
    steps = [step.id for step in compiled(Source.read(PROGRAM)).steps]
    assert set(steps) <= set(module.STEPS)
    assert set(module.STEPS.values()) <= set(module.STAGES)


def test_a_run_of_mepof_is_summed_by_stages(module: Any) -> None:
    steps = {"opt/scout": 3.0, "opt/executed": 1.5, "opt/build": 200}
    program = "# why\n\nset seed 1.\nopt /src gcc-pgo script kbench:a O2.\n"
    way = module.by_mepof(journal(**steps), gained(8), program)
    assert way.seconds == {"instrumentation": 4.5, "recompilation": 200}
    assert (way.total, way.lines) == (600, {"preparation": 2})
    assert way.gain_percent == pytest.approx(25)


def test_a_step_without_a_stage_is_an_error(module: Any) -> None:
    with pytest.raises(WorkError, match="opt/bolt belongs to no stage"):
        module.by_mepof(journal(**{"opt/bolt": 1.0}), gained(8), "")


def test_rounds_continue_and_the_page_has_their_means(
    module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def way(seconds: float) -> dict[str, Any]:
        stages = dict.fromkeys(module.STAGES, seconds)
        counts = {"commands": {"transfer": 3}, "lines": {"training": 5}}
        return {"seconds": stages, "total": 8 * seconds, "gain_percent": 10.0, **counts}

    def measured(out: Path, before: list[Any]) -> dict[str, Any]:
        out.mkdir(parents=True)
        number = len(before) + 1
        return {
            "machine": {"cores": 2, "processor": "a processor"},
            "kernel": "Linux 6.12",
            "compiler": "gcc-12 12.2.0",
            "rounds": [*before, {"hand": way(100.0 * number), "mepof": way(60.0 * number)}],
        }

    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "RESULT", tmp_path / "by-hand")
    monkeypatch.setattr(module, "measured", measured)
    for rounds in ("1", "2"):
        monkeypatch.setattr(sys, "argv", ["by_hand.py", "--rounds", rounds])
        module.main()
    assert len(json.loads((tmp_path / "by-hand.json").read_text())["rounds"]) == 2
    page = (tmp_path / "by-hand.md").read_text()
    assert "| recompilation | 3 instructions |  |  |  |  | 150 | 90 |" in page
    said = " ".join(page.split())
    assert "by hand took 800 to 1,600 seconds and mepof 480 to 960: 40.0 % less" in said
    assert not any((tmp_path / "out" / "by-hand").iterdir())


def test_no_rounds_are_refused(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["by_hand.py", "--rounds", "0"])
    with pytest.raises(SystemExit):
        module.main()
