/*
 * The model of a core that one vCPU drives: executed code goes in, events come out. Nothing here
 * depends on QEMU, so that tests can drive it too. docs/pmu.md describes what is modelled.
 */
#ifndef MEPOF_PMU_MODEL_H
#define MEPOF_PMU_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../tcg-plugin/decode.h"
#include "cache.h"
#include "direction.h"
#include "events.h"
#include "targets.h"

enum { STREAMS = 16 };

/* The sizes of a core. */
struct core_size {
	uint32_t line_bits;
	struct table_size l1i, l1d, l2;
	struct table_size itlb, dtlb;
	/* The second level. If `l2_dtlb` has no ways, `l2_itlb` serves both. */
	struct table_size l2_itlb, l2_dtlb;
	struct targets_size targets;
	struct direction_size direction;
	/*
	 * Lines that a miss prefetches: the next ones of code; after a second miss of a stream of
	 * data, those that follow it.
	 */
	uint32_t code_prefetch, data_prefetch;
	/* Latencies in cycles, beyond those of the event that each is part of. */
	struct latencies {
		uint32_t l1i_miss, l1d_miss, l2_code_miss, l2_data_miss;
		uint32_t itlb_miss, dtlb_miss, itlb_walk, dtlb_walk;
		uint32_t btb_miss, l1_btb_miss, path_target, call_target, return_target;
	} latency;
};

/* The branch that ends a block. */
struct branch {
	enum transfer transfer;
	uint64_t address;
	uint64_t next;   /* address after it */
	uint64_t target; /* of a direct branch */
};

struct stream {
	uint64_t next; /* the line that continues it */
	int64_t step;  /* 1 or -1; 0: one miss is known, the line before or after `next` */
};

/* Call model_make() first: all zeros except the size is a model without tables. */
struct model {
	struct core_size size;
	struct cache l1i, l1d, l2, itlb, dtlb, l2_itlb, l2_dtlb;
	struct targets targets;
	struct direction direction;
	struct stream streams[STREAMS];
	uint32_t next_stream;
	/* The last accessed ones, which are still present. */
	uint64_t last_code_line, last_code_page;
	/* The event if the last branch was mispredicted, otherwise EVENTS. */
	enum event misprediction;
	/* Cycles by which it was predicted later than other branches. */
	uint32_t late;
};

/* Where events are counted: totals, and those of the code in which they happen. */
struct tally {
	uint64_t *total;
	uint64_t *site;
};

bool model_make(struct model *model, const struct core_size *size);
void model_clear(struct model *model);

/*
 * A block ended with that branch, and execution continued at `to`. Returns whether a processor
 * counts it as taken, which includes branches that an interrupt follows.
 */
bool model_branch(struct model *model, const struct branch *branch, uint64_t to,
		  struct tally tally);

/*
 * Code is fetched: a line by its physical number, and its page by its key. These functions and
 * those for data return the cycles that the misses cost.
 */
uint32_t model_code_page(struct model *model, uint64_t page, struct tally tally);
uint32_t model_code_miss(struct model *model, uint64_t line, struct tally tally);

static inline uint32_t model_code_line(struct model *model, uint64_t line, struct tally tally)
{
	if (line == model->last_code_line)
		return 0;
	model->last_code_line = line;
	tally.total[EVENT_l1i_accesses]++;
	return cache_touch(&model->l1i, line) ? 0 : model_code_miss(model, line, tally);
}

/* Slow path of an access to data, whose page is not the last one or whose line is not in L1. */
uint32_t model_data_page(struct model *model, uint64_t page, struct tally tally);

/* A miss in L1, with the physical number of the line, or UINT64_MAX for uncached memory. */
uint32_t model_data_miss(struct model *model, uint64_t line, uint64_t physical_line,
			 struct tally tally);

static inline void count(struct tally tally, enum event event)
{
	tally.total[event]++;
	if (tally.site != NULL)
		tally.site[event]++;
}

#endif
