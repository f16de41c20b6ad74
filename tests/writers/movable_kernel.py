"""A kernel in miniature whose tables point into its functions, for LLVM's BOLT to rewrite."""

from __future__ import annotations

import subprocess
from pathlib import Path

BASE = 0xFFFF_FFFF_8100_0000
TEXT = """\
    .macro distance target
    .long \\target - .
    .endm
    .macro begin name
    .p2align 4
    .globl \\name
    .type \\name, @function
\\name:
    .endm
    .macro end name
    .size \\name, . - \\name
    .endm

    .text
# BOLT makes what follows the first branch the cold part.
    begin copy
    testl %edi, %edi
    jne .Lslow
.Lopen: nopl (%rax)
.Lload: movl (%rsi), %eax
    retq
.Lslow: callq __x86_indirect_thunk_r11
.Lcount: lock incl (%rsp)
    testl %eax, %eax
    je .Lhash
.Lbug:  ud2
    retq
.Lhash: movabsq $0x0123456789abcdef, %rcx
    shrl $12, %r9d
    retq
# Only an exception leads here.
.Lfixup: movl $-14, %eax
    retq
.Lstub: jmp .Lfixup
    end copy

# The kernel patches its jump.
    begin has_feature
    testl %edi, %edi
    jne .Lother
.Ljump: jmp .Laux
.Lother: movl $1, %eax
    retq
    end has_feature

# It pushes an address of its own.
    begin returns_to_itself
    testl %edi, %edi
    jne .Lback
    pushq $.Lback
    retq
.Lback: retq
    end returns_to_itself

# So does this, and goes on there by IRET.
    begin synchronises
    testl %edi, %edi
    jne .Lsync
    retq
.Lsync: pushq $.Lsynced
    iretq
.Lsynced: movl $3, %eax
    retq
    end synchronises

# Data has an address in it.
    begin interprets
    testl %edi, %edi
    jne .Lcase
    retq
.Lcase: movl $2, %eax
    retq
    end interprets

# What the kernel makes of `static_cpu_has`.
    begin knows
    testl %edi, %edi
    jne .Lasked
    retq
.Lasked: jmp .Ltest
    jmp .Lyes
    retq
.Lyes:  movl $1, %eax
    retq
.Lno:   xorl %eax, %eax
    retq
    end knows

# A static key that is off.
    begin keyed
    testl %edi, %edi
    jne .Lkey
    retq
.Lkey:  .byte 0x0f, 0x1f, 0x44, 0, 0
    movl $1, %eax
    retq
.Lon:   movl $2, %eax
    retq
    end keyed

# It ends with a call on a condition.
    begin leaves
    testl %edi, %edi
    jne copy
    retq
    end leaves

# So does this, if BOLT has its way; but the kernel knows where the call is, and patches it.
    begin leaves_by_key
    testl %edi, %edi
    jne .Lstatic
    retq
.Lstatic: jmp copy
    end leaves_by_key

    begin __x86_indirect_thunk_r11
    jmp *%r11
    end __x86_indirect_thunk_r11
RESERVED
    .section .init.text, "ax", @progbits
.Laux: jmp .Lother
.Ltest: testb $4, linux_banner
    jnz .Lyes
    jmp .Lno
    .section .altinstr_replacement, "ax", @progbits
.Lstac: stac
.Lmissing: jmp .Lno
    .section .altinstructions, "a", @progbits
    distance .Lopen
    distance .Lstac
    .long 0x1234
    .byte 3, 3
    distance .Ljump
    .long 0, 0x1234
    .byte 5, 0
    distance .Lasked
    distance .Lmissing
    .long 0x1234
    .byte 5, 5
    distance .Lasked
    .long 0, 0x1234
    .byte 5, 0
    .section __ex_table, "a", @progbits
    distance .Lload
    distance .Lfixup
    .long 3
    distance .Lcount
    distance .Lstub
    .long 4
    .section __bug_table, "a", @progbits
    distance .Lbug
    .long 0
    .short 1, 2
    .section .smp_locks, "a", @progbits
    distance .Lcount
    .section .retpoline_sites, "a", @progbits
    distance .Lslow
    .section runtime_ptr_table, "a", @progbits
    .long .Lhash + 2 - .
    .section runtime_shift_table, "a", @progbits
    .long .Lhash + 13 - .
    .section __ksymtab, "a", @progbits
    distance copy
    .section __ksymtab_gpl, "a", @progbits
    distance has_feature
    .section .rodata, "a", @progbits
    .globl linux_banner
    .type linux_banner, @object
linux_banner: .asciz "Linux version 6.12.1 (mini) "
    .size linux_banner, . - linux_banner
    .p2align 3
    .quad .Lcase
    .globl __start___jump_table, __stop___jump_table
__start___jump_table:
    distance .Lkey
    distance .Lon
    .quad linux_banner - .
__stop___jump_table:
    .long 0
    .globl __start_static_call_sites, __stop_static_call_sites
__start_static_call_sites:
    distance .Lstatic
    distance linux_banner
__stop_static_call_sites:
    .long 0
"""
RESERVED = """\
    .p2align 12
    .globl __bolt_reserved_start, __bolt_reserved_end
__bolt_reserved_start:
    .fill 0x4000, 1, 0xcc
__bolt_reserved_end:
"""
FUNCTIONS = (
    "copy",
    "knows",
    "keyed",
    "synchronises",
    "leaves",
    "leaves_by_key",
    "has_feature",
    "interprets",
    "returns_to_itself",
)
# In each function the branch is always taken.
COUNTS = "1 leaves 2 1 copy 0 0 1000\n" + "".join(
    f"1 {name} 2 1 {name} {target} 0 1000\n"
    for name, target in {
        "copy": "a",
        "knows": "5",
        "keyed": "5",
        "synchronises": "5",
        "leaves_by_key": "5",
        "has_feature": "9",
        "returns_to_itself": "a",
        "interprets": "5",
    }.items()
)


def link(directory: Path, clang: str, linker: str, *, reserved: bool = True) -> Path:
    """Make the kernel; returns its path."""
    source, vmlinux = directory / "kernel.s", directory / "vmlinux"
    source.write_text(TEXT.replace("RESERVED\n", RESERVED if reserved else ""))
    subprocess.run([clang, "-c", source, "-o", directory / "kernel.o"], check=True)
    flags = (f"--image-base={BASE:#x}", "--no-dynamic-linker", "--no-eh-frame-hdr", "-e", "copy")
    linked = [linker, *flags, "--no-pie", str(directory / "kernel.o"), "-o", str(vmlinux)]
    subprocess.run(linked, check=True)
    return vmlinux
