// SPDX-License-Identifier: GPL-2.0
/*
 * The raw profile as llvm-profdata reads it (llvm/docs/InstrProfileFormat.rst):
 * header, function data, counters, bitmap, names, and the value data of each function
 * that has value sites.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "profile.h"

/* The compiler's: its format version and the variant (IR level, context sensitive). */
extern u64 __llvm_profile_raw_version;

struct raw_header {
#define INSTR_PROF_RAW_HEADER(Type, Name, Initializer) Type Name;
#include "InstrProfData.inc"
};

/* Value data of one function; a value_record for each kind that it has sites of follows. */
struct value_data {
	u32 total_size;
	u32 kinds;
};

/*
 * Followed by the number of values of each site, a byte each, padded to 8 bytes, and
 * then by the values of all sites in order.
 */
struct value_record {
	u32 kind;
	u32 sites;
	u8 values_of_site[];
};

static size_t padding(size_t size)
{
	return ALIGN(size, sizeof(u64)) - size;
}

static size_t counters_size(void)
{
	return __mepof_prf_cnts_end - __mepof_prf_cnts_start;
}

static size_t bitmap_size(void)
{
	return __mepof_prf_bits_end - __mepof_prf_bits_start;
}

static size_t names_size(void)
{
	return __mepof_prf_names_end - __mepof_prf_names_start;
}

/*
 * The initialisers that the compiler's header list gives are names of its own runtime;
 * these are ours under those names.
 */
static void fill_header(struct raw_header *header)
{
	const u64 magic = sizeof(void *) == 8 ? INSTR_PROF_RAW_MAGIC_64 : INSTR_PROF_RAW_MAGIC_32;
	const char *DataBegin = (const char *)__mepof_prf_data_start;
	const char *CountersBegin = __mepof_prf_cnts_start;
	const char *BitmapBegin = __mepof_prf_bits_start;
	const char *NamesBegin = __mepof_prf_names_start;
	const u64 NumData = __mepof_prf_data_end - __mepof_prf_data_start;
	const u64 PaddingBytesBeforeCounters = 0;
	const u64 NumCounters = counters_size() / sizeof(u64);
	const u64 PaddingBytesAfterCounters = padding(counters_size());
	const u64 NumBitmapBytes = bitmap_size();
	const u64 PaddingBytesAfterBitmapBytes = padding(bitmap_size());
	const u64 NamesSize = names_size();
	const u64 NumVTables = 0;
	const u64 VNamesSize = 0;
	/* Counters of code for graphics processors, since Clang 23. */
	const char *UniformCountersBegin = NULL;
	const u64 NumUniformCounters = 0;
	const u64 PaddingBytesAfterUniformCounters = 0;

#define __llvm_profile_get_magic() magic
#define __llvm_profile_get_version() __llvm_profile_raw_version
#define __llvm_write_binary_ids(writer) 0
#define INSTR_PROF_RAW_HEADER(Type, Name, Initializer) header->Name = (Type)(Initializer);
#include "InstrProfData.inc"
	(void)BitmapBegin;
	(void)NumVTables;
	(void)VNamesSize;
	(void)PaddingBytesAfterBitmapBytes;
	(void)UniformCountersBegin;
	(void)NumUniformCounters;
	(void)PaddingBytesAfterUniformCounters;
}

/* A buffer that is filled from its start and never beyond its end. */
struct cursor {
	char *at;
	char *end;
};

static void *reserve(struct cursor *cursor, size_t size)
{
	void *place = cursor->at;

	if (size > (size_t)(cursor->end - cursor->at))
		return NULL;
	cursor->at += size;
	return place;
}

static bool put(struct cursor *cursor, const void *from, size_t size)
{
	void *place = reserve(cursor, size + padding(size));

	if (!place)
		return false;
	memcpy(place, from, size);
	memset(place + size, 0, padding(size));
	return true;
}

static bool put_site(struct cursor *cursor, const struct value_node *node, u8 *values)
{
	InstrProfValueData *place;

	for (; node && *values < VALUES_PER_SITE; node = READ_ONCE(node->Next)) {
		u64 count = READ_ONCE(node->Count);

		if (!count)
			continue;
		place = reserve(cursor, sizeof(*place));
		if (!place)
			return false;
		place->Value = READ_ONCE(node->Value);
		place->Count = count;
		(*values)++;
	}
	return true;
}

static bool put_values(struct cursor *cursor, const struct function_data *data)
{
	struct value_node **site = (struct value_node **)(uintptr_t)data->Values;
	struct value_data *header;
	u32 kind, i;

	if (!number_of_value_sites(data))
		return true;
	header = reserve(cursor, sizeof(*header));
	if (!header)
		return false;
	header->kinds = 0;
	for (kind = IPVK_First; kind <= IPVK_Last; kind++) {
		u32 sites = data->NumValueSites[kind];
		size_t size = ALIGN(sizeof(struct value_record) + sites, sizeof(u64));
		struct value_record *record;

		if (!sites)
			continue;
		record = reserve(cursor, size);
		if (!record)
			return false;
		memset(record, 0, size);
		record->kind = kind;
		record->sites = sites;
		for (i = 0; i < sites; i++, site++) {
			/* Without static nodes a function has sites but no lists. */
			if (data->Values && !put_site(cursor, READ_ONCE(*site),
						      &record->values_of_site[i]))
				return false;
		}
		header->kinds++;
	}
	header->total_size = cursor->at - (char *)header;
	return true;
}

/* The most bytes that mepof_raw_profile_write() can need, whatever is counted meanwhile. */
size_t mepof_raw_profile_bound(void)
{
	const struct function_data *data;
	size_t bound = sizeof(struct raw_header) +
		       (char *)__mepof_prf_data_end - (char *)__mepof_prf_data_start +
		       counters_size() + bitmap_size() + names_size() + 3 * sizeof(u64);
	u32 kinds = IPVK_Last - IPVK_First + 1;

	for (data = __mepof_prf_data_start; data < __mepof_prf_data_end; data++) {
		u32 sites = number_of_value_sites(data);

		if (sites)
			bound += sizeof(struct value_data) + sites +
				 kinds * (sizeof(struct value_record) + sizeof(u64));
	}
	/* Every node hangs on one site. */
	return bound + (__mepof_prf_vnds_end - __mepof_prf_vnds_start) * sizeof(InstrProfValueData);
}

/* Returns the bytes written, or 0 where size is less than the bound above asks for. */
size_t mepof_raw_profile_write(void *buffer, size_t size)
{
	struct cursor cursor = { .at = buffer, .end = buffer + size };
	const struct function_data *data;
	struct raw_header header;

	fill_header(&header);
	if (!put(&cursor, &header, sizeof(header)) ||
	    !put(&cursor, __mepof_prf_data_start,
		 (char *)__mepof_prf_data_end - (char *)__mepof_prf_data_start) ||
	    !put(&cursor, __mepof_prf_cnts_start, counters_size()) ||
	    !put(&cursor, __mepof_prf_bits_start, bitmap_size()) ||
	    !put(&cursor, __mepof_prf_names_start, names_size()))
		return 0;
	for (data = __mepof_prf_data_start; data < __mepof_prf_data_end; data++)
		if (!put_values(&cursor, data))
			return 0;
	return cursor.at - (char *)buffer;
}
