"""What instructions need of a core, by LLVM's scheduling models and their corrections."""

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
SIZES = dict(re.findall(r"(MAX_\w+) = (\d+)", (PMU / "operation.h").read_text()))


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
        *((name, c_bool) for name in ("stores", "is_vector", "forwards_late")),
        *((name, c_uint8) for name in ("branches_by", "fuses_by")),
        ("takes_long", c_bool),
        ("crossing", c_uint8),
        ("alone", c_uint16),
        ("uses", Use * int(SIZES["MAX_USES"])),
        ("all_reads", Operand * int(SIZES["MAX_READS"])),
        ("all_writes", Operand * int(SIZES["MAX_WRITES"])),
        ("bypasses", POINTER(Bypass)),
        ("bypass_count", c_uint32),
    )

    @property
    def reads(self) -> dict[int, int]:
        """Cycles after the start until it is needed, by register."""
        return {one.reg: one.cycles for one in self.all_reads[: self.read_count]}

    @property
    def writes(self) -> dict[int, int]:
        """Cycles after the start until it is ready, by register."""
        return {one.reg: one.cycles for one in self.all_writes[: self.write_count]}


@dataclass(frozen=True)
class Core:
    """The core that the library models; one at a time."""

    library: ctypes.CDLL
    target: str
    flags: tuple[str, ...]

    def of(self, text: str) -> Operation:
        """The operation of an instruction in assembly."""
        assembler = (
            clang.TOOLCHAIN.select(None).program("llvm-mc"),
            f"--triple={self.target}-linux-gnu",
        )
        words = [*assembler, *self.flags, "--show-encoding"]
        output = subprocess.run(
            words, input=text, check=True, capture_output=True, text=True
        ).stdout
        encoded = re.findall(r"0x([0-9a-f]{2})", output.partition("[")[2].partition("]")[0])
        return self.of_bytes(bytes(int(byte, 16) for byte in encoded))

    def of_bytes(self, encoded: bytes) -> Operation:
        """The operation of the instruction with that encoding."""
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
    sources = [str(path) for path in sorted(PMU.glob("*.cc"))]
    words = ["g++", *flags, *include, "-o", str(path), *sources, *linked]
    subprocess.run(words, check=True, timeout=120)
    library = ctypes.CDLL(str(path))
    library.operations_open.restype = c_char_p

    def open_core(target: str, cpu: str, *flags: str) -> Core:
        pipeline = ctypes.create_string_buffer(4096)
        assert library.operations_open(target.encode(), cpu.encode(), pipeline) is None
        return Core(library, target, flags)

    return open_core


@pytest.fixture
def zen4(opened: Callable[..., Core]) -> Core:
    return opened("x86_64", "znver4")


@pytest.mark.parametrize("text", ["cli", "stac", "swapgs", "rdmsr", "movq %rax, %cr3", "syscall"])
def test_a_placeholder_takes_a_slot_and_a_cycle(zen4: Core, text: str) -> None:
    operation = zen4.of(text)
    assert (operation.slots, operation.latency, operation.use_count) == (1, 1, 0)


CALL, CALL_RETURN, SWAP = 1, 2, 4


@pytest.mark.parametrize(
    ("target", "cpu", "crossings"),
    [
        (
            "x86_64",
            "skylake",
            {
                "syscall": CALL,
                "sysretq": CALL_RETURN,
                "iretq": 0,
                "swapgs": SWAP,
                "cli": 0,
                "retq": 0,
            },
        ),
        ("aarch64", "cortex-a53", {"svc #0": CALL, "eret": 0, "brk #0": 0, "ret": 0}),
    ],
)
def test_instructions_that_enter_or_leave_the_kernel(
    opened: Callable[..., Core], target: str, cpu: str, crossings: dict[str, int]
) -> None:
    core = opened(target, cpu)
    assert {text: core.of(text).crossing for text in crossings} == crossings
    assert all(core.of(text).alone == 0 for text in crossings)


def test_a_measured_latency_is_not_a_placeholder(zen4: Core) -> None:
    assert zen4.of("divq %rcx").latency > 10
    assert zen4.of("lock cmpxchgq %rcx, (%rdx)").slots > 1


def test_a_zero_idiom_does_not_wait(zen4: Core) -> None:
    operation = zen4.of("xorl %eax, %eax")
    assert (operation.read_count, operation.latency, operation.use_count) == (0, 0, 0)


def test_a_borrow_waits_only_for_the_flags(zen4: Core) -> None:
    borrow, other = zen4.of("sbbl %eax, %eax"), zen4.of("sbbl %ecx, %eax")
    flags = set(zen4.of("cmpl %ecx, %eax").writes)
    assert set(borrow.reads) == flags < set(other.reads)
    assert borrow.latency > 0
    assert borrow.use_count > 0


ORDER, CARRY, SIGN = 1, 2, 4


@pytest.fixture
def skylake(opened: Callable[..., Core]) -> Core:
    return opened("x86_64", "skylake")


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("cmpl %ecx, %eax", ORDER | CARRY | SIGN),
        ("testq %rax, %rax", ORDER | CARRY | SIGN),
        ("subq $1, %rax", ORDER | CARRY | SIGN),
        ("subq $0x12345, %rax", ORDER | CARRY | SIGN),
        ("decl %eax", ORDER | SIGN),
        ("cmpl (%rdi), %eax", 0),
        ("addl $1, (%rdi)", 0),
        ("adcl %ecx, %eax", 0),
        ("negl %eax", 0),
        ("bt %ecx, %eax", 0),
        ("ucomisd %xmm0, %xmm1", 0),
        ("leal 1(%eax), %eax", 0),
    ],
)
def test_what_fuses_with_a_branch(zen4: Core, text: str, groups: int) -> None:
    assert zen4.of(text).fuses_by == groups


@pytest.mark.parametrize(
    ("opcodes", "group"), [("4 5 c d e f", ORDER), ("2 3 6 7", CARRY), ("0 1 8 9 a b", SIGN)]
)
def test_conditions_of_branches_are_grouped(zen4: Core, opcodes: str, group: int) -> None:
    for opcode in opcodes.split():
        assert zen4.of_bytes(bytes.fromhex(f"7{opcode}10")).branches_by == group
    assert zen4.of("jmp *%rax").branches_by == zen4.of("cmpl %ecx, %eax").branches_by == 0


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("testq %rax, %rax", ORDER | CARRY | SIGN),
        ("andl (%rdi), %eax", ORDER | CARRY | SIGN),
        ("cmpl (%rdi), %eax", ORDER | CARRY),
        ("cmpl %eax, (%rdi)", ORDER | CARRY),
        ("subl $1, %eax", ORDER | CARRY),
        ("decl %eax", ORDER),
        ("andl $0x12345, %eax", ORDER | CARRY | SIGN),
        ("cmpl $5, (%rdi)", 0),
        ("testb $1, 8(%rdi)", 0),
        ("subl %eax, (%rdi)", 0),
        ("orl %ecx, %eax", 0),
        *((flags, 0) for flags in ("cmpsb", "cmc", "stc", "sahf", "cli", "sti", "clac", "stac")),
    ],
)
def test_what_fuses_with_a_branch_on_skylake(skylake: Core, text: str, groups: int) -> None:
    assert skylake.of(text).fuses_by == groups


def test_on_other_cores_only_comparisons_fuse_with_a_branch(opened: Callable[..., Core]) -> None:
    core = opened("x86_64", "haswell")
    assert core.of("cmpl (%rdi), %eax").fuses_by == ORDER | CARRY | SIGN
    assert core.of("subl %ecx, %eax").fuses_by == core.of("cmpsb").fuses_by == 0


@pytest.mark.parametrize(
    ("text", "slots", "latency"),
    [
        ("pushq %rax", 1, 2),
        ("pushq $5", 1, 2),
        ("pushq (%rdi)", 2, 6),
        ("popq %rax", 1, 6),
        ("callq *%rax", 2, 3),
        ("callq *(%rax)", 3, 7),
        ("ret", 1, 7),
        ("addq (%rdi), %rax", 1, 6),
        ("addq (%rdi,%rcx,8), %rax", 1, 6),
        ("cmpq $5, (%rdi)", 1, 6),
        ("cmpq $5, (%rdi,%rcx)", 2, 6),
        ("adcq (%rdi,%rcx), %rax", 2, 6),
        ("addps (%rdi,%rcx), %xmm0", 1, 10),
        ("imulq $5, (%rdi), %rax", 1, 8),
        ("btl $3, (%rdi)", 2, 6),
        ("btq %rax, (%rdi)", 10, 6),
        ("pshufd $1, (%rdi), %xmm0", 2, 7),
        ("addq %rax, (%rdi)", 2, 7),
        ("addq %rax, (%rdi,%rcx)", 3, 7),
        ("incq (%rdi)", 3, 7),
        ("adcq %rax, (%rdi)", 4, 8),
        ("xchgq %rax, (%rdi)", 8, 10),
        ("movq %rax, (%rdi)", 1, 1),
        ("movups %xmm0, (%rdi)", 1, 1),
        ("movq %rax, %rcx", 1, 0),
        ("movzbl %al, %ecx", 1, 0),
        ("movaps %xmm0, %xmm1", 1, 0),
        ("movl %eax, %eax", 1, 1),
        ("movzbl %al, %eax", 1, 1),
        ("movzbl %ah, %ecx", 1, 1),
        ("movzwl %ax, %ecx", 1, 1),
        ("leaq (%rdi,%rsi,4), %rax", 1, 1),
        ("leaq 8(%rdi,%rsi), %rax", 1, 3),
        ("leaq (%rbp,%rsi), %rax", 1, 3),
        ("leaq 8(%rip), %rax", 1, 3),
        ("leaq 8(%rbp), %rax", 1, 1),
        ("divl %ecx", 10, 26),
        ("idivl (%rdi)", 11, 31),
        ("divq %rcx", 36, 35),
        ("idivq %rcx", 57, 42),
    ],
)
def test_skylake_follows_published_measurements(
    skylake: Core, text: str, slots: int, latency: int
) -> None:
    operation = skylake.of(text)
    assert (operation.slots, operation.latency) == (slots, latency)


def test_a_stack_engine_does_not_use_the_units_for_sums(skylake: Core) -> None:
    assert skylake.of("pushq %rax").use_count < skylake.of("pushfq").use_count


def test_a_slow_address_has_a_unit_of_its_own(skylake: Core) -> None:
    def units(text: str) -> set[int]:
        operation = skylake.of(text)
        return {use.kind for use in operation.uses[: operation.use_count]}

    product = units("imulq %rcx, %rax")
    slow, quick = units("leaq 8(%rdi,%rsi), %rax"), units("leaq (%rdi,%rsi), %rax")
    assert len(slow & product - quick) == 1


@pytest.mark.parametrize(
    ("text", "slots", "latency"),
    [
        ("nop", 0, 0),
        ("nopw 8(%rax,%rax)", 0, 0),
        ("leaq (%rcx,%rax,4), %rax", 1, 1),
        ("leaq 0(,%rax,8), %rax", 1, 1),
        ("leaq 8(%rcx,%rax), %rax", 2, 2),
        ("addq %rax, (%rdi)", 2, 6),
        ("movq (%rdi,%rcx), %rax", 1, 4),
        ("movzbl (%rdi), %eax", 1, 4),
        ("movq (%rdi,%rcx,8), %rax", 1, 5),
        ("movl 64(%rdi,%rcx), %eax", 1, 5),
        ("movsbl (%rdi), %eax", 1, 5),
        ("movb (%rdi), %al", 1, 5),
        ("addq (%rdi), %rax", 1, 5),
        ("addq (%rdi,%rcx,8), %rax", 1, 6),
        ("movd %eax, %xmm0", 1, 4),
        ("pmovmskb %xmm0, %eax", 1, 3),
    ],
)
def test_zen_4_follows_measurements(zen4: Core, text: str, slots: int, latency: int) -> None:
    operation = zen4.of(text)
    assert (operation.slots, operation.latency) == (slots, latency)


@pytest.mark.parametrize(
    "text", ["lodsb", "movsq", "movabsb 0x1122334455667788, %al", "xlatb", "movb %fs:0, %al"]
)
def test_addresses_without_all_parts_are_described(zen4: Core, text: str) -> None:
    operation = zen4.of(text)
    assert operation.slots > 0
    assert operation.latency >= operation.load_latency


@pytest.mark.parametrize("text", ["movq %rax, (%rdi)", "sete %al", "mulq %rcx", "movl $5, %eax"])
def test_units_accept_an_operation_in_each_cycle(zen4: Core, text: str) -> None:
    operation = zen4.of(text)
    assert {use.cycles for use in operation.uses[: operation.use_count]} == {1}
    assert not operation.takes_long


def test_a_divider_does_not(zen4: Core) -> None:
    assert zen4.of("divl %ecx").takes_long


def test_an_index_is_needed_later_than_a_base(zen4: Core) -> None:
    operation = zen4.of("leaq 8(%rdi,%rsi), %rax")
    assert sorted(operation.reads.values()) == [0, 1]


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("movq (%rdi), %rax", False),
        ("popq %rax", False),
        ("leave", False),
        ("incq (%rdi)", False),
        ("addq (%rdi), %rax", True),
        ("popcntq (%rdi), %rax", True),
        ("movzbl (%rdi), %eax", True),
        ("movups (%rdi), %xmm0", True),
    ],
)
def test_which_loads_are_forwarded_by_renaming(zen4: Core, text: str, late: bool) -> None:
    assert zen4.of(text).forwards_late == late


def test_the_other_operand_of_a_load_is_needed_when_it_is_loaded(zen4: Core) -> None:
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
    cycles = {(b.read, b.writer): b.cycles for b in added.bypasses[: added.bypass_count]}
    assert cycles[number, writer] > 0


def test_bypasses_do_not_depend_on_earlier_instructions(
    opened: Callable[..., Core],
) -> None:
    # Some of LLVM's tables are prefixes of others.
    texts = ("add x0, x1, #4", "add x0, x1, x2", "udiv x0, x1, x2", "madd x0, x1, x2, x0")
    counts = []
    for order in (texts, texts[::-1]):
        core = opened("aarch64", "cortex-a53")
        counts.append({text: core.of(text).bypass_count for text in order})
    assert counts[0] == counts[1]
    assert len(set(counts[0].values())) > 1


def test_an_unknown_instruction_takes_a_slot_and_a_cycle(zen4: Core) -> None:
    operation = zen4.of_bytes(b"\x06")
    assert (operation.slots, operation.latency) == (1, 1)


def test_a_core_without_a_model_is_refused(opened: Callable[..., Core]) -> None:
    core = opened("x86_64", "znver4")
    pipeline = ctypes.create_string_buffer(4096)
    error = core.library.operations_open(b"x86_64", b"pentium-nothing", pipeline)
    assert error == b"LLVM has no scheduling model of it"
