"""One attempt at a release: fetch, check, decide about the profile, run, compare, publish."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mepof.adapter.decision import Decision, candidates, decide
from mepof.adapter.fit import check_fit
from mepof.adapter.judge import judge, sampled_functions
from mepof.adapter.publish import publish
from mepof.adapter.published import Origin, Published, Refreshed
from mepof.adapter.repositories import packages_of
from mepof.adapter.results import (
    artifacts,
    described,
    instrumented,
    origins,
    source_step,
    whole_profiles,
)
from mepof.adapter.reuse import (
    comparison,
    counting,
    optimised,
    scouted,
    trained,
    with_profiles,
)
from mepof.adapter.watched import Task, filled
from mepof.arch import get as architecture
from mepof.errors import EnvironmentLack, Interrupted, MepofError, WorkError
from mepof.executor.pins import PINS, Pins, pins_of, settled, write_pins
from mepof.executor.programs import plan_of
from mepof.executor.protocol import Executor, Finished
from mepof.g4 import Source
from mepof.kernel.source import KernelVersion, version_of
from mepof.plan.disk_full import means_full
from mepof.plan.model import HostInput, Input, Plan, Step, StepInput
from mepof.process import Completed, ending
from mepof.profile.artifact import Drift
from mepof.source.download import Missing
from mepof.spec.kernel_build import KernelBuild
from mepof.spec.kernel_package import KernelPackage
from mepof.spec.kernel_source import KernelSource
from mepof.toolchain.named import select

#: Runs the program in a file, with a directory for its results, as ``mepof run`` does. What is
#: settled of its sources is in ``pins.json`` beside it, if anything is.
RunProgram = Callable[[Path, Path], Completed]

_NO_SPACE = "no space left"


class Unfetched(WorkError):
    """A release could not be fetched, for a reason that may pass."""


@dataclass(frozen=True)
class Attempt:
    """Makes what is published of one release.

    Attributes:
        executor: fetches sources, and builds the first kernel with an old profile.
        run: runs programs.
        last: the last release of the same branch that was published, and its directory.
        note: adds to the release's history what explains its result.
        now: seconds since the epoch.
        revision: of its packages.
        version: that its tree must state, where that is known.
    """

    task: Task
    follow: str
    release: str
    address: str
    executor: Executor
    run: RunProgram
    last: tuple[Published, Path] | None
    note: Callable[[str, str], None]
    now: Callable[[], float]
    revision: int = 1
    version: KernelVersion | None = None

    def make(self, out: Path, target: Path) -> None:
        """Make and publish it.

        Args:
            out: for what the runs leave.
            target: the directory to publish.

        Raises:
            Unfetched: a server does not answer, or does not have it yet.
            EnvironmentLack: something is missing on this machine, or a disk is full.
            MepofError: why it is not published.
        """
        text = filled(self.task.text, self.address)
        plan = plan_of(Source(f"{self.release}.g4", text))
        if any(step.kind == KernelPackage.kind for step in plan.steps):
            text = f"set revision {self.revision}.\n{text}"
            plan = plan_of(Source(f"{self.release}.g4", text))
        fetched = self._fetch(plan, out / "source")
        trees = {name: step.path for name, step in fetched.run.steps.items()}
        source = _source(fetched.run.plan, plan, self.address)
        tree = trees.get(source.id) if source else None
        self._check_version(tree)
        builds = [
            KernelBuild[Input].of(step, step.inputs)
            for step in plan.steps
            if step.kind == KernelBuild.kind
        ]
        for build in builds:
            _check(build, trees)
        compilers = {
            each.toolchain: select(each.toolchain).version_for(architecture(each.arch))
            for each in builds
        }
        decision = self._decide(text, builds, compilers, tree)
        self.note("decided", str(decision))
        # What was checked and judged is what is built, whatever a server says by then.
        pins = pins_of(fetched.run.plan)
        done, decision = self._carry_out(text, decision, out, pins)
        found = artifacts(done)
        extras = dict(described(found))
        profiles = {n: p for n, p in decision.profiles.items() if n not in decision.refreshed}
        if self.last is not None:
            extras |= _kept(profiles.values(), self.last[1])
        if decision.kind != "reuse" and source is not None:
            made = origins(trained(text) or (), done, found, source, self.release)
            extras |= dict(whole_profiles(made, found))
            parts = decision.refreshed
            profiles |= {n: self._refreshed(n, p, parts.get(n)) for n, p in made.items()}
        packages = packages_of(found, done, self.follow, out)
        extras |= {path.name: path for path in packages if path.parent != done}
        provenance = Published(
            follow=self.follow,
            release=self.release,
            address=self.address,
            template=self.task.text,
            program=(done / "program.g4").read_text(encoding="utf-8"),
            profile=decision.kind,
            reason=decision.reason,
            changed=decision.changed,
            compilers=compilers,
            profiles=profiles,
            compared_with=self.last[0].release if self.last else None,
            packages=tuple(path.name for path in packages),
            published_at=datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="seconds"),
        )
        publish(done, target, extras, provenance)

    def _fetch(self, plan: Plan, out: Path) -> Finished:
        sources = tuple(step for step in plan.steps if step.kind == KernelSource.kind)
        try:
            return self._execute(sources, out)
        except (WorkError, Missing) as error:
            raise Unfetched(error.message, error.remedy) from error

    def _check_version(self, tree: Path | None) -> None:
        """Refuse another release: a signature says who made it, not which one it is."""
        if tree is None or self.version is None:
            return
        if (found := version_of(tree)) != self.version:
            raise WorkError(f"what is signed is Linux {found}, not {self.release}")

    def _execute(self, steps: tuple[Step, ...], out: Path) -> Finished:
        out.mkdir(parents=True, exist_ok=True)
        return self.executor.run(Plan("", 0, steps, ()), out, lambda event: None)

    def _decide(
        self,
        text: str,
        builds: Iterable[KernelBuild[Input]],
        compilers: Mapping[str, str],
        tree: Path | None,
    ) -> Decision:
        """What is done about the profile, before anything is built."""
        last = self.last[0] if self.last is not None else None
        found = candidates(text, self.task.text, compilers, last)
        if isinstance(found, str):
            return Decision("full", found)
        assert self.last is not None
        arch = next((architecture(each.arch).source for each in builds), None)
        if tree is None or arch is None:
            return Decision("full", "the program does not build the release")
        judged = {}
        try:
            for name, origin in found.items():
                sampled = sampled_functions(self.last[1] / origin.file)
                step = source_step(origin)
                old = self._execute((step,), self._scratch("old")).run.steps[step.id].path
                judged[name] = judge(sampled, old, tree, arch, origin.objects)
        except Interrupted:
            raise
        except MepofError as error:
            return Decision("full", f"the profile cannot be judged: {error.message}")
        made = decide(judged, found, self.task.watched.judge, counting(trained(text) or ()))
        if made.kind == "refresh" and not made.refreshed and scouted(text) is None:
            return replace(made, kind="full", reason=f"{made.reason}; the program scouts already")
        return made

    def _carry_out(
        self, text: str, decision: Decision, out: Path, pins: Pins
    ) -> tuple[Path, Decision]:
        """Run the program as was decided. What only the old profile, or scouting, is to blame for
        never holds a release back: it is run in full then.

        Returns:
            the directory of the results, and what was done.
        """
        if decision.kind != "full":
            try:
                return self._run(text, decision, out / decision.kind, pins)
            except Interrupted:
                raise
            except MepofError as error:
                if passes(error):
                    raise
                why = f"{decision.kind} was given up: {error.message}"
            self.note("given up", why)
            decision = Decision("full", f"{decision.reason}; {why}", decision.changed)
        return self._run(text, decision, out / "full", pins)

    def _run(self, text: str, decision: Decision, out: Path, pins: Pins) -> tuple[Path, Decision]:
        # What an earlier attempt left may be of another program. What is of use is in the store.
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        if decision.profiles:
            assert self.last is not None
            files = {name: origin.used(self.last[1]) for name, origin in decision.profiles.items()}
            counted = {name: part.files for name, part in decision.refreshed.items()}
            text = with_profiles(text, files, counted)
            self._build(settled(plan_of(Source(f"{self.release}.g4", text)), pins))
        elif decision.kind == "refresh":
            text = scouted(text) or text
            plan_of(Source(f"{self.release}.g4", text))
        self._call(text, out, pins)
        counted_again = _counted(decision, out)
        for name, part in counted_again.items():
            missing = sorted({*decision.refreshed[name].files}.difference(part.files))
            if missing:
                raise WorkError(f"{', '.join(missing)} should be counted again, and was not")
        self._compare(text, out)
        return out, replace(decision, refreshed=counted_again)

    def _refreshed(self, name: str, origin: Origin, part: Refreshed | None) -> Origin:
        """A profile that was made, with what of it was counted if that is not all."""
        if part is None:
            return origin
        self.note("refreshed", f"{name}: {part}: {', '.join(part.files)}")
        return origin.model_copy(update={"refreshed": part})

    def _build(self, plan: Plan) -> None:
        """Build what uses the old profile, and ask how much of the profile matches it.

        Raises:
            WorkError: it cannot be built, or too little matches.
        """
        builds = [
            step.id
            for step in plan.steps
            if step.kind == KernelBuild.kind
            and KernelBuild[Input].of(step, step.inputs).profile is not None
        ]
        done = self._execute(_closure(plan, builds), self._scratch("build"))
        for name in builds:
            drift = Drift.find(done.run.steps[name].path)
            if drift is None:
                continue  # the algorithm cannot tell
            needed = self.task.watched.judge.matched
            matched = f"{drift.matched_percent:.1f} % of samples match the new kernel"
            if drift.matched_percent < needed:
                raise WorkError(f"{matched}, and {needed:g} % are needed")
            self.note("built", matched)

    def _call(self, text: str, out: Path, pins: Pins) -> None:
        """Run a program; its exit status includes goals, gates and tests.

        Raises:
            WorkError: it failed.
            EnvironmentLack: for a reason that may pass.
        """
        program = out / "program.g4"
        program.write_text(text, encoding="utf-8")
        if pins:
            write_pins(pins, out / PINS)
        done = self.run(program, out)
        if done.status == Interrupted.exit_status:
            raise Interrupted("interrupted")
        if done.status < 0:  # the kernel kills it when memory runs out, for instance
            raise EnvironmentLack(f"mepof run {ending(done.status)}")
        reason = _reason(done.output) or f"mepof run ended with status {done.status}"
        if done.status == EnvironmentLack.exit_status or (
            done.status != 0 and _NO_SPACE in reason.lower()
        ):
            raise EnvironmentLack(reason)
        if done.status != 0:
            raise WorkError(reason)

    def _compare(self, text: str, out: Path) -> None:
        """Compare each image with that of the last good release.

        Raises:
            WorkError: one is worse than is allowed.
        """
        if self.last is None:
            return
        before, directory = self.last
        pairs = {}
        beside = out / "last-good"
        for name in optimised(text):
            old, new = directory / f"{name}.img", out / f"{name}.img"
            if old.is_file() and new.is_file():
                beside.mkdir(exist_ok=True)
                named = beside / f"last-{name}.img"
                shutil.copyfile(old, named)
                pairs[named] = new
        if not pairs:
            return
        try:
            self._call(comparison(text, pairs, self.task.watched.worse), beside, {})
        except WorkError as error:
            raise WorkError(
                f"worse than the last good image, {before.release}: {error.message}"
            ) from error
        for named in pairs:
            named.unlink()
        self.note("compared", f"not worse than the last good image, {before.release}")

    def _scratch(self, name: str) -> Path:
        return self.task.directory / "runs" / f".{name}"


def _check(build: KernelBuild[Input], trees: Mapping[str, Path]) -> None:
    """Refuse a build that does not fit its tree, before anything is compiled."""
    tree = trees.get(build.source.step) if isinstance(build.source, StepInput) else None
    if tree is None:
        return
    made = build.instrumented
    names = (*build.uses, *((made.algorithm,) if made is not None else ()))
    config = [
        part if isinstance(part, str) else part.path
        for part in build.config
        if not isinstance(part, StepInput)
    ]
    toolchain = select(build.toolchain)
    fit = check_fit(
        tree,
        architecture(build.arch),
        toolchain,
        config,
        names,
        note_dropped=build.note_dropped,
    )
    reasons = [*fit.reasons, *fit.config, *(r for each in fit.algorithms for r in each.reasons)]
    if reasons:
        near = f" ({reasons[0].nearest})" if reasons[0].nearest else ""
        raise WorkError(f"it does not fit: {reasons[0].message}{near}")


def _source(pinned: Plan, plan: Plan, address: str) -> Step | None:
    """The step that fetches the release, with what its address left open."""
    for step in plan.steps:
        if step.kind == KernelSource.kind:
            asked = KernelSource[Input].of(step, step.inputs)
            origin = asked.origin.path if isinstance(asked.origin, HostInput) else None
            if address in (asked.address, origin):
                return pinned.step(step.id)
    return None


def _counted(decision: Decision, out: Path) -> dict[str, Refreshed]:
    """What was counted again, with the files that a run instrumented where that is known."""
    made = {}
    for name, part in decision.refreshed.items():
        files = instrumented(out, name)
        made[name] = part if files is None else part.model_copy(update={"files": files})
    return made


def _kept(profiles: Iterable[Origin], last: Path) -> dict[str, Path]:
    """The files of profiles that are used again, by the names to publish."""
    files = {}
    for each in profiles:
        files[each.file] = last / each.file
        if each.artifact is not None:
            files |= {f"{each.artifact}/{p.name}": p for p in (last / each.artifact).iterdir()}
    return files


def _closure(plan: Plan, wanted: Iterable[str]) -> tuple[Step, ...]:
    """Steps, and all that they need, in the order of the plan."""
    needed: set[str] = set()
    rest = list(wanted)
    while rest:
        name = rest.pop()
        if name not in needed:
            needed.add(name)
            inputs = plan.step(name).inputs.values()
            rest += [each.step for each in inputs if isinstance(each, StepInput)]
    return tuple(step for step in plan.steps if step.id in needed)


def _reason(output: str) -> str:
    """What ``mepof run`` says went wrong: its own lines."""
    lines = (line for line in output.splitlines() if line.startswith("mepof: "))
    return "; ".join(line.removeprefix("mepof: ") for line in lines)


def passes(error: BaseException) -> bool:
    """Whether another attempt may end differently: a server, a full disk or a missing tool may be
    otherwise the next time; a release is not."""
    if isinstance(error, Unfetched | EnvironmentLack | OSError) or means_full(error):
        return True
    return os.strerror(errno.ENOSPC) in str(error)
