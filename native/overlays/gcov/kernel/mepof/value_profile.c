// SPDX-License-Identifier: GPL-2.0
/*
 * Value profiles: the functions that instrumented code calls, with the results of libgcc's
 * (libgcc/libgcov-profiler.c).
 *
 * They run in every context there is, NMIs and code before the first console included, so they
 * take no lock, allocate nothing and call nothing: a site's values are a singly linked list that
 * only grows, its nodes come from a pool in the image, and both steps are one
 * compare-and-exchange. An interrupt between the two halves of an indirect call (the caller notes
 * the target, the callee counts it) loses that call; nothing is counted wrongly on one CPU.
 */
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/linkage.h>

#include "counts.h"

#define POOL (1 << 17)
/* GCOV_TOPN_MAXIMUM_TRACKED_VALUES */
#define VALUES_PER_SITE 32

static struct value_node pool[POOL];
static atomic_long_t nodes_used;
static atomic_long_t values_dropped;

/* What a caller notes for its callee. */
struct indirect_call {
	void *callee;
	s64 *counters;
};

extern struct indirect_call __gcov_indirect_call;
extern s64 __gcov_time_profiler_counter;
__visible struct indirect_call __gcov_indirect_call;
__visible s64 __gcov_time_profiler_counter;
EXPORT_SYMBOL(__gcov_indirect_call);
EXPORT_SYMBOL(__gcov_time_profiler_counter);

static __always_inline void add(s64 *counter, s64 value)
{
	atomic64_add(value, (atomic64_t *)counter);
}

static __always_inline struct value_node *take_node(void)
{
	long index;

	if (atomic_long_read(&nodes_used) >= POOL)
		return NULL;
	index = atomic_long_fetch_inc(&nodes_used);
	return index < POOL ? &pool[index] : NULL;
}

static __always_inline void count_value(s64 *counters, s64 value)
{
	struct value_site *site = (struct value_site *)counters;
	struct value_node **link = &site->first, *node, *least = NULL;
	unsigned int length = 0;

	add(&site->total, 1);
	for (;;) {
		while ((node = READ_ONCE(*link))) {
			if (node->value == value) {
				add(&node->count, 1);
				return;
			}
			if (!least || node->count < least->count)
				least = node;
			length++;
			link = &node->next;
		}
		if (length >= VALUES_PER_SITE) {
			/* A value that comes up often enough takes the place of the least. */
			if (least->count > 1) {
				add(&least->count, -1);
			} else {
				WRITE_ONCE(least->value, value);
				WRITE_ONCE(least->count, 1);
			}
			return;
		}
		node = take_node();
		if (!node) {
			atomic_long_inc(&values_dropped);
			return;
		}
		node->value = value;
		node->count = 1;
		/* Another CPU or an interrupt may have appended meanwhile: walk on. */
		if (!cmpxchg(link, NULL, node)) {
			add(&site->nodes, 1);
			return;
		}
	}
}

static __always_inline void count_call(s64 value, void *function)
{
	if (function == __gcov_indirect_call.callee)
		count_value(__gcov_indirect_call.counters, value);
	WRITE_ONCE(__gcov_indirect_call.callee, NULL);
}

static __always_inline void count_interval(s64 *counters, s64 value, int start, unsigned int steps)
{
	s64 delta = value - start;

	if (delta < 0)
		add(&counters[steps + 1], 1);
	else if (delta >= steps)
		add(&counters[steps], 1);
	else
		add(&counters[delta], 1);
}

static __always_inline void count_power(s64 *counters, s64 value)
{
	add(&counters[value != 0 && (value & (value - 1)) == 0], 1);
}

static __always_inline void count_average(s64 *counters, s64 value)
{
	add(&counters[0], value);
	add(&counters[1], 1);
}

static __always_inline void count_bits(s64 *counters, s64 value)
{
	atomic64_or(value, (atomic64_t *)counters);
}

/* The compiler calls the one or the other by -fprofile-update. Both are atomic here. */
#define PROFILER(name, parameters, call)                            \
	void __gcov_##name parameters;                              \
	__visible notrace void __gcov_##name parameters { call; }   \
	EXPORT_SYMBOL(__gcov_##name);                               \
	void __gcov_##name##_atomic parameters;                     \
	__visible notrace void __gcov_##name##_atomic parameters    \
	{                                                           \
		call;                                               \
	}                                                           \
	EXPORT_SYMBOL(__gcov_##name##_atomic)

PROFILER(topn_values_profiler, (s64 *counters, s64 value), count_value(counters, value));
PROFILER(indirect_call_profiler_v4, (s64 value, void *function), count_call(value, function));
PROFILER(interval_profiler, (s64 *counters, s64 value, int start, unsigned int steps),
	 count_interval(counters, value, start, steps));
PROFILER(pow2_profiler, (s64 *counters, s64 value), count_power(counters, value));
PROFILER(average_profiler, (s64 *counters, s64 value), count_average(counters, value));
PROFILER(ior_profiler, (s64 *counters, s64 value), count_bits(counters, value));

u64 mepof_values_dropped(void)
{
	return atomic_long_read(&values_dropped);
}

/* Nodes stay in their lists with a count of zero: taking them out would need a lock. */
void mepof_values_reset(void)
{
	long index, used = min_t(long, atomic_long_read(&nodes_used), POOL);

	for (index = 0; index < used; index++)
		WRITE_ONCE(pool[index].count, 0);
	atomic_long_set(&values_dropped, 0);
}
