/* As much of an instruction's meaning as counting and recording need, from its bytes. */
#ifndef MEPOF_DECODE_H
#define MEPOF_DECODE_H

#include <stdbool.h>
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
	/* Back to where an interrupt, an exception or a system call came from: no branch. */
	INSN_EVENT_RETURN,
	/* The benchmark's (kbench/marks.h), and the agent's around a recording. */
	INSN_START_MARK,
	INSN_STOP_MARK,
	INSN_SESSION_START_MARK,
	INSN_SESSION_STOP_MARK,
};

/* The longest instruction there is. */
enum { LONGEST_INSN = 16 };

/* An instruction set; `size` is the length of the whole instruction. */
struct instruction_set {
	/* As in qemu-system-NAME, and as e_machine of its ELF files. */
	const char *name;
	uint32_t elf_machine;
	enum insn_kind (*kind)(const uint8_t *bytes, size_t size);
	/* Where a direct jump or call that ends at `next` leads; 0 for any other instruction. */
	uint64_t (*direct_target)(const uint8_t *bytes, size_t size, uint64_t next);
};

extern const struct instruction_set x86_64, aarch64;

/* The one that the plugins know by that name, or NULL. */
const struct instruction_set *instruction_set(const char *name);

#endif
