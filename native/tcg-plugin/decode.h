/* As much of an instruction's meaning as counting needs, from its bytes. */
#ifndef MEPOF_DECODE_H
#define MEPOF_DECODE_H

#include <stddef.h>
#include <stdint.h>

enum insn_kind {
	INSN_PLAIN,
	/* Goes to its target or falls through. */
	INSN_CONDITIONAL,
	/* Jump, call, return: never falls through (a jump to the next instruction is plain). */
	INSN_UNCONDITIONAL,
	/* A string instruction with a repeat prefix. */
	INSN_REPEAT,
	/* The benchmark's (kbench/marks.h), and the agent's around a recording. */
	INSN_START_MARK,
	INSN_STOP_MARK,
	INSN_SESSION_START_MARK,
	INSN_SESSION_STOP_MARK,
};

/* x86-64 code; `size` is the length of the whole instruction. */
enum insn_kind decode_x86_64(const uint8_t *bytes, size_t size);

/* Where a direct jump or call that ends at `next` leads; 0 for any other instruction. */
uint64_t direct_target(const uint8_t *bytes, size_t size, uint64_t next);

/* IRET, SYSRET, SYSEXIT: back to where an interrupt, an exception or a system call came from. */
int returns_from_event(const uint8_t *bytes, size_t size);

#endif
