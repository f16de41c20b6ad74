"""Runs programs on this machine."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mepof.disk import replacing
from mepof.errors import InputError, MepofError, listed
from mepof.events import Sink, StepNote, unheard
from mepof.executor.protocol import Finished, Settings
from mepof.executor.stores import check_store, one_at_a_time, store_of
from mepof.kernel import modules
from mepof.kernel.sharing import has_ccache
from mepof.plan.body import StepBody
from mepof.plan.disk_full import full_disk_named
from mepof.plan.document import to_document
from mepof.plan.engine import Engine, RunResult
from mepof.plan.explain import Explanation, explain
from mepof.plan.model import Plan, Result
from mepof.plan.pin import pinned
from mepof.plan.store import Store
from mepof.profile.artifact import profile_files
from mepof.spec.kernel_build import KernelBuild
from mepof.steps import BODIES

# `mepof.report` has these names too, but takes long to import.
_REPORT = (
    "report.json",
    "report.html",
    "cases.csv",
    "means.csv",
    "images.csv",
    "comparisons.csv",
    "boots.csv",
)
_MAX_NAMED = 4


@dataclass(frozen=True)
class LocalExecutor:
    """Runs plans on this machine.

    Attributes:
        store: root of the store.
        cores: how many cores all running steps may use together.
        shared: URL of the store that other machines share, if there is one.
    """

    store: Path
    cores: int
    shared: str | None = None

    def __post_init__(self) -> None:
        check_store(self.store, self.shared)

    def explain(self, plan: Plan, sink: Sink = unheard) -> tuple[Explanation, ...]:
        """What a run of the plan would do; nothing is run."""
        bodies = BODIES.all()
        with store_of(self.store, self.shared, sink) as store:
            return explain(pinned(plan, bodies, store.cache, sink), store, bodies)

    def run(self, plan: Plan, out: Path, sink: Sink) -> Finished:
        """Run a plan and copy its results to ``out``.

        Raises:
            MepofError: as of :meth:`mepof.plan.engine.Engine.run`.
        """
        bodies = BODIES.all()
        cancel = threading.Event()
        sink = one_at_a_time(sink)
        with store_of(self.store, self.shared, sink, cancel) as store:
            plan = pinned(plan, bodies, store.cache, sink)
            _note_unshared(plan, store, bodies, sink)
            engine = Engine(store, bodies, self.cores, sink)
            run = engine.run(plan, out, cancel=cancel, salvage=partial(copy_finished, out))
            return Finished(copy_results(run, out), run)


def _note_unshared(plan: Plan, store: Store, bodies: Mapping[str, StepBody], sink: Sink) -> None:
    """Say that kernels will not share objects, if several are to be built that could."""
    sharing = {
        step.id
        for step in plan.steps
        if step.kind == KernelBuild.kind and step.params.get("share", True)
    }
    if len(sharing) < 2 or has_ccache():
        return
    with suppress(MepofError):  # the run itself says what is wrong
        due = [e for e in explain(plan, store, bodies) if e.state != "cached" and e.step in sharing]
        if len(due) > 1:
            sink(
                StepNote(
                    "ccache",
                    f"it is not installed, so each of {len(due)} kernels compiles all of its "
                    "files: apt-get install ccache",
                )
            )


def local_executor(settings: Settings) -> LocalExecutor:
    """The executor with these settings.

    Raises:
        InputError: one of them is for a cluster.
    """
    given = {"scheduler": settings.scheduler, "workers": settings.workers, "tls-ca": settings.tls}
    for name, value in given.items():
        if value is not None:
            raise InputError(f"--{name} is for a cluster", "add --executor dask")
    return LocalExecutor(settings.store, settings.cores, settings.shared)


def copy_finished(out: Path, run: RunResult) -> str:
    """Copy the results of a run that a step failed, as far as they are finished.

    Returns:
        what the user reads of it; empty if there are none.
    """
    # With a shared store, some may only be there: after a full disk, nobody brings them.
    here = {name: step for name, step in run.steps.items() if step.path.is_dir()}
    try:
        files = copy_results(replace(run, steps=here), out)
    except MepofError as error:
        return f"what is finished is not copied: {error.message}"
    # The page stands for the other files of a report.
    names = [name for name in files if not name.endswith((".csv", "report.json"))]
    return f"finished and copied to {out}: {listed(names, _MAX_NAMED)}" if names else ""


def copy_results(run: RunResult, out: Path) -> dict[str, Path]:
    """Write the plan and copy the files of every result that is there; they are returned by name.

    Raises:
        InputError: something of another kind is in the place of a file.
        StoreFull: there is no space for them.
    """
    try:
        with full_disk_named(out):
            text = json.dumps(to_document(run.plan), indent=1) + "\n"
            with replacing(out / "plan.json") as path:
                path.write_text(text, encoding="utf-8")
            files: dict[str, Path] = {}
            for result in run.plan.results:
                if result.step not in run.steps:
                    continue
                for name, path in _files(result, run.steps[result.step].path).items():
                    files[name] = out / name
                    _copy(path, out / name)
    except OSError as error:
        raise InputError(
            f"{error.filename2 or error.filename or out} cannot be written: {error.strerror}",
            "move what is there, or choose another directory with --out; what was made is kept",
        ) from error
    return files


def _files(result: Result, artifact: Path) -> dict[str, Path]:
    """The files of a result that a user needs, by their name in the output directory."""
    match result.kind:
        case "image":
            image = {f"{result.name}.img": artifact / "kernel"}
            loaded = artifact / modules.DIRECTORY
            return image | ({f"{result.name}.modules.tar": loaded} if loaded.is_dir() else {})
        case "profile":
            return {f"{result.name}{path.suffix}": path for path in profile_files(artifact)}
        case "report":
            # The first report is at the top; each further one has its own directory.
            directory = "" if result.name == "report" else f"{result.name}/"
            return {f"{directory}{name}": artifact / name for name in _REPORT}
        case "check":
            directory = "" if result.name == "check" else f"{result.name}/"
            return {f"{directory}check.json": artifact / "check.json"}
        case "package":
            made = sorted(artifact.glob("package.*"))
            return {f"{result.name}.{path.name.partition('.')[2]}": path for path in made}
        case "flash":
            return {f"{result.name}.json": artifact / "flash.json"}
        case _:
            return {}


def _copy(source: Path, target: Path) -> None:
    """Copy a file, or pack the modules in their directory of a build."""
    target.parent.mkdir(exist_ok=True)
    with replacing(target) as partial:
        if source.is_dir():
            modules.Modules.read(source.parent).pack(source.parent, partial)
        else:
            shutil.copyfile(source, partial)
            if source.stat().st_mode & 0o100:  # a kernel of User-Mode Linux is a program
                partial.chmod(0o755)


EXECUTOR = local_executor
