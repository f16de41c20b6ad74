"""The device ``qemu``: the embedded default, by TCG.

A boot is a closed experiment. What the guest is asked to do lies in its initramfs and
its answers go to files, so nothing that happens on the host reaches it; time is the count
of executed instructions (``-icount``), and everything random is seeded. Two boots of one
kernel with one seed are the same, instruction for instruction.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from mepof import arch
from mepof.arch import Machine
from mepof.device import agent, initramfs
from mepof.device.protocol import (
    BootFailure,
    Counting,
    Description,
    GuestReset,
    Interval,
    KernelHang,
    KernelPanic,
    Outcome,
    Recording,
    Session,
)
from mepof.errors import EnvironmentLack, InputError, WorkError
from mepof.process import Completed, run

_OLDEST = (10, 0)
_TAIL_LINES = 12
# Of the kernel: a user's is a bare number.
_WHERE = re.compile(r"\bRIP: [0-9a-f]+:[\w.]+\+0x\S+|\bpc : \S+")
# Who called panic(); frames with a question mark are left over from other calls.
_CALLER = re.compile(r"\bpanic\+0x\S+\s*\n(?:.* \? .*\n)*(?:\[[ .\d]+\])?\s*([\w.]+\+0x\S+)")
_PANIC = re.compile(
    r"\bKernel panic - not syncing: .*|\bBUG: .*|\bOops: .*|\bUnable to handle kernel .*"
)


# Where a process's mappings lie decides how many page-table pages a fork copies: 5 % of its
# instructions from seed to seed. That is no difference between kernels.
_COMMON_PARAMETERS = "panic=-1 oops=panic nokaslr norandmaps"


# Whose commands decide what a session gives, beside a counting one's.
_PLUGIN = Path("plugin")
_RECORDINGS = (Recording(_PLUGIN), Recording(_PLUGIN, period=1))


class Qemu:
    """QEMU's full-system emulation."""

    def identity(self, arch: str) -> Mapping[str, str]:
        machine = _machine(arch)
        plain = Session(arch, Path("kernel"), Path("initramfs"), (), seed=0)
        kinds = (
            replace(plain, count=Counting(_PLUGIN)),
            *(replace(plain, record=one) for one in _RECORDINGS),
        )
        commands = [
            word for kind in kinds for word in _command(machine, kind, _Files(Path("boot")))
        ]
        return {
            "qemu": _version(machine),
            "qemu command": sha256("\0".join(commands).encode()).hexdigest(),
        }

    def describe(self, arch: str) -> Description:
        return Description(
            name="qemu", accel="tcg", cpu="max", mode="icount shift=0: 1 instruction = 1 ns"
        )

    def branch_record(self, arch: str) -> str:
        _machine(arch)
        return "every taken branch, emulated"

    def boot(
        self,
        session: Session,
        directory: Path,
        runner: Callable[..., Completed],
        replied: Callable[[int], None],
    ) -> Outcome:
        machine = _machine(session.arch)
        if session.count is not None and session.record is not None:
            raise InputError(
                "one boot cannot count and record branches", "count in another boot of the kernel"
            )
        _version(machine)
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir(parents=True)
        run_files = _Files(directory)
        requests = b"".join(
            agent.encode(request) for request in (*session.requests, agent.PowerOff())
        )
        run_files.initramfs.write_bytes(
            session.initramfs.read_bytes()
            + b"".join(path.read_bytes() for path in session.archives)
            + initramfs.archive(
                (
                    initramfs.Entry("mepof", 0o755),
                    initramfs.Entry("mepof/requests", 0o600, requests),
                )
            )
        )
        vigil = _Vigil(session, run_files, replied)
        try:
            done = runner(
                _command(machine, session, run_files),
                watch=vigil.look,
                interactive=session.interactive,
                check=False,
            )
        except WorkError as error:
            _raise_if_panicked(run_files)
            kind = KernelHang if vigil.silent else BootFailure
            raise _failure(kind, error.message, run_files) from error
        _raise_if_panicked(run_files)
        if done.status != 0:
            last = done.output.rstrip().rpartition("\n")[2] or "it said nothing"
            raise _failure(
                BootFailure, f"{machine.binary} ended with status {done.status}: {last}", run_files
            )
        return _outcome(session, run_files)


@dataclass(frozen=True)
class _Files:
    """The files of one boot."""

    directory: Path

    @property
    def initramfs(self) -> Path:
        return self.directory / "initramfs"

    @property
    def console(self) -> Path:
        return self.directory / "console.log"

    @property
    def port(self) -> Path:
        return self.directory / "replies"

    @property
    def counts(self) -> Path:
        return self.directory / "counts.json"

    @property
    def places(self) -> Path:
        return self.directory / "places.jsonl"

    @property
    def recording(self) -> Path:
        return self.directory / "branches.trace"

    def console_text(self) -> str:
        try:
            return self.console.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def console_tail(self) -> str:
        lines = [line.rstrip() for line in self.console_text().splitlines() if line.strip()]
        return "".join(f"\n  | {line}" for line in lines[-_TAIL_LINES:])


class _Vigil:
    """Watches a boot from outside: how far it is, and whether it still says anything."""

    def __init__(self, session: Session, files: _Files, replied: Callable[[int], None]) -> None:
        self._session = session
        self._files = files
        self._replied = replied
        self._decoder = agent.Decoder()
        self._read = 0
        self._console_size = 0
        self._replies = 0
        self._heard = time.monotonic()
        self.silent = False

    def look(self) -> str | None:
        """Called some times a second; a text is why the guest must go."""
        if self._answered() or self._printed():
            self._heard = time.monotonic()
        limit = self._session.quiet_seconds if self._replies else self._session.boot_seconds
        if self._session.interactive or time.monotonic() - self._heard < limit:
            return None
        self.silent = True
        what = "answered nothing" if self._replies else "did not come up"
        return f"the guest {what} for {limit:g} s"

    def _printed(self) -> bool:
        try:
            size = self._files.console.stat().st_size
        except FileNotFoundError:
            return False
        grown, self._console_size = size > self._console_size, size
        return grown

    def _answered(self) -> bool:
        try:
            with self._files.port.open("rb") as port:
                port.seek(self._read)
                data = port.read()
        except FileNotFoundError:
            return False
        self._read += len(data)
        replies = len(self._decoder.feed(data))
        self._replies += replies
        if replies:
            self._replied(self._replies - 1)  # the first is the greeting
        return bool(data)


def _machine(name: str) -> Machine:
    machine = arch.get(name).machine
    if machine is None:
        known = ", ".join(each.name for each in arch.records() if each.machine is not None)
        raise InputError(f"the device qemu has no machine for {name}", f"known: {known}")
    return machine


@cache
def _version(machine: Machine) -> str:
    remedy = f"apt-get install -t bookworm-backports {machine.package}"
    path = shutil.which(machine.binary)
    if path is None:
        raise EnvironmentLack(f"{machine.binary} is not installed", remedy)
    banner = run([path, "--version"]).output.partition("\n")[0]
    found = re.search(r"version (\d+)\.(\d+)", banner)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise EnvironmentLack(f"{banner or path} is older than {oldest}", remedy)
    return banner


def _value(path: Path) -> str:
    """A path as the value of an option of QEMU's, where a comma ends a value."""
    return str(path).replace(",", ",,")


def _command(machine: Machine, session: Session, files: _Files) -> list[str]:
    parameters = f"{machine.parameters} {_COMMON_PARAMETERS}"
    if session.interactive:
        parameters += " quiet"  # the console is the user's
    log = _value(files.console)
    console = f"stdio,signal=off,logfile={log}" if session.interactive else f"file,path={log}"
    command = [
        machine.binary,
        *machine.arguments,
        *("-accel", "tcg"),
        *("-icount", "shift=0,sleep=off"),
        *("-seed", str(session.seed)),
        *("-rtc", "base=2024-01-01T00:00:00,clock=vm"),
        *("-m", str(session.memory)),
        *("-smp", "1"),
        *("-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none"),
        *("-kernel", str(session.kernel)),
        *("-initrd", str(files.initramfs)),
        *("-append", parameters),
        *("-chardev", f"{console},id=console", "-serial", "chardev:console"),
        *("-chardev", f"file,id=agent,path={_value(files.port)}"),
        *("-device", "virtserialport,chardev=agent,name=mepof"),
    ]
    if session.count is not None:
        command += ["-plugin", _counting(session.count, files)]
    if session.record is not None:
        plugin, trace = _value(session.record.plugin), _value(files.recording)
        how = f"span=session{_sampling(session.record)}"
        command += ["-plugin", f"{plugin},out={trace},{how}"]
    return command


def _counting(count: Counting, files: _Files) -> str:
    places = (f"where={_value(files.places)}",) if count.places else ()
    counts = f"out={_value(files.counts)}"
    return ",".join((_value(count.plugin), counts, *places, *count.arguments))


def _sampling(recording: Recording) -> str:
    if recording.period is None:
        return ""
    return f",sample={recording.period},depth={recording.depth}"


def _failure(kind: type[BootFailure], what: str, files: _Files) -> BootFailure:
    return kind(f"{what}{files.console_tail()}", f"see {files.console}")


def _raise_if_panicked(files: _Files) -> None:
    text = files.console_text()
    panic = _PANIC.search(text)
    if panic is not None:
        # The last lines that are shown may begin below it.
        where = _WHERE.search(text, panic.start())
        caller = _CALLER.search(text, panic.start())
        at = where.group(0) if where else f"in {caller.group(1)}" if caller else ""
        what = ", ".join(filter(None, (panic.group(0).strip(), at)))
        raise _failure(KernelPanic, f"the kernel went down: {what}", files)


def _outcome(session: Session, files: _Files) -> Outcome:
    decoder = agent.Decoder()
    try:
        replies = decoder.feed(files.port.read_bytes() if files.port.exists() else b"")
    except WorkError as error:
        raise _failure(BootFailure, error.message, files) from error
    if not replies or not isinstance(replies[0], agent.Hello):
        raise _failure(GuestReset, "the guest went down before its agent answered", files)
    answers = replies[1:-1]
    if len(answers) != len(session.requests) or not isinstance(replies[-1], agent.PoweredOff):
        done = f"{max(0, len(replies) - 1)} of {len(session.requests)} requests"
        raise _failure(GuestReset, f"the guest went down after {done}", files)
    return Outcome(
        replies[0].release,
        tuple(answers),
        _intervals(session, files),
        files.console_text(),
        _recording(session, files),
        _places(session, files),
    )


def _intervals(session: Session, files: _Files) -> tuple[Interval, ...]:
    if session.count is None:
        return ()
    try:
        counted = json.loads(files.counts.read_text(encoding="utf-8"))["intervals"]
        return tuple(Interval(**interval) for interval in counted)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BootFailure(f"the counting plugin left no counts: {error}") from error


def _places(session: Session, files: _Files) -> Path | None:
    if session.count is None or not session.count.places:
        return None
    if not files.places.is_file():
        raise BootFailure("the plugin of the emulated PMU did not tell where the events are")
    return files.places


def _recording(session: Session, files: _Files) -> Path | None:
    if session.record is None:
        return None
    if not files.recording.is_file():
        raise BootFailure("the recording plugin left no trace")
    return files.recording


DEVICE = Qemu()
