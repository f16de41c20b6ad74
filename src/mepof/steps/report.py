"""``report``: everything that is known about a run, for people and for scripts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from mepof.app.apps import Action, load_app
from mepof.app.training import exercised
from mepof.errors import WorkError
from mepof.measure.measurement import read_evaluation
from mepof.plan import body
from mepof.plan.journal import JournalledRun, JournalledStep, read_runs
from mepof.plan.model import Step
from mepof.pmu.locations import Locations, read_locations
from mepof.profile.artifact import collection, description
from mepof.report import (
    Phase,
    ProfileQuality,
    ProfileSummary,
    Provenance,
    Training,
    build_report,
    write_report,
)
from mepof.scenario.protocol import SCENARIOS
from mepof.suite.cases import CaseId

_WORK_PHASES = ("build", "boot", "run", "convert")


class ReportStep:
    """Params: ``images``, ``profiles`` (names), ``program``, ``seed``; ``trained``, the numbers of
    the collections that the profile of an image is made of, by image. Inputs: ``evaluation``,
    ``build0``…, ``profile0``…, ``collection0``…. Locations of events are beside the evaluation."""

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
        found = read_evaluation(inputs["evaluation"] / "evaluation.json")
        named = zip(found.images, names, strict=True)
        evaluation = found.model_copy(
            update={"images": tuple(m.model_copy(update={"image": name}) for m, name in named)}
        )
        if context.journal is None:
            raise WorkError("a report is made from a run's journal, and there is none")
        run = read_runs(context.journal)[-1]
        steps = [step for step in run.steps.values() if step.state in ("done", "cached")]
        builds = {
            name: json.loads((inputs[f"build{n}"] / "build.json").read_text(encoding="utf-8"))
            for n, name in enumerate(names)
            if f"build{n}" in inputs
        }
        trained = cast(dict[str, list[int]], params["trained"])
        report = build_report(
            evaluation,
            [_phase(s, run) for s in steps],
            _profile(inputs, cast(list[str], params["profiles"])),
            Provenance(
                tools={**run.tools, **run.versions},
                kernel=", ".join(dict.fromkeys(f"Linux {b['version']}" for b in builds.values())),
                program=str(params["program"]),
                seed=cast(int, params["seed"]),
                digests={s.step: s.digest for s in steps if s.digest is not None},
                flags={name: _flags(build) for name, build in builds.items()},
                command=command(str(params["program"])),
            ),
            engine_share_percent=engine_share(run),
            trained=_trained(inputs, trained),
            trainings=[*_trainings(inputs, trained)],
            profiles=[*_profiles(inputs, cast(list[str], params["profiles"]))],
            locations=_places(inputs["evaluation"], names),
            notes=[
                note
                for number, name in enumerate(names)
                if f"build{number}" in inputs
                for note in _notes(name, inputs[f"build{number}"])
            ],
        )
        write_report(report, context.output)


def command(program: str) -> str:
    """One command for a shell that runs a program again."""
    end = "END"
    while end in program.splitlines():
        end += "D"
    return f"mepof run /dev/stdin --out again <<'{end}'\n{program.rstrip()}\n{end}"


def _trained(
    inputs: Mapping[str, Path], collections: Mapping[str, Sequence[int]]
) -> dict[str, frozenset[CaseId]]:
    """The cases that each image was trained on, but for images that a user trained by hand."""
    found: dict[str, frozenset[CaseId]] = {}
    for image, numbers in collections.items():
        known = [collection(inputs[f"collection{number}"]) for number in numbers]
        if not any(c is None or SCENARIOS.get(c["scenario"]).interactive for c in known):
            found[image] = exercised(a for c in known if c is not None for a in _collected(c))
    return found


def _trainings(
    inputs: Mapping[str, Path], collections: Mapping[str, Sequence[int]]
) -> Iterator[Training]:
    """The runs in which the profiles of images were collected."""
    for image, numbers in collections.items():
        for number in numbers:
            if (c := collection(inputs[f"collection{number}"])) is None:
                continue
            ran = exercised(_collected(c))
            yield Training(
                image=image,
                scenario=c["scenario"],
                apps=c["apps"],
                actions=dict(Counter(c["actions"])),
                never=c["coverage"]["never"],
                cases=tuple(sorted(f"{suite}/{case}" for suite, case in ran)),
                seed=c["seed"],
                kernel=c["release"],
            )


def _collected(known: Mapping[str, Any]) -> Iterator[Action]:
    """The actions that a profile was collected with."""
    ran = set(known["actions"])
    for app in map(load_app, known["apps"]):
        yield from (action for action in app.actions if action.name in ran)


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


def _places(measured: Path, names: Sequence[str]) -> dict[str, Locations]:
    """Where the events of each image are, if a core was modelled."""
    files = {name: measured / f"places{number}.json" for number, name in enumerate(names)}
    return {name: read_locations(path) for name, path in files.items() if path.is_file()}


def _phase(step: JournalledStep, run: JournalledRun) -> Phase:
    made = step.state == "done" and step.started is not None
    return Phase(
        step=step.step,
        kind=step.phase,
        seconds=step.seconds,
        cached=step.state == "cached",
        started_seconds=_after(run.started, str(step.started)) if made else None,
    )


def _after(began: str, time: str) -> float:
    """Seconds from one time to another."""
    seconds = (datetime.fromisoformat(time) - datetime.fromisoformat(began)).total_seconds()
    return round(max(0.0, seconds), 3)


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


def _profiles(inputs: Mapping[str, Path], names: Sequence[str]) -> Iterator[ProfileQuality]:
    for number, name in enumerate(names):
        algorithm, quality = description(inputs[f"profile{number}"])
        yield ProfileQuality(
            name=name,
            algorithm=algorithm,
            functions=quality.functions,
            executed=quality.executed,
            coverage_percent=quality.coverage_percent,
            verdict=quality.verdict,
            reasons=quality.reasons,
            exact=quality.exact,
        )


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
