"""Which of the kernel's selftests the gate runs: ``kselftests.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mepof.described import Described, check_distinct, read_described
from mepof.document import Document
from mepof.gate.results import Unbuilt

_FILE = Path(__file__).with_name("kselftests.toml")

#: Where the programs are in a guest, each collection in a directory of its own.
GUEST_DIRECTORY = "kselftest"


class Collection(Described):
    """A directory of ``tools/testing/selftests``.

    Attributes:
        name: its path there, ``filesystems/epoll``.
        programs: what runs, if not all programs that its makefile names.
        arguments: of programs that need some, by program.
        seconds: limit for each program, in guest time.
        limits: other limits, by program.
        omitted: programs that do not run, with the reasons.
        libraries: what its programs are linked with beside the C library, such as ``cap``.
        partly: some of them can be compiled without these libraries.
        files: of the directory, that its programs read.
        architectures: those that it is for; empty for all.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*$")
    programs: tuple[str, ...] = ()
    arguments: Mapping[str, tuple[str, ...]] = {}
    seconds: int = Field(default=10, gt=0)
    limits: Mapping[str, int] = {}
    omitted: Mapping[str, str] = {}
    libraries: tuple[str, ...] = ()
    partly: bool = False
    files: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()


class Kselftests(Described):
    """The collections, in the order in which they run.

    Attributes:
        memory: MiB that a guest needs for all of them.
        packages: of Debian, by the name of the library that the package has.
    """

    memory: int = Field(gt=0)
    packages: Mapping[str, str]
    collections: tuple[Collection, ...] = Field(alias="collection")

    @field_validator("collections")
    @classmethod
    def _names_are_distinct(cls, given: tuple[Collection, ...]) -> tuple[Collection, ...]:
        check_distinct(each.name for each in given)
        return given


class TestProgram(BaseModel):
    """A compiled test.

    Attributes:
        name: ``COLLECTION:PROGRAM``, as the kernel's own runner calls it.
        argv: the command that runs it in a guest.
        seconds: its limit, in guest time.
    """

    __test__ = False  # not a test of ours

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    argv: tuple[str, ...]
    seconds: int


class TestPrograms(Document):
    """The compiled tests, in the order in which they run, beside the archive that holds them."""

    __test__ = False  # not a test of ours

    file: ClassVar[str] = "programs.json"

    programs: tuple[TestProgram, ...]
    unbuilt: tuple[Unbuilt, ...] = ()


@cache
def load_kselftests() -> Kselftests:
    """The catalogue.

    Raises:
        InputError: the file is wrong.
    """
    return read_described(_FILE, Kselftests, "list of kselftests")


def collection_names() -> tuple[str, ...]:
    """The collections, in the order in which they run."""
    return tuple(each.name for each in load_kselftests().collections)


def collections_of(names: tuple[str, ...], arch: str) -> tuple[Collection, ...]:
    """The collections of those names, or all, that are for an architecture."""
    return tuple(
        each
        for each in load_kselftests().collections
        if (not names or each.name in names) and arch in (each.architectures or (arch,))
    )


def catalogue_digest(collections: tuple[Collection, ...]) -> str:
    """SHA-256 over what decides which programs run, and how."""
    return sha256(repr(collections).encode()).hexdigest()
