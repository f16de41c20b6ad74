/*
 * Predictors of the targets of branches: the branch target buffer, the predictor of indirect
 * branches, and the return stack.
 *
 * Indirect branches are predicted by ITTAGE, after Seznec, "A 64-Kbytes ITTAGE indirect branch
 * predictor", JWAC-2, 2011: the last target by address, and tagged tables by address and a path of
 * a different length each; the entry with the longest path predicts.
 */
#ifndef MEPOF_PMU_TARGETS_H
#define MEPOF_PMU_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"

enum { MAX_PATHS = 4, MAX_PATH_LENGTH = 21 };

struct targets_size {
	struct table_size btb;
	struct table_size l1_btb; /* a smaller one before it; none without ways */
	/*
	 * Entries of all tagged tables together, which distinguish the targets of an indirect
	 * branch by the path to it.
	 */
	uint32_t indirect_entries;
	uint32_t paths; /* tagged tables; without any, the last target predicts */
	/* Length of each table's path in taken branches, rising. */
	uint32_t path_lengths[MAX_PATHS];
	/* Whether a return restores the path from before the call. */
	bool path_returns;
	uint32_t return_depth;
};

struct target {
	uint64_t address;
	uint16_t tag;
	uint8_t confidence; /* 0 to 3 */
	uint8_t useful;	    /* 0 or 1 */
};

struct targets {
	struct targets_size size;
	struct cache btb, l1_btb;
	uint64_t *last_target; /* of indirect branches, by a hash of their address */
	struct target *tables; /* consecutive */
	uint64_t path, path_before; /* the last branch */
	/* A ring: overflow overwrites the oldest entry, and underflow finds a stale one. */
	uint64_t *returns;
	uint64_t *paths; /* the paths before these calls */
	uint32_t top;
};

/* False when memory is short. */
bool targets_make(struct targets *targets, const struct targets_size *size);
void targets_clear(struct targets *targets);

/* How a branch was predicted. */
enum prediction { TARGET_WRONG, TARGET_BY_ADDRESS, TARGET_BY_L2_BTB, TARGET_BY_PATH };

/* Each learns the target of a taken branch, and returns how it would have predicted it. */
enum prediction targets_direct(struct targets *targets, uint64_t branch);
bool targets_return(struct targets *targets, uint64_t branch, uint64_t target);
enum prediction targets_indirect(struct targets *targets, uint64_t branch, uint64_t target);

void targets_call(struct targets *targets, uint64_t return_address);

#endif
