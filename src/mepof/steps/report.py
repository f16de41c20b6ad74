"""``report``: everything that is known about a run, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from mepof.errors import WorkError
from mepof.evaluate.measurement import read_measurement
from mepof.evaluate.report import (
    Phase,
    ProfileSummary,
    Provenance,
    build_report,
    write_report,
)
from mepof.plan import body
from mepof.plan.journal import JournalledRun, JournalledStep, read_runs
from mepof.plan.model import Step
from mepof.profile.artifact import collection, description

_WORK_PHASES = ("build", "boot", "run", "convert")


class ReportStep:
    """Params: ``images``, ``profiles`` (names), ``program``, ``seed``. Inputs:
    ``measurement0``…, ``build0``…, ``profile0``…"""

    kind = "report"
    phase: body.Phase = "other"
    volatile = True

    def resources(self, step: Step) -> body.Resources:
        return body.Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {}

    def run(self, context: body.StepContext) -> None:
        params, inputs = context.params, context.inputs
        names = cast(list[str], params["images"])
        measurements = [
            read_measurement(inputs[f"measurement{n}"] / "measurement.json").model_copy(
                update={"image": name}
            )
            for n, name in enumerate(names)
        ]
        if context.journal is None:
            raise WorkError("a report is made from a run's journal, and there is none")
        run = read_runs(context.journal)[-1]
        steps = [step for step in run.steps.values() if step.state in ("done", "cached")]
        builds = {
            name: json.loads((inputs[f"build{n}"] / "build.json").read_text(encoding="utf-8"))
            for n, name in enumerate(names)
            if f"build{n}" in inputs
        }
        report = build_report(
            measurements,
            [
                Phase(step=s.step, kind=s.phase, seconds=s.seconds, cached=s.state == "cached")
                for s in steps
            ],
            _profile(inputs, cast(list[str], params["profiles"])),
            Provenance(
                tools={**run.tools, **run.versions},
                kernel=", ".join(dict.fromkeys(f"Linux {b['version']}" for b in builds.values())),
                program=str(params["program"]),
                seed=cast(int, params["seed"]),
                digests={s.step: s.digest for s in steps if s.digest is not None},
                flags={name: _flags(build) for name, build in builds.items()},
            ),
            engine_share_percent=engine_share(run),
            notes=[
                note
                for number, name in enumerate(names)
                if f"build{number}" in inputs
                for note in _notes(name, inputs[f"build{number}"])
            ],
        )
        write_report(report, context.output)


def _notes(image: str, build: Path) -> Iterator[str]:
    """What is to be known of how a profile was used in a build."""
    if (safety := _known(build / "safety.json")) and safety["failure"] is not None:
        opt_out = safety["opt_out"]
        spared = [f"{f}() of {file}" for file, some in opt_out["functions"].items() for f in some]
        left_out = ", ".join([*opt_out["files"], *spared])
        yield f"{image} is built without the profile in {left_out}: {safety['failure']}"
    if drift := _known(build / "drift.json"):
        yield (
            f"{image} is built with the profile of another kernel: "
            f"{drift['matched_percent']:.1f} % of its samples match"
        )


def _known(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def engine_share(run: JournalledRun) -> float | None:
    """Share of a run's wall time, up to now, in which nothing was built, booted, run or
    converted, in percent; None where all of it came from the store."""
    worked = [s for s in run.steps.values() if s.state == "done" and s.phase in _WORK_PHASES]
    if not worked:
        return None
    began = datetime.fromisoformat(run.started)
    ended = max(datetime.fromisoformat(s.ended) for s in run.steps.values() if s.ended)
    total = (ended - began).total_seconds()
    return round(100 * (1 - _covered(worked) / total), 3) if total else None


def _covered(steps: Sequence[JournalledStep]) -> float:
    """Seconds in which at least one of the steps ran."""
    spans = sorted(
        (datetime.fromisoformat(s.started), datetime.fromisoformat(s.ended))
        for s in steps
        if s.started and s.ended
    )
    seconds = 0.0
    reached = spans[0][0]
    for start, end in spans:
        if end > reached:
            seconds += (end - max(start, reached)).total_seconds()
            reached = end
    return seconds


def _flags(build: Mapping[str, Any]) -> str:
    parts = [*build["cflags"], *build["config_lines"]]
    return " ".join(parts) or "the configuration's own"


def _profile(inputs: Mapping[str, Path], names: Sequence[str]) -> ProfileSummary | None:
    """The program's last profile: the one that its images were built with."""
    if not names:
        return None
    directory = inputs[f"profile{len(names) - 1}"]
    algorithm, quality = description(directory)
    collected = collection(directory)
    details: dict[str, str | int | float] = {"functions in the kernel": quality.functions}
    if collected is not None:
        coverage = collected["coverage"]
        details |= {
            "scenario": collected["scenario"],
            "apps": ", ".join(collected["apps"]),
            "actions run": len(collected["actions"]),
            "coverage of the apps' actions": f"{coverage['ran']} of {coverage['actions']}",
        }
    return ProfileSummary(
        algorithm=algorithm,
        functions=quality.executed,
        coverage_percent=quality.coverage_percent,
        verdict=quality.verdict,
        details=details,
    )


BODY = ReportStep()
