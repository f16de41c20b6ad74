"""How the plugins decode instructions, as the assembler encodes them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import NATIVE

(
    PLAIN,
    CONDITIONAL,
    UNCONDITIONAL,
    REPEAT,
    EVENT_RETURN,
    START,
    STOP,
    SESSION_START,
    SESSION_STOP,
) = range(9)
KIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
SPACE = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
TARGET = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64)
TCG_PLUGIN = NATIVE / "tcg-plugin"
# Address of the instructions, and the targets `there` and `far`.
HERE, THERE, FAR = 0x1000, 0x1040, 0x200

INSTRUCTIONS = {
    "x86_64": [
        ("jmp there", UNCONDITIONAL, THERE),
        ("jmp far", UNCONDITIONAL, FAR),
        ("call there", UNCONDITIONAL, THERE),
        ("notrack jmp *%rax", UNCONDITIONAL, None),
        ("jmp end", PLAIN, HERE + 2),
        ("jne there", CONDITIONAL, THERE),
        ("jne far", CONDITIONAL, FAR),
        ("loop there", CONDITIONAL, THERE),
        ("jrcxz there", CONDITIONAL, THERE),
        ("jmp *%rax", UNCONDITIONAL, None),
        ("call *8(%r11)", UNCONDITIONAL, None),
        ("jmp *%gs:8(%rip)", UNCONDITIONAL, None),
        ("push 8(%rax)", PLAIN, None),
        ("incl 8(%rax)", PLAIN, None),
        ("ret", UNCONDITIONAL, None),
        ("ret $8", UNCONDITIONAL, None),
        ("lretq", UNCONDITIONAL, None),
        ("iretq", EVENT_RETURN, None),
        ("sysretq", EVENT_RETURN, None),
        ("sysexit", EVENT_RETURN, None),
        ("syscall", PLAIN, None),
        ("int3", PLAIN, None),
        # The last byte is IRET's opcode.
        ("mov %ecx, %edi", PLAIN, None),
        ("rep stosq", REPEAT, None),
        ("repne scasb", REPEAT, None),
        ("stosq", PLAIN, None),
        # The REP prefix without a string instruction.
        ("pause", PLAIN, None),
        ("nopl 0x4d500001(%rax,%rax,1)", START, None),
        ("nopl 0x4d500002(%rax,%rax,1)", STOP, None),
        ("nopl 0x4d500003(%rax,%rax,1)", SESSION_START, None),
        ("nopl 0x4d500004(%rax,%rax,1)", SESSION_STOP, None),
        ("nopl 0x4d500005(%rax,%rax,1)", PLAIN, None),
    ],
    "aarch64": [
        ("b there", UNCONDITIONAL, THERE),
        ("b far", UNCONDITIONAL, FAR),
        ("bl there", UNCONDITIONAL, THERE),
        ("b end", PLAIN, HERE + 4),
        ("b.ne there", CONDITIONAL, THERE),
        ("b.al far", CONDITIONAL, FAR),
        ("cbz x3, there", CONDITIONAL, THERE),
        ("cbnz w3, far", CONDITIONAL, FAR),
        ("tbz x3, #33, there", CONDITIONAL, THERE),
        ("tbnz w3, #3, far", CONDITIONAL, FAR),
        ("br x3", UNCONDITIONAL, None),
        ("braa x3, x4", UNCONDITIONAL, None),
        ("brab x3, sp", UNCONDITIONAL, None),
        ("braaz x3", UNCONDITIONAL, None),
        ("brabz x3", UNCONDITIONAL, None),
        ("blr x3", UNCONDITIONAL, None),
        ("blraa x3, x4", UNCONDITIONAL, None),
        ("blrab x3, x4", UNCONDITIONAL, None),
        ("blraaz x3", UNCONDITIONAL, None),
        ("blrabz x3", UNCONDITIONAL, None),
        ("ret", UNCONDITIONAL, None),
        ("ret x3", UNCONDITIONAL, None),
        ("retaa", UNCONDITIONAL, None),
        ("retab", UNCONDITIONAL, None),
        ("eret", EVENT_RETURN, None),
        ("eretaa", EVENT_RETURN, None),
        ("eretab", EVENT_RETURN, None),
        ("svc #0", PLAIN, None),
        ("brk #0", PLAIN, None),
        ("add x0, x0, #4", PLAIN, None),
        ("adr x0, there", PLAIN, None),
        ("movz xzr, #0x4d51", START, None),
        ("movz xzr, #0x4d52", STOP, None),
        ("movz xzr, #0x4d53", SESSION_START, None),
        ("movz xzr, #0x4d54", SESSION_STOP, None),
        ("movz xzr, #0x4d55", PLAIN, None),
        ("movz x0, #0x4d51", PLAIN, None),
    ],
    "arm": [
        ("b there", UNCONDITIONAL, THERE),
        ("b far", UNCONDITIONAL, FAR),
        ("bl there", UNCONDITIONAL, THERE),
        ("blx there", UNCONDITIONAL, THERE),
        ("b end", PLAIN, HERE + 4),
        ("bne there", CONDITIONAL, THERE),
        ("bleq far", CONDITIONAL, FAR),
        ("bx r3", UNCONDITIONAL, None),
        ("bx lr", UNCONDITIONAL, None),
        ("bxeq lr", CONDITIONAL, None),
        ("bxj r3", UNCONDITIONAL, None),
        ("blx r3", UNCONDITIONAL, None),
        ("mov pc, lr", UNCONDITIONAL, None),
        ("movne pc, lr", CONDITIONAL, None),
        ("add pc, pc, r0, lsl #2", UNCONDITIONAL, None),
        ("addls pc, pc, r0, lsl #2", CONDITIONAL, None),
        ("sub pc, lr, #4", UNCONDITIONAL, None),
        ("ldr pc, [sp], #4", UNCONDITIONAL, None),
        ("ldr pc, [pc, r0, lsl #2]", UNCONDITIONAL, None),
        ("ldrls pc, [pc, r0, lsl #2]", CONDITIONAL, None),
        ("pop {r4, pc}", UNCONDITIONAL, None),
        ("popeq {r4, pc}", CONDITIONAL, None),
        ("ldmdb r11, {r4, r11, sp, pc}", UNCONDITIONAL, None),
        ("movs pc, lr", EVENT_RETURN, None),
        ("subs pc, lr, #4", EVENT_RETURN, None),
        ("ldmfd sp!, {r0, pc}^", EVENT_RETURN, None),
        ("rfeia sp!", EVENT_RETURN, None),
        ("eret", EVENT_RETURN, None),
        # Registers, or bits where one would be, that are the program counter's number.
        ("cmp r3, #4", PLAIN, None),
        ("teq r3, #4", PLAIN, None),
        ("msr cpsr_c, r3", PLAIN, None),
        ("stmdb sp!, {r4, pc}", PLAIN, None),
        ("str pc, [sp, #-4]", PLAIN, None),
        ("ldrd r2, r3, [r0]", PLAIN, None),
        ("ldrb r3, [pc, #4]", PLAIN, None),
        ("smulbb r3, r4, r5", PLAIN, None),
        ("usad8 r3, r4, r5", PLAIN, None),
        ("pld [pc, #4]", PLAIN, None),
        ("ldm sp!, {r4, lr}", PLAIN, None),
        ("adr r0, there", PLAIN, None),
        ("movne r0, #1", PLAIN, None),
        ("svc #0", PLAIN, None),
        ("udf #0", PLAIN, None),
        ("bkpt #0", PLAIN, None),
        ("nop", PLAIN, None),
        (".inst 0xe320f051", START, None),
        (".inst 0xe320f052", STOP, None),
        (".inst 0xe320f053", SESSION_START, None),
        (".inst 0xe320f054", SESSION_STOP, None),
        (".inst 0xe320f055", PLAIN, None),
        (".inst 0x0320f051", PLAIN, None),
    ],
}
JUMP, CALL, INDIRECT_JUMP, INDIRECT_CALL, RETURN = range(2, 7)
TRANSFERS = {
    "x86_64": [
        ("jmp there", JUMP),
        ("jmp far", JUMP),
        ("call there", CALL),
        ("jmp *%rax", INDIRECT_JUMP),
        ("notrack jmp *%rax", INDIRECT_JUMP),
        ("jmp *%gs:8(%rip)", INDIRECT_JUMP),
        ("call *%rax", INDIRECT_CALL),
        ("call *8(%r11)", INDIRECT_CALL),
        ("ret", RETURN),
        ("ret $8", RETURN),
        ("lretq", RETURN),
    ],
    "aarch64": [
        ("b there", JUMP),
        ("bl there", CALL),
        ("br x3", INDIRECT_JUMP),
        ("braa x3, x4", INDIRECT_JUMP),
        ("braaz x3", INDIRECT_JUMP),
        ("blr x3", INDIRECT_CALL),
        ("blraa x3, x4", INDIRECT_CALL),
        ("blrabz x3", INDIRECT_CALL),
        ("ret", RETURN),
        ("retaa", RETURN),
    ],
    "arm": [
        ("b there", JUMP),
        ("bl there", CALL),
        ("blx there", CALL),
        ("bx r3", INDIRECT_JUMP),
        ("add pc, pc, r0, lsl #2", INDIRECT_JUMP),
        ("ldr pc, [pc, r0, lsl #2]", INDIRECT_JUMP),
        ("blx r3", INDIRECT_CALL),
        ("bx lr", RETURN),
        ("mov pc, lr", RETURN),
        ("pop {r4, pc}", RETURN),
        ("ldr pc, [sp], #4", RETURN),
    ],
}
SPACES = {
    "x86_64": [
        ("mov %rax, %cr3", b"rax"),
        ("mov %r13, %cr3", b"r13"),
        ("mov %cr3, %rax", None),
        ("mov %rax, %cr4", None),
    ],
    "aarch64": [
        ("msr ttbr0_el1, x7", b"x7"),
        ("msr ttbr1_el1, x7", None),
        ("mrs x7, ttbr0_el1", None),
    ],
}
PREFIXES = {"x86_64": "", "aarch64": "aarch64-linux-gnu-", "arm": "arm-linux-gnueabi-"}
# What the assembler must know beyond its default.
DIRECTIVES = {
    "x86_64": "",
    "aarch64": ".arch armv8.5-a\n",
    "arm": ".arch armv7-a\n.arch_extension virt\n.arm\n",
}


class InstructionSet(ctypes.Structure):
    """``struct instruction_set`` of decode.h, up to what the tests call."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("elf_machine", ctypes.c_uint32),
        ("kernel_space", ctypes.c_uint64),
        ("kind", KIND),
        ("repeat", ctypes.c_void_p),
        ("direct_target", TARGET),
        ("cpu_bases", ctypes.c_char_p * 2),
        ("transfer", KIND),
        ("space_register", SPACE),
    )


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("decode") / "decode.so"
    sources = sorted(TCG_PLUGIN.glob("decode*.c"))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, *sources], check=True, timeout=60)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_decoder_is_found_by_its_name(decoders: ctypes.CDLL, name: str) -> None:
    decoders.instruction_set.restype = ctypes.POINTER(InstructionSet)
    assert decoders.instruction_set(name.encode()).contents.name == name.encode()
    assert not decoders.instruction_set(b"another")


def test_every_decoder_has_its_marks_and_its_known_instructions() -> None:
    decoders = {path.stem.removeprefix("decode_") for path in TCG_PLUGIN.glob("decode_*.c")}
    assert decoders == {path.parent.name for path in NATIVE.glob("abi/*/mark_encoding.h")}
    assert decoders == set(INSTRUCTIONS)


def assembled(name: str, instructions: list[str], directory: Path) -> list[bytes]:
    """The encoding of each at ``HERE``."""
    prefix = PREFIXES[name]
    if shutil.which(f"{prefix}as") is None:
        pytest.skip(f"{prefix}as is not installed")
    source, thing, flat = (directory / name for name in ("one.s", "one.o", "one.bin"))
    found = []
    for instruction in instructions:
        text = f".skip {FAR}\nfar: .org {HERE}\n{instruction}\nend:\n.org {THERE}\nthere: nop\n"
        source.write_text(DIRECTIVES[name] + text)
        subprocess.run([f"{prefix}as", "-o", thing, source], check=True, timeout=30)
        listing = subprocess.run([f"{prefix}nm", thing], check=True, capture_output=True, text=True)
        (end,) = [line.split()[0] for line in listing.stdout.splitlines() if line.endswith(" end")]
        copy = (f"{prefix}objcopy", "-O", "binary", "-j", ".text", thing, flat)
        subprocess.run(copy, check=True, timeout=30)
        found.append(flat.read_bytes()[HERE : int(end, 16)])
    return found


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions_are_decoded_to_kinds_and_targets(
    decoders: ctypes.CDLL, tmp_path: Path, name: str
) -> None:
    known = INSTRUCTIONS[name]
    instruction_set = InstructionSet.in_dll(decoders, name)
    codes = assembled(name, [text for text, _, _ in known], tmp_path)
    for (text, kind, target), code in zip(known, codes, strict=True):
        assert instruction_set.kind(code, len(code)) == kind, text
        led = instruction_set.direct_target(code, len(code), HERE + len(code))
        assert led == (target or 0), text


@pytest.mark.parametrize("name", TRANSFERS)
def test_unconditional_branches_call_return_or_jump(
    decoders: ctypes.CDLL, tmp_path: Path, name: str
) -> None:
    instruction_set = InstructionSet.in_dll(decoders, name)
    codes = assembled(name, [text for text, _ in TRANSFERS[name]], tmp_path)
    for (text, transfer), code in zip(TRANSFERS[name], codes, strict=True):
        assert instruction_set.transfer(code, len(code)) == transfer, text


@pytest.mark.parametrize("name", SPACES)
def test_what_sets_the_address_space_names_its_register(
    decoders: ctypes.CDLL, tmp_path: Path, name: str
) -> None:
    instruction_set = InstructionSet.in_dll(decoders, name)
    codes = assembled(name, [text for text, _ in SPACES[name]], tmp_path)
    for (text, register), code in zip(SPACES[name], codes, strict=True):
        assert instruction_set.space_register(code, len(code)) == register, text
