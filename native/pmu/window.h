/*
 * The timing of a core's pipeline: a window of instructions that wait for operands, for execution
 * units and for cache misses; after T. E. Carlson and others, "An evaluation of high-level
 * mechanistic core models", ACM TACO 11 (3), 2014 (its instruction-window-centric model). Each
 * instruction gets its times once, in program order, when its block has been executed and its
 * misses are known. docs/pmu.md says what is left out.
 */
#ifndef MEPOF_PMU_WINDOW_H
#define MEPOF_PMU_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "events.h"
#include "operation.h"

enum {
	RESERVATION_CYCLES = 512,
	STORED = 1024,
	PAIRS = 512,
	MAX_WINDOW = 1024,
	MAX_PREDICTED = 256,
	MAX_AWAITED = 128
};

#define NEVER_RENAMED UINT32_MAX

/* Latencies in cycles, and the capacity of the front end. */
struct window_size {
	struct pipeline pipeline;
	uint32_t line_bits;	   /* base-2 logarithm of the bytes of a cache line */
	uint32_t fetch_bits;	   /* of the block that is fetched at once */
	uint32_t fetch_operations; /* instructions of this block in a cycle */
	uint32_t fetch_split;	   /* 1: an instruction that ends in another block is fetched with both */
	uint32_t fetch_free;	   /* 1: instructions without dispatch slots do not count */
	/*
	 * The micro-op cache, by the address at which fetching entered a block. On a miss the code
	 * is decoded: in smaller blocks with fewer instructions in a cycle, after `decode_turn`
	 * more cycles. Without ways it always hits.
	 */
	struct table_size op_cache;
	uint32_t decode_bits, decode_operations, decode_turn;
	uint32_t fetch_ahead;	   /* maximum cycles that fetching is ahead of dispatching */
	uint32_t predict_ahead;	   /* maximum fetches that predicting is ahead of fetching */
	uint32_t line_cycles;	   /* between lines that arrive in L1I */
	uint32_t misprediction;	   /* from a branch's execution to the dispatch of what follows */
	/*
	 * From a store's value to a load of what was stored. `renamed_forwarding` is for a load of
	 * the same four or eight bytes into a general register, as many stores later as the last
	 * time, if the core renames it (otherwise NEVER_RENAMED). `blocked_forwarding` is for a
	 * load of more than was stored.
	 */
	uint32_t forwarding, renamed_forwarding, blocked_forwarding;
	uint32_t repeat_start; /* of a REP, before its first line */
	uint32_t repeat_line;  /* of a REP, per line */
};

/* A load or store, with the index of its operation in the block. */
struct access {
	uint64_t address;
	uint32_t missing; /* cycles beyond those of a hit in L1 */
	uint16_t operation;
	uint8_t bytes;
	bool is_store;
};

/* Instructions that are delivered together: so many more of an aligned block. */
struct delivery {
	uint64_t block;
	uint32_t left;
};

/* Call window_make() first: all zeros except the size is a window without tables. */
struct window {
	struct window_size size;
	struct cache op_cache;
	uint64_t dispatched; /* the cycle whose slots are being filled */
	uint32_t slots;	     /* slots of it that are filled */
	uint64_t fetched;    /* the first cycle in which the next instruction can be dispatched */
	uint64_t predicted;  /* the cycle in which the next fetch was predicted */
	/* Lines of the block that are not in L1I or whose page is not in the TLB, in order. */
	struct awaited {
		uint64_t line;
		uint32_t translating, missing;
	} awaited[MAX_AWAITED];
	uint32_t awaited_count, next_awaited;
	uint64_t arrived;    /* the cycle in which the missing lines have arrived */
	uint64_t port;	     /* the cycle in which the next line can be requested */
	/* Cycles of the last fetches, a ring: predicting waits for the oldest. */
	uint64_t queue[MAX_PREDICTED];
	uint32_t next_queued;
	struct delivery fetch, decode;
	bool decodes; /* the code is not in the micro-op cache */
	bool waits;   /* for a line, so that the next instruction is in another cycle */
	enum event fetch_cause;
	uint64_t started; /* last start on an in-order core */
	uint64_t retired;
	uint64_t ready[MAX_REGISTERS];
	uint16_t writers[MAX_REGISTERS]; /* kind of writer of each */
	/* Cycles in which the slots of the window become free, a ring. */
	uint64_t freed[MAX_WINDOW];
	uint32_t next_freed;
	/*
	 * Reservation table of execution units, by cycle and kind. A row holds one cycle at a time,
	 * selected by the low bits.
	 */
	struct reserved {
		uint32_t cycle;
		uint8_t taken[MAX_UNIT_KINDS];
	} reservations[RESERVATION_CYCLES];
	/* The last two stores to each word of four bytes. */
	struct stored {
		uint64_t address;
		uint64_t ready;
		uint64_t number; /* position among all stores */
		uint8_t bytes;
	} stored[STORED][2];
	uint64_t stores;
	/* How many stores ago the value of a load was stored, by the address of the load. */
	uint64_t distances[PAIRS];
};

/* False when memory is short. */
bool window_make(struct window *window, const struct window_size *size);
void window_clear(struct window *window);

/*
 * A block's operations were executed, with their accesses in order. Attributes the cycles to causes
 * and counts micro-op cache misses, in `total` and, if it is not NULL, in `site`. Returns when the
 * last operation was executed.
 */
uint64_t window_execute(struct window *window, const struct operation *operations, uint32_t count,
			const struct access *accesses, uint32_t access_count, uint64_t *total,
			uint64_t *site);

/* The next instruction is fetched from elsewhere, after a branch that was predicted as taken. */
void window_turn(struct window *window);

/* The next instruction waits for a branch that was executed at that time. */
void window_mispredicted(struct window *window, uint64_t executed);

/*
 * The next instruction was fetched from a wrong address, which decoding detects so many cycles
 * later.
 */
void window_redirected(struct window *window, uint32_t cycles);

/* The next instruction is predicted so many cycles later, which the queue may hide. */
void window_predicts_late(struct window *window, uint32_t cycles);

/*
 * A line of the next block, by the number of its virtual address, arrives so many cycles after it
 * is requested, which is when it has been predicted and then translated.
 */
void window_code_misses(struct window *window, uint64_t line, uint32_t translating,
			uint32_t missing);

/* So many cycles pass in which nothing else is executed. */
void window_takes(struct window *window, uint32_t cycles, uint64_t *total, uint64_t *site);

/* A line of a REP, with the cycles beyond a hit in L1. */
void window_repeats(struct window *window, uint32_t missing, uint64_t *total, uint64_t *site);

#endif
