/* Predictors of where branches lead: the branch target buffer, that of indirect branches, and
 * the return stack. */
#ifndef MEPOF_PMU_TARGETS_H
#define MEPOF_PMU_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"

struct targets_size {
	uint32_t btb_sets; /* a power of two */
	uint32_t btb_ways;
	/* Logarithm of two of the entries that tell an indirect branch's targets apart by the
	 * path to it; 0 leaves it to its last target. */
	uint32_t indirect_bits;
	uint32_t return_depth;
};

struct targets {
	struct targets_size size;
	struct cache btb;
	uint64_t *last_target;	/* of indirect branches, by a hash of their address */
	uint64_t *path_target;	/* by a hash of address and path */
	uint64_t path;
	/* A ring: what overflows overwrites the oldest, and what underflows finds what was there. */
	uint64_t *returns;
	uint32_t top;
};

/* False when memory is short. */
bool targets_make(struct targets *targets, const struct targets_size *size);
void targets_clear(struct targets *targets);
void targets_free(struct targets *targets);

/* Each learns what it is told, and gives whether it would have predicted it. */
bool targets_direct(struct targets *targets, uint64_t branch);
bool targets_indirect(struct targets *targets, uint64_t branch, uint64_t target);
bool targets_return(struct targets *targets, uint64_t target);

void targets_call(struct targets *targets, uint64_t return_address);

#endif
