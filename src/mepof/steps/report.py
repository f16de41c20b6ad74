"""``report``: reports everything that is known about a run, to users and scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.apps import Action, app_names, load_app
from mepof.app.measured import suite_name
from mepof.app.own import load_own
from mepof.app.training import exercised
from mepof.errors import EnvironmentLack, WorkError
from mepof.gate.verdict import CheckVerdict
from mepof.kernel.description import BuildDescription, Safety
from mepof.kernel.objects import defined_in
from mepof.kernel.options import added
from mepof.kernel.selection import Selection
from mepof.measure.executed import CaseFunctions, ExecutedFunctions, located_functions
from mepof.measure.goal import Goal
from mepof.measure.measurement import read_evaluation
from mepof.plan import body
from mepof.plan.critical_path import critical_path
from mepof.plan.journal import JournalledRun, JournalledStep, read_runs
from mepof.plan.model import Step
from mepof.pmu.locations import Locations, read_locations
from mepof.profile.artifact import Drift, ProfileDescription, profile_directory
from mepof.report import (
    Instrumented,
    Phase,
    ProfileQuality,
    ProfileSummary,
    Provenance,
    Training,
    build_report,
    write_boots,
    write_report,
)
from mepof.report.likeness import Likeness, counted_percents
from mepof.scenario.collection import Collection
from mepof.scenario.protocol import SCENARIOS
from mepof.spec.report import Report, ReportedImage, ReportedProfile
from mepof.suite.cases import CaseId
from mepof.toolchain.named import select
from mepof.toolchain.protocol import Tools

_WORK_PHASES = ("build", "boot", "run", "convert")


class ReportBody:
    """Makes the files of the report. Locations of events are beside the evaluation."""

    kind = Report.kind
    phase: body.Phase = "other"
    volatile = True

    def resources(self, step: Step) -> body.Resources:
        return body.Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        return {}

    def run(self, context: body.StepContext) -> None:
        asked = Report[Path].of(context.step, context.inputs)
        names = [image.name for image in asked.images]
        found = read_evaluation(asked.evaluation / "evaluation.json")
        named = zip(found.images, names, strict=True)
        evaluation = found.model_copy(
            update={"images": tuple(m.model_copy(update={"image": name}) for m, name in named)}
        )
        if context.journal is None:
            raise WorkError("a report needs the journal of a run, and there is none")
        run = read_runs(context.journal)[-1]
        steps = [step for step in run.steps.values() if step.state in ("done", "cached")]
        builds = {
            image.name: BuildDescription.read(image.build)
            for image in asked.images
            if image.build is not None
        }
        report = build_report(
            evaluation,
            [*_phases(steps, run)],
            _profile(asked.profiles),
            Provenance(
                tools={**_tools(run), **run.versions},
                kernel=", ".join(dict.fromkeys(f"Linux {b.version}" for b in builds.values())),
                program=asked.program,
                seed=asked.seed,
                digests={s.step: s.digest for s in steps if s.digest is not None},
                flags={
                    name: build.flags or "the configuration's own" for name, build in builds.items()
                },
                command=command(asked.program),
            ),
            engine_share_percent=engine_share(run),
            likeness=_likeness(asked, context),
            trainings=[*_trainings(asked)],
            profiles=[*_profiles(asked.profiles)],
            locations=_locations(asked.evaluation, names),
            goals=_goals(asked),
            checks=[CheckVerdict.read(each) for each in asked.checks],
            pairs=asked.pairs,
            notes=[
                note
                for image in asked.images
                if image.build is not None
                for note in _notes(image.name, image.build)
            ]
            + [*_notes_of_options(asked.images), *_notes_of_trainings(asked)],
        )
        write_report(report, context.output)
        write_boots(evaluation, context.output)


def _tools(run: JournalledRun) -> dict[str, str]:
    """What a run was made with, by name. What apps and suites lay into guests, of which each path
    is a name, is one line: an app of packages has thousands of files. Packages are another."""
    files = {name: value for name, value in run.tools.items() if name.startswith("/")}
    packages = {name: value for name, value in run.tools.items() if name.startswith("package ")}
    tools = {n: v for n, v in run.tools.items() if n not in files and n not in packages}
    if files:
        listing = "".join(f"{name} {value}\n" for name, value in sorted(files.items()))
        digest = sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
        tools["files in guests"] = f"{len(files)}, SHA-256 of their listing {digest}"
    if packages:
        versions = (f"{name.removeprefix('package ')} {v}" for name, v in packages.items())
        tools["packages in guests"] = ", ".join(versions)
    return tools


def command(program: str) -> str:
    """A shell command that runs a program again."""
    end = "END"
    while end in program.splitlines():
        end += "D"
    return f"mepof run /dev/stdin --out again <<'{end}'\n{program.rstrip()}\n{end}"


def _goals(asked: Report[Path]) -> tuple[Goal, ...]:
    """The goals, with the names that reports have for groups of the user's apps."""
    names = {own.path: suite_name(load_own(own.file)) for own in asked.own_groups}
    return tuple(
        goal.model_copy(update={"group": names.get(goal.group, goal.group)})
        if goal.group is not None
        else goal
        for goal in asked.goals
    )


def _collections(asked: Report[Path], image: ReportedImage[Path]) -> list[Collection | None]:
    """What is known about the training runs of an image."""
    return [Collection.find(asked.collections[number]) for number in image.trained or ()]


def _likeness(asked: Report[Path], context: body.StepContext) -> dict[str, Likeness]:
    """How like the work that an image's profile counted the cases are, by image."""
    executed = _executed(asked)
    return {
        image.name: Likeness(_ran(asked, image), _counted(image, executed, context))
        for image in asked.images
        if image.trained is not None or image.profile is not None
    }


def _ran(asked: Report[Path], image: ReportedImage[Path]) -> frozenset[CaseId] | None:
    """The cases that an image was trained on; None where that is unknown, as of a training by
    hand."""
    if image.trained is None:
        return None
    known = _collections(asked, image)
    if any(c is None or SCENARIOS.get(c.scenario).interactive for c in known):
        return None
    return frozenset().union(*(_cases(c) for c in known if c is not None))


def _executed(asked: Report[Path]) -> tuple[CaseFunctions, ...]:
    """In which functions of the baseline each case executes how much, as far as that is known."""
    if asked.executed is not None:
        return ExecutedFunctions.read(asked.executed).cases
    baseline = asked.images[0].build
    places = asked.evaluation / "places0.json"
    if baseline is None or not places.is_file():
        return ()
    return located_functions(read_locations(places), baseline)


def _counted(
    image: ReportedImage[Path], executed: Sequence[CaseFunctions], context: body.StepContext
) -> dict[CaseId, float]:
    """The percentage of each case's instructions in functions that an image's profile counts."""
    if not executed or image.build is None or image.profile is None:
        return {}
    parts = [ALGORITHMS.get(name) for name in image.uses]
    names = [name for part in parts for name in part.profile_names]
    profile = profile_directory(image.profile, names, context.work)
    try:
        tools = Tools(select(image.toolchain), context.run)
        counts = (part.executed(profile, tools) for part in parts)
        counted = next((found for found in counts if found is not None), None)
    except EnvironmentLack as lack:
        context.note(f"it remains unknown what the profile of {image.name} counts: {lack}")
        return {}
    if counted is None:
        return {}
    functions = {(case.suite, case.case): case.functions for case in executed}
    return counted_percents(functions, counted, defined_in(image.build))


def _trainings(asked: Report[Path]) -> Iterator[Training]:
    """The training runs of all images."""
    for image in asked.images:
        for known in _collections(asked, image):
            if known is None:
                continue
            yield Training(
                image=image.name,
                scenario=known.scenario,
                apps=known.apps,
                actions=dict(Counter(known.actions)),
                never=known.coverage.never,
                cases=tuple(sorted(map("/".join, _cases(known)))),
                seed=known.seed,
                kernel=known.release,
            )


def _cases(known: Collection) -> frozenset[CaseId]:
    """The cases that a profile was collected with."""
    return exercised(_actions(known)) | frozenset(known.cases)


def _actions(known: Collection) -> Iterator[Action]:
    """The actions of installed apps that a profile was collected with."""
    ran, installed = set(known.actions), app_names()
    for app in (load_app(name) for name in known.apps if name in installed):
        yield from (action for action in app.actions if action.name in ran)


def _notes(image: str, build: Path) -> Iterator[str]:
    """Remarks on how a build uses its profile."""
    safety = Safety.find(build)
    if safety is not None and safety.failure is not None:
        yield f"{image} is built without the profile in {safety.opt_out}: {safety.failure}"
    if (drift := Drift.find(build)) is not None:
        yield (
            f"{image} is built with the profile of another kernel: "
            f"{drift.matched_percent:.1f} % of its samples match"
        )


def _notes_of_options(images: Sequence[ReportedImage[Path]]) -> Iterator[str]:
    """Images whose gain is not due to their profile alone, unless another image shows what is."""
    first, *others = images
    if first.build is None or _has_profile(first.build):
        return
    baseline = BuildDescription.read(first.build)
    config = (first.build / "config").read_text(encoding="utf-8").splitlines()
    named = [(each.name, each.build) for each in others if each.build is not None]
    with_options = {
        name: added(BuildDescription.read(build), baseline, config) for name, build in named
    }
    shown = {with_options[name] for name, build in named if not _has_profile(build)}
    for name, build in named:
        chosen = with_options[name]
        if chosen and chosen not in shown and _has_profile(build):
            options = ";".join(chosen)
            yield (
                f"{name} is built with {options} and {first.name} is not, so its gain is not due "
                f"to its profile alone: `build PATH {options}.` makes the image to compare it with"
            )


def _has_profile(build: Path) -> bool:
    """Whether a build uses a profile: only such a one boots as a check."""
    return Safety.find(build) is not None


def _notes_of_trainings(asked: Report[Path]) -> Iterator[str]:
    """Remarks on the kernels that profiles were collected on."""
    known = (Collection.find(collection) for collection in asked.collections)
    left_out = (c.not_instrumented for c in known if c is not None)
    yield from dict.fromkeys(str(each) for each in left_out if each is not None)


def _locations(measured: Path, names: Sequence[str]) -> dict[str, Locations]:
    """The locations of events in each image, if a core was modelled."""
    files = {name: measured / f"places{number}.json" for number, name in enumerate(names)}
    return {name: read_locations(path) for name, path in files.items() if path.is_file()}


def _phases(steps: Sequence[JournalledStep], run: JournalledRun) -> Iterator[Phase]:
    waited = {link.step: link.waited for link in critical_path(run)}
    for step in steps:
        made = step.state == "done" and step.started is not None
        yield Phase(
            step=step.step,
            kind=step.phase,
            seconds=step.seconds,
            cached=step.state == "cached",
            started_seconds=_after(run.started, str(step.started)) if made else None,
            waited_seconds=waited.get(step.step),
        )


def _after(began: str, time: str) -> float:
    """Seconds from one time to another."""
    seconds = (datetime.fromisoformat(time) - datetime.fromisoformat(began)).total_seconds()
    return round(max(0.0, seconds), 3)


def engine_share(run: JournalledRun) -> float | None:
    """Percentage of a run's wall time so far in which nothing was built, booted, run or
    converted; None if everything came from the store."""
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


def _profiles(profiles: Sequence[ReportedProfile[Path]]) -> Iterator[ProfileQuality]:
    for each in profiles:
        known = ProfileDescription.read(each.profile)
        chosen = Selection.find(each.profile)
        yield ProfileQuality(
            name=each.name,
            algorithm=known.algorithm,
            functions=known.quality.functions,
            executed=known.quality.executed,
            coverage_percent=known.quality.coverage_percent,
            verdict=known.quality.verdict,
            reasons=known.quality.reasons,
            exact=known.quality.exact,
            instrumented=None if chosen is None else _instrumented(chosen),
        )


def _instrumented(chosen: Selection) -> Instrumented:
    image, growth = chosen.image, chosen.growth_percent
    assert image is not None and growth is not None
    return Instrumented(
        files=len(chosen.objects),
        of_files=chosen.files,
        text_percent=chosen.text_percent,
        time_percent=chosen.time_percent,
        image_bytes=image,
        growth_percent=growth,
        limit_bytes=chosen.limit,
    )


def _profile(profiles: Sequence[ReportedProfile[Path]]) -> ProfileSummary | None:
    """The program's last profile: the one that its images were built with."""
    if not profiles:
        return None
    directory = profiles[-1].profile
    known, collected = ProfileDescription.read(directory), Collection.find(directory)
    quality = known.quality
    details: dict[str, str | int | float] = {"functions in the kernel": quality.functions}
    if collected is not None:
        coverage = collected.coverage
        details |= {"scenario": collected.scenario, "apps": ", ".join(collected.apps)}
        if collected.screens:
            details |= {driven.package: driven.summary for driven in collected.screens}
        else:
            details |= {
                "actions run": len(collected.actions),
                "coverage of the apps' actions": f"{coverage.ran} of {coverage.actions}",
            }
    return ProfileSummary(
        algorithm=known.algorithm,
        functions=quality.executed,
        coverage_percent=quality.coverage_percent,
        verdict=quality.verdict,
        details=details,
    )


BODY = ReportBody()
