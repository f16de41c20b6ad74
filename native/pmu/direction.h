/*
 * Predictor of the direction of conditional branches: TAGE without its statistical corrector, after
 * Seznec and Michaud, "A case for (partially) TAgged GEometric history length branch prediction",
 * Journal of Instruction-Level Parallelism 8, 2006. It has a base table of two-bit counters by
 * address, and tagged tables by address and a history of a different length each; the entry with
 * the longest history predicts. Without tagged tables it is the bimodal predictor.
 *
 * Unlike the paper's, allocation is not randomised, so that runs repeat: the first longer table
 * whose entry is not useful takes the branch.
 */
#ifndef MEPOF_PMU_DIRECTION_H
#define MEPOF_PMU_DIRECTION_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_TABLES = 8, MAX_HISTORY = 256, TAG_BITS = 11 };

/* Sizes are logarithms of two of numbers of entries. */
struct direction_size {
	uint32_t base_bits;
	uint32_t table_bits;
	uint32_t tables;
	/* Length of each table's history in branches, rising. */
	uint32_t history[MAX_TABLES];
};

/* A history of some length, folded into some bits by exclusive or. */
struct folded {
	uint32_t value;
	uint32_t length;
	uint32_t bits;
};

struct tagged {
	uint16_t tag;
	int8_t counter; /* -4 to 3; taken from 0 on */
	int8_t useful;  /* 0 to 3 */
};

struct direction {
	struct direction_size size;
	int8_t *base; /* 0 to 3; taken from 2 on */
	struct tagged *tables[MAX_TABLES];
	struct folded index[MAX_TABLES], tag[MAX_TABLES], tag_again[MAX_TABLES];
	uint8_t history[MAX_HISTORY]; /* a ring */
	uint32_t newest;
	uint32_t branches;
};

/* False when memory is short. The settings have checked the size. */
bool direction_make(struct direction *direction, const struct direction_size *size);
void direction_clear(struct direction *direction);

/*
 * Predicts the branch at `address`, learns the outcome, and returns whether the prediction was
 * right.
 */
bool direction_resolve(struct direction *direction, uint64_t address, bool taken);

#endif
