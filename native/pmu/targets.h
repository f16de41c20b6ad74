/*
 * Predictors of where branches lead: the branch target buffer, that of indirect branches, and
 * the return stack.
 *
 * That of indirect branches is ITTAGE, after Seznec, "A 64-Kbytes ITTAGE indirect branch
 * predictor", JWAC-2, 2011: the last target by address, and tagged tables by address and a length
 * of path each; the longest path that has an entry predicts.
 */
#ifndef MEPOF_PMU_TARGETS_H
#define MEPOF_PMU_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"

enum { MOST_PATHS = 4, LONGEST_PATH = 21 };

struct targets_size {
	struct table_size btb;
	struct table_size l1_btb; /* a smaller one before it; without ways there is none */
	/* Entries of all tagged tables together, which tell an indirect branch's targets apart by
	 * the path to it. */
	uint32_t indirect_entries;
	uint32_t paths; /* tagged tables; without any it is the last target that predicts */
	/* Taken branches of each table's path, rising. */
	uint32_t path_lengths[MOST_PATHS];
	/* Whether a return's path is again what it was before the call. */
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
	struct target *tables; /* one after the other */
	uint64_t path, path_before; /* the last branch */
	/* A ring: what overflows overwrites the oldest, and what underflows finds what was there. */
	uint64_t *returns;
	uint64_t *paths; /* before the calls that these are of */
	uint32_t top;
};

/* False when memory is short. */
bool targets_make(struct targets *targets, const struct targets_size *size);
void targets_clear(struct targets *targets);
void targets_free(struct targets *targets);

/* How a branch was predicted. */
enum foresight { TARGET_WRONG, TARGET_BY_ADDRESS, TARGET_BY_L2_BTB, TARGET_BY_PATH };

/* Each learns what it is told of a taken branch, and gives how it would have predicted it. */
enum foresight targets_direct(struct targets *targets, uint64_t branch);
bool targets_return(struct targets *targets, uint64_t branch, uint64_t target);
enum foresight targets_indirect(struct targets *targets, uint64_t branch, uint64_t target);

void targets_call(struct targets *targets, uint64_t return_address);

#endif
