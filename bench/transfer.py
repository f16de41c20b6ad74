"""What is kept of the gain when a profile is of another release, compiler or machine.

    bench/transfer.py [--again] [--list] [--dry-run] [--store DIR] [WORD…]

Every cell is a row of bench/transfer.toml and an algorithm. The kernel of its `to` is built with
the profile that was trained on the kernel of its `from`, and with one of its own; both are measured
beside the plain kernel. WORDs choose the cells that have all of them; without any, all are chosen.
A cell that has a result is not run again without ``--again``, and an interrupted run continues from
the store. Kernels are those of bench/matrix.py where it has run. Writes
docs/benchmarks/transfer.json and .md after each cell. Ten minutes to an hour for a cell on two
cores.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measure.left import COUNTED, MODELLED, left_percent
from measure.program import report_of
from measure.transfer_cells import FOREIGN, OWN, Cell, Kernel, cells
from measure.transfer_page import page

from mepof import _engine
from mepof import arch as architectures
from mepof.adapter.judge import judge, objects_that_ran, sampled_functions
from mepof.cli.run import explain_plan, local
from mepof.errors import MepofError
from mepof.events import Event, StepStarted
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Executor
from mepof.g4 import Source
from mepof.kernel.description import BuildDescription
from mepof.plan.model import Plan, Step, StepInput
from mepof.pmu.core import load_core
from mepof.profile.artifact import Drift, profile_files
from mepof.profile.counts import FunctionCounts, read_counts

ROOT = Path(__file__).parents[1]
CHOICES = ROOT / "bench" / "transfer.toml"
RESULT = ROOT / "docs" / "benchmarks" / "transfer"
OUT = ROOT / "out" / "transfer"
GAINS = COUNTED | MODELLED

#: What came out of a cell, as JSON.
Outcome = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--again", action="store_true", help="run cells that have a result too")
    parser.add_argument("--list", action="store_true", help="show the chosen cells only")
    parser.add_argument("--dry-run", action="store_true", help="show what their runs would do")
    parser.add_argument("--store", type=Path)
    parser.add_argument("word", nargs="*", metavar="WORD")
    arguments = parser.parse_args()
    known = cells(CHOICES)
    chosen = [cell for cell in known if cell.is_chosen_by(arguments.word)]
    if not chosen:
        parser.error("no cell has all these words; `--list` shows every cell")
    record = RESULT.with_suffix(".json")
    results: dict[str, Outcome] = json.loads(record.read_text()) if record.is_file() else {}
    executor = local(arguments.store, None)
    try:
        for cell in chosen:
            if arguments.list:
                print(f"{cell.name}: {'measured' if cell.name in results else 'not run'}")
            elif arguments.dry_run:
                print(f"== {cell.name}", flush=True)
                explain_plan(plan_for(cell), executor, verbose=False, as_json=False)
            elif arguments.again or cell.name not in results:
                print(f"== {cell.name}", flush=True)
                results[cell.name] = measured(cell, executor)
                record.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
                RESULT.with_suffix(".md").write_text(page(known, results))
    except MepofError as error:
        sys.exit(f"error: {error.message}" + (f"\n  {error.remedy}" if error.remedy else ""))


def plan_for(cell: Cell) -> Plan:
    """What a cell runs: its program, without the image that nothing is measured of, on its CPUs."""
    plan = plan_of(Source(f"{cell.name}.g4", cell.program()))
    needed: set[str] = set()
    rest = ["report"]
    while rest:
        needed.add(name := rest.pop())
        inputs = plan.step(name).inputs.values()
        rest += [each.step for each in inputs if isinstance(each, StepInput)]
    recorded_on = {"origin/collect": cell.origin.cpu, f"{OWN}/collect": cell.target.cpu}
    return replace(
        plan,
        steps=tuple(
            recorded(step, recorded_on.get(step.id)) for step in plan.steps if step.id in needed
        ),
        results=tuple(result for result in plan.results if result.step in needed),
    )


def recorded(step: Step, core: str | None) -> Step:
    """A step that records branches, on the processor that QEMU has for a core."""
    if core is None:
        return step
    record = step.params["record"]
    assert isinstance(record, dict)
    cpu = load_core(core).emulated
    return replace(step, params={**step.params, "record": {**record, "cpu": cpu}})


def measured(cell: Cell, executor: Executor) -> Outcome:
    """Run a cell, and sum up what came out."""
    out = OUT / cell.name.replace("/", "-")
    out.mkdir(parents=True, exist_ok=True)
    run = executor.run(plan_for(cell), out, say).run
    made = Made(run.plan, {name: step.path for name, step in run.steps.items()})
    report = report_of(out)
    left = left_percent(report, GAINS)
    profiled, using = made.profiled("origin"), made.step("image", FOREIGN)
    profile = made.profile("origin")
    arch = architectures.get(cell.target.arch).source
    changed = judge(
        sampled_functions(profile),
        made.path(made.input(profiled, "source")),
        made.path(made.input(using, "source")),
        arch,
        objects_that_ran(profile),
    )
    return {
        "from": kernel_at(cell.origin, made.path(profiled)),
        "to": kernel_at(cell.target, made.path(using)),
        "changed_percent": changed.changed_percent,
        "matched_percent": matched(made),
        "left_percent": {image: left[image] for image in (OWN, FOREIGN)},
        "warnings": report["warnings"],
    }


@dataclass(frozen=True)
class Made:
    """What a run made. Steps that are alike are one, under the name of the first."""

    plan: Plan
    paths: Mapping[str, Path]

    def step(self, kind: str, name: str) -> Step:
        """The step of a result of the program."""
        (step,) = (r.step for r in self.plan.results if (r.kind, r.name) == (kind, name))
        return self.plan.step(step)

    def input(self, step: Step, name: str) -> Step:
        """The step that another one has an input of."""
        given = step.inputs[name]
        assert isinstance(given, StepInput)
        return self.plan.step(given.step)

    def path(self, step: Step) -> Path:
        """The artifact of a step."""
        return self.paths[step.id]

    def profiled(self, name: str) -> Step:
        """The build that a profile is of."""
        return self.input(self.step("profile", name), "kernel")

    def profile(self, name: str) -> Path:
        """The file of a profile."""
        (file,) = profile_files(self.path(self.step("profile", name)))
        return file


def kernel_at(kernel: Kernel, build: Path) -> dict[str, str]:
    """What a kernel is, by what was built."""
    described = BuildDescription.read(build)
    made = {
        "kernel": described.version,
        "compiler": described.origin.compiler,
        "arch": kernel.arch,
        "config": kernel.config,
    }
    return made if kernel.cpu is None else {**made, "cpu": load_core(kernel.cpu).emulated}


def matched(made: Made) -> float:
    """The share of the foreign profile's samples that the kernel has code for, in percent.

    Samples are looked up by the lines of the kernel, as ``mepof profile drift`` does; where the
    source is the same, its own profiled build has them. Counts fit a function of the same name
    with the same control flow, which is what the compiler asks for.
    """
    profile = made.profile("origin")
    if profile.suffix == ".profdata":
        return same_flow_percent(read_counts(profile), read_counts(made.profile(OWN)))
    known = Drift.find(made.path(made.step("image", FOREIGN)))
    if known is None:
        vmlinux = made.path(made.profiled(OWN)) / "vmlinux"
        known = Drift.model_validate_json(_engine.drift(profile, vmlinux, None))
    return known.matched_percent


def same_flow_percent(counted: Sequence[FunctionCounts], known: Sequence[FunctionCounts]) -> float:
    """The share of counts in functions of which another profile has the same control flow."""
    flows = {(each.name, each.hash) for each in known}
    total = sum(each.total for each in counted)
    same = sum(each.total for each in counted if (each.name, each.hash) in flows)
    return 100 * same / total


def say(event: Event) -> None:
    """Tell of a step that begins."""
    if isinstance(event, StepStarted):
        print(f"{event.step}: {event.reason}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
