"""The programs that mepof needs, which of them are there, and how to install the others.

The minimum versions of the kernel's own build tools are those of
Documentation/process/changes.rst in Linux 6.12.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import Literal

from mepof import arch
from mepof.distribution import installing_newer
from mepof.errors import MepofError
from mepof.process import run
from mepof.toolchain.named import DEFAULT
from mepof.toolchain.protocol import TOOLCHAINS

State = Literal["ok", "too old", "missing", "broken", "too little"]
Version = tuple[int, ...]

_VERSION = re.compile(r"(?<![\d.])(\d+(?:\.\d+)+)")
# A program that has not reported its version by then is broken.
ANSWER_SECONDS = 20.0


#: What findings are for, as the doctor calls it. The first is what every program needs.
KERNELS = f"{arch.DEFAULT} kernels in the emulator"
CORE_MODELS = "models of cores (set core)"
COUNTERS = "counters of this machine"
PHONES = "phones"
SUITES = "suites tools and sqlite"
EXTRAS = "extras"


def kernels_of(architecture: str) -> str:
    """The goal of building, booting and measuring kernels for an architecture."""
    return f"{architecture} kernels in the emulator"


def goal_of(toolchain: str) -> str:
    """The goal of building kernels with a family of toolchains."""
    return KERNELS if toolchain == DEFAULT else f"kernels built by {toolchain}"


@dataclass(frozen=True)
class Tool:
    """A program that mepof runs, or runs through others.

    Attributes:
        command: its name on PATH.
        purpose: what needs it.
        min_version: empty where any will do.
        package: Debian's package, if it has another name; None where `make setup` chooses one.
        newer: whether it has to be newer than that of Debian 12 itself.
        required: without it no program runs; otherwise something is slower or missing.
        goal: what it is for.
        version: the words that make it report its version.
    """

    command: str
    purpose: str
    min_version: Version = ()
    package: str | None = ""
    newer: bool = False
    required: bool = True
    goal: str = KERNELS
    version: tuple[str, ...] = ("--version",)

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        if self.package is None:
            return "make setup"
        package = self.package or self.command
        return installing_newer(package) if self.newer else f"apt-get install {package}"


TOOLS = (
    *(
        Tool(
            each.machine.binary,
            f"boots {each.name} kernels",
            (10, 0),
            each.machine.package,
            newer=True,
            required=each.name == arch.DEFAULT,
            goal=kernels_of(each.name),
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
            goal=kernels_of(each.name),
        )
        for each in arch.records()
        if each.guest is not None
    ),
    *(
        Tool(command, "the suite tools", package=package, required=False, goal=SUITES)
        for command, package in (
            ("fio", "fio"),
            ("hackbench", "rt-tests"),
            ("iperf3", "iperf3"),
            ("stress-ng", "stress-ng"),
            ("sysbench", "sysbench"),
        )
    ),
    Tool("javac", "the suite jni", package="default-jdk-headless", required=False, goal=SUITES),
    Tool(
        "perf",
        "counts and samples of this machine",
        package="linux-perf",
        required=False,
        goal=COUNTERS,
    ),
    Tool("adb", "reaches phones", newer=True, required=False, goal=PHONES),
    Tool("fastboot", "flashes phones", required=False, goal=PHONES),
    Tool("git", "fetches kernel source", (2, 18), required=False, goal=EXTRAS),
    Tool("curl", "downloads kernel source", (7, 60), required=False, goal=EXTRAS),
    Tool("gpgv", "verifies kernel source", (2, 0), required=False, goal=EXTRAS),
    Tool("ccache", "fast second builds", required=False, goal=EXTRAS),
    Tool("zstd", "kernels compressed with it, and set package pkg", required=False, goal=EXTRAS),
    Tool("lz4", "kernels compressed with it", required=False, goal=EXTRAS),
    Tool("rpmbuild", "set package rpm", package="rpm", required=False, goal=EXTRAS),
    *(
        Tool(command, f"repositories of {form}", package=package, required=False, goal=EXTRAS)
        for form, command, package in (
            ("rpm", "createrepo_c", "createrepo-c"),
            ("rpm", "rpm", "rpm"),
            ("pkg", "repo-add", "pacman-package-manager"),
            ("pkg", "bsdtar", "libarchive-tools"),
            ("pkg", "vercmp", "makepkg"),
        )
    ),
    Tool("cpio", "kernels with headers", required=False, goal=EXTRAS),
    Tool("rsync", "kernel headers", required=False, goal=EXTRAS),
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Attributes:
        found: its version or amount; None where it is missing or does not say.
        needed: what suffices, in words.
        remedy: what fixes it, a command if one does; None where nothing is wrong.
        goal: what it is for.
    """

    name: str
    purpose: str
    found: str | None
    needed: str
    state: State
    required: bool
    remedy: str | None = None
    goal: str = KERNELS

    @property
    def stops(self) -> bool:
        """Whether mepof cannot work because of it."""
        return self.required and self.state != "ok"

    @property
    def installs(self) -> bool:
        """Whether its remedy is to install something."""
        return (self.remedy or "").startswith(("apt-get ", "make setup"))


def version_in(text: str) -> str | None:
    """The first version number in a program's output."""
    found = _VERSION.search(text)
    return found.group(1) if found else None


def parse_version(text: str) -> Version:
    """The numbers of a version such as ``10.0.2``, for comparison."""
    return tuple(int(number) for number in re.findall(r"\d+", text))


def toolchain_tools() -> tuple[Tool, ...]:
    """The programs of every toolchain."""
    return tuple(
        Tool(
            program.command,
            program.purpose,
            program.min_version,
            program.package,
            required=name == DEFAULT and not program.optional,
            goal=goal_of(name),
            version=program.version,
        )
        for name, family in TOOLCHAINS.all().items()
        for program in family.programs()
    )


def look_for(tool: Tool) -> Finding:
    """Look for a tool and ask it for its version."""
    needed = f"≥ {'.'.join(map(str, tool.min_version))}" if tool.min_version else "any"
    path = shutil.which(tool.command)
    found: str | None = None
    state: State = "ok"
    if path is None:
        state = "missing"
    else:
        found = _ask_version(path, tool.version)
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
        tool.goal,
    )


def _ask_version(path: str, words: tuple[str, ...]) -> str | None:
    try:
        return version_in(run([path, *words], timeout=ANSWER_SECONDS, check=False).output)
    except MepofError:
        return None
