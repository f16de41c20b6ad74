"""``kselftest-programs``: compiles selftests of a kernel's tree, as a separate initramfs archive.

The tree's own makefiles do it, in a copy of its tools: some of them write beside their sources.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from mepof import arch
from mepof.device.initramfs import Entry, archive, tree
from mepof.errors import InputError, WorkError
from mepof.gate.kselftests import (
    GUEST_DIRECTORY,
    Collection,
    TestProgram,
    TestPrograms,
    catalogue_digest,
    collections_of,
    load_kselftests,
)
from mepof.gate.results import Unbuilt
from mepof.kernel.overlay import files_digest, native_directory
from mepof.plan.body import Phase, Resources, StepContext
from mepof.plan.digest import file_digest
from mepof.plan.model import Input, Step
from mepof.process import find_tool, version_line
from mepof.spec.kselftest_programs import KselftestPrograms
from mepof.toolchain import guest
from mepof.toolchain.runtime_libraries import library, runtime_libraries

_SELFTESTS = Path("tools/testing/selftests")
_HOST_COMPILER = ("gcc", "apt-get install gcc libc6-dev")
# The makefiles would take these from the caller's environment, which no fingerprint covers.
_CALLERS = (
    *("ARCH", "CC", "CFLAGS", "CPPFLAGS", "CROSS_COMPILE", "KBUILD_OUTPUT", "LDFLAGS", "LDLIBS"),
    *("LLVM", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "O", "USERCFLAGS", "USERLDFLAGS"),
)
_ELF = b"\x7fELF"
_COMPLAINTS = ("error:", "cannot find", "***")
_INTERMEDIATE = (".o", ".d", ".a")


class KselftestProgramsBody:
    """Makes ``archive.cpio`` and ``programs.json``."""

    kind = KselftestPrograms.kind
    phase: Phase = "build"

    def check(self, step: Step) -> None:
        """Refuse an architecture that has no guest."""
        guest.target(KselftestPrograms[Input].of(step, step.inputs).arch)

    def resources(self, step: Step) -> Resources:
        return Resources(cores=64, yields=True)

    def identity(self, step: Step) -> Mapping[str, str]:
        asked = KselftestPrograms[Input].of(step, step.inputs)
        target = guest.target(asked.arch)
        collections = collections_of(asked.collections, asked.arch)
        libraries = {name: None for each in collections for name in each.libraries}
        compiler = find_tool(target.library_compiler, target.library_remedy)
        return {
            **guest.identity(target),
            "kselftest compiler": version_line(compiler),
            "host compiler": version_line(find_tool(*_HOST_COMPILER)),
            "kselftests": catalogue_digest(collections),
            "native": _sources_digest(),
            **{f"lib{name}": _library_digest(compiler, name) for name in ("c", *libraries)},
        }

    def run(self, context: StepContext) -> None:
        asked = KselftestPrograms[Path].of(context.step, context.inputs)
        view = _view(asked.source, context.work / "tree")
        headers = _headers(context, asked)
        collections = collections_of(asked.collections, asked.arch)
        files: dict[str, Path] = {}
        programs: list[TestProgram] = []
        unbuilt: list[Unbuilt] = []
        for number, each in enumerate(collections):
            context.progress(number, len(collections), "collections", each.name)
            made = _Made(context, asked.arch, view / _SELFTESTS / each.name, each, headers)
            made.build()
            programs += made.programs()
            unbuilt += made.unbuilt()
            files |= made.files()
        if not programs:
            why = unbuilt[0].reason if unbuilt else "there is none"
            raise WorkError(f"no kselftest could be compiled: {why}", f"see {context.log}")
        compiler = guest.target(asked.arch).library_compiler
        files |= runtime_libraries(compiler, list(files.values()))
        files[f"{GUEST_DIRECTORY}/enter"] = _launcher(context, asked.arch)
        entries = tree(Entry(name, 0o755, path.read_bytes()) for name, path in files.items())
        (context.output / "archive.cpio").write_bytes(archive(entries))
        TestPrograms(programs=tuple(programs), unbuilt=tuple(unbuilt)).write(context.output)
        if unbuilt:
            names = ", ".join(each.name for each in unbuilt)
            context.note(f"{len(programs)} kselftests compiled; not compiled: {names}")


def _view(source: Path, view: Path) -> Path:
    """A view of a source tree with a copy of its tools: makefiles of selftests also write into the
    libraries beside them, and a given tree stays as it is.

    Raises:
        InputError: the tree has none.
    """
    if not (source / _SELFTESTS / "lib.mk").is_file():
        raise InputError(
            f"the kernel's source tree has no {_SELFTESTS}/lib.mk, so it has no kselftests",
            "use a complete kernel tree, or leave `kselftest` out of `check`",
        )
    if view.exists():  # of an interrupted run
        shutil.rmtree(view)
    copied = _SELFTESTS.parts[0]
    view.mkdir(parents=True)
    for path in source.iterdir():
        if path.name != copied:
            (view / path.name).symlink_to(path.resolve())
    shutil.copytree(source / copied, view / copied, symlinks=True)
    for directory, _, names in os.walk(view / copied):
        for path in (Path(directory), *(Path(directory) / name for name in names)):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)
    return view


def _headers(context: StepContext, asked: KselftestPrograms[Path]) -> Path:
    """The kernel's headers for user space; nothing is written into the tree."""
    objects = context.work / "headers"
    objects.mkdir(exist_ok=True)
    machine = arch.get(asked.arch).make
    make: list[str | Path] = [
        "make",
        "-C",
        asked.source,
        f"O={objects}",
        f"ARCH={machine}",
        "headers",
    ]
    context.run([*_clean_environment(), *make])
    return objects / "usr/include"


def _clean_environment() -> list[str]:
    # An empty variable is not the same as none to makefiles that ask by `?=`.
    return ["env", *(word for name in _CALLERS for word in ("-u", name)), "LC_ALL=C"]


class _Made:
    """The programs of one collection."""

    def __init__(
        self,
        context: StepContext,
        arch_name: str,
        directory: Path,
        collection: Collection,
        headers: Path,
    ) -> None:
        self._context = context
        self._target = guest.target(arch_name)
        self._machine = arch.get(arch_name).make
        self._directory = directory
        self._collection = collection
        self._headers = headers
        self._named: tuple[str, ...] = ()
        self._before: frozenset[Path] = frozenset()
        self._why = ""

    def build(self) -> None:
        collection, directory = self._collection, self._directory
        if not (directory / "Makefile").is_file():
            self._why = "the tree does not have it"
            return
        compiler = self._target.library_compiler
        missing = [name for name in collection.libraries if library(compiler, name) is None]
        if missing:
            packages = " ".join(load_kselftests().packages[name] for name in missing)
            self._why = f"needs {', '.join(f'lib{n}' for n in missing)}: apt-get install {packages}"
            if not collection.partly:
                return
        self._before = frozenset(directory.iterdir())
        make: list[str | Path] = [*_clean_environment(), "make", "-C", directory]
        make += [f"OUTPUT={directory}"]
        make += [f"KHDR_INCLUDES=-isystem {self._headers}", *self._cross(compiler)]
        # Whatever can be compiled is.
        cores = f"-j{self._context.cores}"
        done = self._context.run([*make, "--keep-going", cores, "all"], check=False)
        listed = self._context.run(
            [*make, "-s", "--no-print-directory", "COLLECTION=", "emit_tests"], check=False
        )
        emitted = (line.lstrip(":") for line in listed.output.splitlines() if line[:1] == ":")
        self._named = collection.programs or tuple(emitted)
        if done.status != 0:
            complaints = (
                line.strip()
                for line in done.output.splitlines()
                if any(each in line for each in _COMPLAINTS)
            )
            self._why = self._why or next(complaints, f"make failed with status {done.status}")

    def programs(self) -> Iterator[TestProgram]:
        collection = self._collection
        where = f"/{GUEST_DIRECTORY}"
        for name in self._named:
            if name in collection.omitted or not _is_program(self._directory / name):
                continue
            given = collection.arguments.get(name, ())
            yield TestProgram(
                name=f"{collection.name}:{name}",
                argv=(f"{where}/enter", f"{where}/{collection.name}", f"./{name}", *given),
                seconds=collection.limits.get(name, collection.seconds),
            )

    def unbuilt(self) -> Iterator[Unbuilt]:
        """Programs that were not compiled; scripts are none."""
        name = self._collection.name
        if not self._named:
            if self._why:
                yield Unbuilt(name=name, reason=self._why)
            return
        for each in self._named:
            path = self._directory / each
            if each not in self._collection.omitted and not path.exists():
                yield Unbuilt(name=f"{name}:{each}", reason=self._why or "nothing made it")

    def files(self) -> dict[str, Path]:
        """What the makefile made, and further files that the programs read, by path in a guest."""
        if not self._named:
            return {}
        made = [
            path
            for path in sorted(self._directory.iterdir())
            if path not in self._before and path.suffix not in _INTERMEDIATE and _is_program(path)
        ]
        data = (self._directory / name for name in self._collection.files)
        where = f"{GUEST_DIRECTORY}/{self._collection.name}"
        return {f"{where}/{path.name}": path for path in (*made, *data) if path.is_file()}

    def _cross(self, compiler: str) -> tuple[str, ...]:
        """The makefiles find out themselves what they compile for, unless it is another machine."""
        prefix = compiler.removesuffix("gcc")
        if prefix in ("", compiler):
            return ()
        return (f"CROSS_COMPILE={prefix}", f"ARCH={self._machine}")


def _is_program(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def _launcher(context: StepContext, arch_name: str) -> Path:
    compiler = f"GUEST_CC={guest.target(arch_name).compiler}"
    sources = native_directory() / "kselftest"
    context.run(["make", "-C", sources, f"OUT={context.work}", compiler])
    return context.work / "enter"


@cache
def _sources_digest() -> str:
    root = native_directory()
    return files_digest(root, sorted((root / "kselftest").iterdir()))


def _library_digest(compiler: str, name: str) -> str:
    path = library(compiler, name)
    return "missing" if path is None else file_digest(path)


BODY = KselftestProgramsBody()
