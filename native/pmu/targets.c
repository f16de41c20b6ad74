#include "targets.h"

#include <stdlib.h>
#include <string.h>

/* Last targets are kept for this many indirect branches, as bits. */
enum { LAST_BITS = 12 };

static uint64_t *array(uint64_t elements)
{
	return calloc(elements, sizeof(uint64_t));
}

static size_t path_entries(const struct targets *targets)
{
	return targets->size.indirect_bits > 0 ? (size_t)1 << targets->size.indirect_bits : 0;
}

bool targets_make(struct targets *targets, const struct targets_size *size)
{
	*targets = (struct targets){.size = *size};
	targets->last_target = array((uint64_t)1 << LAST_BITS);
	targets->path_target = array(path_entries(targets) + 1);
	targets->returns = array((uint64_t)size->return_depth + 1);
	return cache_make(&targets->btb, size->btb_sets, size->btb_ways) &&
	       targets->last_target != NULL && targets->path_target != NULL &&
	       targets->returns != NULL;
}

void targets_clear(struct targets *targets)
{
	cache_clear(&targets->btb);
	memset(targets->last_target, 0, sizeof(uint64_t) << LAST_BITS);
	memset(targets->path_target, 0, path_entries(targets) * sizeof(uint64_t));
	targets->path = 0;
	memset(targets->returns, 0, targets->size.return_depth * sizeof(uint64_t));
	targets->top = 0;
}

void targets_free(struct targets *targets)
{
	cache_free(&targets->btb);
	free(targets->last_target);
	free(targets->path_target);
	free(targets->returns);
	*targets = (struct targets){0};
}

bool targets_direct(struct targets *targets, uint64_t branch)
{
	/* Sets are chosen by the low bits; those of instructions of four bytes say nothing. */
	return cache_touch(&targets->btb, branch ^ branch >> 2);
}

static uint64_t mixed(uint64_t value)
{
	/* The golden ratio; the high bits are the good ones. */
	return value * 0x9e3779b97f4a7c15u;
}

bool targets_indirect(struct targets *targets, uint64_t branch, uint64_t target)
{
	uint64_t *last = &targets->last_target[mixed(branch) >> (64 - LAST_BITS)];
	bool right = *last == target;

	if (targets->size.indirect_bits > 0) {
		uint64_t *entry = &targets->path_target[mixed(branch ^ targets->path) >>
							(64 - targets->size.indirect_bits)];
		right = *entry != 0 ? *entry == target : right;
		*entry = target;
	}
	*last = target;
	/* The last eight targets of indirect branches. */
	targets->path = targets->path << 8 ^ (mixed(target) >> 48 & 0xffff);
	return right;
}

void targets_call(struct targets *targets, uint64_t return_address)
{
	const uint32_t depth = targets->size.return_depth;

	if (depth == 0)
		return;
	targets->top = targets->top + 1 < depth ? targets->top + 1 : 0;
	targets->returns[targets->top] = return_address;
}

bool targets_return(struct targets *targets, uint64_t target)
{
	const uint32_t depth = targets->size.return_depth;

	if (depth == 0)
		return false;
	const bool right = targets->returns[targets->top] == target;
	targets->top = targets->top > 0 ? targets->top - 1 : depth - 1;
	return right;
}
