/*
 * What an instruction needs of a core's pipeline, by LLVM's scheduling model of the core: the
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

/* What exceeds these is ignored. */
enum { MAX_READS = 10, MAX_WRITES = 6, MAX_USES = 5, MAX_UNIT_KINDS = 60, MAX_REGISTERS = 1024 };

/* A register, or a part of one that can be written separately. */
struct operand {
	uint16_t reg;
	/* Read: cycles after the start until it is needed; written: until it is ready. */
	int16_t cycles;
	/* Read: position among the operands; written: the kind of writer. For bypasses. */
	uint16_t number;
};

/* The read needs the result of that kind of writer so many cycles after the start. */
struct bypass {
	uint16_t read, writer;
	int16_t cycles;
};

struct use {
	uint8_t kind;	/* of execution units */
	uint8_t cycles; /* for which one of them is reserved */
};

/*
 * Groups of conditions of branches: order and equality; those that need the carry; sign, overflow
 * and parity.
 */
enum { BY_ORDER = 1, BY_CARRY = 2, BY_SIGN = 4 };

/* How an instruction enters or leaves the kernel, or changes what the kernel's segment is. */
enum crossing {
	CROSSING_NONE,
	CROSSING_CALL,		/* a system call */
	CROSSING_CALL_RETURN,	/* a return that serves only system calls */
	CROSSING_EVENT_RETURN,	/* from all else; operation_of() leaves it to the instruction set */
	CROSSING_SWAP,		/* of the user's and the kernel's base */
};

struct operation {
	uint64_t address;
	uint8_t size; /* in bytes */
	uint16_t latency;
	uint16_t load_latency; /* until the value is loaded from L1; 0: loads nothing */
	uint8_t slots;	       /* of dispatch, and entries of the reorder buffer; 0: fused with the previous instruction */
	uint8_t read_count, write_count, use_count;
	bool stores;
	bool is_vector;
	bool forwards_late; /* a store is not forwarded to it by renaming */
	/*
	 * Groups of conditions that it branches by, and those of the branches that it fuses with.
	 */
	uint8_t branches_by, fuses_by;
	bool takes_long; /* reserves a unit for more than a cycle */
	uint8_t crossing; /* enum crossing */
	uint16_t alone;	  /* cycles after it in which nothing else is executed; 0 from operation_of() */
	/* The scarcest first. */
	struct use uses[MAX_USES];
	struct operand reads[MAX_READS], writes[MAX_WRITES];
	const struct bypass *bypasses;
	uint32_t bypass_count;
};

/* The resources of the core. */
struct pipeline {
	uint32_t width;	 /* slots that are dispatched in a cycle */
	uint32_t window; /* slots of the reorder buffer; 0: in-order */
	uint32_t unit_kinds;
	uint8_t units[MAX_UNIT_KINDS];
};

/*
 * Opens LLVM's model of a core (`cpu` is the -mcpu name) of a QEMU target. NULL, or an error
 * message that is never freed.
 */
const char *operations_open(const char *target, const char *cpu, struct pipeline *pipeline);

/*
 * Describes one instruction. One that LLVM does not know takes a slot and a cycle. Not thread-safe.
 */
void operation_of(const uint8_t *bytes, size_t size, uint64_t address, struct operation *operation);

#ifdef __cplusplus
}
#endif

#endif
