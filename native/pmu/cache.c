#include "cache.h"

#include <stdlib.h>
#include <string.h>

bool cache_make(struct cache *cache, struct table_size size)
{
	*cache = (struct cache){0};
	if (size.sets == 0 || size.ways == 0)
		return true;
	cache->keys = calloc((size_t)size.sets * size.ways, sizeof(*cache->keys));
	cache->set_mask = size.sets - 1;
	cache->ways = size.ways;
	return cache->keys != NULL;
}

void cache_clear(struct cache *cache)
{
	if (cache->keys != NULL)
		memset(cache->keys, 0, (cache->set_mask + 1) * cache->ways * sizeof(*cache->keys));
}

bool cache_touch_older(struct cache *cache, uint64_t *set, uint64_t key)
{
	const uint64_t wanted = key + 1;
	uint32_t way = 1;

	if (cache->ways == 0)
		return false;
	while (way < cache->ways && set[way] != wanted)
		way++;
	const bool found = way < cache->ways;
	/* The more recently used keys, or on a miss all but the oldest, become one older. */
	memmove(set + 1, set, (found ? way : cache->ways - 1) * sizeof(*set));
	set[0] = wanted;
	return found;
}
