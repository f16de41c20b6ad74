"""Kernels that boot: they are built and booted until what of a profile or of counting prevents that
is known and left out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mepof import arch
from mepof.algorithm.protocol import EXECUTED_OBJECTS
from mepof.device import agent, modules
from mepof.device.protocol import DEVICES, INITRAMFS, Session
from mepof.errors import WorkError
from mepof.kernel import objtool
from mepof.kernel.bootable import Trials, not_to_instrument
from mepof.kernel.build_spec import BuildSpec, FileFlags
from mepof.kernel.description import Safety
from mepof.kernel.objects import OBJECTS, functions_in
from mepof.kernel.safeguard import EVERYTHING, OptOut, smallest_opt_out
from mepof.plan.body import StepContext
from mepof.spec.kernel_build import BootCheck
from mepof.steps.kernel_ingredients import Ingredients
from mepof.suite.cases import selfcheck
from mepof.toolchain.protocol import Tools

_BOOT_SECONDS = 120.0
# Of a search: a kernel hangs if it is silent for so long, and for so many times as long as another
# took to boot and to check itself.
_MIN_SILENCE = 30.0
_SLOWER = 3


@dataclass(frozen=True)
class KernelTrials:
    """Builds of one kernel, each of which has to boot and to pass its self-check.

    Attributes:
        arch: what the kernel is for.
        check: how it boots.
        build: builds a kernel; returns objtool's warnings.
    """

    context: StepContext
    arch: str
    check: BootCheck[Path]
    ingredients: Ingredients[Path]
    build: Callable[[BuildSpec], frozenset[objtool.Warned]]

    def profiled(self) -> None:
        """Build a kernel that boots, leaving out the parts of the profile that prevent it."""
        context = self.context
        tools = Tools(self.ingredients.use.toolchain, context.run)
        released = ""
        # The profile did not cause the warnings that objtool also gives without it.
        accepted: frozenset[objtool.Warned] = frozenset()

        def trial(opt_out: OptOut) -> WorkError | None:
            nonlocal released, accepted
            tried = self.ingredients.without(opt_out, context.work, tools)
            try:
                warned = self.build(tried)
                if opt_out == EVERYTHING:
                    accepted = warned
                elif not warned <= accepted:
                    raise objtool.Unclean(warned - accepted)
                released = self._boot()
            except WorkError as error:
                return error
            return None

        opt_out = OptOut()
        failure = trial(opt_out)
        if failure is not None:
            opt_out = smallest_opt_out(
                failure,
                trial,
                lambda: functions_in(context.output),
                context.note,
                by_function=self.ingredients.spares_functions(context.work, tools),
            )
            if opt_out == OptOut():
                context.note(
                    "objtool gives the same warnings without the profile: all of it is used"
                )
                failure = None
            else:
                context.note(f"left out of the profile: {opt_out}")
        self._passed(released, opt_out, failure, accepted)

    def instrumented(self) -> None:
        """Build an instrumented kernel that boots, without instrumenting what prevents it."""
        context = self.context
        spec = self.ingredients.spec()
        flags = self.ingredients.addition().opt_out
        released = ""
        silence = Session.boot_seconds

        def build(opt_out: OptOut) -> None:
            left_out = FileFlags(opt_out.files, flags)
            # The same build as with these files in `set exclude`.
            self.build(replace(spec, selected=(*spec.selected, left_out)))
            shutil.copyfile(context.output / OBJECTS, context.work / OBJECTS)

        def boot(opt_out: OptOut) -> WorkError | None:
            nonlocal released, silence
            build(opt_out)
            started = time.monotonic()
            try:
                released = self._boot(() if opt_out.files else self._talkative(), silence)
            except WorkError as error:
                return error
            # On this machine, today, a boot is over in this time: half of all trials hang.
            longest = max(_MIN_SILENCE, _SLOWER * (time.monotonic() - started))
            silence = min(Session.boot_seconds, longest)
            return None

        trials = Trials(context.work / "trials.json", boot, context.note)
        opt_out = OptOut()
        failure = trials(opt_out)
        if failure is not None:
            if not flags:  # this algorithm instruments all files or none
                raise failure
            earlier = None if self.check.earlier is None else Safety.read(self.check.earlier)
            files = not_to_instrument(
                failure,
                trials,
                self._counting(),
                () if earlier is None else earlier.opt_out.files,
                context.note,
            )
            opt_out = OptOut(files=tuple(sorted(files)))
            context.note(f"not instrumented, so that the kernel boots: {opt_out}")
        if trials.built != opt_out or failure is None:
            # An earlier attempt found it, or the kernel was talkative when it booted.
            build(opt_out)
            released = self._boot()
        self._passed(released, opt_out, failure, trials=len(trials))

    def _passed(
        self,
        release: str,
        opt_out: OptOut,
        failure: WorkError | None,
        warned: frozenset[objtool.Warned] = frozenset(),
        trials: int | None = None,
    ) -> None:
        """Write how the kernel passed its checks.

        Args:
            failure: of the kernel without an opt-out.
            warned: what objtool says of the kernel without its profile, too.
        """
        Safety(
            booted=True,
            self_check="passed",
            release=release,
            opt_out=opt_out,
            failure=None if failure is None else failure.message,
            objtool=tuple(str(each) for each in sorted(warned)),
            trials=trials,
        ).write(self.context.output)

    def _counting(self) -> dict[str, list[str]]:
        """The functions of the last trial, by the objects that may be instrumented."""
        found = functions_in(self.context.work)
        listed = self.context.output / EXECUTED_OBJECTS
        if not listed.exists():
            return found
        counting = frozenset(listed.read_text(encoding="utf-8").split())
        return {name: functions for name, functions in found.items() if name in counting}

    def _talkative(self) -> tuple[str, ...]:
        """Parameters by which a kernel prints how far it comes."""
        machine = arch.get(self.arch).machine
        early = () if machine is None or not machine.early_console else (machine.early_console,)
        return ("initcall_debug", "ignore_loglevel", *early)

    def _boot(
        self,
        parameters: tuple[str, ...] = (),
        silence: float = Session.boot_seconds,
    ) -> str:
        """Boot the new kernel and run its self-check; returns its release.

        Args:
            parameters: added to its command line.
            silence: for so many seconds, it may be silent while it boots.
        """
        context, check = self.context, self.check
        request = agent.Exec(selfcheck(), _BOOT_SECONDS)
        session = Session(
            arch=self.arch,
            kernel=context.output / "kernel",
            initramfs=check.guest / INITRAMFS,
            requests=(request,),
            seed=check.seed,
            cpus=check.cpus,
            parameters=parameters,
            boot_seconds=silence,
        )
        device = DEVICES.get(check.device)
        outcome = modules.boot(
            device,
            session,
            context.output,
            context.work / "boot",
            context.run,
            lambda count: None,
        )
        agent.expect_success(request, outcome.replies[0])
        if not parameters:
            context.note(f"Linux {outcome.release} booted and passed its self-check")
        return outcome.release
