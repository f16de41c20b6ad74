#include "blocks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { HASHES = 1 << 16 };

static struct block *by_hash[HASHES];
static atomic_size_t bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_like(const struct block *block, enum leaves leaves, uint64_t target,
		    const uint64_t *addresses, uint32_t size)
{
	return block->size == size && block->leaves == leaves && block->target == target &&
	       memcmp(block->addresses, addresses, (size + 1) * sizeof(*addresses)) == 0;
}

const struct block *block_like(enum leaves leaves, uint64_t target, const uint64_t *addresses,
			       uint32_t size)
{
	const size_t size_in_bytes = sizeof(struct block) + (size + 1) * sizeof(*addresses);
	/* The golden ratio; the high bits are the good ones. */
	const uint64_t hash = (addresses[0] * 0x9e3779b97f4a7c15u ^ size) >> 40 & (HASHES - 1);

	pthread_mutex_lock(&lock);
	struct block *block = by_hash[hash];
	while (block != NULL && !is_like(block, leaves, target, addresses, size))
		block = block->next;
	if (block == NULL && (block = malloc(size_in_bytes)) != NULL) {
		*block = (struct block){by_hash[hash], leaves, size, target};
		memcpy(block->addresses, addresses, (size + 1) * sizeof(*addresses));
		by_hash[hash] = block;
		bytes += size_in_bytes;
	}
	pthread_mutex_unlock(&lock);
	return block;
}

bool blocks_are_many(void)
{
	return bytes >= MANY_BLOCKS;
}

struct path_counts blocks_predecessors(void)
{
	struct path_counts known = {0};

	for (size_t hash = 0; hash < HASHES; hash++)
		for (const struct block *block = by_hash[hash]; block != NULL; block = block->next)
			for (uint32_t i = 0; i < block->size; i++)
				if (path_counts_get(&known, block->addresses[i + 1], 0, 0) == 0)
					path_counts_add(&known, block->addresses[i + 1], 0, 0,
							block->addresses[i]);
	return known;
}

void blocks_forget(void)
{
	for (size_t hash = 0; hash < HASHES; hash++) {
		while (by_hash[hash] != NULL) {
			struct block *block = by_hash[hash];
			by_hash[hash] = block->next;
			free(block);
		}
	}
	bytes = 0;
}
