/* What the recorder knows of the guest's code: the translated blocks, each kind once. */
#ifndef MEPOF_BLOCKS_H
#define MEPOF_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "path_counts.h"

/* How control leaves a block at its end, if not to what follows it. */
enum leaves {
	BY_BRANCH,
	/* IRET, SYSRET, ERET and their like: to wherever an event came from. */
	BY_RETURN,
	/* A REP: to itself, noting its own address. */
	BY_REPEAT,
	BY_EVENT,
};

/* Instructions in a block of QEMU's, at most (TCG_MAX_INSNS). */
enum { MAX_BLOCK_INSNS = 512 };

struct block {
	/* Of the same hash. */
	struct block *next;
	enum leaves leaves;
	uint32_t size;
	/* Of a direct branch; otherwise 0. */
	uint64_t target;
	/* Of its instructions, and at last what follows them. */
	uint64_t addresses[];
};

/* Bytes of blocks from which on blocks_are_many() is true: more than all code of a kernel. */
#ifndef MANY_BLOCKS
#define MANY_BLOCKS (64u << 20)
#endif

/*
 * The block like that, which lasts until the next blocks_forget(); `addresses` has one more than
 * `size`. NULL when memory is short. Several vCPUs may call it at once.
 */
const struct block *block_like(enum leaves leaves, uint64_t target, const uint64_t *addresses,
			       uint32_t size);

bool blocks_are_many(void);

/* The next two: while no vCPU runs. */

/* For each address after an instruction: that instruction's, as a count. */
struct path_counts blocks_predecessors(void);

void blocks_forget(void);

#endif
