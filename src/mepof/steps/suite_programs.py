"""``suite-programs``: builds what a suite or an app adds to a guest, as a separate archive.

The guest itself does not change with a suite: kernel builds boot it as a check, and a change of
a suite must not rebuild kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mepof import arch as architectures
from mepof.app.apps import programs_of
from mepof.app.laid import Laid, write_archive
from mepof.app.packaged import BUSYBOX, packaged
from mepof.device import ext4
from mepof.errors import InputError
from mepof.kernel.overlay import files_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest, walk
from mepof.plan.model import Input, Step
from mepof.process import find_tool, version_line
from mepof.spec.suite_programs import SuitePrograms
from mepof.suite.cases import Programs, Tool, load_suite, suite_names
from mepof.toolchain import guest, shared_libraries

_DIRECTORY = "suites"
_SHARED = ("suites/Makefile", "suites/*.[ch]", "abi/**/*")


class SuiteProgramsBody:
    """Makes ``archive.cpio``."""

    kind = SuitePrograms.kind
    phase: Phase = "build"

    def check(self, step: Step) -> None:
        """Refuse an architecture that the suite has no programs for."""
        asked = SuitePrograms[Input].of(step, step.inputs)
        _programs(asked.suite, asked.arch)

    def resources(self, step: Step) -> Resources:
        return Resources()

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = SuitePrograms[Input].of(step, step.inputs)
        programs, arch = _programs(asked.suite, asked.arch), asked.arch
        found: dict[str, str] = {}
        if programs.native is not None:
            target = guest.target(arch)
            found["native"] = _sources_digest(programs.native)
            found |= (
                guest.library_identity(target, programs.libraries)
                if programs.libraries
                else guest.identity(target)
            )
        for builder in programs.builders:
            program = find_tool(builder.path, f"apt-get install {builder.package}")
            found[builder.path] = version_line(program)
        if arch == architectures.host():
            for tool in programs.tools:
                for path in shared_libraries.closure(tool.path, tool.package):
                    found[str(path)] = file_digest(path)
        found |= packaged(_packaged_tools(programs, arch), arch)[1]
        if programs.scratch:
            found |= ext4.identity()
        return found

    def run(self, context: StepContext) -> None:
        asked = SuitePrograms[Path].of(context.step, context.inputs)
        programs = _programs(asked.suite, asked.arch)
        files: dict[str, Laid] = {}
        if programs.native is not None:
            target = guest.target(asked.arch)
            compiler = target.library_compiler if programs.libraries else target.compiler
            context.run(
                [
                    *("make", "-C", native_directory() / "suites", f"OUT={context.work}"),
                    *(f"SUITE={programs.native}", f"GUEST_CC={compiler}"),
                    f"LIBRARIES={' '.join(programs.libraries)}",
                ]
            )
            made = context.work / programs.native
            files |= _libraries(str(made), "libc6")
            del files[str(made).lstrip("/")]
            files[f"{_DIRECTORY}/{programs.native}"] = Laid(made, executable=True)
            files |= _laid(context.work / f"{programs.native}.tree")
        if asked.arch == architectures.host():
            for tool in programs.tools:
                files |= _libraries(tool.path, tool.package)
        files |= packaged(_packaged_tools(programs, asked.arch), asked.arch)[0]
        if programs.scratch:
            image = ext4.make(programs.scratch, context.work, context.run)
            files[f"{_DIRECTORY}/scratch.blocks"] = Laid(image)
        write_archive(files, context.output / "archive.cpio")


def _packaged_tools(programs: Programs, arch: str) -> tuple[Tool, ...]:
    """What a guest that cannot have it from this machine gets from Debian's packages."""
    tools = () if arch == architectures.host() else programs.tools
    if programs.shell and not guest.target(arch).shell:
        tools = (*tools, BUSYBOX)
    return tools


def _libraries(program: str, package: str) -> dict[str, Laid]:
    """A program and its shared libraries, at the paths that they have here."""
    return {
        str(path).lstrip("/"): Laid(path, executable=True)
        for path in shared_libraries.closure(program, package)
    }


def _laid(root: Path) -> dict[str, Laid]:
    """What is below a directory, if there is one, with modes that no umask decides."""
    found: dict[str, Laid] = {}
    for relative, kind, _ in walk(root) if root.is_dir() else ():
        path = root / relative
        if kind == "link":
            found[relative] = Laid(link=str(path.readlink()))
        else:
            found[relative] = Laid(None if kind == "dir" else path, executable=kind == "exec")
    return found


def _programs(name: str, arch: str) -> Programs:
    programs = programs_of(name)
    assert programs is not None
    if name not in suite_names():
        return programs
    suite = load_suite(name)
    if suite.architectures and arch not in suite.architectures:
        raise InputError(
            f"the suite {suite.name} has no programs for {arch}",
            "leave it out, or choose " + " or ".join(suite.architectures),
        )
    return programs


@cache
def _sources_digest(suite: str) -> str:
    """SHA-256 of a suite's sources and those shared by all suites."""
    root = native_directory()
    own = (root / "suites" / suite).iterdir()
    shared = (path for pattern in _SHARED for path in root.glob(pattern) if path.is_file())
    return files_digest(root, sorted({*own, *shared}))


BODY = SuiteProgramsBody()
