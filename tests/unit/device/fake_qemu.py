"""A QEMU that boots nothing: it writes the files of a boot that the test has canned."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "qemu-system-x86_64"

# What it is asked to write goes where its own options say; MODE ``silent`` waits to be killed.
_SCRIPT = """\
#!/bin/sh
here=@HERE@
if [ "$1" = --version ]; then cat "$here/version"; exit; fi
for word; do
    case "$word" in
    file,path=*,id=console) console=${word#file,path=}; console=${console%,id=console} ;;
    file,id=agent,path=*) port=${word#file,id=agent,path=} ;;
    *count.so,out=*) counts=${word#*count.so,out=}; counts=${counts%%,*} ;;
    *pmu.so,out=*)
        counts=${word#*pmu.so,out=}; counts=${counts%%,*}
        case "$word" in *,where=*) places=${word#*,where=}; places=${places%%,*} ;; esac ;;
    *executions.so,out=*) places=${word#*executions.so,out=} ;;
    *record.so,out=*) trace=${word#*record.so,out=}; trace=${trace%%,*} ;;
    esac
    printf '%s\\n' "$word"
done > "$here/arguments"
[ -f "$here/console" ] && cat "$here/console" > "$console"
[ -f "$here/replies" ] && cat "$here/replies" > "$port"
[ -f "$here/counts" ] && cat "$here/counts" > "$counts"
[ -f "$here/places" ] && cat "$here/places" > "$places"
[ -f "$here/trace" ] && cat "$here/trace" > "$trace"
[ -f "$here/complaint" ] && cat "$here/complaint" && exit 1
if [ -f "$here/silent" ]; then read -r _ < "$here/silent.fifo"; fi
exit 0
"""


def frame(kind: int, payload: bytes = b"") -> bytes:
    """A frame of the agent's."""
    return b"MPF1" + struct.pack("<IQ", kind, len(payload)) + payload


HELLO = frame(0x80, b"6.12.7")
POWERED_OFF = frame(0x84)


def result(output: bytes = b"", status: int = 0) -> bytes:
    """The reply to an Exec."""
    return frame(0x81, struct.pack("<IIQ", status, 0, 5) + output)


@dataclass(frozen=True)
class FakeQemu:
    """The program in ``directory``, and what it will do."""

    directory: Path

    def install(self) -> None:
        """Write the program; it does nothing yet."""
        self.directory.mkdir()
        script = self.directory / PROGRAM
        script.write_text(_SCRIPT.replace("@HERE@", str(self.directory)))
        script.chmod(0o755)
        self.will(version=b"QEMU emulator version 10.0.2 (Debian)\n")

    def will(self, **files: bytes) -> None:
        """Set what it writes: ``version``, ``console``, ``replies``, ``counts``, ``places``,
        ``trace``, and whether it fails with a ``complaint`` or is ``silent``."""
        for name, content in files.items():
            (self.directory / name).write_bytes(content)

    def arguments(self) -> list[str]:
        """What it was last called with."""
        return (self.directory / "arguments").read_text().splitlines()
