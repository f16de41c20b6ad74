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
from mepof.toolchain import clang

State = Literal["ok", "too old", "missing", "broken", "too little"]
Version = tuple[int, ...]

_VERSION = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)")
# A program that has not told its version by then is broken.
ANSWER_SECONDS = 20.0


@dataclass(frozen=True)
class Tool:
    """A program that mepof runs, or runs through others.

    Attributes:
        command: its name on PATH; with ``@`` at its end it is one of the toolchain's, and
            the suffix of the Clang in use takes the place of the ``@``.
        purpose: what needs it.
        oldest: least version; empty where any will do.
        package: Debian's package; ``@`` stands for the suffix as well.
        options: further words for apt-get.
        required: without it no program runs; otherwise something is slower or less.
    """

    command: str
    purpose: str
    oldest: Version = ()
    package: str = ""
    options: str = ""
    required: bool = True

    def remedy(self, suffix: str) -> str:
        """The command that installs it."""
        name = (self.package or self.command).replace("@", suffix)
        return " ".join(filter(None, ("apt-get install", self.options, name)))


_CLANG = (clang.OLDEST_SUPPORTED,)

TOOLS = (
    Tool("clang@", "compiles kernels", _CLANG),
    Tool("ld.lld@", "links kernels", _CLANG, "lld@"),
    Tool("llvm-ar@", "kernel builds", _CLANG, "llvm@"),
    Tool("llvm-nm@", "kernel builds", _CLANG, "llvm@"),
    Tool("llvm-objcopy@", "kernel builds", _CLANG, "llvm@"),
    Tool("llvm-profdata@", "profiles", _CLANG, "llvm@"),
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


def toolchain_suffix() -> str | None:
    """What the names of the LLVM tools end in (``-22``, or nothing): the newest complete
    version, else the newest compiler; None without any compiler."""
    suffixes = [f"-{n}" for n in range(clang.NEWEST_KNOWN, clang.OLDEST_SUPPORTED - 1, -1)] + [""]
    for wanted in (clang.TOOLS, ("clang",)):
        for suffix in suffixes:
            if all(shutil.which(name + suffix) for name in wanted):
                return suffix
    return None


def look_for(tool: Tool, suffix: str | None) -> Finding:
    """Find a tool and ask it for its version.

    Args:
        suffix: as of :func:`toolchain_suffix`.
    """
    command = tool.command.replace("@", suffix or "")
    remedy = tool.remedy(suffix or "")
    if "@" in tool.command and not suffix:
        remedy = "make setup"  # it knows the newest version that apt offers
    needed = f"≥ {'.'.join(map(str, tool.oldest))}" if tool.oldest else "any"
    path = shutil.which(command)
    found: str | None = None
    state: State = "ok"
    if path is None:
        state = "missing"
    else:
        found = _ask_version(path)
        if found is None and tool.oldest:
            state = "broken"
        elif found is not None and parse_version(found) < tool.oldest:
            state = "too old"
    return Finding(
        command,
        tool.purpose,
        found,
        needed,
        state,
        tool.required,
        None if state == "ok" else remedy,
    )


def _ask_version(path: str) -> str | None:
    try:
        return version_in(run([path, "--version"], timeout=ANSWER_SECONDS, check=False).output)
    except MepofError:
        return None
