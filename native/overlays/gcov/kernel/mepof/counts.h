/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What GCC leaves in an instrumented object, as its gcc/coverage.cc writes it and libgcc/libgcov.h
 * declares it: GCC 12 and newer.
 */
#ifndef _MEPOF_COUNTS_H
#define _MEPOF_COUNTS_H

#include <linux/types.h>

/* Kinds of counters, by gcc/gcov-counter.def. */
enum {
	KIND_ARCS,
	KIND_INTERVAL,
	KIND_POW2,
	KIND_TOP_VALUES,
	KIND_TARGETS,
	KIND_AVERAGE,
	KIND_BITS,
	KIND_FIRST_RUN,
#if __GNUC__ >= 14
	KIND_CONDITIONS,
#endif
#if __GNUC__ >= 15
	KIND_PATHS,
#endif
	KINDS,
};

/* A value of a site, and how often it came up. */
struct value_node {
	s64 value;
	s64 count;
	struct value_node *next;
};

/* Of kinds with values, a site has three counters: total, number of nodes, first node. */
struct value_site {
	s64 total;
	s64 nodes;
	struct value_node *first;
};

struct counters {
	unsigned int number;
	s64 *values;
};

struct object_counts;

struct function_counts {
	const struct object_counts *object;
	unsigned int identifier;
	unsigned int lines_checksum;
	unsigned int flow_checksum;
	struct counters counters[]; /* of the kinds that the object has, in order */
};

struct object_counts {
	unsigned int version;
	struct object_counts *next;
	unsigned int stamp;
	unsigned int checksum;
	const char *file;
	void (*kinds[KINDS])(s64 *counters, unsigned int number); /* NULL where it has none */
	unsigned int functions_number;
	const struct function_counts *const *functions;
};

static inline bool kind_has_values(unsigned int kind)
{
	return kind == KIND_TOP_VALUES || kind == KIND_TARGETS;
}

/* count_files.c: an archive (tar) with a .gcda file of each object. */
size_t mepof_count_files_size(void);
size_t mepof_count_files_write(char *to, size_t capacity);
void mepof_counters_reset(void);

/* value_profile.c */
u64 mepof_values_dropped(void);
void mepof_values_reset(void);

#endif
