/*
 * A set-associative table of keys with least-recently-used replacement: caches (keys are line
 * numbers), TLBs (page numbers), the branch target buffer (addresses of branches). The keys of a
 * set lie in the order of their last use, the latest first, so that most look-ups compare one.
 */
#ifndef MEPOF_PMU_CACHE_H
#define MEPOF_PMU_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct table_size {
	uint32_t sets; /* a power of two */
	uint32_t ways;
};

/* All zeros is a cache without entries, which misses always. */
struct cache {
	uint64_t *keys; /* plus one; zero is an empty way */
	uint64_t set_mask;
	uint32_t ways;
};

/* False when memory is short. No ways or sets make an empty cache. */
bool cache_make(struct cache *cache, struct table_size size);
void cache_clear(struct cache *cache);
void cache_free(struct cache *cache);

/* The rest of cache_touch() when the key is not the latest of its set. */
bool cache_touch_older(struct cache *cache, uint64_t *set, uint64_t key);

/* Whether the key is in; if it was not, it is now, in the place of its set's oldest. */
static inline bool cache_touch(struct cache *cache, uint64_t key)
{
	uint64_t *set = cache->keys + (key & cache->set_mask) * cache->ways;

	return (cache->ways > 0 && *set == key + 1) || cache_touch_older(cache, set, key);
}

#endif
