/*
 * A guest of known counts for the plugins, like marked.S for arm64: enters the high half of the
 * address space at EL1, runs marked code in both, and powers the machine off. With CPUS 2 a second
 * CPU runs the high half at the same time; TPIDR_EL1 has another value on each, as under Linux.
 * Pointers are not signed, so branches that
 * authenticate them behave like the others.
 *
 * aarch64-linux-gnu-gcc -nostdlib -static -Wl,-Ttext=0x40200000 -Wl,--build-id=none \
 *     -o marked.elf marked_aarch64.S
 */
	.arch	armv8.3-a
	.set	HIGH, 0xffffff8000000000	/* mapped to physical 0, like the low half */

	.text
	.globl	_start
_start:	bl	enable
	msr	tpidr_el1, xzr
	mov	x27, #ROUNDS
	.if	CPUS > 1
	ldr	x0, =0xc4000003			/* PSCI CPU_ON */
	mov	x1, #1
	adr	x2, second
	mov	x3, #0
	hvc	#0
1:	yield
	ldr	w0, ready
	cbz	w0, 1b
	.endif

	/* Counting begins with the block after the start mark's: a jump ends that. */
round:	movz	xzr, #0x4d51 + SESSION
	b	1f
	/* Low half: 2009 instructions of the first CPU, 1002 taken branches. */
1:	adr	x0, go
	mov	w1, #1
	str	w1, [x0]
	mov	w0, #1000
2:	subs	w0, w0, #1
	b.ne	2b				/* taken 999 times */
	bl	3f				/* taken, and so is the return */
	ldr	x1, =HIGH + high
	blr	x1				/* taken */
	.if	CPUS > 1
4:	yield
	ldr	w0, finished
	cbz	w0, 4b
	.endif
	movz	xzr, #0x4d52 + SESSION
	subs	x27, x27, #1
	b.ne	round
	ldr	x0, =0x84000008			/* PSCI SYSTEM_OFF */
	hvc	#0
	b	.
3:	ret

	/* High half, by their numbers: 45 instructions, 19 taken branches. */
high:	mov	w0, #10				/* 0 */
4:	sub	w0, w0, #1			/* 1 */
	cbnz	w0, 4b				/* 2: taken 9 times */
	cbz	x0, 5f				/* 3: taken */
	nop
5:	mov	x2, #8				/* 5 */
	tbnz	x2, #3, 6f			/* 6: taken */
	nop
6:	tbz	x2, #3, 7f			/* 8: not taken */
	cmp	x2, #8				/* 9 */
	b.eq	7f				/* 10: taken */
	nop
7:	mov	x20, x30			/* 12 */
	bl	8f				/* 13: taken */
	b	9f				/* 14: taken */
8:	ret					/* 15: taken, to 14 */
9:	adr	x3, 10f				/* 16 */
	braaz	x3				/* 17: taken */
	nop
10:	adr	x3, 8b				/* 19 */
	blrab	x3, x5				/* 20: taken; the return leads to 21 */
	b	11f				/* 21: to the next, no branch */
11:	yield					/* 22: CPUs that take turns change */
	brk	#0				/* 23: an exception; its handler returns to 24 */
	mov	x30, x20			/* 24 */
	retaa					/* 25: taken, to the low half */

	/* Its handler skips the instruction that raised it. */
	.balign	2048
vectors:
	.skip	0x200				/* from EL1 with its own stack pointer */
	mrs	x5, elr_el1			/* 0 */
	add	x5, x5, #4
	msr	elr_el1, x5
	eretaa					/* 3 */
	.balign	2048

	/* The first of both tables: the first two gigabytes, normal memory. */
enable:	adr	x0, tables
	ldr	x1, =0x701			/* block, normal memory, accessed, shared */
	str	x1, [x0]
	ldr	x1, =0x40000701
	str	x1, [x0, #8]
	ldr	x1, =0x12a193519		/* 39 bits and 4 KiB each, 36 bits out */
	msr	tcr_el1, x1
	msr	ttbr0_el1, x0
	msr	ttbr1_el1, x0
	mov	x1, #0xff			/* normal, write-back */
	msr	mair_el1, x1
	ldr	x1, =HIGH + vectors
	msr	vbar_el1, x1
	isb
	mrs	x1, sctlr_el1
	orr	x1, x1, #1
	msr	sctlr_el1, x1
	isb
	ret

second:	bl	enable
	mov	x0, #0x1000
	msr	tpidr_el1, x0
	adr	x0, ready
	mov	w1, #1
	str	w1, [x0]
1:	yield
	ldr	w0, go
	cbz	w0, 1b
	ldr	x1, =HIGH + high
	blr	x1
	adr	x0, finished
	mov	w1, #1
	str	w1, [x0]
	b	.

	.balign	8
ready:	.word	0
go:	.word	0
finished:
	.word	0
	.ltorg
	.balign	4096
tables:	.skip	4096
