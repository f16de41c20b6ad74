/* Execution counts: a hash table from three addresses to a number. */
#ifndef MEPOF_PATH_COUNTS_H
#define MEPOF_PATH_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Code ran straight from `first` to `last`, and a branch went on to `to` (0: no branch). */
struct path {
	uint64_t first;
	uint64_t last;
	uint64_t to;
	uint64_t count;
};

/* All zeros is an empty table. A slot is empty while its count is 0. */
struct path_counts {
	struct path *slots;
	size_t capacity;
	size_t used;
};

/*
 * Maximum number of distinct paths in a table. A busy day of a kernel makes a tenth of these. Each
 * takes 64 bytes.
 */
enum { PATHS_KEPT = 1 << 20 };

/* Sets another limit, for every table. */
void path_counts_limit(size_t paths);

/* False if the path is new and the table is full. */
bool path_counts_add(struct path_counts *counts, uint64_t first, uint64_t last, uint64_t to,
		     uint64_t count);

/* 0 for a path that was never added. */
uint64_t path_counts_get(const struct path_counts *counts, uint64_t first, uint64_t last,
			 uint64_t to);

/* Sorts by address, so that equal runs write equal files. Nothing can be added afterwards. */
void path_counts_sort(struct path_counts *counts);

void path_counts_free(struct path_counts *counts);

#endif
