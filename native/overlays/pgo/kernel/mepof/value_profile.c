// SPDX-License-Identifier: GPL-2.0
/*
 * Value profiles: the functions that instrumented code calls at indirect calls and at
 * memory operations of variable size.
 *
 * They run in every context there is, NMIs and code before the first console included,
 * so they take no lock, allocate nothing and call nothing: a site's values are a singly
 * linked list that only grows, its nodes come from a pool in the image, and both steps
 * are one compare-and-exchange. Lost updates between CPUs are accepted, as they are for
 * the counters. What they are made of is inlined: objtool lets instrumented code call the
 * two of them with user access open, and nothing else.
 */
#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/export.h>
#include <linux/linkage.h>

#include "profile.h"

/* The compiler's own mapping of sizes to ranges. */
#define INSTR_PROF_VALUE_PROF_MEMOP_API
#undef INSTR_PROF_VISIBILITY
#define INSTR_PROF_VISIBILITY static __always_inline
#define UINT64_C(value) value##ULL
#include "InstrProfData.inc"

static atomic_long_t nodes_used;
static atomic_long_t values_dropped;

static __always_inline struct value_node *take_node(void)
{
	long capacity = __mepof_prf_vnds_end - __mepof_prf_vnds_start;
	long index;

	if (atomic_long_read(&nodes_used) >= capacity)
		return NULL;
	index = atomic_long_fetch_inc(&nodes_used);
	return index < capacity ? &__mepof_prf_vnds_start[index] : NULL;
}

/*
 * A full site gives its least frequent value up, bit by bit: each miss costs that value
 * one count, and the newcomer takes its place when nothing is left of it. A value that
 * comes up often enough gets in, one that comes up once does not.
 */
static __always_inline void contend(struct value_node *least, u64 value)
{
	u64 count = READ_ONCE(least->Count);

	if (count > 1) {
		WRITE_ONCE(least->Count, count - 1);
		return;
	}
	WRITE_ONCE(least->Value, value);
	WRITE_ONCE(least->Count, 1);
}

static __always_inline void count_value(u64 value, struct function_data *data, u32 site)
{
	struct value_node **sites, **link, *node, *least = NULL;
	unsigned int length = 0;

	if (!data || !data->Values)
		return;
	sites = (struct value_node **)(uintptr_t)data->Values;
	link = &sites[site];
	for (;;) {
		while ((node = READ_ONCE(*link))) {
			if (node->Value == value) {
				WRITE_ONCE(node->Count, node->Count + 1);
				return;
			}
			if (!least || node->Count < least->Count)
				least = node;
			length++;
			link = &node->Next;
		}
		if (length >= VALUES_PER_SITE) {
			contend(least, value);
			return;
		}
		node = take_node();
		if (!node) {
			if (least)
				contend(least, value);
			atomic_long_inc(&values_dropped);
			return;
		}
		node->Value = value;
		node->Count = 1;
		/* Another CPU or an interrupt may have appended meanwhile: walk on. */
		if (!cmpxchg(link, NULL, node))
			return;
		/*
		 * The node is lost to the pool; a list with two nodes of one value would
		 * be worse.
		 */
	}
}

void __llvm_profile_instrument_target(u64 value, void *data, u32 site);
void __llvm_profile_instrument_memop(u64 value, void *data, u32 site);

__visible notrace void __llvm_profile_instrument_target(u64 value, void *data, u32 site)
{
	count_value(value, data, site);
}
EXPORT_SYMBOL(__llvm_profile_instrument_target);

__visible notrace void __llvm_profile_instrument_memop(u64 value, void *data, u32 site)
{
	count_value(InstrProfGetRangeRepValue(value), data, site);
}
EXPORT_SYMBOL(__llvm_profile_instrument_memop);

u64 mepof_values_dropped(void)
{
	return atomic_long_read(&values_dropped);
}

/* Nodes stay in their lists with a count of zero: taking them out would need a lock. */
void mepof_values_reset(void)
{
	struct value_node *node;

	for (node = __mepof_prf_vnds_start; node < __mepof_prf_vnds_end; node++)
		WRITE_ONCE(node->Count, 0);
	atomic_long_set(&values_dropped, 0);
}
