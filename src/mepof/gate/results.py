"""What tests gave in the boots of a kernel: ``tests.json``."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict

from mepof.document import Document

Gate = Literal["kselftest", "kunit"]
"""A set of tests that images must pass."""

GATES: tuple[Gate, ...] = get_args(Gate)

Status = Literal["pass", "fail", "skip", "timeout", "crash", "panic", "hang"]
"""How a test ended; of ``crash`` the program was killed by a signal, of ``panic`` and ``hang`` the
kernel went down."""


class Result(BaseModel):
    """The result of one test in one boot.

    Attributes:
        name: ``COLLECTION:PROGRAM``, followed by ``/TEST`` for each test within it; for KUnit,
            ``SUITE/TEST``.
        reason: why it was skipped, or how it failed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    status: Status
    reason: str = ""


class TestBoot(BaseModel):
    """One boot with all tests, and those that followed it because the kernel went down.

    Attributes:
        failure: why the kernel did not boot at all; None if it did.
        notes: what is wrong with the tests' output.
    """

    __test__ = False  # not a test of ours

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int
    results: tuple[Result, ...]
    failure: str | None = None
    notes: tuple[str, ...] = ()


class Unbuilt(BaseModel):
    """A test program that could not be compiled."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    reason: str


class TestResults(Document):
    """The results of one gate's tests with one kernel.

    Attributes:
        boots: in the order of their seeds.
        unbuilt: programs that are left out because they could not be compiled.
    """

    __test__ = False  # not a test of ours

    file: ClassVar[str] = "tests.json"

    gate: Gate
    boots: tuple[TestBoot, ...]
    unbuilt: tuple[Unbuilt, ...] = ()
