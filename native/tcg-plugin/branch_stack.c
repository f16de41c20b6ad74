#include "branch_stack.h"

#include <stdlib.h>

bool branch_stack_push(struct branch_stack *stack, uint32_t depth, uint64_t from, uint64_t to)
{
	if (stack->entries == NULL)
		stack->entries = calloc(depth, sizeof(*stack->entries));
	if (stack->entries == NULL)
		return false;
	stack->newest = stack->newest + 1 < depth ? stack->newest + 1 : 0;
	stack->entries[stack->newest] = (struct trace_entry){from, to};
	stack->filled += stack->filled < depth;
	return true;
}

bool branch_stack_push_gap(struct branch_stack *stack, uint32_t depth)
{
	if (stack->filled == 0 || stack->entries[stack->newest].to == 0)
		return true;
	return branch_stack_push(stack, depth, 0, 0);
}

uint32_t branch_stack_read(const struct branch_stack *stack, uint32_t depth,
			   struct trace_entry *entries)
{
	uint32_t at = stack->newest;

	for (uint32_t i = 0; i < stack->filled; i++) {
		entries[i] = stack->entries[at];
		at = at > 0 ? at - 1 : depth - 1;
	}
	return stack->filled;
}
