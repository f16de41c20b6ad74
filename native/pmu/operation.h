/*
 * What an instruction asks of a core's pipeline, by LLVM's scheduling model of that core: the
 * tables that its compiler backend and llvm-mca use.
 */
#ifndef MEPOF_PMU_OPERATION_H
#define MEPOF_PMU_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of what is beyond, the rest is left out. */
enum { MOST_READS = 10, MOST_WRITES = 6, MOST_USES = 5, MOST_UNIT_KINDS = 60, MOST_REGISTERS = 1024 };

/* A register, or a part of one that can be written by itself. */
struct operand {
	uint16_t reg;
	/* Read: cycles after the start until it is needed; written: until it is there. */
	int16_t cycles;
	/* Read: which of the instruction's; written: by which kind of writer. For bypasses. */
	uint16_t number;
};

/* What that kind of writer gives is needed that many cycles after the start by that read. */
struct bypass {
	uint16_t read, writer;
	int16_t cycles;
};

struct use {
	uint8_t kind;	/* of execution units */
	uint8_t cycles; /* that one of them is taken */
};

/* Conditions of a branch: of order and equality; that need the carry; of sign, overflow and parity. */
enum { BY_ORDER = 1, BY_CARRY = 2, BY_SIGN = 4 };

struct operation {
	uint64_t address;
	uint8_t size; /* in bytes */
	uint16_t latency;
	uint16_t load_latency; /* of it, until the value is loaded from L1; 0: loads nothing */
	uint8_t slots;	       /* of dispatch, and entries of the reorder buffer; 0: fused with the last */
	uint8_t read_count, write_count, use_count;
	bool stores;
	bool is_vector;
	bool forwards_late; /* what it loads is not renamed to what was stored */
	/* Which groups of conditions it branches by, and which a branch may be by that is one with it. */
	uint8_t branches_by, fuses_by;
	bool takes_long; /* some unit, for more than a cycle */
	/* Those of which there is least, first. */
	struct use uses[MOST_USES];
	struct operand reads[MOST_READS], writes[MOST_WRITES];
	const struct bypass *bypasses;
	uint32_t bypass_count;
};

/* What the core has. */
struct pipeline {
	uint32_t width;	 /* slots that are dispatched in a cycle */
	uint32_t window; /* slots of the reorder buffer; 0: everything starts in order */
	uint32_t unit_kinds;
	uint8_t units[MOST_UNIT_KINDS];
};

/*
 * Opens LLVM's model of a core (`cpu` as -mcpu names it) of a QEMU target. NULL, or why not, in
 * words that last.
 */
const char *operations_open(const char *target, const char *cpu, struct pipeline *pipeline);

/* Of one instruction; one that LLVM does not know takes a slot and a cycle. One caller at a time. */
void operation_of(const uint8_t *bytes, size_t size, uint64_t address, struct operation *operation);

#ifdef __cplusplus
}
#endif

#endif
