"""Branch records of a phone: by Android's simpleperf, from the trace unit of its processor.

The commands are those of AOSP's ``simpleperf/doc/collect_etm_data_for_autofdo.md``: a system-wide
recording of the kernel is converted on the phone to a branch list, which is small and which the
profile engine reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mepof.device.adb import AdbShell
from mepof.device.handset import Handset, patiently
from mepof.device.shell import Ran
from mepof.errors import EnvironmentLack, WorkError

_EVENT = "cs-etm"
# Where people put the NDK's, if the system has none.
_FIND = "PATH=$PATH:/data/local/tmp"
_ANSWER = 60.0
# Traces of minutes have gigabytes.
_CONVERT = 3600.0
_TRANSFER = 600.0
_LOOK = 1.0

# Said twice, if an answer is lost, it starts one recording.
_START = """
{find}; mkdir -p {at} && cd {at} || exit 1
if [ ! -e started ]; then
    : > started
    setsid sh -c 'simpleperf record -e {event}:k -a -z -o perf.data > log 2>&1 & echo $! > pid
        wait $!; : > ended' < /dev/null > /dev/null 2>&1 &
    sleep 1
fi
[ -e pid ] && [ ! -e ended ] && exit
tail -n 1 log; exit 1
"""
_STOP = "cd {at} && kill -TERM $(cat pid)"
_ENDED = "[ -e {at}/ended ]"
_INJECT = """
{find}; cd {at} || exit 1
simpleperf inject -i perf.data --output branch-list --binary kernel.kallsyms -o branches \\
    > log 2>&1 && [ -s branches ] && exit
tail -n 1 log; exit 1
"""


def check_phone(shell: AdbShell) -> None:
    """Refuse a phone that cannot record.

    Raises:
        EnvironmentLack: it has no simpleperf, or its kernel no trace unit.
    """
    listed = _run(shell, f"{_FIND}; simpleperf list {_EVENT}", _ANSWER)
    if listed.status == 127:
        raise EnvironmentLack(
            f"{shell.name} has no simpleperf",
            "push the NDK's to its /data/local/tmp, or use a userdebug system",
        )
    if not any(line.split()[:1] == [_EVENT] for line in listed.output.splitlines()):
        raise EnvironmentLack(
            f"{shell.name} records no branches: simpleperf does not list {_EVENT}",
            "use a phone and a configuration with CONFIG_CORESIGHT_SOURCE_ETM4X, or train with "
            "`pgo`, which counts in the kernel",
        )


@contextmanager
def recording(handset: Handset, shell: AdbShell, boot_id: str, to: Path) -> Iterator[None]:
    """Record the kernel's branches while the block runs, and write them to a file.

    Args:
        boot_id: of the running kernel: no recording of an earlier boot is taken for this one.

    Raises:
        EnvironmentLack: the phone cannot record.
        WorkError: simpleperf failed.
    """
    check_phone(shell)
    at = f"/data/local/tmp/mepof/record-{boot_id}"
    words = {"find": _FIND, "at": at, "event": _EVENT}
    handset.note(f"recording branches on {handset.name}")
    try:
        _must(shell, _START.format(**words), _ANSWER, "record")
        try:
            yield
        finally:
            with suppress(WorkError):  # the phone may be gone
                _run(shell, _STOP.format(**words), _ANSWER)
        until = handset.now() + _CONVERT
        while _run(shell, _ENDED.format(**words), _ANSWER).status != 0:
            if handset.now() > until:
                raise WorkError(f"simpleperf did not end on {shell.name}")
            handset.pause(_LOOK)
        _must(shell, _INJECT.format(**words), _CONVERT, "convert its recording")
        patiently(shell, lambda: shell.pull(f"{at}/branches", to, _TRANSFER))
    finally:
        with suppress(WorkError):
            _run(shell, f"rm -rf {at}", _ANSWER)


def _run(shell: AdbShell, script: str, timeout: float) -> Ran:
    return patiently(shell, lambda: shell.run(("sh", "-c", script), timeout))


def _must(shell: AdbShell, script: str, timeout: float, what: str) -> None:
    done = _run(shell, script, timeout)
    if done.status != 0:
        raise WorkError(f"simpleperf cannot {what} on {shell.name}: {done.last}")
