/* The last branches of a vCPU, as a processor's branch stack (LBR) keeps them. */
#ifndef MEPOF_BRANCH_STACK_H
#define MEPOF_BRANCH_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace_file.h"

/* A ring with `filled` valid entries, the newest at `newest`. All zeros is an empty stack. */
struct branch_stack {
	struct trace_entry *entries;
	uint32_t newest;
	uint32_t filled;
};

/* `depth` is the capacity, the same at each call. False when memory is short. */
bool branch_stack_push(struct branch_stack *stack, uint32_t depth, uint64_t from, uint64_t to);

/*
 * Pushes an entry of zeros, which separates branches that do not follow from one another.
 * Consecutive gaps are merged.
 */
bool branch_stack_push_gap(struct branch_stack *stack, uint32_t depth);

/* Copies the entries, newest first, and returns how many there are. */
uint32_t branch_stack_read(const struct branch_stack *stack, uint32_t depth,
			   struct trace_entry *entries);

#endif
