/*
 * A guest of known counts for the counting plugin: a multiboot image that enters long mode,
 * runs marked code in both halves of the address space, and resets the machine.
 *
 * gcc -nostdlib -static -Wl,-Ttext=0x100000 -Wl,--build-id=none -o marked.elf marked.S
 * objcopy -O binary -j .text marked.elf marked.bin
 */
	/*
	 * SESSION: 0 for the benchmark's marks, 2 for the agent's. ENDLESS: 0, or 16 for none to
	 * stop. CLOSE: 0, or 1 for a start right after each stop.
	 */
	.set	HIGH, 0xffff800000000000	/* mapped to physical 0, like the low half */
	.set	TABLES, 0x200000
	.set	SOURCE, 0x300000
	.set	TARGET, 0x310000

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

	.code64
low:	movw	$16, %ax
	movw	%ax, %ss
	movl	$0x400000, %esp
	movl	$ROUNDS, %ebp

	/* Counting begins with the block after the start mark's: a jump ends that. */
round:	mark	0x4d500001 + SESSION
	jmp	1f
	/* Low half: 2005 instructions, 1002 taken branches. */
1:
work:	movl	$1000, %ecx
2:	decl	%ecx
	jnz	2b				/* taken 999 times */
	call	3f				/* taken, and so is the return */
	movabs	$HIGH + high, %rax
	jmp	*%rax				/* taken */
3:	ret

	/* High half: 46 instructions, 15 taken branches. */
high:	movl	$10, %ecx
4:	decl	%ecx
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
	jmp	8f				/* taken 3 times */
	nop
8:	rep stosb				/* one instruction, at the start of its block */
	decl	%edx
	jnz	7b				/* taken twice */
	call	9f				/* to the next instruction: not taken */
9:	mark	0x4d500002 + SESSION + ENDLESS	/* counts itself */
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
