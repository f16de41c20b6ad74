"""``mepof run``: a program from its text to its results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from math import ceil, fsum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from mepof.cli.cluster import Scheduler, TlsCa, TlsCert, TlsKey, Workers, tls_of
from mepof.cli.output import Json, print_json, tell, warn
from mepof.cli.program import Program, name_of, read_program
from mepof.device.flashing import check_permission, permit
from mepof.disk import why_unwritable
from mepof.errors import InputError, WorkError, listed
from mepof.events import Event, StepNote
from mepof.executor.pins import read_pins, settled
from mepof.executor.programs import plan_of
from mepof.executor.protocol import EXECUTORS, Executor, Finished, Settings
from mepof.executor.stores import default_shared
from mepof.plan.explain import Explanation
from mepof.plan.journal import refusals_noted
from mepof.plan.model import Plan
from mepof.plan.preflight import keep_apart
from mepof.plan.store import default_store

if TYPE_CHECKING:  # loads much
    from mepof.gate.verdict import CheckVerdict
    from mepof.measure.goal import GoalVerdict
    from mepof.report.model import Control, Image

_MAX_NAMED = 3
_MAX_TESTS = 10

Out = Annotated[
    Path | None,
    typer.Option("--out", help="Directory for results.  [default: out/PROGRAM]", metavar="DIR"),
]
StoreRoot = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="Store, where all artifacts are kept.  [default: $MEPOF_STORE or ~/.cache/mepof]",
        metavar="DIR",
    ),
]
Where = Annotated[
    str, typer.Option(help=f"Where to run: {', '.join(EXECUTORS.names())}.", metavar="NAME")
]
Shared = Annotated[
    str | None,
    typer.Option(
        "--shared-store",
        help="Store that other machines share: a directory, sftp://… or s3://….  "
        "[default: $MEPOF_SHARED_STORE]",
        metavar="URL",
    ),
]
Cores = Annotated[
    int | None,
    typer.Option("--cores", min=1, help="CPU cores to use.  [default: all]", metavar="N"),
]


def run(
    program: Program,
    out: Out = None,
    executor: Where = "local",
    store: StoreRoot = None,
    shared_store: Shared = None,
    cores: Cores = None,
    scheduler: Scheduler = None,
    workers: Workers = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show which steps would run, why, and for how long.")
    ] = False,
    perf_data: Annotated[
        list[Path] | None,
        typer.Option(
            "--perf-data",
            help="Branch trace that a real machine recorded while it ran the profiled kernel, "
            "used instead of the device's; repeat it for each round.",
            metavar="FILE",
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="With --dry-run, show digests and full values."),
    ] = False,
    flash: Annotated[
        bool, typer.Option("--flash", help="Let the program's `flash` statements write to phones.")
    ] = False,
    pins: Annotated[Path | None, typer.Option(hidden=True)] = None,
    as_json: Json = False,
) -> None:
    """Run a G4 program: build, profile, optimise, measure, report."""
    settings = replace(
        settings_of(store, cores, shared_store),
        scheduler=scheduler,
        workers=workers,
        tls=tls_of(tls_ca, tls_cert, tls_key),
    )
    chosen = EXECUTORS.get(executor)(settings)
    if flash:
        permit()
    traces = tuple(map(str, perf_data or ()))
    out = out or Path("out") / name_of(program)
    with nullcontext() if dry_run else refusals_noted(out):
        plan = plan_of(read_program(program), traces, warn, runs=not dry_run)
        if pins is not None:
            plan = settled(plan, read_pins(pins))
        keep_apart(plan, {"--out": out, "--store": settings.store})
        if not dry_run and any(step.kind == "flash" for step in plan.steps):
            check_permission()
    if dry_run:
        if why := why_unwritable(out.absolute()):
            raise InputError(
                f"{out} cannot be written: {why}", "choose another directory with --out"
            )
        explain_plan(plan, chosen, verbose, as_json)
    else:
        run_plan(plan, out, chosen, as_json)


def settings_of(store: Path | None, cores: int | None, shared: str | None = None) -> Settings:
    """The settings of an executor, with the defaults of these options."""
    return Settings(
        store or default_store(), cores or os.cpu_count() or 1, shared or default_shared()
    )


def local(store: Path | None, cores: int | None, shared: str | None = None) -> Executor:
    """The executor on this machine."""
    return EXECUTORS.get("local")(settings_of(store, cores, shared))


def run_plan(
    plan: Plan,
    out: Path,
    executor: Executor,
    as_json: bool,
    document: Callable[[Finished, Path], dict[str, object]] | None = None,
) -> None:
    """Run a plan and print the results.

    Args:
        document: what a run prints as JSON, :func:`run_document` if not given.
    """
    from mepof.cli.progress import progress  # loads scipy

    with progress() as sink, refusals_noted(out):
        finished = executor.run(plan, out, sink)
    if as_json:
        print_json((document or run_document)(finished, out))
    else:
        _print_finished(finished)
    missed = [goal for _, goal in _goals(finished) if not goal.met]
    for goal in missed:
        tell(WorkError(f"goal missed: {goal.image}, {goal.title}: {goal.reason}"))
    failed = [(path, check) for path, check in _checks(finished) if not check.passed]
    for path, check in failed:
        _tell_failures(check, path)
    _refuse_unsound(finished)
    if missed or failed:
        raise typer.Exit(WorkError.exit_status)


def explain_plan(plan: Plan, executor: Executor, verbose: bool, as_json: bool) -> None:
    """Print what a run of a plan would do.

    Args:
        verbose: show the values behind the reasons, digests included.
    """
    explained = executor.explain(plan, _tell_note)
    if as_json:
        print_json([_explanation(e) for e in explained])
    else:
        _print_explained(explained, verbose)


def _tell_note(event: Event) -> None:
    if isinstance(event, StepNote):
        print(f"{event.step}: {event.text}", file=sys.stderr)


def _explanation(explanation: Explanation) -> dict[str, object]:
    return {
        "step": explanation.step,
        "kind": explanation.kind,
        "needs": list(explanation.needs),
        "state": explanation.state,
        "reasons": list(explanation.reasons),
        "details": list(explanation.details),
        "seconds": explanation.seconds,
        "fingerprint": explanation.fingerprint,
    }


def _print_explained(explained: tuple[Explanation, ...], verbose: bool) -> None:
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    words = {"cached": "cached ", "runs": "runs   ", "depends": "depends"}
    width = max((len(e.step) for e in explained), default=0)
    for explanation in explained:
        line = f"{words[explanation.state]}  {explanation.step:{width}}"
        if explanation.needs:
            line += "  ← " + ", ".join(dict.fromkeys(explanation.needs))
        console.print(line.rstrip(), markup=False)
        # What a step waits for stands behind its arrow.
        reasons = explanation.details if verbose else explanation.reasons
        for reason in reasons if explanation.state == "runs" else ():
            console.print(f"         {'':{width}}  {reason}", markup=False, style="dim")
    console.print(estimate(explained), markup=False)


def estimate(explained: Sequence[Explanation]) -> str:
    """How many steps would run, and how long they take one after the other."""
    due = [e for e in explained if e.state != "cached"]
    if not explained:
        return "Nothing has to run: the program makes nothing."
    if not due:
        return "Nothing has to run: the store has every result."
    count = f"{len(due)} of {len(explained)} steps would run"
    known = [e.seconds for e in due if e.seconds is not None]
    if not known:
        return f"{count}; none of their kind has run before, so the time is unknown."
    total = _rounded(fsum(known))
    unknown = [e.step for e in due if e.seconds is None]
    if not unknown:
        return f"{count}, about {total} one after the other, as earlier runs took."
    names = listed(unknown, _MAX_NAMED)
    return f"{count}, at least {total}: the time of {names} is unknown."


def _rounded(seconds: float) -> str:
    """A time that nobody knows to the second."""
    if seconds < 60:
        return f"{ceil(seconds)} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


def run_document(finished: Finished, out: Path) -> dict[str, object]:
    """The files, the goals, the checks and the steps of a run."""
    return {
        "out": str(out),
        "files": {name: str(path) for name, path in finished.files.items()},
        "goals": [
            {"report": str(path), **goal.model_dump(mode="json")} for path, goal in _goals(finished)
        ],
        "checks": [
            {"file": str(path), **check.model_dump(mode="json")}
            for path, check in _checks(finished)
        ],
        "steps": {
            name: {"digest": step.digest, "cached": step.cached, "seconds": step.seconds}
            for name, step in finished.run.steps.items()
        },
    }


def _print_finished(finished: Finished) -> None:
    from mepof.report import read_report, summary  # loads scipy
    from mepof.report.terminal import check_lines

    console = Console(highlight=False, emoji=False)
    reports = _reports(finished)
    reported: list[CheckVerdict] = []
    for path in reports:
        report = read_report(path)
        reported += report.checks
        console.print(summary(report, path))
    for _, check in _checks(finished):
        if check not in reported:
            console.print(check_lines(check))
    for name, file in finished.files.items():
        if file.parent not in reports or file.suffix not in (".json", ".html", ".csv"):
            console.print(f"  {name:20} {file}", markup=False)


def _goals(finished: Finished) -> list[tuple[Path, GoalVerdict]]:
    """Whether images met the program's goals, with the directory of the report."""
    from mepof.report import read_report

    return [(path, goal) for path in _reports(finished) for goal in read_report(path).goals]


def _checks(finished: Finished) -> list[tuple[Path, CheckVerdict]]:
    """The results of tests, with their files."""
    from mepof.gate.verdict import CheckVerdict

    paths = [path for path in finished.files.values() if path.name == CheckVerdict.file]
    return [(path, CheckVerdict.read(path.parent)) for path in paths]


def _tell_failures(check: CheckVerdict, path: Path) -> None:
    """Print an error for every image and gate that failed."""
    for gate in check.gates:
        for image in gate.images:
            if image.failure is not None:
                tell(WorkError(f"{gate.gate} failed: {image.image}: {image.failure}"))
            elif image.regressions:
                tests = [each.test for each in image.regressions]
                named = listed(tests, _MAX_TESTS)
                tell(
                    WorkError(
                        f"{gate.gate} failed: {image.image} does not pass {named}, "
                        f"which {check.baseline} passes",
                        f"see {path}",
                    )
                )


def _refuse_unsound(finished: Finished) -> None:
    """Fail if a measured image is of no use, however good its report.

    Raises:
        WorkError: an image or the A/A control did not boot or failed its self-check, or an app
            failed on it.
    """
    from mepof.measure.measurement import control_of
    from mepof.report import read_report

    for path in _reports(finished):
        report = read_report(path)
        images = report.images
        ran = next((f"it ran on `{each.name}`" for each in images if each.sound), "correct the app")
        booted: list[tuple[str, Image | Control]]
        booted = [(f"the image `{each.name}`", each) for each in images]
        if (control := report.failed_control) is not None:
            # Nothing was compared, however sound the images are.
            booted.append((control_of(f"`{control.image}`"), control))
        for what, each in booted:
            if not each.sound:
                see = f"see {path / 'report.html'}"
                if each.app_failed:
                    raise WorkError(
                        f"on {what}, {each.self_check}",
                        f"{ran}; the kernel passed its own self-check; {see}",
                    )
                raise WorkError(f"{what} {each.how_it_failed}: {each.self_check}", see)


def _reports(finished: Finished) -> list[Path]:
    """The directories that hold a report."""
    return [path.parent for path in finished.files.values() if path.name == "report.json"]
