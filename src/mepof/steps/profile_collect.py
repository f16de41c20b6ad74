"""``profile-collect``: boots a kernel, runs a workload on it, and collects the raw profile."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from itertools import islice
from pathlib import Path

from mepof.algorithm.protocol import ALGORITHMS
from mepof.app.android import AndroidApps, load_described
from mepof.app.apps import Action, App, lacked, load_app, memory_of
from mepof.app.laid import Laid, write_archive
from mepof.app.launch import (
    ServiceFailure,
    check_action,
    check_setup,
    log_requests,
    port_requests,
    request,
    start_requests,
    stop_requests,
)
from mepof.app.measured import case_ids
from mepof.app.own import OwnApp, Setup, check_distinct_apps
from mepof.app.own_files import check_distinct_files
from mepof.app.packaged import BUSYBOX, packaged
from mepof.app.service_logs import keep, logs_of, remedy_of, with_end
from mepof.app.training import exercised, without
from mepof.device import agent, module_archive, modules
from mepof.device.protocol import (
    DEVICES,
    EMULATOR_MEMORY,
    INITRAMFS,
    GuestReset,
    Interlude,
    KernelHang,
    KernelPanic,
    Outcome,
    Session,
    WithSystem,
    branch_source,
    check_cpus,
    quiet_seconds,
)
from mepof.errors import EnvironmentLack, InputError, WorkError, listed
from mepof.events import ConsoleReturned, ConsoleTaken
from mepof.kernel.description import Safety
from mepof.measure.result_line import SKIPPED
from mepof.plan.body import TERMINAL, Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Plan, Step, StepInput
from mepof.plan.recovery import replaced
from mepof.plan.typed import In
from mepof.scenario.collection import Collection, NotInstrumented
from mepof.scenario.driver import Driver, only_given
from mepof.scenario.protocol import SCENARIOS, Part
from mepof.scenario.script import read_script
from mepof.spec.kernel_build import BootCheck, KernelBuild
from mepof.spec.profile_collect import EVERY_ACTION, ProfileCollect
from mepof.steps.app_programs import archives
from mepof.suite.cases import DEFAULT_CONFIG, load_suite
from mepof.toolchain import guest

# Of a command that failed, in the step's log.
_MAX_LINES = 20
# Of actions, in a message.
_MAX_NAMES = 8


class ProfileCollectBody:
    """Makes ``raw0``… and ``collection.json``."""

    kind = ProfileCollect.kind
    phase: Phase = "run"

    def check(self, step: Step) -> None:
        """Refuse a scenario that cannot run, and a device that cannot do what is asked."""
        asked = ProfileCollect[Input].of(step, step.inputs)
        _planned_actions(asked)
        check_distinct_files(_own_apps(asked))
        device = DEVICES.get(asked.device)
        if asked.record is not None:
            branch_source(asked.device).branch_recorder(asked.arch)
        device.check(asked.arch)
        check_cpus(device, asked.arch, asked.cpus)
        if SCENARIOS.get(asked.scenario).interactive:
            _require_terminal()

    def resources(self, step: Step) -> Resources:
        asked = ProfileCollect[Input].of(step, step.inputs)
        claimed = DEVICES.get(asked.device).claim(asked.arch)
        terminal = {TERMINAL} if SCENARIOS.get(asked.scenario).interactive else set()
        apps = _apps(asked, [_host_path(app.file) for app in asked.apps])
        memory = memory_of(apps) + EMULATOR_MEMORY
        return Resources(device=claimed, needs=frozenset({asked.arch, *terminal}), memory=memory)

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = ProfileCollect[Input].of(step, step.inputs)
        actions = _planned_actions(asked)
        apps = _apps(asked, [_host_path(app.file) for app in asked.apps])
        check_distinct_files(_own_apps(asked), asked.arch)
        needs = any(app.suites or app.brings_files for app in apps)
        return {
            **DEVICES.get(asked.device).identity(asked.arch),
            **SCENARIOS.identity(asked.scenario),
            **ALGORITHMS.identity(*((asked.algorithm,) if asked.algorithm else ())),
            "actions": sha256(repr(actions).encode()).hexdigest(),
            **_shell(asked, apps)[1],
            **({"memory": str(memory_of(apps))} if needs else {}),
        }

    def recover(self, plan: Plan, step: Step, error: Exception | None) -> Plan | None:
        """The plan in which the kernel is built so that it boots, if it does not and the reason may
        be that it is instrumented."""
        asked = ProfileCollect[Input].of(step, step.inputs)
        if asked.algorithm is None or not isinstance(asked.kernel, StepInput):
            return None
        if not (error is None or _did_not_boot(error)):
            return None
        built = plan.step(asked.kernel.step)
        kernel = KernelBuild[Input].of(built, built.inputs)
        counts = not ALGORITHMS.get(asked.algorithm).records_branches
        if kernel.instrumented is None or not counts or kernel.boot is not None:
            return None
        check = BootCheck[Input](
            device=asked.device,
            seed=asked.seed,
            guest=asked.guest,
            cpus=asked.cpus,
            earlier=_earlier_round(plan, built),
        )
        checked = kernel.model_copy(update={"boot": check})
        return replaced(plan, built.id, checked.step(f"{built.id}/bootable"))

    def run(self, context: StepContext) -> None:
        asked = ProfileCollect[Path].of(context.step, context.inputs)
        algorithm = None if asked.algorithm is None else ALGORITHMS.get(asked.algorithm)
        scenario = SCENARIOS.get(asked.scenario)
        apps = _apps(asked, [app.file for app in asked.apps])
        actions = _actions(asked, apps, [app.script for app in asked.apps])
        setups = _setups(apps)
        # Neither starting nor stopping a service is part of the profile.
        starts, stops = start_requests(setups), stop_requests(setups)
        ports, logs = port_requests(apps), log_requests(setups)
        commands = [*starts, *map(request, actions), *stops]
        work: list[agent.Request] = [request(action) for action in actions]
        android = _android(asked, apps)
        if scenario.interactive and not android:
            work = [agent.Shell()]
            context.note("this is the guest's console: run the workload, then leave with `exit`")
        shell = context.work / "shell.cpio"
        if laid := _shell(asked, apps)[0]:
            write_archive(laid, shell)
        with_modules = module_archive.archive_of(asked.kernel) is not None
        before: tuple[agent.Request, ...] = ()
        read: tuple[agent.Request, ...] = ()
        if algorithm is not None:
            before, read = algorithm.reset(), algorithm.collect(with_modules)
            if with_modules and not algorithm.records_branches and read == algorithm.collect(False):
                context.note(f"{asked.algorithm} does not count in modules: they get no profile")
        after = read
        device = DEVICES.get(asked.device)
        if asked.record is not None:
            before, after = (*before, agent.Record(True)), (agent.Record(False), *after)
        driver = Driver(
            scenario,
            android,
            asked.seed,
            only_given([read_script(app.script) for app in asked.apps if app.script is not None]),
            [float(app.weight or 1) for app in asked.apps],
            context.note,
            lambda count, name: context.progress(count, None, "actions", name),
        )
        session = Session(
            arch=asked.arch,
            kernel=asked.kernel / "kernel",
            initramfs=asked.guest / INITRAMFS,
            requests=(*ports, *starts, *before, *work, *after, *stops, *logs.values()),
            seed=asked.seed,
            interactive=scenario.interactive and not android,
            interlude=Interlude(len(starts) + len(before), driver.drive) if android else None,
            record=asked.record,
            artifacts=asked.artifacts,
            archives=(
                *((shell,) if laid else ()),
                *archives(asked.suites, [app.programs for app in asked.apps]),
            ),
            memory=memory_of(apps),
            quiet_seconds=quiet_seconds(commands),
            cpus=asked.cpus,
        )

        def replied(count: int) -> None:
            count = max(0, count - len(ports))
            done = min(max(0, count - len(starts) - len(before)), len(actions))
            name = actions[done].name if done < len(actions) else "reading the profile"
            if count < len(starts):
                name = f"setting up {setups[count].name}"
            context.progress(done, len(actions), "actions", name)

        # A guest that unpacks an image of hundreds of MB is silent for minutes.
        context.progress(0, len(actions), "actions", "booting")
        with _terminal(context) if scenario.interactive else nullcontext():
            outcome = modules.boot(
                device, session, asked.kernel, context.work / "boot", context.run, replied
            )
        replies = iter(outcome.replies[len(ports) :])
        started, reset, done, collected, stopped = (
            tuple(islice(replies, len(part))) for part in (starts, before, work, after, stops)
        )
        try:
            for text in check_setup(setups, started, stopped):
                context.note(text)
            # A scout of every action may run some that the training does not draw.
            drawn = asked.algorithm is not None or asked.scenario != EVERY_ACTION
            _check(context.log, apps, reset, actions, done, None if drawn else context.note)
        except WorkError as error:
            for setup, reply in zip(setups, started, strict=True):
                if isinstance(reply, agent.ExecResult) and reply.status != 0:
                    _log(context.log, f"the setup {setup.name}", reply.text)
            written = logs_of([*logs], [*replies])
            for name, text in written.items():
                _log(context.log, f"the service {name}", text)
            kept = keep(written, context.log)
            if not isinstance(error, ServiceFailure):
                raise
            path = kept.get(error.service)
            remedies = [
                remedy_of(error, written),
                None if path is None else f"see its whole log: {path}",
            ]
            remedy = "; ".join(filter(None, remedies)) or None
            raise WorkError(with_end(error, written), remedy) from error
        if lacking := _lacked(outcome):
            context.note(f"not trained, because the kernel lacks it: {', '.join(lacking)}")
        if outcome.branches is not None:
            shutil.move(outcome.branches, context.output / "raw0")
        answers = collected[len(collected) - len(read) :]
        for number, reply in enumerate(answers):
            if not isinstance(reply, agent.GetResult) or reply.errno:
                raise WorkError(
                    "the kernel has no raw profile", "check that it was built to be profiled"
                )
            if number == 0 or reply.data:
                (context.output / f"raw{number}").write_bytes(reply.data)
        screens = driver.write(context.output)
        not_instrumented = _not_instrumented(asked.kernel)
        if not_instrumented is not None:
            context.note(str(not_instrumented))
        own = [
            app
            for app, given in zip(apps, asked.apps, strict=True)
            if given.file and isinstance(app, OwnApp)
        ]
        ran = {action.name for action in actions}
        known = exercised(a for a in actions if any(a in app.actions for app in own))
        known |= {case for app in own for case in case_ids(app) if case[1] in ran}
        Collection.of(
            asked.scenario,
            apps,
            actions,
            asked.seed,
            outcome.release,
            known,
            not_instrumented,
            screens,
        ).write(context.output)


def _did_not_boot(error: Exception) -> bool:
    """Whether a kernel failed before it did anything that it was asked to do."""
    kinds = (KernelPanic, KernelHang, GuestReset, modules.ModuleNotLoaded)
    return isinstance(error, kinds) and not error.replies


def _earlier_round(plan: Plan, built: Step) -> StepInput | None:
    """The build in which an earlier round of an algorithm was made bootable, if it was."""
    pending, seen = [built], {built.id}
    while pending:
        for given in pending.pop(0).inputs.values():
            if not isinstance(given, StepInput) or given.step in seen:
                continue
            seen.add(given.step)
            step = plan.step(given.step)
            if step.kind == KernelBuild.kind:
                kernel = KernelBuild[Input].of(step, step.inputs)
                if kernel.instrumented is not None and kernel.boot is not None:
                    return given
            pending.append(step)
    return None


def _not_instrumented(kernel: Path) -> NotInstrumented | None:
    """What a kernel does not instrument because it would not boot."""
    safety = Safety.find(kernel)
    if safety is None or safety.trials is None or safety.failure is None:
        return None
    return NotInstrumented(files=safety.opt_out.files, trials=safety.trials, failure=safety.failure)


def _android(asked: ProfileCollect[In], apps: Sequence[App]) -> tuple[AndroidApps, ...]:
    """The apps, if they are of a phone; none if they are programs.

    Raises:
        InputError: some are and some are not, or the device has no such apps.
    """
    android = tuple(app for app in apps if isinstance(app, AndroidApps))
    if android and len(android) < len(apps):
        raise InputError(
            "programs and apps of a phone cannot be trained by one statement",
            "write two, and merge their profiles",
        )
    if android and not isinstance(DEVICES.get(asked.device), WithSystem):
        raise InputError(
            f"the device {asked.device} has no apps such as {android[0].android[0].package}",
            "write `set device phone` before the statement",
        )
    return android


def _shell(
    asked: ProfileCollect[In], apps: Sequence[App]
) -> tuple[dict[str, Laid], dict[str, str]]:
    """The shell that the user works in if the guest does not have one, and its package."""
    at_console = SCENARIOS.get(asked.scenario).interactive and not _android(asked, apps)
    missing = at_console and not guest.target(asked.arch).shell
    return packaged((BUSYBOX,) if missing else (), asked.arch)


def _apps(asked: ProfileCollect[In], files: Sequence[Path | None]) -> tuple[App, ...]:
    """The apps, without the actions that are left out.

    Args:
        files: for each app the user's description of it, if it is not an installed one.
    """
    apps = [
        load_app(str(given.name)) if file is None else load_described(file)
        for given, file in zip(asked.apps, files, strict=True)
    ]
    if any(files):
        check_distinct_apps(apps)
    return without(apps, asked.without)


def _own_apps(asked: ProfileCollect[Input]) -> list[tuple[OwnApp, Path]]:
    """The user's own apps, each with its description."""
    described = [path for app in asked.apps if (path := _host_path(app.file)) is not None]
    loaded = [(load_described(path), path) for path in described]
    return [(app, path) for app, path in loaded if isinstance(app, OwnApp)]


def _planned_actions(asked: ProfileCollect[Input]) -> tuple[Action, ...]:
    """The actions that the scenario picks, with scripts from host files."""
    apps = _apps(asked, [_host_path(app.file) for app in asked.apps])
    return _actions(asked, apps, [_host_path(app.script) for app in asked.apps])


def _host_path(given: Input | None) -> Path | None:
    return Path(given.path) if isinstance(given, HostInput) else None


def _actions(
    asked: ProfileCollect[In], apps: tuple[App, ...], scripts: Sequence[Path | None]
) -> tuple[Action, ...]:
    """The actions that the scenario picks; none where it drives apps of a phone."""
    texts = [None if script is None else read_script(script) for script in scripts]
    scenario = SCENARIOS.get(asked.scenario)
    if _android(asked, apps):
        scenario.check_given(only_given(texts))
        return ()
    if asked.without and not scenario.interactive and not any(app.actions for app in apps):
        raise InputError(
            f"`set without {','.join(asked.without)}` leaves no action to train on",
            "name another app, or write `set without none` before the statement",
        )
    parts = tuple(
        Part(app, given.weight, text)
        for app, given, text in zip(apps, asked.apps, texts, strict=True)
    )
    return scenario.pick(parts, asked.actions, asked.seed)


def _require_terminal() -> None:
    if not sys.stdin.isatty():
        raise EnvironmentLack(
            "the scenario `manual` needs a terminal",
            "run mepof from a terminal, or use the scenario `script`",
        )


@contextmanager
def _terminal(context: StepContext) -> Iterator[None]:
    """Reserve the user's terminal for the guest."""
    _require_terminal()
    context.emit(ConsoleTaken(context.step.id))
    try:
        yield
    finally:
        context.emit(ConsoleReturned(context.step.id))


def _lacked(outcome: Outcome) -> tuple[str, ...]:
    """What the actions passed over, each once."""
    texts = (reply.text for reply in outcome.replies if isinstance(reply, agent.ExecResult))
    return tuple(dict.fromkeys(word for text in texts for word in lacked(text)))


def _setups(apps: Iterable[App]) -> tuple[Setup, ...]:
    """What the apps set up, in order."""
    return tuple(each for app in apps if isinstance(app, OwnApp) for each in app.setup)


def _log(log: Path, what: str, text: str) -> None:
    """Keep the end of what a command in the guest wrote in the step's log."""
    lines = text.splitlines()[-_MAX_LINES:]
    with log.open("a") as file:
        file.write("\n".join((f"--- the last lines of {what}:", *lines, "")))


def _check(
    log: Path,
    apps: Sequence[App],
    reset: Iterable[agent.Reply],
    actions: Sequence[Action],
    replies: Sequence[agent.Reply],
    note: Callable[[str], None] | None,
) -> None:
    """Refuse actions that could not run, or did not do what their app expects.

    Args:
        note: takes such errors while any other action succeeded; None if each is one.
    """
    for reply in reset:
        if isinstance(reply, agent.PutResult) and reply.errno:
            raise WorkError(
                "the kernel's counters cannot be reset", "check that it was built to be profiled"
            )
    if not actions:
        return  # what the user did at the console is theirs to judge
    errors: list[WorkError] = []
    skipped: dict[str, str] = {}
    succeeded = False
    for action, reply in zip(actions, replies, strict=True):
        if not isinstance(reply, agent.ExecResult):
            continue
        if reply.status == SKIPPED != action.check.status:
            skipped.setdefault(action.name, reply.text.strip())
            continue
        try:
            check_action(action, reply)
            succeeded = True
        except WorkError as error:
            _log(log, f"the action {action.name}", reply.text)
            errors.append(error)
    if skipped:
        errors.insert(0, _cannot_run(skipped, apps))
    for why in errors:
        if note is None or not succeeded:
            raise why
        note(f"{why}; a training that takes it fails")


def _cannot_run(skipped: Mapping[str, str], apps: Sequence[App]) -> WorkError:
    """The error for actions that the kernel cannot run.

    Args:
        skipped: what each of them wrote, by its name.
    """
    names = [*skipped]
    several = len(names) > 1
    suites = {
        suite
        for app in apps
        if any(action.name in skipped for action in app.actions)
        for suite in app.suites
    }
    configs = sorted({load_suite(suite).config for suite in suites} - {DEFAULT_CONFIG})
    change = (
        f"write `set config {'+'.join(configs)}`" if configs else "choose another configuration"
    )
    words = f" {','.join(names)}" if len(names) <= _MAX_NAMES else ""
    return WorkError(
        f"the action{'s' * several} {listed(names, _MAX_NAMES)} cannot run on this kernel: "
        f"{skipped[names[0]][:80]}",
        f"{change}, or leave {'them' if several else 'it'} out with `set without{words}`",
    )


BODY = ProfileCollectBody()
