/* The last branches of a vCPU, as a processor's branch record keeps them. */
#ifndef MEPOF_BRANCH_STACK_H
#define MEPOF_BRANCH_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace_file.h"

/* A ring of which `filled` entries count, the newest at `newest`. All zeros is an empty one. */
struct branch_stack {
	struct trace_entry *entries;
	uint32_t newest;
	uint32_t filled;
};

/* Room for `depth` entries, the same each time. False when memory is short. */
bool branch_stack_push(struct branch_stack *stack, uint32_t depth, uint64_t from, uint64_t to);

/* What comes next does not follow from what was before: an entry of zeros says so, once. */
bool branch_stack_push_gap(struct branch_stack *stack, uint32_t depth);

/* The newest first; the number of them. */
uint32_t branch_stack_read(const struct branch_stack *stack, uint32_t depth,
			   struct trace_entry *entries);

#endif
