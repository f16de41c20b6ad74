/*
 * A guest of known counts for the plugins: a multiboot image that enters long mode, runs marked
 * code in both halves of the address space, and resets the machine.
 *
 * gcc -nostdlib -static -Wl,-Ttext=0x100000 -Wl,--build-id=none -o marked.elf marked.S
 * objcopy -O binary -j .text marked.elf marked.bin
 */
	/*
	 * SESSION: 0 for the benchmark's marks, 2 for the agent's. ENDLESS: 0, or 16 for none to
	 * stop. CLOSE: 0, or 1 for a start right after each stop. CPUS: with more than 1, the high
	 * half runs on each, gives up its turn where it says so, and then leaves before the stop
	 * mark. KERNEL_GS_BASE has another address on each, as under Linux.
	 */
	.set	HIGH, 0xffff800000000000	/* mapped to physical 0, like the low half */
	.set	TABLES, 0x200000
	.set	SOURCE, 0x300000
	.set	TARGET, 0x310000
	.set	STACKS, 0x400000		/* one page each, downwards */
	.set	STARTUP, 0x8000			/* where other CPUs begin */
	.set	APIC_COMMAND, 0xfee00300

	.text
	.globl	_start
	.code32
_start:
header:	.long	0x1badb002, 0x10000, -(0x1badb002 + 0x10000)
	.long	header, header, 0, 0, entry

	/* Page tables: both halves onto the first gigabyte, through one large page. */
entry:	movl	$TABLES, %edi
	xorl	%eax, %eax
	movl	$0x800, %ecx
	rep stosl
	movl	$TABLES + 0x1003, TABLES
	movl	$TABLES + 0x1003, TABLES + 256 * 8
	movl	$0x83, TABLES + 0x1000
	movl	$0xc0000083, TABLES + 0x1018	/* the APIC */
	movl	$TABLES, %eax
	movl	%eax, %cr3
	movl	%cr4, %eax
	orl	$0x20, %eax			/* PAE */
	movl	%eax, %cr4
	movl	$0xc0000080, %ecx
	rdmsr
	orl	$0x100, %eax			/* long mode */
	wrmsr
	movl	%cr0, %eax
	orl	$0x80000000, %eax		/* paging */
	movl	%eax, %cr0
	lgdt	table
	ljmp	$8, $low

	.balign	8
gdt:	.quad	0, 0x00af9a000000ffff, 0x00cf92000000ffff
table:	.word	. - gdt - 1
	.long	gdt

	.macro	mark number
	.byte	0x0f, 0x1f, 0x84, 0x00
	.long	\number
	.endm

	.macro	turn
	.if	CPUS > 1
	pause
	.endif
	.endm

	.code64
low:	movw	$16, %ax
	movw	%ax, %ss
	movl	$STACKS, %esp
	movl	$ROUNDS, %ebp
	.if	CPUS > 1
	xorl	%ebx, %ebx			/* the number of the CPU */
	call	set_base
	movl	$startup, %esi
	movl	$STARTUP, %edi
	movl	$startup_end - startup, %ecx
	rep movsb
	movl	$APIC_COMMAND, %edi
	movl	$0xc4500, (%rdi)		/* INIT to all others */
	movl	$0xc4600 | STARTUP >> 12, (%rdi)
1:	pause
	cmpl	$CPUS - 1, present
	jne	1b
	.endif

	/* Counting begins with the block after the start mark's: a jump ends that. */
round:	mark	0x4d500001 + SESSION
	jmp	1f
	/* Low half: 2005 instructions, 1002 taken branches. */
1:
	.if	CPUS > 1
	movl	$1, go
	.endif
work:	movl	$1000, %ecx
2:	decl	%ecx
	jnz	2b				/* taken 999 times */
	call	3f				/* taken, and so is the return */
	movabs	$HIGH + high, %rax
	jmp	*%rax				/* taken */
3:	ret

	/* After the high half, with several CPUs. */
	.if	CPUS > 1
finish:	lock incl finished
	testl	%ebx, %ebx
	jnz	halt
1:	pause
	cmpl	$CPUS, finished
	jne	1b
	mark	0x4d500002 + SESSION + ENDLESS
	jmp	done
halt:	hlt
	jmp	halt

other:	movw	$16, %ax
	movw	%ax, %ss
	movl	$1, %ebx
	lock xaddl %ebx, present
	incl	%ebx
	movl	%ebx, %eax
	shll	$12, %eax
	movl	$STACKS, %esp
	subl	%eax, %esp
	call	set_base
1:	pause
	cmpl	$0, go
	je	1b
	movabs	$HIGH + high, %rax
	jmp	*%rax

set_base:
	movl	$0xc0000102, %ecx		/* KERNEL_GS_BASE */
	movl	%ebx, %eax
	shll	$12, %eax
	movl	$HIGH >> 32, %edx
	wrmsr
	ret

	/* From real mode to long mode. */
	.code16
startup:
	lgdtl	%cs:1f - startup
	movl	%cr4, %eax
	orl	$0x20, %eax
	movl	%eax, %cr4
	movl	$TABLES, %eax
	movl	%eax, %cr3
	movl	$0xc0000080, %ecx
	rdmsr
	orl	$0x100, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$0x80000001, %eax
	movl	%eax, %cr0
	ljmpl	$8, $other
1:	.word	table - gdt - 1
	.long	gdt
startup_end:
	.code64
	.balign	4
present: .long	0
go:	.long	0
finished: .long	0
	.endif

	/* High half: 46 instructions, 15 taken branches; with several CPUs 62 and 16 on each. */
high:
	.if	CPUS > 1
	swapgs
	.endif
	movl	$10, %ecx
4:	turn
	decl	%ecx
	jnz	4b				/* taken 9 times */
	xorl	%eax, %eax
	jnz	5f				/* never taken */
5:	movl	$SOURCE, %esi
	movl	$TARGET, %edi
	movl	$REPEATS, %ecx
	rep movsb				/* one instruction, within its block at first */
	jmp	6f				/* taken */
	nop
6:	movl	$3, %edx
7:	movl	$REPEATS, %ecx
	turn
	jmp	8f				/* taken 3 times */
	nop
8:	rep stosb				/* one instruction, at the start of its block */
	decl	%edx
	jnz	7b				/* taken twice */
	call	9f				/* to the next instruction: not taken */
9:
	.if	CPUS > 1
	swapgs
	movabs	$finish, %rax
	jmp	*%rax				/* taken */
	.endif
	mark	0x4d500002 + SESSION + ENDLESS	/* counts itself */
	.if	CLOSE
	mark	0x4d500001 + SESSION
	.endif
	decl	%ebp
	jz	done
	.if	CLOSE
	movabs	$work, %rax			/* 2 instructions, 1 taken branch more */
	.else
	movabs	$round, %rax
	.endif
	jmp	*%rax

done:	lidt	none
	int3
	.balign	8
none:	.quad	0, 0
