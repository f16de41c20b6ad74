/* The translated blocks of the guest's code, each once, and what was counted in each. */
#ifndef MEPOF_PMU_BLOCKS_H
#define MEPOF_PMU_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model.h"
#include "operation.h"

/* Of code, as keys of the instruction TLB and of L1I; a block of QEMU's is in two pages at most. */
enum { MOST_PAGES = 2 };

struct pmu_block;

/* An instruction of a block, as accesses to data tell it. */
struct place {
	const struct pmu_block *block;
	uint16_t operation;
};

struct pmu_block {
	struct pmu_block *next_of_hash;
	uint64_t start;
	uint32_t id;
	uint32_t size; /* instructions */
	bool is_kernel;
	/* Begins with a REP: one that is under way counts no more. */
	bool begins_with_repeat, ends_with_repeat;
	struct branch branch;
	uint64_t code; /* a hash of its bytes: other programs have others at its address */
	struct operation *operations;
	struct place *places;
	uint32_t page_count;
	uint64_t pages[MOST_PAGES];
	uint32_t first_lines[MOST_PAGES]; /* of each page, an index into `lines` */
	uint32_t line_count;
	uint64_t lines[];
};

/* More blocks than a kernel and its programs have; of what is beyond, only totals are kept. */
enum { MOST_BLOCKS = 1 << 20, CHUNK_BLOCKS = 1 << 10 };

/* What happened in a block on one vCPU, in an interval. */
struct site {
	uint64_t executions;
	uint64_t told; /* executions that sites_slice() told of */
	uint64_t events[EVENTS];
};

/* By the block's id. All zeros is none. */
struct sites {
	struct site *chunks[MOST_BLOCKS / CHUNK_BLOCKS];
};

/*
 * The block like that one, which lasts; NULL when memory is short. Any vCPU may call it. A new one
 * has its operations described by `describe`, one caller at a time.
 */
const struct pmu_block *block_known(const struct pmu_block *like,
				    void (*describe)(struct pmu_block *block, void *given), void *given);

struct site *site_of_new_chunk(struct sites *sites, uint32_t id);

/* Of the block with that id, or NULL when memory is short or there are too many. */
static inline struct site *site_of(struct sites *sites, uint32_t id)
{
	struct site *chunk = id < MOST_BLOCKS ? sites->chunks[id / CHUNK_BLOCKS] : NULL;

	return chunk != NULL ? &chunk[id % CHUNK_BLOCKS] : site_of_new_chunk(sites, id);
}

void sites_clear(struct sites *sites);

/* Adds what happened in one to another. False when memory is short. */
bool sites_add(struct sites *sum, const struct sites *sites);

/*
 * Every kernel block that was executed or in which something happened, as a JSON list of
 * [start, end, instructions, executions, events…].
 */
void sites_print(FILE *file, const struct sites *sites);

/* Instructions of kernel code since the last call, by page: a JSON list of [page, instructions]. */
void sites_slice(FILE *file, struct sites *sites);

#endif
