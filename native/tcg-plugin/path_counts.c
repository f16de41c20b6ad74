#include "path_counts.h"

#include <stdlib.h>

enum { MIN_CAPACITY = 1 << 12 };

static size_t limit = PATHS_KEPT;

void path_counts_limit(size_t paths)
{
	limit = paths;
}

static size_t home_of(const struct path_counts *counts, uint64_t first, uint64_t last, uint64_t to)
{
	/* Odd constants from splitmix64 and the golden ratio; the high bits are the good ones. */
	uint64_t hash = first * 0x9e3779b97f4a7c15u;

	hash = (hash ^ last) * 0xbf58476d1ce4e5b9u;
	hash = (hash ^ to ^ hash >> 29) * 0x94d049bb133111ebu;
	return (size_t)(hash >> 32) & (counts->capacity - 1);
}

static struct path *slot_of(const struct path_counts *counts, uint64_t first, uint64_t last,
			    uint64_t to)
{
	size_t at = home_of(counts, first, last, to);

	for (;;) {
		struct path *slot = &counts->slots[at];
		if (slot->count == 0 || (slot->first == first && slot->last == last && slot->to == to))
			return slot;
		at = (at + 1) & (counts->capacity - 1);
	}
}

/* Keeps the table at most half full, so that probes stay short. */
static bool reserve(struct path_counts *counts)
{
	if (counts->used >= limit)
		return false;
	if (counts->capacity > 0 && counts->used < counts->capacity / 2)
		return true;
	struct path_counts grown = {.capacity = counts->capacity ? counts->capacity * 2 : MIN_CAPACITY};
	grown.slots = calloc(grown.capacity, sizeof(*grown.slots));
	if (grown.slots == NULL)
		return false;
	for (size_t i = 0; i < counts->capacity; i++) {
		const struct path *path = &counts->slots[i];
		if (path->count > 0)
			*slot_of(&grown, path->first, path->last, path->to) = *path;
	}
	free(counts->slots);
	counts->slots = grown.slots;
	counts->capacity = grown.capacity;
	return true;
}

bool path_counts_add(struct path_counts *counts, uint64_t first, uint64_t last, uint64_t to,
		     uint64_t count)
{
	struct path *slot = counts->capacity > 0 ? slot_of(counts, first, last, to) : NULL;

	if (slot == NULL || slot->count == 0) {
		if (!reserve(counts))
			return false;
		slot = slot_of(counts, first, last, to);
		*slot = (struct path){.first = first, .last = last, .to = to};
		counts->used++;
	}
	slot->count += count;
	return true;
}

uint64_t path_counts_get(const struct path_counts *counts, uint64_t first, uint64_t last,
			 uint64_t to)
{
	return counts->capacity > 0 ? slot_of(counts, first, last, to)->count : 0;
}

static int by_addresses(const void *left, const void *right)
{
	const struct path *a = left, *b = right;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	if (a->last != b->last)
		return a->last < b->last ? -1 : 1;
	return a->to < b->to ? -1 : a->to > b->to;
}

void path_counts_sort(struct path_counts *counts)
{
	size_t kept = 0;

	for (size_t i = 0; i < counts->capacity; i++)
		if (counts->slots[i].count > 0)
			counts->slots[kept++] = counts->slots[i];
	if (kept > 0)
		qsort(counts->slots, kept, sizeof(*counts->slots), by_addresses);
}

void path_counts_free(struct path_counts *counts)
{
	free(counts->slots);
	*counts = (struct path_counts){0};
}
