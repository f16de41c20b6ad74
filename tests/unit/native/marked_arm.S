/*
 * A guest of known counts for the plugins, like marked.S for 32-bit Arm: maps its memory at
 * HIGH too, runs marked code in both, and powers the machine off.
 *
 * arm-linux-gnueabi-gcc -nostdlib -static -Wl,-Ttext=0x40200000 -Wl,--build-id=none \
 *     -o marked.elf marked_arm.S
 */
	.arch	armv7-a
	.arch_extension virt
	.set	HIGH, 0x80000000	/* from an address to the same one in the kernel's half */

	.text
	.arm
	.globl	_start
_start:	ldr	sp, =stack
	bl	enable
	mov	r11, #ROUNDS

	/* Counting begins with the block after the start mark's: a jump ends that. */
round:	.inst	0xe320f051 + SESSION
	b	1f
	/* Low half: 2006 instructions, 1002 taken branches. */
1:	mov	r0, #1000
2:	subs	r0, r0, #1
	bne	2b				/* taken 999 times */
	bl	3f				/* taken, and so is the return */
	ldr	r1, =HIGH + high
	blx	r1				/* taken */
	.inst	0xe320f052 + SESSION
	subs	r11, r11, #1
	bne	round
	ldr	r0, =0x84000008			/* PSCI SYSTEM_OFF */
	hvc	#0
	b	.
3:	bx	lr

	/* High half, by their numbers: 45 instructions, 17 taken branches. */
high:	mov	r0, #10				/* 0 */
4:	subs	r0, r0, #1			/* 1 */
	bne	4b				/* 2: taken 9 times */
	cmp	r0, #0				/* 3 */
	moveq	r2, #8				/* 4: conditional, no branch */
	beq	5f				/* 5: taken */
	nop
5:	bne	6f				/* 7: not taken */
6:	mov	r10, lr				/* 8 */
	bl	7f				/* 9: taken */
	b	8f				/* 10: taken */
7:	bx	lr				/* 11: taken, to 10 */
8:	adr	r3, 9f				/* 12 */
	mov	pc, r3				/* 13: taken */
	nop
9:	adr	r5, 10f				/* 15 */
	push	{r5}				/* 16 */
	pop	{pc}				/* 17: taken */
	nop
10:	adr	r5, 11f				/* 19 */
	push	{r4, r5}			/* 20 */
	popeq	{r4, pc}			/* 21: taken */
	nop
11:	b	12f				/* 23: to the next, no branch */
12:	svc	#0				/* 24: an exception; its handler returns to 25 */
	mov	lr, r10				/* 25 */
	ldrne	pc, [sp, #-4]			/* 26: not taken */
	bx	lr				/* 27: taken, to the low half */

	.balign	32
vectors:
	.skip	8				/* a supervisor call */
	nop					/* 0 */
	nop
	movs	pc, lr				/* 2 */
	.balign	32

	/* Sections of 1 MiB: the machine's memory where it is, and in the kernel's half. */
enable:	ldr	r0, =tables
	ldr	r1, =0x40000c0e			/* normal memory, write-back, all access */
	add	r2, r0, #0x400 * 4
	add	r3, r0, #0xc00 * 4
	mov	r4, #0x40
1:	str	r1, [r2], #4
	str	r1, [r3], #4
	add	r1, r1, #0x100000
	subs	r4, r4, #1
	bne	1b
	mcr	p15, 0, r0, c2, c0, 0		/* TTBR0 */
	mov	r1, #0
	mcr	p15, 0, r1, c2, c0, 2		/* TTBCR: TTBR0 for all addresses */
	mvn	r1, #0
	mcr	p15, 0, r1, c3, c0, 0		/* DACR: nothing is checked */
	ldr	r1, =HIGH + vectors
	mcr	p15, 0, r1, c12, c0, 0		/* VBAR */
	isb
	mrc	p15, 0, r1, c1, c0, 0
	orr	r1, r1, #1
	mcr	p15, 0, r1, c1, c0, 0		/* SCTLR.M */
	isb
	bx	lr

	.ltorg
	.balign	8
	.skip	256
stack:
	.balign	16384
tables:	.skip	16384
