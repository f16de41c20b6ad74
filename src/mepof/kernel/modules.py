"""The modules of a build: files with their debug information, and the order in which they load.

``modules/NAME.ko`` in a build is each as it was linked; ``modules.json`` lists them so that each
comes after those that it needs. What a module needs is in its section ``.modinfo``
(Documentation/kbuild/modules.rst and include/linux/module.h in the kernel's tree): ``depends``
names modules, and ``softdep`` names modules or aliases that should be there first.

``modules.builtin`` and ``modules.builtin.modinfo`` beside it say what would be a module and is in
the kernel instead, for depmod and makers of an initramfs (Documentation/kbuild/kbuild.rst).
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from pydantic import BaseModel, ConfigDict

from mepof.document import Document
from mepof.errors import WorkError
from mepof.kernel import integrity
from mepof.kernel.release import release_of
from mepof.tar import member
from mepof.toolchain.protocol import Run

DIRECTORY = "modules"
_BUILT_IN = ("modules.builtin", "modules.builtin.modinfo")
_SHF_EXECINSTR = 0x4


class Module(BaseModel):
    """A module of a build.

    Attributes:
        name: as the kernel calls it.
        path: of the file in the tree.
        needs: the modules that must be loaded before it.
        wants: those that should be.
        text: bytes of code that stay after initialisation.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    path: str
    needs: tuple[str, ...]
    wants: tuple[str, ...] = ()
    text: int

    def file(self, build: Path) -> Path:
        """The module as it was linked, in a build."""
        return build / DIRECTORY / Path(self.path).name


class Modules(Document):
    """The modules of a build, in an order in which they can be loaded."""

    file: ClassVar[str] = "modules.json"

    modules: tuple[Module, ...]

    def needed_by(self, names: Collection[str]) -> Modules:
        """Those of some modules that were built, and all that they need or want."""
        needed = set(names)
        for module in reversed(self.modules):
            if module.name in needed:
                needed.update(module.needs, module.wants)
        return Modules(modules=tuple(each for each in self.modules if each.name in needed))

    def stripped(
        self, build: Path, objcopy: str, output: Path, run: Run
    ) -> Iterator[tuple[Module, Path]]:
        """Each module and a copy of it without debug information.

        Args:
            objcopy: the tool that strips.
            output: directory for the copies.
        """
        for module in self.modules:
            copy = output / f"{module.name}.ko"
            run([objcopy, "--strip-debug", module.file(build), copy])
            yield module, copy

    def pack(self, build: Path, target: Path) -> None:
        """Write a tar archive to unpack in ``/``: each as it was linked, where modprobe looks.

        It has no directories, as ``/lib`` may be a link.

        Raises:
            WorkError: the kernel does not state its release.
        """
        below = f"lib/modules/{release_of(build / 'vmlinux')}"
        order = "".join(f"kernel/{module.path}\n" for module in self.modules).encode()
        with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
            for module in self.modules:
                with module.file(build).open("rb") as file:
                    size = module.file(build).stat().st_size
                    tar.addfile(member(f"{below}/kernel/{module.path}", size=size), file)
            tar.addfile(member(f"{below}/modules.order", size=len(order)), io.BytesIO(order))
            for path in lists_of_built_in(build):
                data = path.read_bytes()
                tar.addfile(member(f"{below}/{path.name}", size=len(data)), io.BytesIO(data))


@dataclass(frozen=True)
class _Linked:
    """A linked module."""

    path: str
    depends: tuple[str, ...]
    first: tuple[str, ...]
    aliases: frozenset[str]
    text: int


def collect(objects: Path, output: Path) -> Sequence[str]:
    """Copy the modules that kbuild made, and describe them.

    Args:
        objects: the directory in which kbuild ran, with its ``modules.order``.
        output: the build.

    Returns:
        What is wrong with their tables; empty if nothing is.

    Raises:
        WorkError: a module is missing or is not readable, or modules need each other.
    """
    shutil.rmtree(output / DIRECTORY, ignore_errors=True)
    for name in (Modules.file, *_BUILT_IN):
        (output / name).unlink(missing_ok=True)
    linked, faults = {}, []
    for path in _built(objects):
        linked[_name(path)] = _read(objects / path, path)
        faults += [f"{path}: {fault}" for fault in integrity.module_faults(objects / path)]
    if not linked:
        return faults
    (output / DIRECTORY).mkdir()
    for each in linked.values():
        shutil.copy2(objects / each.path, output / DIRECTORY)
    for listed in lists_of_built_in(objects):
        shutil.copy2(listed, output)
    Modules(modules=tuple(_ordered(linked))).write(output)
    return faults


def lists_of_built_in(directory: Path) -> list[Path]:
    """What says which modules are in the kernel itself: those of the files that are there.

    Older kernels do not make the second one, and builds of older versions of mepof have neither.
    """
    return [path for name in _BUILT_IN if (path := directory / name).is_file()]


def unbuilt(build: Path, names: Iterable[str]) -> list[str]:
    """Those of some names that a build has neither as a module nor in the kernel itself; none if
    it has no modules at all."""
    made = Modules.find(build)
    if made is None:
        return []
    listed = [path for path in lists_of_built_in(build) if path.name == _BUILT_IN[0]]
    built_in = (name for path in listed for name in path.read_text(encoding="utf-8").split())
    return sorted({*names}.difference((each.name for each in made.modules), map(_name, built_in)))


def code_sections(module: Path) -> dict[str, int]:
    """The sizes in bytes of a module's sections with code that stays, by name.

    Raises:
        WorkError: it cannot be read.
    """
    try:
        with module.open("rb") as file:
            return {
                section.name: section["sh_size"]
                for section in ELFFile(file).iter_sections()
                if section["sh_flags"] & _SHF_EXECINSTR
                and section["sh_size"]
                and not section.name.startswith(".init")
            }
    except (ELFError, OSError, ValueError) as error:  # offsets beyond any file
        raise _unreadable(module, error) from error


def _built(objects: Path) -> Iterator[str]:
    """The paths of the modules, in the order of the kernel's Makefiles."""
    try:
        listed = (objects / "modules.order").read_text(encoding="utf-8")
    except OSError as error:
        raise WorkError(f"kbuild left no list of modules: {error}") from error
    # Since Linux 6.2 it names the objects.
    return (str(Path(line).with_suffix(".ko")) for line in listed.split())


def _name(path: str) -> str:
    return Path(path).stem.replace("-", "_")


def _read(file: Path, path: str) -> _Linked:
    try:
        with file.open("rb") as opened:
            section = ELFFile(opened).get_section_by_name(".modinfo")
            data = b"" if section is None else section.data()
    except (ELFError, OSError, ValueError) as error:
        raise _unreadable(file, error) from error
    info: dict[str, list[str]] = {}
    for field in data.decode("utf-8", "replace").split("\0"):
        tag, equals, value = field.partition("=")
        if equals:
            info.setdefault(tag, []).append(value)
    return _Linked(
        path=path,
        depends=tuple(
            name.replace("-", "_")
            for value in info.get("depends", [])
            for name in value.split(",")
            if name
        ),
        first=tuple(word for value in info.get("softdep", []) for word in _before(value)),
        aliases=frozenset(info.get("alias", [])),
        text=sum(code_sections(file).values()),
    )


def _before(softdep: str) -> Iterator[str]:
    """What ``pre: A B post: C`` wants before the module."""
    kind = ""
    for word in softdep.split():
        if word.endswith(":"):
            kind = word
        elif kind == "pre:":
            yield word


def _ordered(linked: Mapping[str, _Linked]) -> Iterator[Module]:
    """Every module, after those that it needs or wants."""
    provided = {alias: name for name, each in linked.items() for alias in each.aliases}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> Iterator[Module]:
        if name in done:
            return
        if name in way:
            raise WorkError(f"the modules {' → '.join((*way, name))} need each other")
        each = linked[name]
        for needed in each.depends:
            if needed not in linked:
                raise WorkError(
                    f"the module {name} needs {needed}, which was not built",
                    "set its option in the configuration to m or y",
                )
            yield from visit(needed, (*way, name))
        wants = []
        for wanted in each.first:
            known = wanted.replace("-", "_")
            found = known if known in linked else provided.get(wanted)
            # Only a wish: what is built in, or would be in a circle, is passed over.
            if found is not None and found not in (*way, name):
                wants.append(found)
                yield from visit(found, (*way, name))
        done.add(name)
        yield Module(
            name=name, path=each.path, needs=each.depends, wants=tuple(wants), text=each.text
        )

    for name in linked:
        yield from visit(name, ())


def _unreadable(module: Path, error: Exception) -> WorkError:
    return WorkError(f"{module} cannot be read as a module: {error}")
