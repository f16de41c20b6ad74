"""What instructions ask of a core, as LLVM's scheduling models tell it."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_int16,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
)
from dataclasses import dataclass

import pytest

from mepof.toolchain import clang

from .conftest import NATIVE, llvm_config

PMU = NATIVE / "pmu"
SIZES = dict(re.findall(r"(MOST_\w+) = (\d+)", (PMU / "operation.h").read_text()))


class Operand(ctypes.Structure):
    _fields_ = (("reg", c_uint16), ("cycles", c_int16), ("number", c_uint16))


class Bypass(ctypes.Structure):
    _fields_ = (("read", c_uint16), ("writer", c_uint16), ("cycles", c_int16))


class Use(ctypes.Structure):
    _fields_ = (("kind", c_uint8), ("cycles", c_uint8))


class Operation(ctypes.Structure):
    _fields_ = (
        ("address", c_uint64),
        ("size", c_uint8),
        ("latency", c_uint16),
        ("load_latency", c_uint16),
        *((name, c_uint8) for name in ("slots", "read_count", "write_count", "use_count")),
        *((n, c_bool) for n in ("stores", "is_vector", "compares", "branches", "takes_long")),
        ("uses", Use * int(SIZES["MOST_USES"])),
        ("all_reads", Operand * int(SIZES["MOST_READS"])),
        ("all_writes", Operand * int(SIZES["MOST_WRITES"])),
        ("bypasses", POINTER(Bypass)),
        ("bypass_count", c_uint32),
    )

    @property
    def reads(self) -> dict[int, int]:
        """Cycles after the start until it is needed, by register."""
        return {one.reg: one.cycles for one in self.all_reads[: self.read_count]}

    @property
    def writes(self) -> dict[int, int]:
        """Cycles after the start until it is there, by register."""
        return {one.reg: one.cycles for one in self.all_writes[: self.write_count]}


@dataclass(frozen=True)
class Core:
    """A library has one core at a time."""

    library: ctypes.CDLL
    target: str
    flags: tuple[str, ...]

    def of(self, text: str) -> Operation:
        """What an instruction of assembly asks."""
        assembler = (clang.select("clang").tool("llvm-mc"), f"--triple={self.target}-linux-gnu")
        words = [*assembler, *self.flags, "--show-encoding"]
        told = subprocess.run(words, input=text, check=True, capture_output=True, text=True).stdout
        encoded = re.findall(r"0x([0-9a-f]{2})", told.partition("[")[2])
        return self.of_bytes(bytes(int(byte, 16) for byte in encoded))

    def of_bytes(self, encoded: bytes) -> Operation:
        """What the instruction of that encoding asks."""
        operation = Operation()
        size = c_size_t(len(encoded))
        self.library.operation_of(encoded, size, c_uint64(0x1000), ctypes.byref(operation))
        return operation


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Core]:
    path = tmp_path_factory.mktemp("operation") / "operation.so"
    config = llvm_config()

    def asked(*words: str) -> list[str]:
        return subprocess.run(
            [config, *words], check=True, capture_output=True, text=True
        ).stdout.split()

    flags = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-shared", "-fPIC", "-O1")
    include = ("-isystem", *asked("--includedir"))
    linked = [f"-L{asked('--libdir')[0]}", *asked("--libs", "--link-shared")]
    words = ["g++", *flags, *include, "-o", str(path), str(PMU / "operation.cc"), *linked]
    subprocess.run(words, check=True, timeout=120)
    library = ctypes.CDLL(str(path))
    library.operations_open.restype = c_char_p

    def open_core(target: str, cpu: str, *flags: str) -> Core:
        room = ctypes.create_string_buffer(4096)
        assert library.operations_open(target.encode(), cpu.encode(), room) is None
        return Core(library, target, flags)

    return open_core


@pytest.fixture
def zen4(opened: Callable[..., Core]) -> Core:
    return opened("x86_64", "znver4")


@pytest.mark.parametrize("text", ["cli", "stac", "swapgs", "rdmsr", "movq %rax, %cr3", "syscall"])
def test_a_placeholder_takes_a_slot_and_a_cycle(zen4: Core, text: str) -> None:
    operation = zen4.of(text)
    assert (operation.slots, operation.latency, operation.use_count) == (1, 1, 0)


def test_what_was_measured_is_no_placeholder(zen4: Core) -> None:
    assert zen4.of("divq %rcx").latency > 10
    assert zen4.of("lock cmpxchgq %rcx, (%rdx)").slots > 1


def test_a_zero_idiom_waits_for_nobody(zen4: Core) -> None:
    operation = zen4.of("xorl %eax, %eax")
    assert (operation.read_count, operation.latency, operation.use_count) == (0, 0, 0)


def test_a_borrow_waits_for_the_flags_alone(zen4: Core) -> None:
    borrow, other = zen4.of("sbbl %eax, %eax"), zen4.of("sbbl %ecx, %eax")
    flags = set(zen4.of("cmpl %ecx, %eax").writes)
    assert set(borrow.reads) == flags < set(other.reads)
    assert borrow.latency > 0
    assert borrow.use_count > 0


def test_only_comparisons_are_one_with_their_branch(zen4: Core) -> None:
    fused = {text: zen4.of(text).compares for text in ("cmpl %ecx, %eax", "testq %rax, %rax")}
    apart = {text: zen4.of(text).compares for text in ("bt %ecx, %eax", "ucomisd %xmm0, %xmm1")}
    assert all(fused.values())
    assert not any(apart.values())
    assert zen4.of_bytes(b"\x75\x10").branches


def test_what_is_added_to_a_load_is_needed_when_it_is_loaded(zen4: Core) -> None:
    operation = zen4.of("addq (%rdi), %rax")
    assert sorted(operation.reads.values()) == [0, *[operation.load_latency] * 2]
    assert zen4.of("movq (%rdi), %rax").load_latency == 4


def test_a_sum_is_needed_late_by_the_multiplication_that_adds_to_it(
    opened: Callable[..., Core],
) -> None:
    core = opened("aarch64", "cortex-a53")
    added = core.of("madd x0, x1, x2, x0")
    assert added.bypass_count > 0
    (writer,) = {one.number for one in added.all_writes[: added.write_count]}
    (number,) = {
        one.number for one in added.all_reads[: added.read_count] if one.reg in added.writes
    }
    told = {(b.read, b.writer): b.cycles for b in added.bypasses[: added.bypass_count]}
    assert told[number, writer] > 0


def test_bypasses_are_an_instructions_own_whatever_came_before(
    opened: Callable[..., Core],
) -> None:
    # LLVM's tables of some begin with those of others.
    texts = ("add x0, x1, #4", "add x0, x1, x2", "udiv x0, x1, x2", "madd x0, x1, x2, x0")
    counts = []
    for order in (texts, texts[::-1]):
        core = opened("aarch64", "cortex-a53")
        counts.append({text: core.of(text).bypass_count for text in order})
    assert counts[0] == counts[1]
    assert len(set(counts[0].values())) > 1


def test_what_llvm_does_not_know_takes_a_slot_and_a_cycle(zen4: Core) -> None:
    operation = zen4.of_bytes(b"\x06")
    assert (operation.slots, operation.latency) == (1, 1)


def test_a_core_without_a_model_is_refused(opened: Callable[..., Core]) -> None:
    core = opened("x86_64", "znver4")
    room = ctypes.create_string_buffer(4096)
    told = core.library.operations_open(b"x86_64", b"pentium-nothing", room)
    assert told == b"LLVM has no scheduling model of it"
