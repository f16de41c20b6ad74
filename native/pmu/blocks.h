/*
 * The translated blocks of the guest's code, each distinct one once, and what was counted in each.
 */
#ifndef MEPOF_PMU_BLOCKS_H
#define MEPOF_PMU_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model.h"
#include "operation.h"

/*
 * Pages of a block's code: of the kernel as keys of the instruction TLB; of user code as numbers of
 * small pages, since their sizes vary with address space and time. QEMU's blocks span at most two.
 */
enum { MAX_PAGES = 2 };

struct pmu_block;

/* The instruction of a block that an access to data is attributed to. */
struct location {
	const struct pmu_block *block;
	uint16_t operation;
};

struct pmu_block {
	struct pmu_block *next_of_hash;
	uint64_t start;
	uint32_t id;
	uint32_t size; /* instructions */
	bool is_kernel;
	/* The block begins or ends with a REP; one that is under way does not count again. */
	bool begins_with_repeat, ends_with_repeat;
	struct repeat repeat; /* that it ends with */
	struct branch branch;
	uint64_t code; /* a hash of its bytes: another program has other code at the address */
	struct operation *operations;
	struct location *locations;
	uint32_t page_count;
	uint64_t pages[MAX_PAGES];
	uint32_t first_lines[MAX_PAGES]; /* index into `lines` of the first line of each page */
	uint32_t line_count;
	uint64_t lines[];
};

/* More blocks than a kernel and its programs have. Blocks beyond are counted in the totals only. */
enum { MAX_BLOCKS = 1 << 20, CHUNK_BLOCKS = 1 << 10 };

/* Events in a block on one vCPU, in an interval. */
struct site {
	uint64_t executions;
	uint64_t reported; /* executions that sites_slice() has reported */
	uint64_t events[EVENTS];
};

/* By the block's id. All zeros is empty. */
struct sites {
	struct site *chunks[MAX_BLOCKS / CHUNK_BLOCKS];
};

/*
 * Returns the equal block, which is never freed; NULL when memory is short. Any vCPU may call it.
 * `describe` fills in the operations of a new block, one caller at a time.
 */
const struct pmu_block *block_known(const struct pmu_block *like,
				    void (*describe)(struct pmu_block *block, void *given), void *given);

struct site *site_of_new_chunk(struct sites *sites, uint32_t id);

/* The site of the block with that id, or NULL when memory is short or there are too many blocks. */
static inline struct site *site_of(struct sites *sites, uint32_t id)
{
	struct site *chunk = id < MAX_BLOCKS ? sites->chunks[id / CHUNK_BLOCKS] : NULL;

	return chunk != NULL ? &chunk[id % CHUNK_BLOCKS] : site_of_new_chunk(sites, id);
}

void sites_clear(struct sites *sites);

/* Adds the events of one to another. False when memory is short. */
bool sites_add(struct sites *sum, const struct sites *sites);

/*
 * Prints every kernel block that was executed or had an event, as a JSON list of [start, end,
 * instructions, executions, events…].
 */
void sites_print(FILE *file, const struct sites *sites);

/*
 * Prints instructions of kernel code since the last call, by page: a JSON list of [page,
 * instructions].
 */
void sites_slice(FILE *file, struct sites *sites);

#endif
