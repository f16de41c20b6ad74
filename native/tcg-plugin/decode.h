/*
 * What the plugins know of an architecture: as much of an instruction's meaning as counting,
 * recording and modelling need, from its bytes, and how Linux lays out virtual addresses.
 *
 * Each architecture is one file, decode_ARCH.c, which defines a struct instruction_set and registers
 * it with INSTRUCTION_SET(). The Makefiles compile what is there.
 */
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
	/* Returns to where an interrupt, an exception or a system call came from; not a branch. */
	INSN_EVENT_RETURN,
	/* The benchmark's marks (abi/marks.h), and the agent's around a recording. */
	INSN_START_MARK,
	INSN_STOP_MARK,
	INSN_SESSION_START_MARK,
	INSN_SESSION_STOP_MARK,
};

/*
 * What counts of an instruction of kind INSN_REPEAT: in an iteration it makes so many accesses of
 * `unit` bytes, which are stores or else loads. Loads of an instruction that stores do not count.
 */
struct repeat {
	uint8_t unit;
	uint8_t accesses;
	bool stores;
};

/* How a branch is predicted. */
enum transfer {
	TRANSFER_NONE,
	TRANSFER_CONDITIONAL,
	TRANSFER_JUMP,
	TRANSFER_CALL,
	TRANSFER_INDIRECT_JUMP,
	TRANSFER_INDIRECT_CALL,
	TRANSFER_RETURN,
};

/* Of the longest instruction of any architecture. */
enum { MAX_INSN_BYTES = 16 };

enum { CPU_BASES = 2 };

/* In all functions, `size` is the length of the whole instruction. */
struct instruction_set {
	/* As in qemu-system-NAME, and as e_machine in ELF files. */
	const char *name;
	uint32_t elf_machine;
	/* The kernel's lowest address; user code is below. */
	uint64_t kernel_space;
	enum insn_kind (*kind)(const uint8_t *bytes, size_t size);
	/* For an instruction of kind INSN_REPEAT; NULL where there are none. */
	struct repeat (*repeat)(const uint8_t *bytes, size_t size);
	/* Target of a direct jump or call that ends at `next`; 0 for any other instruction. */
	uint64_t (*direct_target)(const uint8_t *bytes, size_t size, uint64_t next);

	/*
	 * The registers, by their names in QEMU's gdbstub, in which Linux keeps the base of a CPU's own
	 * data: the first with a kernel address, or else the last. Unused ones are NULL.
	 */
	const char *cpu_bases[CPU_BASES];

	/* The PMU's model alone uses the rest. */

	/* For an instruction of kind INSN_UNCONDITIONAL. */
	enum transfer (*transfer)(const uint8_t *bytes, size_t size);
	/*
	 * The general register from which the instruction sets the address space of user code, by
	 * its name in QEMU's gdbstub; NULL for any other instruction.
	 */
	const char *(*space_register)(const uint8_t *bytes, size_t size);
	/* The register that the instruction sets, by its name in QEMU's gdbstub. */
	const char *space;
	/* Low bits of its value that do not identify the address space. */
	uint32_t space_low_bits;
	/* Whether Linux maps this kernel address with pages of 4 KiB, whatever size the rest has. */
	bool (*has_small_pages)(uint64_t address, bool is_text);
};

/* Registers an instruction set: decode.c finds what the linker collects in this section. */
#define INSTRUCTION_SET(set)                                                                     \
	static const struct instruction_set *const set##_registered                              \
		__attribute__((section("instruction_sets"), used)) = &set

/* The one with that name, or NULL. */
const struct instruction_set *instruction_set(const char *name);

static inline bool is_kernel(const struct instruction_set *set, uint64_t address)
{
	return address >= set->kernel_space;
}

#endif
