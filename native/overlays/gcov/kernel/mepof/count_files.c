// SPDX-License-Identifier: GPL-2.0
/*
 * The counts of all objects as an archive: for each a file as gcc/gcov-io.h describes it (GCC 12
 * and newer: lengths in bytes), in the format of POSIX ustar.
 */
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/linkage.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <asm/sections.h>

#include "counts.h"

#define MAGIC 0x67636461
#define TAG_FUNCTION 0x01000000
#define TAG_COUNTERS(kind) (0x01a10000 + ((u32)(kind) << 17))
#define TAG_SUMMARY 0xa1000000
#define BLOCK 512

static DEFINE_SPINLOCK(lock);
static struct object_counts *objects;

/* Where to write, or only how much it would be (start is NULL). */
struct output {
	char *start;
	size_t size, capacity;
};

void __gcov_init(struct object_counts *object);
__visible void __gcov_init(struct object_counts *object)
{
	unsigned long flags, address = (unsigned long)object;

	/* Not those of modules, whose memory may be freed. */
	if (address < (unsigned long)_stext || address >= (unsigned long)_end)
		return;
	spin_lock_irqsave(&lock, flags);
	object->next = objects;
	objects = object;
	spin_unlock_irqrestore(&lock, flags);
}
EXPORT_SYMBOL(__gcov_init);

/* Objects name these: they are the end of a process and what adds up two runs. */
void __gcov_exit(void);
__visible void __gcov_exit(void) {}
EXPORT_SYMBOL(__gcov_exit);

#define MERGER(name)                                                        \
	void __gcov_merge_##name(s64 *counters, unsigned int number);       \
	__visible void __gcov_merge_##name(s64 *counters, unsigned int number) {} \
	EXPORT_SYMBOL(__gcov_merge_##name)

MERGER(add);
MERGER(topn);
MERGER(ior);
MERGER(time_profile);

static void put(struct output *to, const void *bytes, size_t size)
{
	if (to->start && to->size + size <= to->capacity)
		memcpy(to->start + to->size, bytes, size);
	to->size += size;
}

static void put_word(struct output *to, u32 word)
{
	put(to, &word, sizeof(word));
}

static void put_number(struct output *to, s64 number)
{
	put(to, &number, sizeof(number));
}

static void put_zeros(struct output *to, size_t size)
{
	if (to->start && to->size + size <= to->capacity)
		memset(to->start + to->size, 0, size);
	to->size += size;
}

/* A site's list may grow meanwhile: as many nodes are written as were counted. */
static u32 nodes_of(const struct value_site *site)
{
	const struct value_node *node;
	u32 number = 0;

	for (node = READ_ONCE(site->first); node; node = READ_ONCE(node->next))
		number++;
	return number;
}

static void put_sites(struct output *to, u32 tag, const struct counters *counters)
{
	const struct value_site *sites = (const struct value_site *)counters->values;
	unsigned int number = counters->number / 3, i;
	size_t at = to->size;

	put_word(to, tag);
	put_word(to, 0);
	for (i = 0; i < number; i++) {
		const struct value_node *node = READ_ONCE(sites[i].first);
		u32 nodes = nodes_of(&sites[i]);

		put_number(to, sites[i].total);
		put_number(to, nodes);
		for (; nodes; nodes--, node = node->next) {
			put_number(to, node->value);
			put_number(to, node->count);
		}
	}
	if (to->start && to->size <= to->capacity) {
		u32 length = to->size - at - 8;

		memcpy(to->start + at + 4, &length, sizeof(length));
	}
}

static void put_counters(struct output *to, u32 tag, const struct counters *counters)
{
	size_t size = counters->number * sizeof(s64);

	put_word(to, tag);
	if (memchr_inv(counters->values, 0, size)) {
		put_word(to, size);
		put(to, counters->values, size);
	} else {
		put_word(to, -size); /* all zero: GCC leaves them out */
	}
}

static void put_function(struct output *to, const struct object_counts *object,
			 const struct function_counts *function)
{
	const struct counters *counters = function->counters;
	unsigned int kind;

	put_word(to, TAG_FUNCTION);
	put_word(to, 12);
	put_word(to, function->identifier);
	put_word(to, function->lines_checksum);
	put_word(to, function->flow_checksum);
	for (kind = 0; kind < KINDS; kind++) {
		if (!object->kinds[kind])
			continue;
		if (kind_has_values(kind))
			put_sites(to, TAG_COUNTERS(kind), counters);
		else
			put_counters(to, TAG_COUNTERS(kind), counters);
		counters++;
	}
}

static void put_file(struct output *to, const struct object_counts *object)
{
	unsigned int i;

	put_word(to, MAGIC);
	put_word(to, object->version);
	put_word(to, object->stamp);
	put_word(to, object->checksum);
	put_word(to, TAG_SUMMARY);
	put_word(to, 8);
	put_word(to, 1);
	put_word(to, 0);
	for (i = 0; i < object->functions_number; i++) {
		const struct function_counts *function = object->functions[i];

		/* A function of several objects (a weak one) has its counters in one of them. */
		if (function && function->object == object)
			put_function(to, object, function);
	}
	put_word(to, 0);
}

struct ustar {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char link[100], magic[6], version[2], rest[247];
};
static_assert(sizeof(struct ustar) == BLOCK);

static void fill_header(struct ustar *header, const char *name, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)header;
	unsigned int sum = 0, i;

	memset(header, 0, sizeof(*header));
	strscpy(header->name, name, sizeof(header->name));
	strscpy(header->mode, "0000600", sizeof(header->mode));
	strscpy(header->uid, "0000000", sizeof(header->uid));
	strscpy(header->gid, "0000000", sizeof(header->gid));
	snprintf(header->size, sizeof(header->size), "%011zo", size);
	strscpy(header->mtime, "00000000000", sizeof(header->mtime));
	header->type = '0';
	memcpy(header->magic, "ustar", 6);
	memcpy(header->version, "00", 2);
	memset(header->checksum, ' ', sizeof(header->checksum));
	for (i = 0; i < sizeof(*header); i++)
		sum += bytes[i];
	snprintf(header->checksum, sizeof(header->checksum), "%06o", sum);
	header->checksum[7] = ' ';
}

static void put_member(struct output *to, const struct object_counts *object)
{
	size_t at = to->size, size;

	put_zeros(to, BLOCK);
	put_file(to, object);
	size = to->size - at - BLOCK;
	put_zeros(to, -to->size & (BLOCK - 1));
	if (to->start && to->size <= to->capacity)
		fill_header((struct ustar *)(to->start + at), object->file, size);
}

static size_t put_all(struct output *to)
{
	const struct object_counts *object;

	for (object = READ_ONCE(objects); object; object = object->next)
		put_member(to, object);
	put_zeros(to, 2 * BLOCK);
	return to->size;
}

/* With room for what is counted until it is written. */
size_t mepof_count_files_size(void)
{
	struct output none = {};
	size_t size = put_all(&none);

	return size + size / 8;
}

/* Returns the size of the archive, or 0 if it does not fit. */
size_t mepof_count_files_write(char *to, size_t capacity)
{
	struct output output = { .start = to, .capacity = capacity };
	size_t size = put_all(&output);

	return size <= capacity ? size : 0;
}

void mepof_counters_reset(void)
{
	const struct object_counts *object;
	unsigned int i, kind, j;

	for (object = READ_ONCE(objects); object; object = object->next)
		for (i = 0; i < object->functions_number; i++) {
			const struct function_counts *function = object->functions[i];
			const struct counters *counters;

			if (!function || function->object != object)
				continue;
			counters = function->counters;
			for (kind = 0; kind < KINDS; kind++) {
				if (!object->kinds[kind])
					continue;
				if (kind_has_values(kind)) {
					struct value_site *site = (void *)counters->values;

					for (j = 0; j < counters->number / 3; j++)
						WRITE_ONCE(site[j].total, 0);
				} else {
					memset(counters->values, 0, counters->number * sizeof(s64));
				}
				counters++;
			}
		}
	mepof_values_reset();
}
