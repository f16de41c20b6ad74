"""``mepof device compare``: kernels that are installed on a machine, booted in turns."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

import mepof
from mepof.cli.application import completing
from mepof.cli.machine import CounterNames, Programs, Scratch, Ssh, counters_of, programs_on, say
from mepof.cli.metrics import Metrics, chosen_metrics, chosen_repetitions
from mepof.cli.output import Json, print_json
from mepof.device import resume
from mepof.device.former_values import default_directory
from mepof.device.preparation import Preparation, Reboot, load_preparation, preparation_names
from mepof.device.prepared import Prepared, Signals, pending, prepared
from mepof.device.restart import comes_up, is_up, order, restart
from mepof.device.shell import LocalShell, Reachable
from mepof.device.ssh import SshShell
from mepof.errors import EnvironmentLack, InputError, MepofError, WorkError

if TYPE_CHECKING:  # loads the suites, and scipy
    from mepof.measure.installed import Boots
    from mepof.measure.measurement import Evaluation
    from mepof.measure.runner import Design, OneBoot
    from mepof.pmu.counter import Counters
    from mepof.report import Report
    from mepof.suite.cases import Case

_ANSWER = 30.0
_CONTINUES = "--continues"


def compare(
    kernels: Annotated[
        list[str],
        typer.Argument(
            help="Releases of installed kernels, as `uname -r` prints them; the first is the "
            "baseline.",
            metavar="RELEASE",
        ),
    ],
    programs: Programs,
    metric: Metrics = None,
    counters: CounterNames = "generic",
    kind: Annotated[
        str,
        typer.Option(
            "--prepare",
            help="Prepare the machine as this kind, which says how it reboots.",
            metavar="KIND",
            autocompletion=completing(*preparation_names()),
        ),
    ] = "server",
    repetitions: Annotated[
        str, typer.Option(metavar="N|N-M", help="Boots of each kernel, such as 8 or 5-12.")
    ] = "5-12",
    ssh: Ssh = None,
    scratch: Scratch = None,
    out: Annotated[
        Path, typer.Option("--out", help="Directory for results.", metavar="DIR")
    ] = Path("out/compare"),
    as_json: Json = False,
    continues: Annotated[bool, typer.Option(_CONTINUES, hidden=True)] = False,
) -> None:
    """Boot installed kernels in turns, count on each, and compare them.

    GRUB boots each kernel once, and its default again after any other reset. The machine returns
    to the default at the end, after an error too. The same command continues a comparison that was
    interrupted; on this machine itself, it does so after each reboot.

    Raises:
        InputError: a kernel is not installed.
        EnvironmentLack: perf is missing, may not count, or finds no PMU; or the machine would not
            return to the kernel that it runs.
        WorkError: a kernel did not boot, or failed its self-check or a case.
    """
    from mepof.measure.installed import Boots
    from mepof.measure.runner import Design
    from mepof.report import summary
    from mepof.suite.cases import cases_of

    here = _here() if ssh is None else None
    if len(set(kernels)) < max(2, len(kernels)):
        raise InputError(
            "at least two kernels are needed, and none may be named twice",
            "`ls /boot/vmlinuz-*` on that machine shows their releases",
        )
    whole = programs_on(programs, ssh)
    fewest, most = chosen_repetitions(repetitions)
    preparation = load_preparation(kind)
    if preparation.phone or preparation.reboot is None:
        raise InputError(
            f"{preparation.title} is not a machine that boots installed kernels",
            "choose --prepare server, or a file with a table [reboot]",
        )
    shell = here or SshShell.connect(ssh or "")
    lab = _Laboratory(shell, preparation, whole, scratch or "/tmp", out, counters)
    boots = Boots(shell, out / "progress.json", say)
    boots.check()
    if continues and not boots.under_way:
        raise WorkError(
            f"{out / 'progress.json'} is gone since this machine rebooted",
            "reboot into GRUB's default, and choose --out on a disk that keeps it",
        )
    with Signals() as signals:
        try:
            counts = counters_of(counters)
            cases = tuple(cases_of(chosen_metrics(metric)))
            if ssh is not None:
                # A boot that nobody waited for, such as one that ended in a reset.
                boots.withdraw()
            boots.begin(kernels)
            evaluation, notes = lab.measured(kernels, cases, counts, boots, Design(fewest, most))
            report = _report(evaluation, notes, out)
        except typer.Exit:  # this machine reboots
            raise
        except BaseException as failure:
            signals.wait = True
            lab.give_up(boots, failure)
            raise
        signals.wait = True
        if as_json:
            print_json(report.model_dump(mode="json", by_alias=True))
        else:
            Console(highlight=False).print(summary(report, out))
        lab.go_back(boots)


@dataclass(frozen=True)
class _Laboratory:
    """A machine, and how its kernels are measured.

    Attributes:
        programs: directory of the suites' programs there.
        scratch: directory there that cases may write to.
        out: directory of results here.
    """

    shell: Reachable
    preparation: Preparation
    programs: str
    scratch: str
    out: Path
    counters: str

    @property
    def _way(self) -> Reboot:
        way = self.preparation.reboot
        assert way is not None
        return way

    def measured(
        self,
        kernels: list[str],
        cases: tuple[Case, ...],
        counts: Counters | None,
        boots: Boots,
        design: Design,
    ) -> tuple[Evaluation, list[str]]:
        """Measure the kernels; the notes say how the machine is not as its kind should be.

        Args:
            counts: what is counted.

        Raises:
            typer.Exit: this machine reboots, and the command continues then.
        """
        from mepof.measure.installed import Kernel, NeedsBoot, Rounds, device_of
        from mepof.measure.measurement import DEFAULT_PRECISION_PERCENT

        self._wait()
        found = [Kernel.of(self.shell, release) for release in kernels]
        device = device_of(self.shell)
        decided = self._decided(cases, counts)
        while True:
            try:
                with prepared(self.shell, self.preparation, default_directory(), say) as machine:
                    rounds = Rounds(
                        self.shell,
                        boots,
                        self.out,
                        found,
                        cases,
                        decided,
                        partial(self._boot, machine, cases, counts),
                    )
                    try:
                        evaluation = rounds.evaluation(design, DEFAULT_PRECISION_PERCENT, device)
                    except NeedsBoot:
                        if not boots.under_way:
                            self._try(machine, cases[:1], counts)
                        raise
                    return evaluation, pending(self.shell, self.preparation)
            except NeedsBoot as needed:
                say(f"{self.shell.name} boots {boots.ask(needed.release)}")
                self._restart(resumes=True)
                if isinstance(self.shell, LocalShell):
                    raise typer.Exit(0) from None

    def _decided(self, cases: tuple[Case, ...], counts: Counters | None) -> list[str]:
        """What decides a boot's result, beside the kernel and the cases."""
        from mepof.measure.installed import digests
        from mepof.suite.cases import selfcheck

        ran = {selfcheck()[0], *(case.argv[0] for case in cases)}
        paths = [f"{self.programs.rstrip('/')}{path}" for path in sorted(ran)]
        counters = counts.model_dump_json() if counts else ""
        return [counters, self.preparation.model_dump_json(), digests(self.shell, paths)]

    def go_back(self, boots: Boots) -> None:
        """Have the machine run what it ran at first; this machine reboots after this returns.

        Raises:
            WorkError: it does not.
        """
        if boots.withdraw():
            say(f"{self.shell.name} returns to {boots.origin}")
            self._restart(resumes=False)
            if not isinstance(self.shell, LocalShell) and boots.withdraw():
                raise WorkError(f"{self.shell.name} did not boot {boots.origin} again")
        boots.finish()

    def give_up(self, boots: Boots, failure: BaseException) -> None:
        """Have the machine run what it ran at first, or say how to: something has failed."""
        if isinstance(self.shell, LocalShell):
            say(f"{failure}")  # a reboot may end us before the command tells it
        if not boots.under_way:
            return
        try:
            if not is_up(self.shell, self._way):
                say(f"waiting for {self.shell.name}, to return it to {boots.origin}")
                with suppress(WorkError):
                    self._wait()
            self.go_back(boots)
        except MepofError as error:
            command = f"grub-editenv - unset next_entry && {shlex.join(self._way.command)}"
            say(
                f"{error.message}; a reset leads back to {boots.origin}, or, on {self.shell.name}: "
                f"{command}"
            )

    def _try(self, machine: Prepared, cases: tuple[Case, ...], counts: Counters | None) -> None:
        """See that this machine can be measured, before anything is booted."""
        made = self._boot(machine, cases, counts, 0)
        if made.boot is None:
            raise WorkError(
                made.self_check,
                f"see `dmesg` on {self.shell.name}, and run that there in {self.programs}",
            )

    def _boot(
        self, machine: Prepared, cases: tuple[Case, ...], counts: Counters | None, seed: int
    ) -> OneBoot:
        from mepof.measure.hardware import Bench, measure_running
        from mepof.pmu.counter import countable

        cores = machine.cores
        able = countable(self.shell, counts, cores.numbers)
        bench = Bench(self.shell, cores, self.programs, self.scratch, say)
        return measure_running(bench, cases, seed, self.counters, able)

    def _restart(self, *, resumes: bool) -> None:
        if not isinstance(self.shell, LocalShell):
            restart(self.shell, self._way)
            return
        if resumes:
            words = _command()
            words.insert(words.index("compare") + 1, _CONTINUES)
            command = (sys.executable, "-m", "mepof.cli.main", *words)
            log = (self.out / "log").absolute()
            resume.arm(self.shell, command, Path.cwd(), os.environ, log)
            say(f"this machine reboots, and the comparison continues; it writes to {log}")
        try:
            order(self.shell, self._way)
        except WorkError:
            resume.disarm(self.shell)
            raise

    def _wait(self) -> None:
        """Wait until the machine has booted: systemd starts this command before that."""
        if not comes_up(self.shell, self._way, time.monotonic() + self._way.seconds):
            raise WorkError(
                f"{self.shell.name} does not answer `{self._way.answer}` to "
                f"`{shlex.join(self._way.ready)}`",
                "see `systemctl list-jobs` there",
            )


def _command() -> list[str]:
    """The words that the user gave."""
    return [word for word in sys.argv[1:] if word != _CONTINUES]


def _here() -> LocalShell:
    """This machine, which no longer continues by itself when it has booted.

    Raises:
        EnvironmentLack: we are not root.
    """
    shell = LocalShell()
    if shell.run(("id", "-u"), _ANSWER).output.strip() != "0":
        raise EnvironmentLack("booting kernels needs root", "run it with `sudo`, or use --ssh")
    # Whatever comes now, nothing reboots this machine again unless we ask for it.
    resume.disarm(shell)
    return shell


def _report(evaluation: Evaluation, notes: list[str], out: Path) -> Report:
    from mepof.report import Provenance, build_report, write_boots, write_report

    releases = [each.image for each in evaluation.images]
    report = build_report(
        evaluation,
        (),
        None,
        Provenance(
            tools={"mepof": mepof.__version__},
            kernel=", ".join(f"Linux {release}" for release in releases),
            program="",
            seed=1,
            command=shlex.join(("mepof", *_command())),
        ),
        notes=[f"the machine was not prepared entirely: {note}" for note in notes],
    )
    write_report(report, out)
    write_boots(evaluation, out)
    text = evaluation.model_dump_json(indent=1) + "\n"
    (out / "evaluation.json").write_text(text, encoding="utf-8")
    return report
