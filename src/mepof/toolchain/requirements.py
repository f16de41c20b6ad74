"""What mepof needs on a machine: programs, files, Python packages, devices and capacity."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib import import_module, metadata
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

import mepof
from mepof import arch
from mepof.arch import Guest
from mepof.disk import why_unwritable
from mepof.errors import MepofError
from mepof.toolchain import guest, scheduling_models
from mepof.toolchain.named import DEFAULT
from mepof.toolchain.probe import (
    CORE_MODELS,
    EXTRAS,
    KERNELS,
    SUITES,
    TOOLS,
    Finding,
    State,
    goal_of,
    kernels_of,
    look_for,
    parse_version,
    toolchain_tools,
)
from mepof.toolchain.protocol import TOOLCHAINS

_GIB = 1 << 30
# An unpacked kernel takes 1.7 GB and every build of `slim` 0.2 GB; the compiler cache grows.
_DISK = 5 * _GIB
_MEMORY = 4 * _GIB
_ANOTHER_STORE = "choose another store with MEPOF_STORE"


def findings(store: Path) -> list[Finding]:
    """Everything that mepof needs of this machine.

    Args:
        store: where artifacts go.
    """
    llvm = scheduling_models.suffix_here()
    return [
        *(look_for(tool) for tool in (*toolchain_tools(), *TOOLS)),
        static_program(Path("/bin/busybox"), "the guest's shell", "busybox-static"),
        *toolchain_files(),
        file_at(
            Path("/usr/include/gelf.h"),
            "libelf's header",
            "kernel builds",
            "apt-get install libelf-dev",
        ),
        file_at(
            Path("/usr/include/openssl/opensslv.h"),
            "openssl's header",
            "signed modules",
            "apt-get install libssl-dev",
            required=False,
            goal=EXTRAS,
        ),
        file_at(
            Path(f"/usr/lib/llvm{llvm}/include") / scheduling_models.HEADER,
            "LLVM's headers",
            "the emulated PMU",
            f"apt-get install llvm{llvm}-dev",
            required=False,
            goal=CORE_MODELS,
        ),
        file_at(
            Path("/usr/include/sqlite3.h"),
            "SQLite's header",
            "the suite sqlite",
            "apt-get install libsqlite3-dev",
            required=False,
            goal=SUITES,
        ),
        # A user's PATH does not have the administrator's directories.
        file_at(
            Path("/sbin/mke2fs"),
            "mke2fs",
            "the suites sqlite and tools",
            "apt-get install e2fsprogs",
            required=False,
            goal=SUITES,
        ),
        *(c_library(each.name, each.guest) for each in arch.records() if each.guest is not None),
        kernel_sources(Path("/usr/src")),
        *python_packages(metadata.requires("mepof") or []),
        engine(),
        kvm(Path("/dev/kvm")),
        writable(store),
        amount("disk", f"artifacts in {store}", free_space(store), _DISK, True),
        amount("memory", "links and boots", memory(), _MEMORY, False),
    ]


def static_program(path: Path, purpose: str, package: str) -> Finding:
    """A program for the guest, which has no shared libraries."""
    state: State = "missing"
    if path.is_file():
        state = "ok" if is_static(path) else "broken"
    found = {"missing": None, "ok": "static", "broken": "not static"}[state]
    remedy = None if state == "ok" else f"apt-get install {package}"
    return Finding(str(path), purpose, found, "static", state, True, remedy)


def is_static(path: Path) -> bool:
    """Whether a file is a program that needs no shared libraries."""
    try:
        with path.open("rb") as file:
            return all(s["p_type"] != "PT_INTERP" for s in ELFFile(file).iter_segments())
    except (ELFError, OSError):
        return False


def file_at(
    path: Path | None,
    name: str,
    purpose: str,
    remedy: str,
    required: bool = True,
    goal: str = KERNELS,
) -> Finding:
    """A file that a package installs, such as a header."""
    if path is not None and path.is_file():
        return Finding(name, purpose, "there", "any", "ok", required, goal=goal)
    return Finding(name, purpose, None, "any", "missing", required, remedy, goal)


def c_library(name: str, target: Guest) -> Finding:
    """The static C library of an architecture's guest compiler."""
    try:
        path = next(iter(guest.c_libraries(target)), None)
    except MepofError:
        path = None
    return file_at(
        path,
        f"{name}'s libc.a",
        f"the programs of {name} guests",
        target.remedy,
        required=name == arch.DEFAULT,
        goal=kernels_of(name),
    )


def toolchain_files() -> list[Finding]:
    """The files that toolchains need beside their programs."""
    return [
        file_at(
            file.path,
            file.name,
            file.purpose,
            f"apt-get install {file.package}" if file.package else "make setup",
            required=name == DEFAULT,
            goal=goal_of(name),
        )
        for name, family in TOOLCHAINS.all().items()
        for file in family.files()
    ]


def kernel_sources(directory: Path) -> Finding:
    """Debian's kernel source packages that are installed."""
    found = sorted(path.name.partition(".tar")[0] for path in directory.glob("linux-source-*.tar*"))
    return Finding(
        "kernel source",
        "debian:linux-source-…",
        ", ".join(found) or None,
        "any",
        "ok" if found else "missing",
        False,
        None if found else "apt-get install linux-source-6.12",
        EXTRAS,
    )


def kvm(device: Path) -> Finding:
    """Whether this user may use hardware virtualisation, which measured boots do not need."""
    state: State = "ok" if os.access(device, os.R_OK | os.W_OK) else "missing"
    there = device.exists()
    return Finding(
        str(device),
        "hardware virtualisation",
        "usable" if state == "ok" else "no permission" if there else None,
        "usable",
        state,
        False,
        "usermod --append --groups kvm $USER" if there and state != "ok" else None,
        EXTRAS,
    )


def writable(store: Path) -> Finding:
    """Whether artifacts can be written."""
    why = why_unwritable(store)
    state: State = "broken" if why else "ok"
    return Finding(
        *("store", f"artifacts in {store}", why, "a directory", state, True),
        _ANOTHER_STORE if why else None,
    )


def amount(name: str, purpose: str, found: int, needed: int, required: bool) -> Finding:
    """An amount of bytes, compared with what is needed."""
    enough = found >= needed
    return Finding(
        name,
        purpose,
        f"{found / _GIB:.1f} GiB",
        f"≥ {needed / _GIB:g} GiB",
        "ok" if enough else "too little",
        required,
        None if enough or not required else f"free some, or {_ANOTHER_STORE}",
        goal=KERNELS if required else EXTRAS,
    )


def free_space(directory: Path) -> int:
    """Free bytes on the file system of a directory, which need not exist yet."""
    while not directory.is_dir():
        directory = directory.parent
    return shutil.disk_usage(directory).free


def memory() -> int:
    """Bytes of main memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def python_packages(requirements: list[str]) -> list[Finding]:
    """Python itself and the packages of requirements such as ``rich>=13.7``; others
    (``… ; extra == "dev"``) are not needed to run."""
    here = ".".join(map(str, sys.version_info[:3]))
    findings = [_package("python", here, "3.11")]
    for requirement in requirements:
        plain = re.fullmatch(r"([\w.-]+)>=([\d.]+)", requirement)
        if plain is None:
            continue
        try:
            version = metadata.version(plain[1])
        except metadata.PackageNotFoundError:
            version = None
        findings.append(_package(plain[1], version, plain[2]))
    return findings


def engine() -> Finding:
    """The compiled part of mepof: built, and from the same release as the Python code."""
    try:
        found = import_module("mepof._engine").__version__
    except ImportError:
        found = None
    state: State = "missing" if found is None else "ok"
    if found not in (None, mepof.__version__):
        state = "broken"
    return Finding(
        *("profile engine", "converts branch traces", found, mepof.__version__, state, True),
        None if state == "ok" else "make setup",
    )


def _package(name: str, found: str | None, minimum: str) -> Finding:
    state: State = "ok"
    if found is None:
        state = "missing"
    elif parse_version(found) < parse_version(minimum):
        state = "too old"
    remedy = None if state == "ok" else "make setup"
    return Finding(name, "Python", found, f"≥ {minimum}", state, True, remedy)
