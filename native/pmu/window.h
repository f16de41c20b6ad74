/*
 * The time that a core's pipeline takes, by a window of instructions that wait for their operands,
 * for execution units and for what misses; after T. E. Carlson and others, "An evaluation of
 * high-level mechanistic core models", ACM TACO 11 (3), 2014 (its instruction-window-centric
 * model). Each instruction is given its times once, in the order of the program, when its block
 * has been executed and what it missed is known. docs/pmu.md says what is left out.
 */
#ifndef MEPOF_PMU_WINDOW_H
#define MEPOF_PMU_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "events.h"
#include "operation.h"

enum {
	CALENDAR = 512,
	STORED = 1024,
	PAIRS = 512,
	MOST_WINDOW = 1024,
	MOST_PREDICTED = 256,
	MOST_AWAITED = 128
};

#define NEVER_RENAMED UINT32_MAX

/* Latencies in cycles, and what the front end delivers. */
struct window_size {
	struct pipeline pipeline;
	uint32_t line_bits;	   /* logarithm of two of the bytes of a cache line */
	uint32_t fetch_bits;	   /* of those that are fetched at once */
	uint32_t fetch_operations; /* instructions of these, in a cycle */
	uint32_t fetch_split;	   /* 1: an instruction that ends in another block is fetched with both */
	uint32_t fetch_free;	   /* 1: those without slots of dispatch are none of them */
	/*
	 * Micro-operations of what was decoded before, by where fetching came to a block. What is
	 * not there is decoded: of smaller blocks and fewer instructions in a cycle, after
	 * `decode_turn` more. Without ways everything is there.
	 */
	struct table_size op_cache;
	uint32_t decode_bits, decode_operations, decode_turn;
	uint32_t fetch_ahead;	   /* cycles that fetching is ahead of dispatching, at most */
	uint32_t predict_ahead;	   /* fetches that predicting is ahead of fetching, at most */
	uint32_t line_cycles;	   /* between lines that come to L1I */
	uint32_t misprediction;	   /* from a branch's execution until what follows is dispatched */
	/*
	 * From a store's value to a load of what was stored; to one of the same four or eight bytes
	 * into a general register that was as many stores ago as the last time, where the core
	 * renames it (otherwise NEVER_RENAMED); and to one of more than was stored.
	 */
	uint32_t forwarding, renamed_forwarding, blocked_forwarding;
	uint32_t repeat_line; /* of a REP, a line */
};

/* A load or store, of an operation of the block by its number. */
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

/* All zeros but the size is a window without room: window_make() comes first. */
struct window {
	struct window_size size;
	struct cache op_cache;
	uint64_t dispatched; /* the cycle in which slots are being filled */
	uint32_t slots;	     /* that are filled of it */
	uint64_t fetched;    /* the cycle from which on the next can be dispatched */
	uint64_t predicted;  /* the cycle in which the next fetch was predicted */
	/* Lines of the block that are not in L1I or whose page is not in its TLB, in order. */
	struct awaited {
		uint64_t line;
		uint32_t translating, missing;
	} awaited[MOST_AWAITED];
	uint32_t awaited_count, next_awaited;
	uint64_t arrived;    /* the cycle in which what it misses is there */
	uint64_t port;	     /* the cycle in which the next line can be asked for */
	/* When the last ones were fetched, a ring: predicting waits for its oldest. */
	uint64_t queue[MOST_PREDICTED];
	uint32_t next_queued;
	struct delivery fetch, decode;
	bool decodes; /* what is not in the micro-op cache */
	bool waits;   /* for a line, so that what comes next is of another cycle */
	enum event fetch_cause;
	uint64_t started; /* of a core that starts in order */
	uint64_t retired;
	uint64_t ready[MOST_REGISTERS];
	uint16_t writers[MOST_REGISTERS]; /* by which kind of writer */
	/* When the slots of the window become free, a ring. */
	uint64_t freed[MOST_WINDOW];
	uint32_t next_freed;
	/* Units that are taken, by cycle and kind; a row is of one cycle at a time, by its low bits. */
	struct row {
		uint32_t cycle;
		uint8_t taken[MOST_UNIT_KINDS];
	} rows[CALENDAR];
	/* What was stored last, and what before that, by words of four bytes. */
	struct stored {
		uint64_t address;
		uint64_t ready;
		uint64_t number; /* of all stores */
		uint8_t bytes;
	} stored[STORED][2];
	uint64_t stores;
	/* How many stores ago that was which a load had its value from, by the address of the load. */
	uint64_t distances[PAIRS];
};

/* False when memory is short. */
bool window_make(struct window *window, const struct window_size *size);
void window_clear(struct window *window);
void window_free(struct window *window);

/*
 * A block's operations were executed, with their accesses in order. Counts the cycles by what they
 * went to, and what was decoded, in `total` and, if it is not NULL, `site`. Gives when the last one
 * was executed.
 */
uint64_t window_execute(struct window *window, const struct operation *operations, uint32_t count,
			const struct access *accesses, uint32_t access_count, uint64_t *total,
			uint64_t *site);

/* What comes next is fetched from elsewhere: after a branch that was predicted as taken. */
void window_turn(struct window *window);

/* What comes next waits for a branch that was executed at that time. */
void window_mispredicted(struct window *window, uint64_t executed);

/* What comes next was fetched wrong, which is seen that many cycles later, at decoding. */
void window_redirected(struct window *window, uint32_t cycles);

/* What comes next is predicted that many cycles later, which the queue may cover. */
void window_predicts_late(struct window *window, uint32_t cycles);

/*
 * A line of the next block, by the number of its virtual address, comes that many cycles after it
 * is asked for, which is when it has been predicted and then been translated.
 */
void window_code_misses(struct window *window, uint64_t line, uint32_t translating,
			uint32_t missing);

/* A line of a REP; with what is beyond a hit in L1. */
void window_repeats(struct window *window, uint32_t missing, uint64_t *total, uint64_t *site);

#endif
