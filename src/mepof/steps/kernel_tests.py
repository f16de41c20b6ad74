"""``kernel-tests``: boots a kernel several times, and runs tests in it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mepof.device import agent, modules
from mepof.device.protocol import (
    DEVICES,
    EMULATOR_MEMORY,
    INITRAMFS,
    Outcome,
    Session,
    check_cpus,
)
from mepof.errors import InputError
from mepof.gate.boots import run_built_in, run_programs
from mepof.gate.kselftests import TestPrograms, load_kselftests
from mepof.gate.results import TestBoot, TestResults
from mepof.kernel.image import read_image
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.model import HostInput, Input, Step
from mepof.spec.kernel_tests import KernelTests

#: What makes a kernel with KUnit run its tests; without the second word, an error of a test shows
#: less than the reason.
_RUN_KUNIT = ("kunit.enable=1",)
# Under emulation a test that is busy until its limit, in guest time, takes many times as long.
_QUIET_SECONDS = 1200.0
# All of KUnit's tests run before the agent.
_BOOT_SECONDS = 600.0


class KernelTestsBody:
    """Makes ``tests.json``."""

    kind = KernelTests.kind
    phase: Phase = "boot"

    def check(self, step: Step) -> None:
        """Refuse an image of another architecture, and one that the device does not boot."""
        asked = KernelTests[Input].of(step, step.inputs)
        device = DEVICES.get(asked.device)
        device.check(asked.arch)
        check_cpus(device, asked.arch, asked.cpus)
        if isinstance(asked.kernel, HostInput):
            found = read_image(Path(asked.kernel.path))
            if found.arch != asked.arch:
                raise InputError(
                    f"{asked.kernel.path} is an image for {found.arch}, not for {asked.arch}",
                    f"write `set arch {found.arch}` before `check`",
                )

    def resources(self, step: Step) -> Resources:
        asked = KernelTests[Input].of(step, step.inputs)
        device = DEVICES.get(asked.device)
        claimed = device.claim(asked.arch)
        memory = asked.boots * (load_kselftests().memory + EMULATOR_MEMORY)
        return Resources(asked.boots, claimed, needs=frozenset({asked.arch}), memory=memory)

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = KernelTests[Input].of(step, step.inputs)
        device = DEVICES.get(asked.device).identity(asked.arch)
        return {**device, "memory": str(load_kselftests().memory)}

    def run(self, context: StepContext) -> None:
        asked = KernelTests[Path].of(context.step, context.inputs)
        made = TestPrograms(programs=())
        if asked.programs is not None:
            made = TestPrograms.read(asked.programs)
        work = _Work(context, asked, made)
        with ThreadPoolExecutor(context.cores) as pool:
            boots = pool.map(work.boot, range(asked.seed, asked.seed + asked.boots))
            results = TestResults(gate=asked.gate, boots=tuple(boots), unbuilt=made.unbuilt)
        results.write(context.output)


class _Work:
    """The boots of a step, of which several run at once."""

    def __init__(
        self, context: StepContext, asked: KernelTests[Path], programs: TestPrograms
    ) -> None:
        self._context = context
        self._asked = asked
        self._programs = programs.programs
        self._lock = threading.Lock()
        self._done: dict[int, int] = {}

    def boot(self, seed: int) -> TestBoot:
        number = 0

        def once(requests: tuple[agent.Request, ...]) -> Outcome:
            nonlocal number
            number += 1
            return self._session(seed, number, requests)

        if self._asked.gate == "kunit":
            return run_built_in(seed, once)
        return run_programs(self._programs, seed, once)

    def _session(self, seed: int, number: int, requests: tuple[agent.Request, ...]) -> Outcome:
        asked = self._asked
        given = asked.kernel
        kernel = given / "kernel" if given.is_dir() else given
        if not kernel.is_file():
            raise InputError(f"{given} does not contain a kernel image")
        archive = () if asked.programs is None else (asked.programs / "archive.cpio",)
        session = Session(
            arch=asked.arch,
            kernel=kernel,
            initramfs=asked.guest / INITRAMFS,
            requests=requests,
            seed=seed,
            archives=archive,
            memory=load_kselftests().memory,
            boot_seconds=_BOOT_SECONDS,
            quiet_seconds=_QUIET_SECONDS,
            parameters=_RUN_KUNIT if asked.gate == "kunit" else (),
            cpus=asked.cpus,
        )
        total = len(self._programs)
        before = total - len(requests)

        def replied(count: int) -> None:
            with self._lock:
                self._done[seed] = before + count
                at = min(before + count, total - 1)
                name = self._programs[at].name if self._programs else "booting"
                done = sum(self._done.values())
                text = f"seed {seed}: {name}"
                self._context.progress(done, total * asked.boots, "tests", text)

        directory = self._context.work / f"boot-{seed}-{number}"
        device = DEVICES.get(asked.device)
        return modules.boot(device, session, given, directory, self._context.run, replied)


BODY = KernelTestsBody()
