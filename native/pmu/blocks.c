#include "blocks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { HASHES = 1 << 16, PAGE_BITS = 12 };

static struct pmu_block *by_hash[HASHES];
static struct pmu_block *by_id[MAX_BLOCKS];
static uint32_t known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_like(const struct pmu_block *one, const struct pmu_block *other)
{
	return one->start == other->start && one->size == other->size &&
	       one->branch.transfer == other->branch.transfer &&
	       one->branch.next == other->branch.next && one->branch.target == other->branch.target &&
	       one->code == other->code &&
	       one->begins_with_repeat == other->begins_with_repeat &&
	       one->ends_with_repeat == other->ends_with_repeat &&
	       one->line_count == other->line_count &&
	       memcmp(one->lines, other->lines, one->line_count * sizeof(*one->lines)) == 0;
}

static struct pmu_block *copy(const struct pmu_block *like)
{
	const size_t bytes = sizeof(*like) + like->line_count * sizeof(*like->lines);
	struct pmu_block *block = malloc(bytes);

	if (block == NULL)
		return NULL;
	memcpy(block, like, bytes);
	block->operations = calloc(like->size, sizeof(*block->operations));
	block->locations = calloc(like->size, sizeof(*block->locations));
	if (block->operations == NULL || block->locations == NULL)
		return NULL;
	for (uint32_t i = 0; i < like->size; i++)
		block->locations[i] = (struct location){block, (uint16_t)i};
	return block;
}

const struct pmu_block *block_known(const struct pmu_block *like,
				    void (*describe)(struct pmu_block *block, void *given), void *given)
{
	/* The golden ratio; the high bits are the best mixed. */
	const uint64_t hash = (like->start * 0x9e3779b97f4a7c15u ^ like->size) >> 40 & (HASHES - 1);

	pthread_mutex_lock(&lock);
	struct pmu_block *block = by_hash[hash];
	while (block != NULL && !is_like(block, like))
		block = block->next_of_hash;
	if (block == NULL && (block = copy(like)) != NULL) {
		describe(block, given);
		block->next_of_hash = by_hash[hash];
		block->id = known;
		if (known < MAX_BLOCKS)
			by_id[known++] = block;
		by_hash[hash] = block;
	}
	pthread_mutex_unlock(&lock);
	return block;
}

struct site *site_of_new_chunk(struct sites *sites, uint32_t id)
{
	if (id >= MAX_BLOCKS)
		return NULL;
	struct site *chunk = calloc(CHUNK_BLOCKS, sizeof(*chunk));
	sites->chunks[id / CHUNK_BLOCKS] = chunk;
	return chunk != NULL ? &chunk[id % CHUNK_BLOCKS] : NULL;
}

void sites_clear(struct sites *sites)
{
	for (size_t i = 0; i < MAX_BLOCKS / CHUNK_BLOCKS; i++) {
		free(sites->chunks[i]);
		sites->chunks[i] = NULL;
	}
}

/* A REP that is under way does not execute its block again, and yet causes events in it. */
static bool is_empty(const struct site *site)
{
	uint64_t any = site->executions;

	for (int event = 0; event < EVENTS; event++)
		any |= site->events[event];
	return any == 0;
}

bool sites_add(struct sites *sum, const struct sites *sites)
{
	for (uint32_t id = 0; id < known; id++) {
		const struct site *chunk = sites->chunks[id / CHUNK_BLOCKS];
		if (chunk == NULL || is_empty(&chunk[id % CHUNK_BLOCKS]))
			continue;
		struct site *to = site_of(sum, id);
		if (to == NULL)
			return false;
		to->executions += chunk[id % CHUNK_BLOCKS].executions;
		for (int event = 0; event < EVENTS; event++)
			to->events[event] += chunk[id % CHUNK_BLOCKS].events[event];
	}
	return true;
}

void sites_print(FILE *file, const struct sites *sites)
{
	const char *separator = "";

	fputc('[', file);
	for (uint32_t id = 0; id < known; id++) {
		const struct pmu_block *block = by_id[id];
		const struct site *chunk = sites->chunks[id / CHUNK_BLOCKS];
		if (!block->is_kernel || chunk == NULL || is_empty(&chunk[id % CHUNK_BLOCKS]))
			continue;
		const struct site *site = &chunk[id % CHUNK_BLOCKS];
		fprintf(file, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu64, separator,
			block->start, block->branch.next, block->size, site->executions);
		for (int event = 0; event < EVENTS; event++)
			fprintf(file, ",%" PRIu64, site->events[event]);
		fputc(']', file);
		separator = ",";
	}
	fputc(']', file);
}

struct page {
	uint64_t number;
	uint64_t instructions;
};

static int by_number(const void *left, const void *right)
{
	const struct page *a = left, *b = right;

	return a->number < b->number ? -1 : a->number > b->number;
}

void sites_slice(FILE *file, struct sites *sites)
{
	struct page *pages = malloc((known + 1) * sizeof(*pages));
	size_t count = 0;

	fputc('[', file);
	for (uint32_t id = 0; pages != NULL && id < known; id++) {
		const struct pmu_block *block = by_id[id];
		struct site *chunk = sites->chunks[id / CHUNK_BLOCKS];
		if (!block->is_kernel || chunk == NULL)
			continue;
		struct site *site = &chunk[id % CHUNK_BLOCKS];
		if (site->executions > site->reported)
			pages[count++] =
				(struct page){block->start >> PAGE_BITS,
					      (site->executions - site->reported) * block->size};
		site->reported = site->executions;
	}
	qsort(pages, count, sizeof(*pages), by_number);
	for (size_t i = 0; i < count;) {
		const uint64_t number = pages[i].number;
		uint64_t instructions = 0;
		const char *separator = i > 0 ? "," : "";
		for (; i < count && pages[i].number == number; i++)
			instructions += pages[i].instructions;
		fprintf(file, "%s[%" PRIu64 ",%" PRIu64 "]", separator, number, instructions);
	}
	fputc(']', file);
	free(pages);
}
