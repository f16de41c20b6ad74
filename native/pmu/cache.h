/*
 * A set-associative table of keys with least-recently-used replacement: caches (keys are line
 * numbers), TLBs (page numbers), the branch target buffer (addresses of branches). The keys of a
 * set are in the order of their last use, latest first, so that most lookups compare one.
 */
#ifndef MEPOF_PMU_CACHE_H
#define MEPOF_PMU_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct table_size {
	uint32_t sets; /* a power of two */
	uint32_t ways;
};

/* All zeros is a cache without entries, which always misses. */
struct cache {
	uint64_t *keys; /* key + 1; zero is an empty way */
	uint64_t set_mask;
	uint32_t ways;
};

/* False when memory is short. Without ways or sets the cache is empty. */
bool cache_make(struct cache *cache, struct table_size size);
void cache_clear(struct cache *cache);

/* The rest of cache_touch() when the key is not the latest of its set. */
bool cache_touch_older(struct cache *cache, uint64_t *set, uint64_t key);

/* Whether the key is present. Otherwise inserts it and evicts the least recently used one. */
static inline bool cache_touch(struct cache *cache, uint64_t key)
{
	uint64_t *set = cache->keys + (key & cache->set_mask) * cache->ways;

	return (cache->ways > 0 && *set == key + 1) || cache_touch_older(cache, set, key);
}

#endif
