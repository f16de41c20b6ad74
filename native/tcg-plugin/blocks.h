/* The translated blocks of the guest's code, each distinct one once. */
#ifndef MEPOF_BLOCKS_H
#define MEPOF_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "path_counts.h"

/* How control leaves a block at its end, unless it falls through. */
enum leaves {
	BY_BRANCH,
	/* IRET, SYSRET, ERET and similar: to wherever an event came from. */
	BY_RETURN,
	/* A REP instruction: to itself, noting its own address. */
	BY_REPEAT,
	BY_EVENT,
};

/* TCG_MAX_INSNS of QEMU. */
enum { MAX_BLOCK_INSNS = 512 };

struct block {
	/* With the same hash. */
	struct block *next;
	enum leaves leaves;
	uint32_t size;
	/* Target of a direct branch; otherwise 0. */
	uint64_t target;
	/* Addresses of its instructions, and the address after the last one. */
	uint64_t addresses[];
};

/* blocks_are_many() is true from this many bytes of blocks on: more than a kernel's code takes. */
#ifndef MANY_BLOCKS
#define MANY_BLOCKS (64u << 20)
#endif

/*
 * Returns the equal block, which stays valid until the next blocks_forget(). `addresses` has one
 * element more than `size`. NULL when memory is short. Several vCPUs may call it at once.
 */
const struct block *block_like(enum leaves leaves, uint64_t target, const uint64_t *addresses,
			       uint32_t size);

bool blocks_are_many(void);

/* Call the next two only while no vCPU runs. */

/* For each address after an instruction, the address of that instruction, as a count. */
struct path_counts blocks_predecessors(void);

void blocks_forget(void);

#endif
