#include "targets.h"

#include <stdlib.h>
#include <string.h>

/* Base-2 logarithm of the number of indirect branches whose last target is kept. */
enum { LAST_BITS = 12 };
/* Base-2 logarithm of the bytes whose branches share a set. */
enum { BLOCK_BITS = 5 };
/* A taken branch shifts the path by this many bits. */
enum { PATH_BITS = 3 };

static uint64_t *array(uint64_t elements)
{
	return calloc(elements, sizeof(uint64_t));
}

/* Entries of one table. */
static size_t table_size(const struct targets *targets)
{
	return targets->size.paths > 0 ? targets->size.indirect_entries / targets->size.paths : 0;
}

bool targets_make(struct targets *targets, const struct targets_size *size)
{
	*targets = (struct targets){.size = *size};
	targets->last_target = array((uint64_t)1 << LAST_BITS);
	targets->tables = calloc(size->indirect_entries + 1, sizeof(struct target));
	targets->returns = array((uint64_t)size->return_depth + 1);
	targets->paths = array((uint64_t)size->return_depth + 1);
	return cache_make(&targets->btb, size->btb) &&
	       cache_make(&targets->l1_btb, size->l1_btb) &&
	       targets->last_target != NULL && targets->tables != NULL && targets->returns != NULL &&
	       targets->paths != NULL;
}

void targets_clear(struct targets *targets)
{
	cache_clear(&targets->btb);
	cache_clear(&targets->l1_btb);
	memset(targets->last_target, 0, sizeof(uint64_t) << LAST_BITS);
	memset(targets->tables, 0, targets->size.indirect_entries * sizeof(struct target));
	targets->path = targets->path_before = 0;
	memset(targets->returns, 0, targets->size.return_depth * sizeof(uint64_t));
	memset(targets->paths, 0, targets->size.return_depth * sizeof(uint64_t));
	targets->top = 0;
}

static uint64_t mixed(uint64_t value)
{
	/* The golden ratio; every bit of the value affects every bit of the result. */
	value = (value ^ value >> 32) * 0x9e3779b97f4a7c15u;
	return value ^ value >> 32;
}

static void follow(struct targets *targets, uint64_t branch, uint64_t target)
{
	targets->path_before = targets->path;
	targets->path = targets->path << PATH_BITS ^ mixed(branch ^ target << 1) >> 52;
}

enum prediction targets_direct(struct targets *targets, uint64_t branch)
{
	/* The low bits select the set: branches of a block share one. */
	const uint64_t key = branch >> BLOCK_BITS | branch << (64 - BLOCK_BITS);
	const bool at_once = targets->size.l1_btb.ways == 0 || cache_touch(&targets->l1_btb, key);

	/* Its address determines its target. */
	follow(targets, branch, 0);
	if (!cache_touch(&targets->btb, key))
		return TARGET_WRONG;
	return at_once ? TARGET_BY_ADDRESS : TARGET_BY_L2_BTB;
}

/* Finds the entry of each table for a branch, and its tag there. */
static void look_up(struct targets *targets, uint64_t branch, struct target **entries,
		    uint16_t *tags)
{
	const size_t size = table_size(targets);

	for (uint32_t i = 0; i < targets->size.paths; i++) {
		const uint32_t bits = PATH_BITS * targets->size.path_lengths[i];
		const uint64_t path = targets->path & (((uint64_t)1 << bits) - 1);
		const uint64_t hash = mixed(mixed(path) + branch);
		/* Never zero, which marks an empty entry. */
		tags[i] = (uint16_t)(hash & 0xfff) | 0x1000;
		entries[i] = &targets->tables[i * size + (hash >> 32) % size];
	}
}

/* A table with a longer path than the provider's takes the branch. */
static void allocate(struct target *const *entries, const uint16_t *tags, int paths, int provider,
		     uint64_t target)
{
	for (int i = provider + 1; i < paths; i++) {
		if (entries[i]->useful == 0) {
			*entries[i] = (struct target){target, tags[i], 0, 0};
			return;
		}
	}
	for (int i = provider + 1; i < paths; i++)
		entries[i]->useful = 0;
}

static enum prediction by_path(struct targets *targets, uint64_t branch, uint64_t target,
			      bool has_last, bool by_last)
{
	const int paths = (int)targets->size.paths;
	struct target *entries[MAX_PATHS];
	uint16_t tags[MAX_PATHS];
	int provider = -1, alternative = -1;

	look_up(targets, branch, entries, tags);
	for (int i = 0; i < paths; i++) {
		if (entries[i]->tag == tags[i]) {
			alternative = provider;
			provider = i;
		}
	}
	if (provider < 0) {
		/* A branch that has had one target only needs no path. */
		if (!by_last && has_last)
			allocate(entries, tags, paths, provider, target);
		return by_last ? TARGET_BY_ADDRESS : TARGET_WRONG;
	}
	struct target *entry = entries[provider];
	const bool by_alternative =
		alternative < 0 ? by_last : entries[alternative]->address == target;
	const bool by_provider = entry->address == target;
	/* A new entry is not trusted yet. */
	const bool is_trusted = entry->confidence > 0;
	const bool right = is_trusted ? by_provider : by_alternative;
	if (by_provider != by_alternative)
		entry->useful = by_provider;
	if (by_provider)
		entry->confidence += entry->confidence < 3;
	else if (entry->confidence > 0)
		entry->confidence--;
	else
		entry->address = target;
	if (!by_provider)
		allocate(entries, tags, paths, provider, target);
	if (!right)
		return TARGET_WRONG;
	return is_trusted || alternative >= 0 ? TARGET_BY_PATH : TARGET_BY_ADDRESS;
}

enum prediction targets_indirect(struct targets *targets, uint64_t branch, uint64_t target)
{
	uint64_t *last = &targets->last_target[mixed(branch) >> (64 - LAST_BITS)];
	const bool by_last = *last == target;
	enum prediction prediction = by_last ? TARGET_BY_ADDRESS : TARGET_WRONG;

	if (table_size(targets) > 0)
		prediction = by_path(targets, branch, target, *last != 0, by_last);
	*last = target;
	follow(targets, branch, target);
	return prediction;
}

void targets_call(struct targets *targets, uint64_t return_address)
{
	const uint32_t depth = targets->size.return_depth;

	if (depth == 0)
		return;
	targets->top = targets->top + 1 < depth ? targets->top + 1 : 0;
	targets->returns[targets->top] = return_address;
	targets->paths[targets->top] = targets->path_before;
}

bool targets_return(struct targets *targets, uint64_t branch, uint64_t target)
{
	const uint32_t depth = targets->size.return_depth;

	follow(targets, branch, target);
	if (depth == 0)
		return false;
	if (targets->size.path_returns)
		targets->path = targets->paths[targets->top];
	const bool right = targets->returns[targets->top] == target;
	targets->top = targets->top > 0 ? targets->top - 1 : depth - 1;
	return right;
}
