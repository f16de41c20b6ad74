"""The programs that mepof needs, which of them are there, and the command that mends a lack.

The least versions of the kernel's own build tools are those of
Documentation/process/changes.rst in Linux 6.12.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import Literal

from mepof import arch
from mepof.errors import MepofError
from mepof.process import run
from mepof.toolchain.protocol import DEFAULT, TOOLCHAINS

State = Literal["ok", "too old", "missing", "broken", "too little"]
Version = tuple[int, ...]

_VERSION = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)")
# A program that has not told its version by then is broken.
ANSWER_SECONDS = 20.0


@dataclass(frozen=True)
class Tool:
    """A program that mepof runs, or runs through others.

    Attributes:
        command: its name on PATH.
        purpose: what needs it.
        min_version: empty where any will do.
        package: Debian's package, if it has another name; None where `make setup` chooses one.
        options: further words for apt-get.
        required: without it no program runs; otherwise something is slower or missing.
    """

    command: str
    purpose: str
    min_version: Version = ()
    package: str | None = ""
    options: str = ""
    required: bool = True

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        if self.package is None:
            return "make setup"
        words = ("apt-get install", self.options, self.package or self.command)
        return " ".join(filter(None, words))


TOOLS = (
    *(
        Tool(
            each.machine.binary,
            f"boots {each.name} kernels",
            (10, 0),
            each.machine.package,
            "-t bookworm-backports",
            required=each.name == arch.DEFAULT,
        )
        for each in arch.records()
        if each.machine is not None
    ),
    Tool("gcc", "the counting plugin", (5, 1)),
    Tool("make", "kernel builds", (4, 0)),
    Tool("flex", "kernel builds", (2, 5, 35)),
    Tool("bison", "kernel builds", (2, 0)),
    Tool("bc", "kernel builds", (1, 6, 95)),
    Tool("tar", "unpacks kernel source", (1, 28)),
    Tool("xz", "unpacks kernel source", package="xz-utils"),
    *(
        Tool(
            each.guest.compiler,
            f"the programs of {each.name} guests",
            package=" ".join(each.guest.packages),
            required=each.name == arch.DEFAULT,
        )
        for each in arch.records()
        if each.guest is not None
    ),
    *(
        Tool(command, "the suite tools", package=package, required=False)
        for command, package in (
            ("fio", "fio"),
            ("hackbench", "rt-tests"),
            ("iperf3", "iperf3"),
            ("stress-ng", "stress-ng"),
            ("sysbench", "sysbench"),
        )
    ),
    Tool("perf", "counts and samples of this machine", package="linux-perf", required=False),
    Tool("adb", "phones", package="adb", options="-t bookworm-backports", required=False),
    Tool("ccache", "fast second builds", required=False),
    Tool("zstd", "kernels compressed so", required=False),
    Tool("cpio", "kernels with headers", required=False),
    Tool("rsync", "kernel headers", required=False),
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        found: its version or amount, None where it is not there or does not say.
        needed: what suffices, in words.
        remedy: the command that mends it, None where all is well or no command does.
    """

    name: str
    purpose: str
    found: str | None
    needed: str
    state: State
    required: bool
    remedy: str | None = None

    @property
    def stops(self) -> bool:
        """Whether mepof cannot work because of it."""
        return self.required and self.state != "ok"


def version_in(text: str) -> str | None:
    """The first version number that a program says about itself."""
    found = _VERSION.search(text)
    return found.group(1) if found else None


def parse_version(text: str) -> Version:
    """The numbers of such as ``10.0.2``, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def toolchain_tools() -> tuple[Tool, ...]:
    """The programs of every toolchain."""
    return tuple(
        Tool(
            program.command,
            program.purpose,
            program.min_version,
            program.package,
            required=name == DEFAULT,
        )
        for name, family in TOOLCHAINS.all().items()
        for program in family.programs()
    )


def look_for(tool: Tool) -> Finding:
    """Find a tool and ask it for its version."""
    needed = f"≥ {'.'.join(map(str, tool.min_version))}" if tool.min_version else "any"
    path = shutil.which(tool.command)
    found: str | None = None
    state: State = "ok"
    if path is None:
        state = "missing"
    else:
        found = _ask_version(path)
        if found is None and tool.min_version:
            state = "broken"
        elif found is not None and parse_version(found) < tool.min_version:
            state = "too old"
    return Finding(
        tool.command,
        tool.purpose,
        found,
        needed,
        state,
        tool.required,
        None if state == "ok" else tool.remedy,
    )


def _ask_version(path: str) -> str | None:
    try:
        return version_in(run([path, "--version"], timeout=ANSWER_SECONDS, check=False).output)
    except MepofError:
        return None
