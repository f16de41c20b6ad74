/* The branch trace as a file: docs/recorder-trace.md. */
#ifndef MEPOF_TRACE_FILE_H
#define MEPOF_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "path_counts.h"

enum trace_record { TRACE_BRANCHES = 1, TRACE_RANGES = 2, TRACE_SAMPLE = 3, TRACE_COUNTERS = 4 };
enum trace_counter {
	TRACE_REPEATS = 1,
	TRACE_INTERRUPTIONS = 2,
	TRACE_BRANCHES_LOST = 3,
	TRACE_SAMPLES_LOST = 4,
	TRACE_TAKEN = 6,
};
enum trace_event { TRACE_EVENT_NONE = 0, TRACE_EVENT_TAKEN = 1 };

/* The header from offset 8 on, in the layout of the file. */
struct trace_header {
	uint32_t version;
	uint32_t machine;
	uint32_t flags;
	uint32_t vcpus;
	uint64_t period;
	uint32_t depth;
	uint32_t event;
	uint64_t reference;
	char reference_name[12];
	uint32_t build_id_size;
	uint8_t build_id[64];
};
_Static_assert(sizeof(struct trace_header) == 120, "the format says 128 with the magic");

enum { TRACE_SAMPLED = 1, TRACE_KERNEL_ONLY = 2 };

/* Of the entries of a sample. */
enum { MAX_DEPTH = 1024 };

struct trace_entry {
	uint64_t from;
	uint64_t to;
};

struct trace_file {
	FILE *file;
	uint64_t records;
};

/* Each returns false when the file cannot be written; errno has the cause. */
bool trace_open(struct trace_file *trace, const char *path, const struct trace_header *header);
/* `counts` must be sorted: `first` and `last` are the pair. */
bool trace_pairs(struct trace_file *trace, enum trace_record type,
		 const struct path_counts *counts);
bool trace_sample(struct trace_file *trace, uint64_t time, uint64_t address, uint32_t vcpu,
		  const struct trace_entry *newest_first, uint32_t depth);
bool trace_counters(struct trace_file *trace, const uint64_t pairs[][2], uint32_t count);
bool trace_close(struct trace_file *trace);

#endif
