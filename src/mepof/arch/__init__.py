"""Architectures: one record each, ``NAME.toml`` beside this module, found by its G4 name.

A port begins with what kbuild needs to know, and gains a stage with each further section:
``guest`` builds the programs of a guest (``native`` on a machine of the same architecture,
``cross`` elsewhere), ``machine`` boots it, ``pages`` models its PMU
(docs/porting.md).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from platform import machine
from typing import Annotated

from pydantic import AfterValidator, Field

from mepof.described import Described, Named
from mepof.errors import InputError
from mepof.registry import DescribedRegistry

DEFAULT = "x86-64"


def _power_of_two(size: int) -> int:
    if size <= 0 or size & (size - 1):
        raise ValueError(f"{size} is not a power of two")
    return size


def _hexadecimal(text: str) -> str:
    if not bytes.fromhex(text):
        raise ValueError("no bytes")
    return text


PageBytes = Annotated[int, AfterValidator(_power_of_two)]


class Guest(Described):
    """What builds the programs of a guest.

    Attributes:
        shell: whether the guest has BusyBox.
        compiler: builds static programs.
        packages: Debian's, of that compiler and its C library.
        libc: pattern below ``/`` of that library. Without one the compiler is asked; musl's
            wrapper would name the C library of the gcc that it wraps.
        library_compiler: builds static programs with a distribution's static libraries, which
            are built for glibc.
        library_packages: Debian's, of that compiler and its C library.
        library_install: command that installs the library ``{name}``.
        debian: Debian's name of the packages that programs come from, if it is not that of the
            kernel's.
    """

    shell: bool
    compiler: str
    packages: tuple[str, ...]
    libc: str | None = None
    library_compiler: str
    library_packages: tuple[str, ...]
    library_install: str
    debian: str | None = None

    @property
    def remedy(self) -> str:
        """The command that installs the compiler."""
        return "apt-get install " + " ".join(self.packages)

    @property
    def library_remedy(self) -> str:
        """The command that installs the compiler for libraries."""
        return "apt-get install " + " ".join(self.library_packages)


class Guests(Described):
    """What builds the programs of a guest, by the machine on which they are built.

    Attributes:
        native: on a machine of the guest's architecture.
        cross: on any other.
    """

    native: Guest | None = None
    cross: Guest | None = None


class Bus(Described):
    """Another machine, for kernels that find their devices on another bus.

    Attributes:
        arguments: as those of :class:`Machine`.
        options: what a kernel needs to find them, built in or as modules.
    """

    arguments: tuple[str, ...]
    options: tuple[str, ...]


# The initramfs with what a guest is asked to do, and the port on which it answers.
_GUEST = ("BLK_DEV_INITRD", "VIRTIO_CONSOLE")


class Machine(Described):
    """The machine that QEMU emulates.

    Attributes:
        binary: QEMU's program.
        package: Debian's.
        cpu: its processor, where no core is modelled.
        repeat_core: the core by whose costs string instructions with a repeat prefix are priced
            then; None where there are no such instructions.
        arguments: those that choose the machine and its devices; ``{cpu}`` is the processor.
        options: what a kernel needs to find the devices, built in.
        pci: the machine for kernels that lack these options and have its own.
        parameters: the kernel's command line.
        real_time: added to it where guests run in real time.
        early_console: added to it where a kernel that does not boot is asked to speak as soon as it
            can.
        max_cpus: the largest number of CPUs that guests can have.
    """

    binary: str
    package: str
    cpu: str
    repeat_core: str | None = None
    arguments: tuple[str, ...]
    options: tuple[str, ...] = ()
    pci: Bus | None = None
    parameters: str
    real_time: str = ""
    early_console: str = ""
    max_cpus: int = 1

    def words(self, cpu: str | None = None, config: str = "") -> tuple[str, ...]:
        """QEMU's arguments for this machine, or for that with PCI if a kernel finds its devices on
        it alone.

        Args:
            cpu: QEMU's name of another processor.
            config: the kernel's whole configuration; empty where it is not known.
        """
        lines = config.splitlines()
        built_in, modules = (
            {line[len("CONFIG_") : -2] for line in lines if line.endswith(end)}
            for end in ("=y", "=m")
        )
        arguments = self.arguments
        if self.pci is not None and (built_in | modules).issuperset(self.pci.options):
            arguments = arguments if built_in.issuperset(self.options) else self.pci.arguments
        return tuple(word.format(cpu=cpu or self.cpu) for word in arguments)

    def lacking(self, built: Collection[str]) -> tuple[str, ...]:
        """The options without which a kernel cannot be reached on this machine: of this one or that
        with PCI, whichever it lacks fewer of.

        Args:
            built: the names of the options that it has, built in or as modules.
        """
        ways = (self.options, *(() if self.pci is None else (self.pci.options,)))
        lacks = (tuple(o for o in (*_GUEST, *way) if o not in built) for way in ways)
        return min(lacks, key=len)


class Pages(Described):
    """Bytes of the pages that Linux maps its text and its data with."""

    text: PageBytes
    data: PageBytes


class Magic(Described):
    """Bytes by which an image is recognised: their offset, and they themselves in hexadecimal."""

    at: int = Field(ge=0)
    data: Annotated[str, AfterValidator(_hexadecimal)]

    def is_in(self, head: bytes) -> bool:
        """Whether a file that begins with ``head`` has them."""
        return head.startswith(bytes.fromhex(self.data), self.at)


class Arch(Named):
    """An architecture.

    Attributes:
        name: its G4 name.
        make: value of ``ARCH=``.
        source: directory under ``arch/``.
        triple: of GNU and LLVM tools.
        target: make target of the bootable image.
        image: path of that image in the build directory.
        magic: all of which that image has.
        gzip: whether it can be booted compressed by gzip.
        elf_machine: ``e_machine`` of ``vmlinux`` (System V ABI).
        debian: Debian's name, which images use too (Go's ``GOARCH``).
        overlays: laid over every tree that is built for it.
        algorithm_overlays: laid, too, over trees that an algorithm instruments or optimises.
        toolchains: the families of those that build kernels for it; empty for all.
        compiler_links: whether the compiler links the kernel, with GNU ld, instead of the linker
            of the toolchain.
        frees_init: whether the kernel frees the memory of its code for booting.
    """

    make: str
    source: str
    triple: str
    target: str
    image: str
    magic: tuple[Magic, ...] = Field(min_length=1)
    gzip: bool = False
    elf_machine: int
    debian: str | None = None
    overlays: tuple[str, ...] = ()
    algorithm_overlays: tuple[str, ...] = Field(default=(), alias="algorithm-overlays")
    toolchains: tuple[str, ...] = ()
    compiler_links: bool = Field(default=False, alias="compiler-links")
    frees_init: bool = Field(default=True, alias="frees-init")
    guests: Guests = Field(default=Guests(), alias="guest")
    machine: Machine | None = None
    pages: Pages | None = None

    @property
    def cross_prefix(self) -> str:
        """What the names of Debian's GNU tools for it begin with."""
        return f"{self.triple}-"

    def built_by(self, family: str) -> bool:
        """Whether a family of toolchains builds kernels for it."""
        return not self.toolchains or family in self.toolchains

    @property
    def guest(self) -> Guest | None:
        """What builds a guest's programs on this machine; None where nothing does."""
        return self.guests.native if self.is_native else self.guests.cross

    @property
    def guest_debian(self) -> str | None:
        """Debian's name of the packages that a guest's programs come from."""
        return self.debian if self.guest is None else self.guest.debian or self.debian

    @property
    def cpu(self) -> str:
        """What ``uname -m`` prints on it, and what rpm and pacman call it."""
        return self.triple.partition("-")[0]

    @property
    def is_native(self) -> bool:
        """Whether its code is that of this machine."""
        return self.cpu == machine()


ARCHITECTURES = DescribedRegistry(Path(__file__).parent, Arch, "architecture")


def names() -> tuple[str, ...]:
    """The G4 name of every architecture, sorted."""
    return ARCHITECTURES.names()


@cache
def get(name: str) -> Arch:
    """The architecture of that name.

    Raises:
        InputError: there is none.
    """
    try:
        return ARCHITECTURES.get(name)
    except InputError as error:
        others = ((each.name, (each.debian, each.cpu)) for each in records() if each.debian)
        near = next((known for known, theirs in others if name in theirs), None)
        raise InputError(
            error.message, f"did you mean `{near}`?" if near else error.remedy
        ) from None


@cache
def records() -> tuple[Arch, ...]:
    """Every architecture, sorted by name."""
    return tuple(map(get, names()))


def host() -> str | None:
    """The architecture whose guests run programs of this machine; None if mepof has none."""
    return next((each.name for each in records() if each.is_native and each.machine), None)
